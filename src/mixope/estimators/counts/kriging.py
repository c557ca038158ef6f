"""What may be said of an action that was never logged in a state: kriging over the factors of the state.

For one action a, what a pair is worth, y(s) (its reward and what follows), is taken as a mean plus a random function
that is alike in states that share factors, and in states where the target's probability π(a|s) is alike,

    Cov(y(s), y(s̃)) = v C(s, s̃),    C = Π_k ρ_k^[s_k ≠ s̃_k] + π(a|s) π(a|s̃),    noise σ²/n on the mean of n rows.

All interactions of the factors are in C, the high ones with less weight. With A = C + diag(λ/n) on logged states,
λ = σ²/v, the best linear unbiased prediction of an unlogged state u is g·y with

    g = A⁻¹ c + A⁻¹1 (1 − 1ᵀA⁻¹c) / 1ᵀA⁻¹1,    c = C(·, u)              (the weights sum to one).

Where an action was logged in many states, only those enter that say most about u by themselves, with the largest
c²/(C + λ/n): its *neighbours*. In a world of many factors they may all lie on one side of u, so a *trend* is taken off
first: β, the constant, the main effects of the factors and the effect of π(a|s), by ridge regression with the
variances that C itself gives to them. With x the columns of a state, X those of the logged pairs,

    ŷ(u) = x(u)·β + g·(y − Xβ),    β = B y,

which is linear in y; the variance of its error is known too. The cost is linear in the unlogged pairs.

The ρ_k, v and σ² are read off the logs by the method of moments: half the mean squared difference between logged states
that differ in factor k *alone* is v(1 − ρ_k), once noise is taken off (a variogram, Matheron 1963; Cressie, *Statistics
for Spatial Data*, 1993, §3.4). Nothing is tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mixope.base.arrays import AnyArray, FloatArray, IntArray, sum_by

LEAST, MOST = 0.02, 0.995
"""Bounds of ρ: no factor is ignored, and none is decisive."""
NEIGHBOURS = 48
"""How many logged states a prediction looks at."""
_NARROW = 64
"""Factors with no more values than this are compared by matrix products."""
_BATCH = 4_000_000


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


def first_guess(n_factors: int) -> Likeness:
    """Before anything is known."""
    return Likeness((0.8,) * n_factors, 1.0, 0.01)


def number_factors(observations: AnyArray) -> IntArray:
    """The values of every factor, numbered: shape (states, factors)."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in observations.T], axis=1)


@dataclass(frozen=True)
class Places:
    """States by the numbers of their factors, under a likeness."""

    factors: IntArray
    likeness: Likeness

    @cached_property
    def _rates(self) -> FloatArray:
        """ln(1/ρ_k)."""
        return np.asarray(-np.log(np.array(self.likeness.decays)))

    @cached_property
    def _sizes(self) -> IntArray:
        return np.asarray(self.factors.max(axis=0) + 1)

    @cached_property
    def _few(self) -> IntArray:
        """The factors with few values."""
        return np.flatnonzero(self._sizes <= _NARROW)

    @cached_property
    def values(self) -> sparse.csr_matrix:
        """One column for each value of the factors with few values: shape (states, values)."""
        few = self._few
        first = np.concatenate([[0], np.cumsum(self._sizes[few])])
        column = self.factors[:, few] + first[:-1]
        state = np.repeat(np.arange(len(column)), len(few))
        entries = np.ones(column.size), (state, column.ravel())
        return sparse.csr_matrix(entries, shape=(len(column), int(first[-1])))

    @cached_property
    def main_effects(self) -> tuple[FloatArray, float]:
        """The variance that C gives to every column of ``values``, and what it has besides these and a constant.

        C = Π_k [a_k + (1 − ρ_k)([s_k = s̃_k] − 1/v_k)], a_k = ρ_k + (1 − ρ_k)/v_k, v_k the number of values (1/v_k = 0
        for factors with many): its terms with one bracket are the main effects.
        """
        rho, few = np.array(self.likeness.decays), self._sizes <= _NARROW
        share = np.where(few, 1.0 / self._sizes, 0.0)
        level = rho + (1.0 - rho) * share
        constant = float(np.prod(level))
        main = (constant * (1.0 - rho) / level)[few]
        rest = 1.0 - constant - float(main @ (1.0 - share[few]))
        return np.repeat(main, self._sizes[few]), max(rest, 0.0)

    @cached_property
    def _root(self) -> FloatArray:
        """Vectors of states whose products are Σ_k ln(1/ρ_k)[s_k = s̃_k] over the factors with few values."""
        rates = np.repeat(self._rates[self._few], self._sizes[self._few])
        return np.asarray(self.values.toarray() * np.sqrt(rates))

    @cached_property
    def _single(self) -> FloatArray:
        return self._root.astype(np.float32)

    def alike(self, left: IntArray, right: IntArray, exact: bool = True) -> FloatArray:
        """Π_k ρ_k^[s_k ≠ s̃_k] between states (…, n) and (…, m): shape (…, n, m); in single precision if not exact."""
        root = self._root if exact else self._single
        log = np.matmul(root[left], np.swapaxes(root[right], -1, -2))
        for k in np.flatnonzero(self._sizes > _NARROW):
            same = self.factors[left, k][..., :, None] == self.factors[right, k][..., None, :]
            log += same * root.dtype.type(self._rates[k])
        log -= root.dtype.type(self._rates.sum())
        return np.asarray(np.exp(log, out=log))

    def form(self, z: FloatArray) -> float:
        """zᵀ C z for z on all states: factor by factor where their grid is small, else pair by pair."""
        n, cells = len(z), float(np.prod(self._sizes.astype(float)))
        if cells * len(self._sizes) <= float(n) * n:
            at = np.ravel_multi_index(tuple(self.factors.T), tuple(self._sizes))
            grid = sum_by(at, z, int(cells)).reshape(tuple(self._sizes))
            for axis, rho in enumerate(self.likeness.decays):
                grid = (1.0 - rho) * grid + rho * grid.sum(axis=axis, keepdims=True)
            return float(z @ grid.ravel()[at])
        used = np.flatnonzero(z)
        step = max(1, _BATCH // max(len(used), 1))
        parts = (used[i : i + step] for i in range(0, len(used), step))
        return float(sum(z[part] @ (self.alike(part, used) @ z[used]) for part in parts))


def measure_likeness(
    factors: IntArray, state: IntArray, action: IntArray, rows: FloatArray, worth: FloatArray, noise: float
) -> Likeness:
    """The variogram of the worth of logged pairs, over all actions together; differences are weighted by precision."""
    n_factors = factors.shape[1]
    gap, known = np.zeros(n_factors), np.zeros(n_factors)
    mean = sum_by(action, rows * worth) / np.maximum(sum_by(action, rows), 1e-300)
    spread = float(np.sum(rows * (worth - mean[action]) ** 2 - noise))
    for k in range(n_factors):
        for one, other in _differ_alone(factors[state], action, k):
            sure = 1.0 / (1.0 / rows[one] + 1.0 / rows[other])
            gap[k] += float(np.sum(sure * (worth[one] - worth[other]) ** 2 - noise))
            known[k] += 2.0 * float(sure.sum())
    sill = max(spread / float(rows.sum()), 1e-12 * (1.0 + float(np.max(worth**2))))
    rho = 1.0 - np.divide(gap, known * sill, out=np.full(n_factors, 0.5), where=known > 0)
    return Likeness(tuple(np.clip(rho, LEAST, MOST).tolist()), sill, max(noise, 1e-9 * sill))


def _differ_alone(factors: IntArray, action: IntArray, k: int) -> list[tuple[IntArray, IntArray]]:
    """Logged pairs of the same action whose states differ in factor k and in no other, each once.

    Those that agree in all else are made neighbours by sorting; then the 1st, 2nd … after each is compared with it.
    """
    others = np.column_stack([action, np.delete(factors, k, axis=1)])
    order = np.lexsort(others.T)
    change = np.any(others[order[1:]] != others[order[:-1]], axis=1)
    group = np.concatenate([[0], np.cumsum(change)])
    first = np.arange(len(order))
    found: list[tuple[IntArray, IntArray]] = []
    distance = 1
    while True:
        first = first[first + distance < len(order)]
        first = first[group[first] == group[first + distance]]
        if len(first) == 0:
            return found
        found.append((order[first], order[first + distance]))
        distance += 1


@dataclass(frozen=True)
class Kriging:
    """One action: its logged pairs (in ``states``, n ``rows`` each) and the ``unseen`` states it is for.

    ``chance`` is π(a|·) of all states.
    """

    places: Places
    states: IntArray
    rows: FloatArray
    unseen: IntArray
    chance: FloatArray
    neighbours: int = NEIGHBOURS

    @cached_property
    def _noise(self) -> FloatArray:
        """λ/n."""
        return self.places.likeness.nugget / self.rows

    def _design(self, states: IntArray) -> sparse.csr_matrix:
        """x: a constant, the values of the factors, π(a|s)."""
        one, chance = (sparse.csr_matrix(x[:, None]) for x in (np.ones(len(states)), self.chance[states]))
        return sparse.csr_matrix(sparse.hstack([one, self.places.values[states], chance]))

    @cached_property
    def trend(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix, FloatArray]:
        """X of the logged and of the unseen states, and B of β = B y; no columns where all are neighbours."""
        design = self._design(self.states)
        if len(self.states) <= self.neighbours:
            return design[:, :0], self._design(self.unseen)[:, :0], np.zeros((0, len(self.states)))
        variance, rest = self.places.main_effects
        weighted = sparse.csr_matrix(sparse.diags_array(1.0 / (rest + self._noise)) @ design).T
        penalty = np.concatenate([[0.0], 1.0 / np.maximum(variance, 1e-9), [1.0]])
        system = (weighted @ design).toarray() + np.diag(penalty)
        return design, self._design(self.unseen), np.linalg.solve(system, weighted.toarray())

    @cached_property
    def local(self) -> sparse.csr_matrix:
        """g of every unseen state on its neighbours: shape (unseen, logged pairs)."""
        k = min(self.neighbours, len(self.states))
        step = max(1, _BATCH // max(len(self.states), k * (k + 32)))
        parts = [self.unseen[i : i + step] for i in range(0, len(self.unseen), step)]
        near = [self._near(part, k) for part in parts]
        weights = [self._predict(part, at) for part, at in zip(parts, near, strict=True)]
        shape = len(self.unseen), len(self.states)
        start = np.arange(0, k * shape[0] + 1, k)
        return sparse.csr_matrix((np.concatenate(weights), np.concatenate(near).ravel(), start), shape=shape)

    def _near(self, unseen: IntArray, k: int) -> IntArray:
        """The k logged pairs that explain most of every unseen state by themselves."""
        if k == len(self.states):
            return np.tile(np.arange(k), (len(unseen), 1))
        own = (1.0 + self.chance[self.states] ** 2 + self._noise).astype(np.float32)
        shared = self.places.alike(unseen, self.states, exact=False)
        shared += np.outer(self.chance[unseen], self.chance[self.states]).astype(np.float32)
        shared *= shared
        shared /= own
        return np.sort(np.argpartition(shared, -k, axis=1)[:, -k:], axis=1)

    def _predict(self, unseen: IntArray, near: IntArray) -> FloatArray:
        """g of every unseen state on its neighbours, one after the other."""
        states, chance = self.states[near], self.chance[self.states[near]]
        system = self.places.alike(states, states) + chance[:, :, None] * chance[:, None, :]
        diagonal = np.arange(near.shape[1])
        system[:, diagonal, diagonal] += self._noise[near]
        towards = self.places.alike(unseen[:, None], states)[:, 0] + self.chance[unseen][:, None] * chance
        solved = np.linalg.solve(system, np.stack([towards, np.ones_like(towards)], axis=2))
        own, one = solved[:, :, 0], solved[:, :, 1]
        lack = (1.0 - own.sum(axis=1)) / one.sum(axis=1)
        return np.asarray((own + one * lack[:, None]).ravel())

    @property
    def weights(self) -> FloatArray:
        """The weight of every logged pair in what every unseen state is worth: shape (unseen, logged pairs)."""
        design, ahead, fit = self.trend
        return np.asarray(self.local.toarray() + (ahead - self.local @ design) @ fit)

    def variance(self, mass: FloatArray, weight: FloatArray) -> float:
        """Of the error of Σ mass(u) y(u) over the unseen states as predicted by Σ weight y, in units of the sill."""
        z = np.zeros(len(self.chance))
        z[self.unseen] = mass
        z[self.states] -= weight
        found = self.places.form(z) + float(self.chance @ z) ** 2 + float(weight**2 @ self._noise)
        return max(found, 0.0)
