"""Experiments on units over time: what a short test of several arms says of the long run."""

from mixope.base.moved import renamed
from mixope.experiments.records import ArmResult, Experiment
from mixope.experiments.running import experiment

__getattr__ = renamed(__name__, {"Effect": "mixope.uncertainty.Difference"})
__all__ = ["ArmResult", "Experiment", "experiment"]
