"""Behaviours: what stands in the denominator of ρ, how it is calibrated, and how much each logger counts."""

from mixope.behaviours.calibration import misfit, state_factors
from mixope.behaviours.classifier import ClassifierMixture, held_out_loss
from mixope.behaviours.counted import CountedMixture, CountedPerLogger
from mixope.behaviours.known_mixture import KnownMixture
from mixope.behaviours.logged import Logged
from mixope.behaviours.logger_weights import kl_weights, sample_weights
from mixope.behaviours.protocol import Behaviour, Inverse

__all__ = [
    "Behaviour",
    "ClassifierMixture",
    "CountedMixture",
    "CountedPerLogger",
    "Inverse",
    "KnownMixture",
    "Logged",
    "held_out_loss",
    "kl_weights",
    "misfit",
    "sample_weights",
    "state_factors",
]
