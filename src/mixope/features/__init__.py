"""Feature maps: what turns a state into numbers that a model can share between states."""

from mixope.features.bumps import FittedBumps, NormalisedBumps, default_size
from mixope.features.columns import ColumnFeatures
from mixope.features.encoding import FittedEncoded, StateEncoding, fit_encoded, standardised
from mixope.features.factors import FactorFeatures, cross_actions, one_hot
from mixope.features.kernel import gaussian_kernel
from mixope.features.one_hot import FittedOneHot, OneHot
from mixope.features.protocol import FeatureMap, FittedMap, namespace
from mixope.features.standard import Standardise

__all__ = [
    "ColumnFeatures",
    "FactorFeatures",
    "FeatureMap",
    "FittedBumps",
    "FittedEncoded",
    "FittedMap",
    "FittedOneHot",
    "NormalisedBumps",
    "OneHot",
    "Standardise",
    "StateEncoding",
    "cross_actions",
    "default_size",
    "fit_encoded",
    "gaussian_kernel",
    "namespace",
    "one_hot",
    "standardised",
]
