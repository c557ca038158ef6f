"""Feature maps: what turns a state into numbers that a model can share between states."""

from mixope.features.factors import FactorFeatures, cross_actions, one_hot

__all__ = ["FactorFeatures", "cross_actions", "one_hot"]
