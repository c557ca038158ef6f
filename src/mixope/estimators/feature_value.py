"""LSTD-Q on features: q(s,a) = β · φ(s) ⊗ ψ(a), from one round of moments.

    average      Σ x(s,a)[r − η + x(s′,π)·β − x(s,a)·β] = N λ β,   Σ [r − η + x(s′,π)·β − x(s,a)·β] = 0
    discounted   Σ x(s,a)[r + γ x(s′,π)·β − x(s,a)·β] = N λ β      (r less its mean where nothing ends)
    horizon      β_T = 0,   (Σ xxᵀ + N λ) β_t = Σ x [r + x(s′,π)·β_{t+1}]      backwards from the last step

φ are normalised bumps, 15 ∛n of them (as many as 1,200 columns allow), ψ the action features. Moments are kept by fold
of episodes, so that every λ gives a fit on all rows and, for each fold, one without it; which λ does is seen in the
scores (:mod:`mixope.estimators.feature_scores`). An end leads to the start law for the average, to nothing otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from mixope.arrays import FloatArray, IntArray
from mixope.errors import UsageError
from mixope.estimators.feature_problem import FeatureProblem
from mixope.estimators.feature_ratio import phi_of, scaled
from mixope.features import FittedMap
from mixope.features.actions import ActionMap
from mixope.policies import Policy
from mixope.statistics.moments import MomentRequest, Moments
from mixope.statistics.rows import FOLDS, Rows

RIDGES = (1e-7, 1e-5, 1e-3)
PLUG_IN_RIDGE = 1e-6
HORIZON_RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_APART = 0.1


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
        return rows.once("taken", self, lambda: cross(phi_of(self.states, rows), self.actions.of(rows.action)))

    def chosen(self, rows: Rows) -> FloatArray:
        """x(s,π)."""
        return self._chosen(rows, following=False)

    def ahead(self, rows: Rows) -> FloatArray:
        """x(s′,π)."""
        return self._chosen(rows, following=True)

    def _chosen(self, rows: Rows, following: bool) -> FloatArray:
        def make() -> FloatArray:
            at = rows.next_observation if following else rows.observation
            return cross(phi_of(self.states, rows, following), self.actions.under(self.target, at))

        return rows.once(("chosen", following), self, make)

    def starts(self, rows: Rows) -> Rows:
        """The rows that begin an episode."""
        return rows.once("starts", rows.start, lambda: rows.take(rows.start))


def cross(left: FloatArray, right: FloatArray) -> FloatArray:
    """The product of every column of one with every column of the other, row by row."""
    right = right.astype(left.dtype, copy=False)
    return np.asarray((left[:, None, :] * right[:, :, None]).reshape(len(left), left.shape[1] * right.shape[1]))


def value_design(problem: FeatureProblem) -> ValueDesign:
    """The design of a target; the state features are shared by all targets."""
    if not problem.drawable:
        raise UsageError(
            "a value model needs a target that can be drawn from (a sample method), and this one gives densities only;"
            " use a GaussianPolicy, or an estimator without a value model such as 'emp'"
        )
    states = problem.known.value_features(problem.actions.size)
    return problem.known.once(
        ("value design", problem.target, problem.gamma),
        lambda: ValueDesign(states, problem.actions, problem.target, problem.gamma),
    )


def value_system(problem: FeatureProblem, design: ValueDesign, moments: Moments) -> ValueSystem:
    """The system of these moments, solved once for all estimators of the target."""
    return problem.once("value", moments, lambda: ValueSystem(problem, design, moments))


@dataclass(frozen=True)
class ValueSums(MomentRequest):
    """Σ x(x − γ x′)ᵀ, Σ x r, Σ x, Σ (x − γx′), Σ r, rows, by fold; the start features; ends apart, for the average."""

    design: ValueDesign

    def accumulate(self, total: Moments, rows: Rows, fold: int) -> None:
        """One slice."""
        design, n = self.design, rows.times
        x = design.taken(rows)
        going = (design.gamma * n * ~rows.terminated).astype(x.dtype)
        difference = design.ahead(rows) * -going[:, None]
        difference += x if rows.count is None else x * n.astype(x.dtype)[:, None]
        over = rows.terminated * n
        total.add_product("a", fold, x, difference)
        by_row = np.stack([rows.reward * n, n, over]).astype(x.dtype) @ x
        for name, values in zip(("b", "e", "ended"), by_row, strict=True):
            total.add(name, fold, values)
        total.add("d", fold, np.ones(len(rows), dtype=x.dtype) @ difference)
        total.add("r", fold, rows.reward @ n)
        total.add("n", fold, n.sum())
        total.add("ends", fold, over.sum())
        first = design.starts(rows)
        begin = first.times @ design.chosen(first) if len(first) else np.zeros(design.size)
        total.add("start", 0, begin)
        total.add("starts", 0, first.times.sum())


@dataclass(frozen=True)
class PairGram(MomentRequest):
    """Σ x xᵀ, which state–action ratios and the recursion of a horizon need besides."""

    design: ValueDesign

    def accumulate(self, total: Moments, rows: Rows, fold: int) -> None:
        """One slice."""
        total.add_square("gram", fold, scaled(self.design.taken(rows), np.sqrt(rows.times)))


@dataclass(frozen=True)
class ValueFit:
    """For every λ: β and η (or the level) on all rows and without each fold, as columns; ready to value rows.

    The columns of ``beta`` go λ by λ, first all rows, then without each fold; ``offset`` is what the level is worth.
    """

    design: ValueDesign
    start: FloatArray
    beta: FloatArray
    offset: FloatArray
    restarts: bool
    n_ridges: int
    folds: int

    def terms(self, rows: Rows, fold: int, logged: bool) -> tuple[FloatArray, FloatArray]:
        """γV(s′) − q(s,a) of every row (V(s) for q if ``logged``), and V(s) where an episode starts, 0 elsewhere.

        Both have the shape (rows, λ, 2): by the fit on all rows, and by the one that has not seen the fold.
        """
        return rows.once(("terms", fold, logged), self, lambda: self._terms(rows, fold, logged))

    def _terms(self, rows: Rows, fold: int, logged: bool) -> tuple[FloatArray, FloatArray]:
        design = self.design
        # after an end: the start law for the average, nothing otherwise
        after = self.start @ self.beta if self.restarts else np.zeros(self.beta.shape[1])
        later = design.gamma * np.where(rows.terminated[:, None], after, self._valued(design.ahead(rows)))
        own = design.chosen(rows) if logged else design.taken(rows)
        first = np.zeros_like(later)
        if rows.start.any():
            first[rows.start] = self._valued(design.chosen(design.starts(rows)))
        return self._by_ridge(later - self._valued(own), fold), self._by_ridge(first, fold)

    def _valued(self, x: FloatArray) -> FloatArray:
        """x·β and the level, by every fit."""
        return np.asarray(x @ self.beta + self.offset)

    def _by_ridge(self, values: FloatArray, fold: int) -> FloatArray:
        """From one column per fit to (rows, λ, 2)."""
        every = values.reshape(len(values), self.n_ridges, 1 + self.folds)
        return np.stack([every[:, :, 0], every[:, :, 1 + fold % self.folds]], axis=2)


@dataclass(frozen=True)
class ValueSystem:
    """The moments of a value, ready to be solved on any of the folds."""

    problem: FeatureProblem
    design: ValueDesign
    moments: Moments
    ridges: tuple[float, ...] = RIDGES

    @cached_property
    def start(self) -> FloatArray:
        """E_μ₀ x(s,π)."""
        count = float(self.moments["starts"].sum())
        return self.moments["start"].sum(axis=0) / count if count else np.zeros(self.design.size)

    @cached_property
    def fit(self) -> ValueFit:
        """Every λ on all rows and without each fold."""
        folds = self.problem.folds
        uses = [np.ones(FOLDS), *((np.arange(FOLDS) % folds != k).astype(np.float64) for k in range(folds))]
        known = [use if float(use @ self.moments["n"]) > 0 else uses[0] for use in uses]
        fits = [self._solve(use, ridge) for ridge in self.ridges for use in known]
        return ValueFit(
            self.design,
            self.start,
            np.stack([beta for beta, _ in fits], axis=1),
            np.array([self._offset(level) for _, level in fits]),
            restarts=self.problem.estimand.kind == "average",
            n_ridges=len(self.ridges),
            folds=folds,
        )

    def _sum(self, name: str, use: FloatArray) -> FloatArray:
        return np.tensordot(use, self.moments[name], axes=1)

    def _solve(self, use: FloatArray, ridge: float) -> tuple[FloatArray, float]:
        n = float(use @ self.moments["n"])
        matrix = self._sum("a", use) / n
        right, mean, gap = self._sum("b", use) / n, self._sum("e", use) / n, self._sum("d", use) / n
        average = self.problem.estimand.kind == "average"
        if average and float(use @ self.moments["ends"]) > 0:
            matrix = matrix - np.outer(self._sum("ended", use) / n, self.start)
            gap = gap - float(use @ self.moments["ends"]) / n * self.start
        matrix[np.diag_indices(len(matrix))] += ridge
        if not average:
            level = 0.0 if self.moments["ends"].any() else float(use @ self.moments["r"]) / n
            return linalg.solve(matrix, right - level * mean), level
        bordered = np.block([[matrix, mean[:, None]], [gap[None, :], np.ones((1, 1))]])
        solution = linalg.solve(bordered, np.append(right, float(use @ self.moments["r"]) / n))
        return solution[:-1], float(solution[-1])

    @cached_property
    def value(self) -> float:
        """The plug-in estimate, with a small λ: its average forgives a rough value, but not one that is too smooth."""
        beta, level = self._solve(np.ones(FOLDS), min(PLUG_IN_RIDGE, self.ridges[-1]))
        return level + (1.0 - self.design.gamma) * float(self.start @ beta)

    def _offset(self, level: float) -> float:
        """What a reward of ``level`` per step is worth for ever; nothing for the average, where η stands apart."""
        return 0.0 if self.problem.estimand.kind == "average" else level / (1.0 - self.design.gamma)

    def horizon_value(self, gram: FloatArray, horizon: int) -> float:
        """The plug-in mean reward of the first T steps, by backward recursion.

        T steps multiply what one regression gets wrong, and a target that extrapolates can make the recursion explode.
        So λ is the smallest at which the value, and the values without each fold, lie among the rewards and within a
        tenth of their range from each other.
        """
        reward = self.problem.known.sample.reward
        low, high = float(reward.min()), float(reward.max())
        if self.moments["ends"].any():
            low, high = min(low, 0.0), max(high, 0.0)
        known = np.flatnonzero(self.moments["n"])
        uses = [known, *(known[known != k] for k in known if len(known) > 1)]
        values = np.array([[self._recursion(gram, use, ridge, horizon) for use in uses] for ridge in HORIZON_RIDGES])
        steady = ((values >= low) & (values <= high)).all(axis=1) & (np.ptp(values, axis=1) <= _APART * (high - low))
        if not steady.any():
            raise UsageError(
                "'lstdq' cannot follow the target over this horizon: its values leave the range of the rewards, or"
                " differ from one part of the episodes to the next. Use"
                " importance sampling ('wis-step'), a discount, or more rows"
            )
        return float(values[np.flatnonzero(steady)[0], 0])

    def _recursion(self, gram: FloatArray, use: IntArray, ridge: float, horizon: int) -> float:
        """β_T = 0, (Σ xxᵀ + λ) β_t = Σ x [r + x(s′,π)·β_{t+1}]: one factorisation, T substitutions.

        Rewards are taken less their mean, which is put back, unless episodes end and earn nothing from there on.
        """
        sums = {name: self.moments[name][use].sum(axis=0) for name in ("n", "r", "a", "b", "e")}
        n = float(sums["n"])
        level = 0.0 if self.moments["ends"].any() else float(sums["r"]) / n
        whole = gram[use].sum(axis=0) / n
        ahead = whole - sums["a"] / n  # Σ x x(s′,π)ᵀ of the rows that go on, γ = 1
        factor = linalg.cho_factor(whole + ridge * np.eye(len(whole)))
        reward, beta = (sums["b"] - level * sums["e"]) / n, np.zeros(self.design.size)
        for _ in range(horizon):
            beta = linalg.cho_solve(factor, reward + ahead @ beta)
        return level + float(self.start @ beta) / horizon
