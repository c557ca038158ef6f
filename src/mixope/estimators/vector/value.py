"""LSTD-Q for vector states: q(s,a) = β · φ(s) ⊗ ψ(a), from one pass of moments.

    average      Σ x(s,a)[r − η + x(s′,π)·β − x(s,a)·β] = N λ β,   Σ [r − η + x(s′,π)·β − x(s,a)·β] = 0
    discounted   Σ x(s,a)[r + γ x(s′,π)·β − x(s,a)·β] = N λ β      (r less its mean where nothing ends)

φ are normalised bumps, 15 ∛n of them (as many as 2,400 columns allow), ψ the action features. Moments
are kept by fold of episodes, so that every λ gives a fit on all rows and, for each fold, one without it; which λ does
is seen in the scores (:mod:`mixope.estimators.vector.scores`). An end leads to the start law for the average, to
nothing otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from mixope.arrays import FloatArray, IntArray
from mixope.estimand import Estimand
from mixope.estimators.vector.scan import Scan
from mixope.features import FeatureMap, FittedMap, NormalisedBumps
from mixope.features.actions import ActionMap, DiscreteActions, QuadraticActions
from mixope.policies import Policy
from mixope.statistics.moments import Moments
from mixope.statistics.rows import Rows

FOLDS = 4
RIDGES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_JUDGES = 6000
PLUG_IN_RIDGE = 1e-6
_GROWTH = 15.0
_MOST_COLUMNS = 2400


@dataclass(frozen=True)
class ValueDesign:
    """x(s,a) and x(s,π) of rows for one target."""

    states: FittedMap
    actions: ActionMap
    target: Policy
    gamma: float

    @property
    def size(self) -> int:
        """Columns of x."""
        return self.states.size * self.actions.size

    def taken(self, rows: Rows) -> FloatArray:
        """x(s,a)."""
        return cross(self.states.transform(rows.observation), self.actions.of(rows.action))

    def chosen(self, observations: FloatArray) -> FloatArray:
        """x(s,π)."""
        return cross(self.states.transform(observations), self.actions.under(self.target, observations))


def cross(left: FloatArray, right: FloatArray) -> FloatArray:
    """The product of every column of one with every column of the other, row by row."""
    return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), left.shape[1] * right.shape[1]))


def value_design(scan: Scan, target: Policy, estimand: Estimand, features: FeatureMap | None = None) -> ValueDesign:
    """Fit the state features on the sample and read the actions off it."""
    sample = scan.sample
    actions = action_map(sample, target, scan.seed)
    if features is None:
        n = scan.logs.total_rows()
        size = min(int(_GROWTH * n ** (1 / 3)), _MOST_COLUMNS // actions.size)
        features = NormalisedBumps(max(size, 10))
    gamma = estimand.gamma if estimand.gamma is not None else 1.0
    return ValueDesign(features.fit(sample.observation, scan.seed + 1), actions, target, gamma)


def action_map(sample: Rows, target: Policy, seed: int) -> ActionMap:
    """One-hot for ids; quadratic in the executed action for vectors, within the target's box where it has one."""
    if sample.action.ndim == 1:
        return DiscreteActions(np.unique(sample.action))
    spread = sample.action.std(axis=0)
    return QuadraticActions(
        sample.action.mean(axis=0),
        np.where(spread > 0, spread, 1.0),
        getattr(target, "low", None),
        getattr(target, "high", None),
        seed,
    )


def fold_of(rows: Rows, folds: int) -> IntArray:
    """The fold of every row's episode."""
    assert rows.draw is not None
    return np.asarray((rows.draw // 7) % folds)


def some_rows(rows: Rows, seed: int) -> Rows:
    """A few thousand rows of a sample, to judge fits by."""
    if len(rows) <= _JUDGES:
        return rows
    return rows.take(np.sort(np.random.default_rng([seed, 29]).choice(len(rows), _JUDGES, replace=False)))


def value_moments(scan: Scan, design: ValueDesign, folds: int = FOLDS) -> Moments:
    """Σ x(x − γ x′)ᵀ, Σ x r, Σ x, Σ (x − γx′), by fold; Σ xxᵀ; the start features; ends apart, for the average."""

    def batch(rows: Rows) -> dict[str, FloatArray]:
        x, ahead = design.taken(rows), design.chosen(rows.next_observation)
        ahead[rows.terminated] = 0.0
        difference = x - design.gamma * ahead
        fold = fold_of(rows, folds)
        parts: dict[str, list[FloatArray]] = {k: [] for k in ("a", "b", "e", "d", "r", "n", "ended", "ends")}
        for k in range(folds):
            mine = fold == k
            xk, rk = x[mine], rows.reward[mine]
            over = rows.terminated[mine].astype(np.float64)
            for key, value in (
                ("a", xk.T @ difference[mine]),
                ("b", xk.T @ rk),
                ("e", xk.sum(axis=0)),
                ("d", difference[mine].sum(axis=0)),
                ("r", rk.sum()),
                ("n", float(mine.sum())),
                ("ended", xk.T @ over),
                ("ends", over.sum()),
            ):
                parts[key].append(np.asarray(value))
        starts = design.chosen(rows.observation[rows.start]) if rows.start.any() else np.zeros((0, design.size))
        result = {key: np.stack(values) for key, values in parts.items()}
        begin = {"start": starts.sum(axis=0), "starts": np.asarray(float(len(starts)))}
        return {**result, **begin, "gram": x.T @ x}

    return scan.total("value", batch)


@dataclass(frozen=True)
class ValueFit:
    """For every λ: β and η (or the level) on all rows and without each fold; and how to value rows by them."""

    design: ValueDesign
    estimand: Estimand
    moments: Moments
    folds: int
    ridges: tuple[float, ...] = RIDGES

    @cached_property
    def start(self) -> FloatArray:
        """E_μ₀ x(s,π)."""
        count = float(self.moments["starts"])
        return self.moments["start"] / count if count else np.zeros(self.design.size)

    @cached_property
    def _fits(self) -> tuple[FloatArray, FloatArray]:
        """β of every fit as a column, and what its level is worth; λ by λ, first all rows, then without each fold."""
        fits = []
        for ridge in self.ridges:
            whole = self._solve(np.ones(self.folds), ridge)
            fits.append(whole)
            for k in range(self.folds):
                others = 1.0 - np.eye(self.folds)[k]
                fits.append(self._solve(others, ridge) if float(others @ self.moments["n"]) > 0 else whole)
        return np.stack([beta for beta, _ in fits], axis=1), np.array([self._offset(level) for _, level in fits])

    def _sum(self, name: str, use: FloatArray) -> FloatArray:
        return np.tensordot(use, self.moments[name], axes=1)

    def _solve(self, use: FloatArray, ridge: float) -> tuple[FloatArray, float]:
        n = float(use @ self.moments["n"])
        matrix = self._sum("a", use) / n
        right, mean, gap = self._sum("b", use) / n, self._sum("e", use) / n, self._sum("d", use) / n
        if self.estimand.kind == "average" and float(use @ self.moments["ends"]) > 0:
            matrix = matrix - np.outer(self._sum("ended", use) / n, self.start)
            gap = gap - float(use @ self.moments["ends"]) / n * self.start
        matrix = matrix + ridge * np.eye(len(matrix))
        if self.estimand.kind != "average":
            level = 0.0 if self.moments["ends"].any() else float(use @ self.moments["r"]) / n
            return linalg.solve(matrix, right - level * mean), level
        bordered = np.block([[matrix, mean[:, None]], [gap[None, :], np.ones((1, 1))]])
        solution = linalg.solve(bordered, np.append(right, float(use @ self.moments["r"]) / n))
        return solution[:-1], float(solution[-1])

    @property
    def value(self) -> float:
        """The plug-in estimate, with a small λ: its average forgives a rough value, but not one that is too smooth."""
        beta, level = self._solve(np.ones(self.folds), min(PLUG_IN_RIDGE, self.ridges[-1]))
        return level + (1.0 - self.design.gamma) * float(self.start @ beta)

    def terms(self, rows: Rows, logged: bool = False) -> tuple[FloatArray, FloatArray]:
        """γV(s′) − q(s,a) of every row (V(s) for q if ``logged``), and V(s) where an episode starts, 0 elsewhere.

        Both have the shape (rows, λ, 2): by the fit on all rows, and by the one that has not seen the row's episode.
        """
        design, states = self.design, self.design.states.transform(rows.observation)
        actions = design.actions.under(design.target, rows.observation) if logged else design.actions.of(rows.action)
        # after an end: the start law for the average, nothing otherwise
        after = self.start @ self._fits[0] if self.estimand.kind == "average" else np.zeros(len(self._fits[1]))
        ahead = self._valued(design.chosen(rows.next_observation))
        later = design.gamma * np.where(rows.terminated[:, None], after, ahead)
        first = np.zeros_like(later)
        if rows.start.any():
            first[rows.start] = self._valued(design.chosen(rows.observation[rows.start]))
        fold = fold_of(rows, self.folds)
        return self._by_ridge(later - self._valued(cross(states, actions)), fold), self._by_ridge(first, fold)

    def _valued(self, x: FloatArray) -> FloatArray:
        """x·β and the level, by every fit."""
        betas, offset = self._fits
        return np.asarray(x @ betas + offset)

    def _by_ridge(self, values: FloatArray, fold: IntArray) -> FloatArray:
        """From one column a fit to (rows, λ, 2)."""
        every = values.reshape(len(values), len(self.ridges), 1 + self.folds)
        return np.stack([every[:, :, 0], every[np.arange(len(fold)), :, 1 + fold]], axis=2)

    def _offset(self, level: float) -> float:
        """What a reward of ``level`` a step is worth for ever; nothing for the average, where η stands apart."""
        return 0.0 if self.estimand.kind == "average" else level / (1.0 - self.design.gamma)
