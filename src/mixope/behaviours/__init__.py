"""Behaviours: what stands in the denominator of ρ, how it is calibrated, and how much each logger counts."""

from mixope.behaviours.calibration import misfit, state_factors
from mixope.behaviours.classifier import ClassifierMixture
from mixope.behaviours.counted import CountedMixture
from mixope.behaviours.defaults import BEHAVIOURS, DefaultMixture, as_behaviour, behaviour_by_name, default_mixture
from mixope.behaviours.experts import MixtureOfExperts
from mixope.behaviours.gaussian import HeteroscedasticGaussian
from mixope.behaviours.imitation import imitate
from mixope.behaviours.known import KnownMixture
from mixope.behaviours.labelled import MixtureOfLoggers
from mixope.behaviours.logged import Logged
from mixope.behaviours.logger_weights import kl_weights, nearest_logger_weights, sample_weights
from mixope.behaviours.per_logger import PerLogger
from mixope.behaviours.protocol import Behaviour, FittedBehaviour, Inverse

__all__ = [
    "BEHAVIOURS",
    "Behaviour",
    "ClassifierMixture",
    "CountedMixture",
    "DefaultMixture",
    "FittedBehaviour",
    "HeteroscedasticGaussian",
    "Inverse",
    "KnownMixture",
    "Logged",
    "MixtureOfExperts",
    "MixtureOfLoggers",
    "PerLogger",
    "as_behaviour",
    "behaviour_by_name",
    "default_mixture",
    "imitate",
    "kl_weights",
    "misfit",
    "nearest_logger_weights",
    "sample_weights",
    "state_factors",
]
