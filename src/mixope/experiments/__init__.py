"""Experiments on units over time: what a short test of several arms says of the long run."""

from mixope.experiments.records import ArmResult, Effect, Experiment
from mixope.experiments.running import experiment

__all__ = ["ArmResult", "Effect", "Experiment", "experiment"]
