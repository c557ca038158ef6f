"""Behaviours: what stands in the denominator of ρ, how it is calibrated, and how much each logger counts."""

from mixope.behaviours.calibration import misfit, state_factors
from mixope.behaviours.classifier import ClassifierMixture, held_out_loss
from mixope.behaviours.classifier_rows import ClassifierRows
from mixope.behaviours.counted import CountedMixture, CountedPerLogger
from mixope.behaviours.default_rows import default_row_behaviour
from mixope.behaviours.experts_rows import MixtureOfExperts
from mixope.behaviours.gaussian_rows import HeteroscedasticGaussian
from mixope.behaviours.known_mixture import KnownMixture
from mixope.behaviours.known_rows import KnownMixtureRows
from mixope.behaviours.logged import Logged
from mixope.behaviours.logged_rows import LoggedRows
from mixope.behaviours.logger_weights import kl_weights, sample_weights
from mixope.behaviours.per_logger_rows import PerLoggerRows
from mixope.behaviours.protocol import Behaviour, Inverse
from mixope.behaviours.rows_protocol import FittedBehaviour, RowBehaviour

__all__ = [
    "Behaviour",
    "ClassifierMixture",
    "ClassifierRows",
    "CountedMixture",
    "CountedPerLogger",
    "FittedBehaviour",
    "HeteroscedasticGaussian",
    "Inverse",
    "KnownMixture",
    "KnownMixtureRows",
    "Logged",
    "LoggedRows",
    "MixtureOfExperts",
    "PerLoggerRows",
    "RowBehaviour",
    "default_row_behaviour",
    "held_out_loss",
    "kl_weights",
    "misfit",
    "sample_weights",
    "state_factors",
]
