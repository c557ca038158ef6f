"""A fitted behaviour as a policy: what a logger did, to be evaluated like any other target.

A behaviour is made to stand in a denominator, so it has a floor, or a little of everything, and allows for its own
errors. A policy to be evaluated must be a law that can be drawn from: here it is what maximum likelihood says.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, positions
from mixope.base.errors import UsageError
from mixope.behaviours.classifier import FittedClassifier
from mixope.behaviours.gaussian import FittedDensity
from mixope.behaviours.protocol import FittedBehaviour, vectors
from mixope.policies.fingerprints import digest
from mixope.policies.protocol import Policy


def imitate(fitted: FittedBehaviour) -> Policy:
    """The policy that a classifier, or a Gaussian of one logger, has found in the rows."""
    if isinstance(fitted, FittedClassifier):
        return Classified(fitted)
    if isinstance(fitted, FittedDensity) and len(fitted.model.experts) == 1:
        return RecordedDraws(fitted)
    raise UsageError(f"expected a fitted classifier or a fitted Gaussian of one logger, got {type(fitted).__name__}")


@dataclass(frozen=True)
class Classified:
    """π̂(a|s) by a classifier, over the actions that it was fitted to."""

    fitted: FittedClassifier

    @property
    def actions(self) -> AnyArray:
        """The actions of the rows behind it."""
        return self.fitted.law.classes

    def probs(self, observations: AnyArray) -> FloatArray:
        """One row per state; its entries add up to one."""
        return self.fitted.law.at(observations)

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π̂(a|s); −∞ for an action that was never taken."""
        column = positions(actions, self.actions)
        picked = self.probs(observations)[np.arange(len(column)), column]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(column >= 0, picked, 0.0)))

    @cached_property
    def _hash(self) -> str:
        return digest(b"classified", pickle.dumps(self.fitted, protocol=4))

    def fingerprint(self) -> str:
        """Hash of the classifier."""
        return self._hash


@dataclass(frozen=True)
class RecordedDraws:
    """Draws from N(xᵀβ, exp(xᵀγ)), recorded through the box that the rows showed."""

    fitted: FittedDensity

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π̂(a|s); −∞ beyond a bound at which it would have been clipped."""
        box, taken = self.fitted.choice.box, vectors(actions, "actions")
        shown = np.clip(taken, box.low, box.high)
        slack = 1e-6 * np.where(np.isfinite(box.high - box.low), box.high - box.low, 0.0)
        beyond = np.any((np.abs(taken - shown) > slack) & ~box.squashed, axis=1)
        return np.where(beyond, -np.inf, box.draws(shown).log_density(*self._moments(observations)))

    def sample(self, observations: AnyArray, generator: np.random.Generator) -> FloatArray:
        """One action for every row, as it would be recorded."""
        mean, log_variance = self._moments(observations)
        return self._recorded(mean, log_variance, generator.standard_normal(mean.shape))

    def at_noise(self, observations: AnyArray, noise: AnyArray) -> FloatArray:
        """The recorded action for given standard normal noise: for quadrature."""
        return self._recorded(*self._moments(observations), np.asarray(noise))

    def _recorded(self, mean: FloatArray, log_variance: FloatArray, noise: FloatArray) -> FloatArray:
        return self.fitted.choice.box.recorded(mean + np.exp(0.5 * log_variance) * noise)

    def _moments(self, observations: AnyArray) -> tuple[FloatArray, FloatArray]:
        """μ and log σ², without what a denominator allows for its errors."""
        model = replace(self.fitted.model.experts[0], root=None)
        return model.moments(self.fitted.choice.design(vectors(observations, "states")))

    @cached_property
    def _hash(self) -> str:
        return digest(b"drawn", pickle.dumps(self.fitted, protocol=4))

    def fingerprint(self) -> str:
        """Hash of the features, the box and the coefficients."""
        return self._hash
