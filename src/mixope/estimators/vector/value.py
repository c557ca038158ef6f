"""LSTD-Q for vector states: q(s,a) = β · φ(s) ⊗ ψ(a), from one pass of moments.

    average      Σ x(s,a)[r − η + x(s′,π)·β − x(s,a)·β] = N λ β,   Σ [r − η + x(s′,π)·β − x(s,a)·β] = 0
    discounted   Σ x(s,a)[r + γ x(s′,π)·β − x(s,a)·β] = N λ β      (r less its mean where nothing ends)

φ are normalised bumps, 15 ∛n of them (as many as 2,400 columns allow), ψ the action features. Moments
are kept by fold of episodes: λ is the smallest whose fit on one half does not go wild in the other, and values can
be cross-fitted. An end leads to the start law for the average, to nothing otherwise.
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

FOLDS = 2
RIDGES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_JUDGES = 6000
_SLACK = 1.25
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
    """Σ x(x − γ x′)ᵀ, Σ x r, Σ x, Σ (x − γx′), by fold; the start features; ends kept apart for the average."""

    def batch(rows: Rows) -> dict[str, FloatArray]:
        x, ahead = design.taken(rows), design.chosen(rows.next_observation)
        ahead[rows.terminated] = 0.0
        difference = x - design.gamma * ahead
        fold = fold_of(rows, folds)
        parts: dict[str, list[FloatArray]] = {k: [] for k in ("a", "b", "e", "d", "r", "n", "ended", "ends", "gram")}
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
                ("gram", xk.T @ xk),
            ):
                parts[key].append(np.asarray(value))
        starts = design.chosen(rows.observation[rows.start]) if rows.start.any() else np.zeros((0, design.size))
        result = {key: np.stack(values) for key, values in parts.items()}
        return {**result, "start": starts.sum(axis=0), "starts": np.asarray(float(len(starts)))}

    return scan.total("value", batch)


@dataclass(frozen=True)
class ValueFit:
    """β (one a fold: fitted on the other folds; and one on all rows), η or the level, and how to value rows."""

    design: ValueDesign
    estimand: Estimand
    moments: Moments
    folds: int
    judges: Rows | None = None
    ridges: tuple[float, ...] = RIDGES

    @cached_property
    def start(self) -> FloatArray:
        """E_μ₀ x(s,π)."""
        count = float(self.moments["starts"])
        return self.moments["start"] / count if count else np.zeros(self.design.size)

    @cached_property
    def ridge(self) -> float:
        """The smallest λ whose fit on half of the episodes leaves no much larger temporal differences than the best.

        Temporal differences alone favour values that are too smooth; what must be found is where a fit goes wild.
        """
        rows = self.judges
        if len(self.ridges) == 1 or self.folds < 2 or rows is None:
            return self.ridges[0]
        halves = [np.eye(self.folds)[1:].sum(axis=0), 1.0 - np.eye(self.folds)[1:].sum(axis=0)]
        if min(float(half @ self.moments["n"]) for half in halves) == 0:
            return self.ridges[len(self.ridges) // 2]
        side = fold_of(rows, self.folds) == 0
        x, ahead = self.design.taken(rows), self.design.chosen(rows.next_observation)
        ahead[rows.terminated] = self.start if self.estimand.kind == "average" else 0.0
        difference = x - self.design.gamma * ahead
        errors = {}
        for ridge in self.ridges:
            error = 0.0
            for half, mine in zip(halves, (side, ~side), strict=True):
                beta, eta = self._solve(half, ridge)
                error += float(np.sum((rows.reward[mine] - eta - difference[mine] @ beta) ** 2))
            errors[ridge] = error
        best = min(errors.values())
        return next(ridge for ridge in self.ridges if errors[ridge] <= _SLACK * best)

    @cached_property
    def whole(self) -> tuple[FloatArray, float]:
        """β and η on all rows."""
        return self._solve(np.ones(self.folds), self.ridge)

    @cached_property
    def crossed(self) -> tuple[tuple[FloatArray, float], ...]:
        """β and η for every fold, from the others; folds without rows elsewhere use all."""
        fits = []
        for k in range(self.folds):
            others = np.ones(self.folds)
            others[k] = 0.0
            enough = float(others @ self.moments["n"]) > 0 and self.folds > 1
            fits.append(self._solve(others, self.ridge) if enough else self.whole)
        return tuple(fits)

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

    def terms(self, rows: Rows, crossed: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """γV(s′) (with the start law after an end, for the average), q(s,a), and V(s) of every row."""
        fits = self.crossed if crossed else (self.whole,) * self.folds
        fold = fold_of(rows, self.folds)
        betas = np.stack([beta for beta, _ in fits])[fold]
        offset = np.array([self._offset(level) for _, level in fits])[fold]
        x, here, ahead = (
            self.design.taken(rows),
            self.design.chosen(rows.observation),
            self.design.chosen(rows.next_observation),
        )
        after_end = betas @ self.start if self.estimand.kind == "average" else np.zeros(len(rows))
        later = np.where(rows.terminated, after_end, np.einsum("nd,nd->n", ahead, betas))
        later = self.design.gamma * (later + np.where(rows.terminated, 0.0, offset))
        return later, np.einsum("nd,nd->n", x, betas) + offset, np.einsum("nd,nd->n", here, betas) + offset

    def _offset(self, level: float) -> float:
        """What a reward of ``level`` a step is worth for ever; nothing for the average, where η stands apart."""
        return 0.0 if self.estimand.kind == "average" else level / (1.0 - self.design.gamma)
