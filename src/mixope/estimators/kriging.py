"""What may be said of an action that was never logged in a state: kriging over the factors of the state.

For one action a, what a pair is worth, y(s) (its reward and what follows), is taken as a mean plus a random function
that is alike in states that share factors, and in states where the target's probability π(a|s) is alike,

    Cov(y(s), y(s̃)) = v C(s, s̃),    C = Π_k ρ_k^[s_k ≠ s̃_k] + π(a|s) π(a|s̃),    noise σ²/n on the mean of n rows.

All interactions of the factors are in C, the high ones with less weight. With A = C + diag(λ/n) on the logged states,
λ = σ²/v, the best linear unbiased prediction of an unlogged state u is g·y with

    g = A⁻¹ c + A⁻¹1 (1 − 1ᵀA⁻¹c) / 1ᵀA⁻¹1,    c = C(·, u)              (the weights sum to one),

and its covariance is known too. The ρ_k, v and σ² are read off the logs by the method of moments: half the mean
squared difference between logged states that differ in factor k *alone* is v(1 − ρ_k), once noise is taken off
(a variogram, Matheron 1963; Cressie, *Statistics for Spatial Data*, 1993, §3.4). Nothing is tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from mixope.arrays import AnyArray, BoolArray, FloatArray, IntArray

LEAST, MOST = 0.02, 0.995
"""Bounds of ρ: no factor means nothing, none means all."""


@dataclass(frozen=True)
class Likeness:
    """ρ of every factor, the sill v, the noise σ² of one row."""

    decays: tuple[float, ...]
    sill: float
    noise: float

    @property
    def nugget(self) -> float:
        """λ = σ²/v."""
        return self.noise / self.sill

    def between(self, observations: AnyArray) -> FloatArray:
        """Π_k ρ_k^[s_k ≠ s̃_k] for all states, shape (states, states)."""
        alike = np.ones((len(observations), len(observations)))
        for decay, column in zip(self.decays, observations.T, strict=True):
            alike *= np.where(column[:, None] == column[None, :], 1.0, decay)
        return alike


def first_guess(n_factors: int) -> Likeness:
    """Before anything is known."""
    return Likeness((0.8,) * n_factors, 1.0, 0.01)


def measure_likeness(
    observations: AnyArray, state: IntArray, action: IntArray, rows: FloatArray, worth: FloatArray, noise: float
) -> Likeness:
    """The variogram of the worth of logged pairs, over all actions together; a difference counts as sure as it is."""
    n_factors = observations.shape[1]
    gap, known, spread = np.zeros(n_factors), np.zeros(n_factors), 0.0
    for a in np.unique(action):
        mine = action == a
        seen, y, n = observations[state[mine]], worth[mine], rows[mine]
        spread += float(np.sum(n * (y - np.average(y, weights=n)) ** 2 - noise))
        differs = [column[:, None] != column[None, :] for column in seen.T]
        once = np.sum(differs, axis=0) == 1
        sure = 1.0 / (1.0 / n[:, None] + 1.0 / n[None, :])
        half = 0.5 * sure * (y[:, None] - y[None, :]) ** 2 - 0.5 * noise
        for k, other in enumerate(differs):
            alone: BoolArray = once & other
            gap[k] += float(half[alone].sum())
            known[k] += float(sure[alone].sum())
    sill = max(spread / float(rows.sum()), 1e-12 * (1.0 + float(np.max(worth**2))))
    rho = 1.0 - np.divide(gap, known * sill, out=np.full(n_factors, 0.5), where=known > 0)
    return Likeness(tuple(np.clip(rho, LEAST, MOST).tolist()), sill, max(noise, 1e-9 * sill))


@dataclass(frozen=True)
class Kriging:
    """One action: its logged pairs (``pairs``, in ``states``, n ``rows`` each) and the ``unseen`` states it is for.

    ``alike`` is :meth:`Likeness.between` of all states, ``chance`` π(a|·).
    """

    action: int
    pairs: IntArray
    states: IntArray
    unseen: IntArray
    rows: FloatArray
    alike: FloatArray
    chance: FloatArray
    nugget: float

    def _cov(self, left: IntArray, right: IntArray) -> FloatArray:
        return np.asarray(self.alike[np.ix_(left, right)] + np.outer(self.chance[left], self.chance[right]))

    @cached_property
    def _factor(self) -> tuple[FloatArray, bool]:
        matrix = self._cov(self.states, self.states)
        matrix[np.diag_indices_from(matrix)] += self.nugget / self.rows
        found: tuple[FloatArray, bool] = linalg.cho_factor(matrix, lower=True)
        return found

    def _solve(self, right: FloatArray) -> FloatArray:
        return np.asarray(linalg.cho_solve(self._factor, right))

    @cached_property
    def _one(self) -> FloatArray:
        """A⁻¹ 1."""
        return self._solve(np.ones(len(self.states)))

    @cached_property
    def weights(self) -> FloatArray:
        """g for every unseen state: shape (unseen, pairs)."""
        x = self._solve(self._cov(self.states, self.unseen))
        return np.asarray((x + np.outer(self._one, (1.0 - x.sum(axis=0)) / self._one.sum())).T)

    def variance(self, mass: FloatArray) -> float:
        """Of Σ mass(u) y(u) over the unseen states, as predicted, in units of the sill."""
        spread = np.zeros(len(self.chance))
        spread[self.unseen] = mass
        moved = self.alike @ spread + self.chance * float(self.chance @ spread)
        c = moved[self.states]
        lack = float(mass.sum() - self._one @ c)
        return max(float(spread @ moved) - float(c @ self._solve(c)) + lack**2 / float(self._one.sum()), 0.0)
