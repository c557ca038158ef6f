"""A few classes of units by maximum likelihood: a mixture of chains, by expectation and maximisation.

Unit u has counts n_ug of cells g: how often it went from a state by an action to a next one, and where it started.
Cells fall into blocks (one state and action; the first states) inside which chances add up to one. With the share p_c
and the chances P_c(g) of class c,

    L = Σ_u w_u log Σ_c p_c Π_g P_c(g)^n_ug + Σ_c Σ_g k_g log P_c(g)
    E    τ_uc ∝ p_c Π_g P_c(g)^n_ug
    M    p_c = Σ_u w_u τ_uc / Σ_u w_u,    P_c(g) = S_c(g) / S_c(block of g),    S_c(g) = Σ_u w_u τ_uc n_ug + k_g

where k_g are a few rows that every class is given, dealt as those of all units are: they shrink the chances of a class
towards the pooled ones. L never falls.

**Where it begins.** A class is divided along the directions in which its units differ most: the principal axes of
their counts less what is expected, in the metric of χ². One more class comes from whichever division gains most: L has
several tops, and those of a poor division are far from the truth. No random number is drawn, and the names and the
order of units and cells do not matter.

**How many** is said by units that were not used: from one class on, as long as one more tells of them more than chance.

**What a unit adds.** Let D⁰_uc be what a value gains if unit u belongs a little more to class c while all others stay.
What others do then is a linear equation, by the derivative of E and M at their fixed point:

    D = D⁰ + K D,    K D = n B + b,    E_uc = w_u τ_uc (D_uc − Σ_k τ_uk D_uk)
    B_c(g) = Σ_u E_uc n_ug / S_c(g) − Σ_u Σ_{block} E_uc n_uh / S_c(block),    b_c = Σ_u E_uc / Σ_u w_u τ_uc

and Σ_c τ_uc D_uc is the influence of unit u on the value: the infinitesimal jackknife of the whole fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, gmres
from scipy.special import expit

from mixope.base.arrays import FloatArray, IntArray

MOST = 4
"""Classes that are tried."""
FOLDS = 5
TOLD, LEAST_GAIN = 1.5, 1.0
"""Standard errors, and nats in all, by which units that were not used must speak for one more class."""
JUDGES = 50_000
"""Of more units, so many say how many classes there are."""
_STEPS, _TRIAL_STEPS, _ENOUGH, _AXIS_STEPS, _NOBODY = 200, 6, 1e-9, 8, 1e-300
_AXES = 4
_SHARP = 3.0
"""How sharply a class is divided at first: the slope at the border, in standard deviations along its axis."""
_WORK = 2e6
"""Counts that are looked at to find out where to divide."""
_FINALISTS = 2


@dataclass(frozen=True)
class CellCounts:
    """n: units × cells, the cells in the order of their ``block``; k a cell, and w a unit."""

    counts: sparse.csr_matrix
    block: IntArray
    prior: FloatArray
    weight: FloatArray

    @property
    def n_units(self) -> int:
        """Units."""
        return int(self.counts.shape[0])

    @cached_property
    def by_cell(self) -> sparse.csr_matrix:
        """Cells × units."""
        return self.counts.T.tocsr()

    @cached_property
    def _begin(self) -> IntArray:
        return np.flatnonzero(np.append(True, self.block[1:] != self.block[:-1])).astype(np.int64)

    @cached_property
    def _place(self) -> IntArray:
        return np.cumsum(np.append(False, self.block[1:] != self.block[:-1])).astype(np.int64)

    def over_block(self, values: FloatArray) -> FloatArray:
        """For every cell, the sum over its block."""
        return np.asarray(np.add.reduceat(values, self._begin, axis=0)[self._place])

    def take(self, units: IntArray) -> CellCounts:
        """Some units; the prior stays that of all."""
        return replace(self, counts=self.counts[units], weight=self.weight[units])


@dataclass(frozen=True)
class UnitMixture:
    """p, S and τ of a fit, and L on the way to it."""

    share: FloatArray
    sums: FloatArray
    chance: FloatArray
    member: FloatArray
    path: tuple[float, ...] = ()

    @property
    def n_classes(self) -> int:
        """Classes."""
        return len(self.share)

    def in_order(self, order: IntArray) -> UnitMixture:
        """The classes in another order."""
        return replace(
            self,
            share=self.share[order],
            sums=self.sums[:, order],
            chance=self.chance[:, order],
            member=self.member[:, order],
        )

    def log_likelihood(self, cells: CellCounts) -> FloatArray:
        """Of every unit, be it one of those that were used or not."""
        return _expect(cells, self.share, np.log(self.chance))[1]


def fit_mixture(cells: CellCounts, n_classes: int, before: UnitMixture | None = None) -> UnitMixture:
    """The classes, one after the other; ``before`` has fewer of them, and is gone on from."""
    found = _climb(cells, np.ones((cells.n_units, 1)), _STEPS) if before is None else before
    while found.n_classes < n_classes:
        tried = [_climb(cells, divided, _TRIAL_STEPS) for divided in _divisions(cells, found)]
        if not tried:
            return found
        best = sorted(tried, key=lambda one: -one.path[-1])[:_FINALISTS]
        found = max((_climb(cells, one.member, _STEPS) for one in best), key=lambda one: one.path[-1])
    return found


def choose_mixture(cells: CellCounts, most: int = MOST) -> tuple[UnitMixture, tuple[float, ...]]:
    """As many classes as units that were not used speak for, and by how much each step was better for such a unit."""
    one = fit_mixture(cells, 1)
    tasks, gains = _folds(cells, one), []
    fits = [fit_mixture(train, 1) for train, _ in tasks]
    before = np.concatenate([fit.log_likelihood(test) for fit, (_, test) in zip(fits, tasks, strict=True)])
    weight = np.concatenate([test.weight for _, test in tasks])
    chosen = 1
    while chosen < most and tasks:
        fits = [fit_mixture(train, chosen + 1, fit) for fit, (train, _) in zip(fits, tasks, strict=True)]
        after = np.concatenate([fit.log_likelihood(test) for fit, (_, test) in zip(fits, tasks, strict=True)])
        gain = weight * (after - before)
        chance = TOLD * float(np.sqrt(np.sum((gain - gain.mean()) ** 2)))
        if not float(gain.sum()) > max(chance, LEAST_GAIN):
            break
        gains.append(float(gain.sum() / weight.sum()))
        chosen, before = chosen + 1, after
    found = fit_mixture(cells, chosen, one)
    while found.n_classes > 1 and float((cells.weight @ found.member).min()) < 1.0:
        found = fit_mixture(cells, found.n_classes - 1, one)
    return found, tuple(gains[: found.n_classes - 1])


def through_members(cells: CellCounts, found: UnitMixture, direct: FloatArray) -> FloatArray:
    """D from D⁰ (units × classes): what a unit moves through the membership of all others, too."""
    tau, n = found.member, found.sums
    mass = cells.weight @ tau
    blocks = cells.over_block(n)

    def carried(values: FloatArray) -> FloatArray:
        moved = cells.weight[:, None] * tau * (values - np.sum(tau * values, axis=1, keepdims=True))
        at_cell = cells.by_cell @ moved
        return np.asarray(cells.counts @ (at_cell / n - cells.over_block(at_cell) / blocks) + moved.sum(axis=0) / mass)

    def equation(flat: FloatArray) -> FloatArray:
        values = flat.reshape(direct.shape)
        return np.asarray((values - carried(values)).ravel())

    operator = LinearOperator((direct.size, direct.size), matvec=equation, dtype=np.float64)
    solved, _ = gmres(operator, direct.ravel(), rtol=1e-8, restart=50, maxiter=20)
    return np.asarray(solved.reshape(direct.shape))


def _climb(cells: CellCounts, member: FloatArray, steps: int) -> UnitMixture:
    """Expectation and maximisation from some membership, until L rises no more.

    Two steps tell where a third and all later ones go (squared extrapolation, Varadhan and Roland 2008), in the
    logarithms of the chances; where that would be lower than the two steps themselves, these are taken.
    """
    here = _maximise(cells, member)
    path = [here.objective]
    while len(path) <= steps:
        once = _maximise(cells, here.member)
        twice = _maximise(cells, once.member)
        size = _ENOUGH * max(abs(path[-1]), 1.0)
        if twice.objective - here.objective < size:
            return replace(twice.mixture, path=(*path, once.objective, twice.objective))
        further = _maximise(cells, _ahead(cells, here, once, twice).member)
        here = further if further.objective > twice.objective else twice
        path.append(here.objective)
    last = _maximise(cells, here.member)
    return replace(last.mixture, path=(*path, last.objective))


@dataclass(frozen=True)
class _Point:
    """Where the climb is: share and chances, the membership that they make, and L."""

    mixture: UnitMixture
    objective: float

    @property
    def member(self) -> FloatArray:
        return self.mixture.member

    @property
    def logs(self) -> FloatArray:
        """log P by cell, with log p as the last row."""
        return np.log(np.vstack([self.mixture.chance, self.mixture.share]))


def _ahead(cells: CellCounts, here: _Point, once: _Point, twice: _Point) -> _Point:
    """Where the last two steps point."""
    step = once.logs - here.logs
    bend = twice.logs - once.logs - step
    size = float(np.linalg.norm(bend))
    far = max(float(np.linalg.norm(step)) / size, 1.0) if size > 0 else 1.0
    logs = here.logs + 2.0 * far * step + far**2 * bend
    chance = np.exp(np.minimum(logs[:-1], 0.0))
    share = np.exp(logs[-1] - logs[-1].max())
    return _point(cells, share / share.sum(), chance / cells.over_block(chance), twice.mixture.sums)


def _maximise(cells: CellCounts, member: FloatArray) -> _Point:
    """The best shares and chances for a membership."""
    weighed = cells.weight[:, None] * member
    sums = cells.by_cell @ weighed + cells.prior[:, None]
    total = np.maximum(weighed.sum(axis=0), _NOBODY)
    return _point(cells, total / total.sum(), sums / cells.over_block(sums), sums)


def _point(cells: CellCounts, share: FloatArray, chance: FloatArray, sums: FloatArray) -> _Point:
    share, log_chance = np.maximum(share, _NOBODY), np.log(np.maximum(chance, _NOBODY))
    member, likelihood = _expect(cells, share, log_chance)
    value = float(cells.weight @ likelihood + cells.prior @ log_chance.sum(axis=1))
    return _Point(UnitMixture(share, sums, chance, member), value)


def _expect(cells: CellCounts, share: FloatArray, log_chance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """τ, and the log-likelihood of every unit."""
    logs = cells.counts @ log_chance + np.log(share)
    top = logs.max(axis=1, keepdims=True)
    odds = np.exp(logs - top)
    total = odds.sum(axis=1, keepdims=True)
    return odds / total, np.asarray((top + np.log(total))[:, 0])


def _divisions(cells: CellCounts, found: UnitMixture) -> list[FloatArray]:
    """Memberships with one class more: each class in turn divided along its axes, in the middle and beside it."""
    ways = [(axis, at) for at in (0.0, -1.0, 1.0) for axis in range(_AXES)]
    affordable = int(_WORK / (max(cells.counts.nnz, 1) * found.n_classes**2))
    tried = []
    for c in range(found.n_classes):
        along = _along_axes(cells, found.member[:, c], found.chance[:, c])
        for axis, at in ways[: max(affordable, 3)]:
            if axis < len(along):
                upper = expit(_SHARP * (along[axis] - at))
                member = np.column_stack([found.member, found.member[:, c] * upper])
                member[:, c] *= 1.0 - upper
                tried.append(member)
    return tried


def _along_axes(cells: CellCounts, member: FloatArray, chance: FloatArray) -> list[FloatArray]:
    """Where units lie along the axes in which those of a class differ most, in standard deviations."""
    weight = cells.weight * member
    scale = 1.0 / np.sqrt(cells.by_cell @ weight + cells.prior)[:, None]
    law = chance[:, None]

    def lay(axes: FloatArray) -> FloatArray:
        rest = axes * scale
        return np.asarray(cells.counts @ (rest - cells.over_block(law * rest)))

    def gather(values: FloatArray) -> FloatArray:
        there = cells.by_cell @ (weight[:, None] * values)
        return np.asarray(scale * (there - law * cells.over_block(there)))

    rows, surprise = np.asarray(cells.counts.sum(axis=1)).ravel(), cells.counts @ -np.log(chance)
    surprise = surprise - rows * float(weight @ surprise) / float(weight @ rows)
    axes = _basis(gather(np.column_stack([surprise, rows, surprise**2, surprise * rows])))
    for _ in range(_AXIS_STEPS):
        axes = _basis(gather(lay(axes)))
    if not axes.shape[1]:
        return []
    laid = lay(axes)
    strength, turn = np.linalg.eigh((laid * weight[:, None]).T @ laid)
    laid = laid @ turn[:, np.argsort(-strength)]
    laid = laid - (weight @ laid) / weight.sum()
    spread = np.sqrt(weight @ laid**2 / weight.sum())
    return [column / size for column, size in zip(laid.T, spread, strict=True) if size > 0]


def _basis(vectors: FloatArray) -> FloatArray:
    """An orthonormal basis of what they span, but for rounding."""
    size = np.linalg.norm(vectors, axis=0)
    known = vectors[:, size > 0] / size[size > 0]
    if not known.shape[1]:
        return np.asarray(known)
    left, strength, _ = np.linalg.svd(known, full_matrices=False)
    kept: FloatArray = left[:, strength > 1e-6 * strength[0]]
    return kept


def _folds(cells: CellCounts, one: UnitMixture) -> list[tuple[CellCounts, CellCounts]]:
    """Units dealt in turn along their axis, so that parts are alike: those that are used, and those that judge."""
    along = _along_axes(cells, one.member[:, 0], one.chance[:, 0])
    if not along or cells.n_units < 2 * FOLDS:
        return []
    order = np.argsort(along[0], kind="stable")
    if len(order) > JUDGES:
        order = order[np.floor(np.arange(JUDGES) * (len(order) / JUDGES)).astype(np.int64)]
    fold = np.arange(len(order)) % FOLDS
    return [(cells.take(order[fold != k]), cells.take(order[fold == k])) for k in range(FOLDS)]
