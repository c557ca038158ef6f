"""LSTD-Q on features: q(s,a) = β · φ(s) ⊗ ψ(a), from one round of moments.

    average      Σ x(s,a)[r − η + x(s′,π)·β − x(s,a)·β] = N λ β,   Σ [r − η + x(s′,π)·β − x(s,a)·β] = 0
    otherwise    q = x·β + κ,   Σ x(s,a)[r + γ V(s′) − q(s,a)] = N λ β,   Σ [r + γ V(s′) − q(s,a)] = 0
    horizon      β_T = 0,   (Σ xxᵀ + N λ) β_t = Σ x [r + x(s′,π)·β_{t+1}]      backwards from the last step

φ are normalised bumps, 15 ∛n of them (as many as 1,200 columns allow), ψ the action features. Moments are kept by fold
of episodes, so that there is a fit on all rows and, for each fold, one without it. An end leads to the start law for
the average, to nothing otherwise.

λ is chosen by what a regression predicts of rows that it has not seen, never by how narrow the interval gets: a value
that is too smooth has small scores and is wrong. With V₀ a first fit without a fold, λ is that of the ridge regression
of r + γ V₀(s′) on x(s,a), without the fold too, whose error on the fold is smallest, summed over folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from mixope.base.arrays import FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.estimators.features.problem import FeatureProblem
from mixope.features import FittedMap
from mixope.features.actions import ActionMap
from mixope.policies import Policy
from mixope.requests.moments import MomentRequest, Moments
from mixope.requests.processor import cross, crossed, phi_of
from mixope.requests.rows import FOLDS, Rows
from mixope.requests.terms import ColumnSum, FeatureColumns, NumberSum, Product, Square, Term
from mixope.solvers.linear import LEAST_RIDGE

RIDGES = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
FIRST_RIDGE = PLUG_IN_RIDGE = 1e-6
HORIZON_RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_APART = 0.1
_ALIKE = 1e-9
"""Of the range of held-out errors: these are alike."""


@dataclass(frozen=True)
class PairDesign:
    """x(s,a) of rows, whatever the target: φ(s) crossed with ψ(a)."""

    states: FittedMap
    actions: ActionMap

    @property
    def size(self) -> int:
        """Columns of x."""
        return self.states.size * self.actions.size

    def taken(self, rows: Rows) -> FloatArray:
        """x(s,a), made once for all targets."""
        return crossed(self.columns(rows), rows)

    def taken_factor(self, rows: Rows) -> FloatArray:
        """ψ(a), by which φ(s) is crossed."""
        return rows.once("taken factor", self, lambda: self.actions.of(rows.action))

    def columns(self, rows: Rows) -> FeatureColumns:
        """x(s,a) in terms."""
        return FeatureColumns(self.states, self.taken_factor(rows), kept=True)


@dataclass(frozen=True)
class ValueDesign:
    """x(s,a) and x(s,π) of rows for one target."""

    pairs: PairDesign
    target: Policy
    gamma: float

    @property
    def states(self) -> FittedMap:
        """φ."""
        return self.pairs.states

    @property
    def actions(self) -> ActionMap:
        """ψ."""
        return self.pairs.actions

    @property
    def size(self) -> int:
        """Columns of x."""
        return self.pairs.size

    def taken(self, rows: Rows) -> FloatArray:
        """x(s,a), made once for all targets."""
        return self.pairs.taken(rows)

    def taken_factor(self, rows: Rows) -> FloatArray:
        """ψ(a), by which φ(s) is crossed."""
        return self.pairs.taken_factor(rows)

    def chosen(self, rows: Rows) -> FloatArray:
        """x(s,π)."""
        return self._chosen(rows, following=False)

    def ahead(self, rows: Rows) -> FloatArray:
        """x(s′,π)."""
        return self._chosen(rows, following=True)

    def _chosen(self, rows: Rows, following: bool) -> FloatArray:
        """The target is asked once; its products with φ are as large as x(s,a), and are not kept."""
        return cross(phi_of(self.states, rows, following), self.chosen_factor(rows, following))

    def chosen_factor(self, rows: Rows, following: bool = False) -> FloatArray:
        """E_π ψ in every row's state, or in the next one."""
        at = rows.next_observation if following else rows.observation
        return rows.once(("chosen", following), self, lambda: self.actions.under(self.target, at))

    def starts(self, rows: Rows) -> Rows:
        """The rows that begin an episode."""
        return rows.once("starts", rows.start, lambda: rows.take(rows.start))


def value_design(problem: FeatureProblem) -> ValueDesign:
    """The design of a target; the state features are shared by all targets."""
    if not problem.drawable:
        raise UsageError(
            "a value model needs a target that can be drawn from (a sample method), and this one gives densities only;"
            " use a GaussianPolicy, or an estimator without a value model such as 'emp'"
        )
    states, actions = problem.known.value_features(problem.actions.size), problem.actions
    pairs = problem.known.once(("pair design", states, actions), lambda: PairDesign(states, actions))
    return problem.known.once(
        ("value design", problem.target, problem.gamma), lambda: ValueDesign(pairs, problem.target, problem.gamma)
    )


def value_system(problem: FeatureProblem, design: ValueDesign, moments: Moments, gram: Moments) -> ValueSystem:
    """The system of these moments, solved once for all estimators of the target."""
    return problem.once("value", moments, lambda: ValueSystem(problem, design, moments, gram["gram"]))


@dataclass(frozen=True)
class ValueSums(MomentRequest):
    """Σ x(x − γ x′)ᵀ, Σ x r, Σ x, Σ (x − γx′), Σ r, rows, by fold; the start features; ends apart, for the average."""

    design: ValueDesign

    @property
    def maps(self) -> tuple[FittedMap, ...]:
        """φ of the states."""
        return (self.design.states,)

    def terms(self, rows: Rows) -> tuple[Term, ...]:
        """The same, in terms."""
        design, n, states = self.design, rows.times, self.design.states
        x, over = design.taken_factor(rows), rows.terminated * n
        going = (-design.gamma * n * ~rows.terminated)[:, None] * design.chosen_factor(rows, following=True)
        pairs = design.pairs.columns(rows)
        counted = pairs if rows.count is None else FeatureColumns(states, n[:, None] * x)
        difference = (counted, FeatureColumns(states, going, following=True))
        begun = np.zeros_like(x)
        if rows.start.any():
            first = design.starts(rows)
            begun[rows.start] = first.times[:, None] * design.chosen_factor(first)
        by_row = {"b": rows.reward * n, "e": n, "ended": over}
        return (
            Product("a", (pairs,), difference),
            *(ColumnSum(name, (FeatureColumns(states, weight[:, None] * x),)) for name, weight in by_row.items()),
            ColumnSum("d", difference),
            ColumnSum("start", (FeatureColumns(states, begun),), by_fold=False),
            NumberSum("r", rows.reward * n),
            NumberSum("n", n),
            NumberSum("ends", over),
            NumberSum("starts", rows.start * n, by_fold=False),
        )


@dataclass(frozen=True)
class PairGram(MomentRequest):
    """Σ x xᵀ of the logged pairs, by fold: the same for all targets."""

    pairs: PairDesign

    @property
    def maps(self) -> tuple[FittedMap, ...]:
        """φ of the states."""
        return (self.pairs.states,)

    def terms(self, rows: Rows) -> tuple[Term, ...]:
        """The same, in terms."""
        return (Square("gram", self.pairs.columns(rows), rows.times, self.pairs.actions.centre),)


@dataclass(frozen=True)
class ValueFit:
    """β and the constant κ on all rows and without each fold, as columns; ready to value rows.

    The first column of ``beta`` is from all rows, the others are without each fold.
    """

    design: ValueDesign
    start: FloatArray
    beta: FloatArray
    offset: FloatArray
    restarts: bool

    def terms(self, rows: Rows, fold: int, logged: bool) -> tuple[FloatArray, FloatArray]:
        """γV(s′) − q(s,a) of every row (V(s) for q if ``logged``), and V(s) where an episode starts, 0 elsewhere.

        Both have two columns: by the fit on all rows, and by the one that has not seen the fold.
        """
        return rows.once(("terms", fold, logged), self, lambda: self._terms(rows, fold, logged))

    def worth(self, rows: Rows) -> FloatArray:
        """V(s) of every row, by the fit on all rows."""
        return np.asarray(self._valued(self.design.chosen(rows))[:, 0])

    def _terms(self, rows: Rows, fold: int, logged: bool) -> tuple[FloatArray, FloatArray]:
        design = self.design
        # after an end: the start law for the average, nothing otherwise
        after = self.start @ self.beta if self.restarts else np.zeros(self.beta.shape[1])
        later = design.gamma * np.where(rows.terminated[:, None], after, self._valued(design.ahead(rows)))
        own = design.chosen(rows) if logged else design.taken(rows)
        first = np.zeros_like(later)
        if rows.start.any():
            first[rows.start] = self._valued(design.chosen(design.starts(rows)))
        chosen = [0, 1 + fold % (self.beta.shape[1] - 1)]
        return (later - self._valued(own))[:, chosen], first[:, chosen]

    def _valued(self, x: FloatArray) -> FloatArray:
        """x·β and the level, by every fit."""
        return np.asarray(x @ self.beta + self.offset)


@dataclass(frozen=True)
class SolvedValue:
    """What is left of a system once it is solved: small, where its moments are not."""

    fit: ValueFit
    value: float
    ridge: float


@dataclass(frozen=True)
class ValueSystem:
    """The moments of a value, ready to be solved on any of the folds."""

    problem: FeatureProblem
    design: ValueDesign
    moments: Moments
    gram: FloatArray
    ridges: tuple[float, ...] = RIDGES

    @cached_property
    def solved(self) -> SolvedValue:
        """Without the moments."""
        return SolvedValue(self.fit, self.value, self.ridge)

    @cached_property
    def start(self) -> FloatArray:
        """E_μ₀ x(s,π)."""
        count = float(self.moments["starts"].sum())
        return self.moments["start"].sum(axis=0) / count if count else np.zeros(self.design.size)

    @cached_property
    def fit(self) -> ValueFit:
        """On all rows and without each fold."""
        uses = [np.ones(FOLDS), *self._others]
        known = [use if float(use @ self.moments["n"]) > 0 else uses[0] for use in uses]
        fits = [self._solve(use, self.ridge) for use in known]
        return ValueFit(
            self.design,
            self.start,
            np.stack([beta for beta, _ in fits], axis=1),
            np.array([self._offset(level) for _, level in fits]),
            restarts=self.problem.estimand.restarts,
        )

    @property
    def _others(self) -> list[FloatArray]:
        """For each fold, which folds are not it."""
        folds = self.problem.folds
        return [(np.arange(FOLDS) % folds != k).astype(np.float64) for k in range(folds)]

    @cached_property
    def ridge(self) -> float:
        """The λ whose regression predicts held-out rows best."""
        if len(self.ridges) == 1:
            return self.ridges[0]
        errors, n = np.zeros(len(self.ridges)), self.moments["n"]
        for use in self._others:
            if float(use @ n) > 0 and float((1.0 - use) @ n) > 0:
                errors += self._held_out_errors(use)
        alike = errors <= errors.min() + _ALIKE * float(np.ptp(errors))
        return self.ridges[int(np.flatnonzero(alike)[-1])]  # what rounding tells apart is one: the smoothest of them

    def _held_out_errors(self, use: FloatArray) -> FloatArray:
        """Σ (y − xβ − κ)² over the folds not in ``use``, up to Σ y², by the ridge regressions on those that are."""
        first, level = self._solve(use, FIRST_RIDGE)
        (gram, mean, right, total, n), held = (self._regression(u, first, level) for u in (use, 1.0 - use))
        errors = []
        for ridge in self.ridges:
            square = gram - np.outer(mean, mean) / n  # the constant is free
            square[np.diag_indices(len(square))] += ridge * n
            beta = linalg.solve(square, right - mean * total / n, assume_a="pos")
            constant = (total - mean @ beta) / n
            quadratic = beta @ held[0] @ beta + 2.0 * constant * (held[1] @ beta) + constant**2 * held[4]
            errors.append(quadratic - 2.0 * (beta @ held[2] + constant * held[3]))
        return np.array(errors)

    def _regression(
        self, use: FloatArray, beta: FloatArray, level: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
        """Σ xxᵀ, Σ x, Σ x y, Σ y and the rows, with y = r + γ V(s′) (less η for the average), V by these β and κ."""
        gram, mean, ended = self._folds(self.gram, use), self._sum("e", use), self._sum("ended", use)
        n, ends = float(use @ self.moments["n"]), float(use @ self.moments["ends"])
        right = self._sum("b", use) + (gram - self._sum("a", use)) @ beta
        total = float(use @ self.moments["r"]) + float((mean - self._sum("d", use)) @ beta)
        if self.problem.estimand.restarts:
            after = float(self.start @ beta)
            return gram, mean, right + after * ended - level * mean, total + after * ends - level * n, n
        gamma = self.design.gamma
        return gram, mean, right + gamma * level * (mean - ended), total + gamma * level * (n - ends), n

    def _sum(self, name: str, use: FloatArray) -> FloatArray:
        return self._folds(self.moments[name], use)

    @staticmethod
    def _folds(by_fold: FloatArray, use: FloatArray) -> FloatArray:
        return np.asarray(np.tensordot(use, by_fold, axes=1))

    def _solve(self, use: FloatArray, ridge: float) -> tuple[FloatArray, float]:
        n = float(use @ self.moments["n"])
        matrix = self._sum("a", use) / n
        right, mean, gap = self._sum("b", use) / n, self._sum("e", use) / n, self._sum("d", use) / n
        ends, ended, gamma = float(use @ self.moments["ends"]) / n, self._sum("ended", use) / n, self.design.gamma
        if self.problem.estimand.restarts:
            matrix, gap = matrix - np.outer(ended, self.start), gap - ends * self.start
            column, corner = mean, 1.0
        else:
            column, corner = (1.0 - gamma) * mean + gamma * ended, 1.0 - gamma + gamma * ends
        matrix[np.diag_indices(len(matrix))] += max(ridge, LEAST_RIDGE * float(np.linalg.norm(matrix)))
        if corner == 0.0:  # no end among these rows: of a total of episodes they tell differences, and no constant
            return np.asarray(linalg.solve(matrix, right)), 0.0
        bordered = np.block([[matrix, column[:, None]], [gap[None, :], np.full((1, 1), corner)]])
        solution = linalg.solve(bordered, np.append(right, float(use @ self.moments["r"]) / n))
        return solution[:-1], float(solution[-1])

    @cached_property
    def value(self) -> float:
        """The plug-in estimate, with a small λ: its average forgives a rough value, but not one that is too smooth."""
        beta, level = self._solve(np.ones(FOLDS), min(self.ridge, PLUG_IN_RIDGE))
        worth = float(self.start @ beta)
        estimand = self.problem.estimand
        return level if estimand.restarts else estimand.scale * (level + worth)

    def _offset(self, level: float) -> float:
        """κ, the constant part of the value; nothing for the average, where the level is η and stands apart."""
        return 0.0 if self.problem.estimand.restarts else level

    def horizon_value(self, horizon: int) -> float:
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
        values = np.array([[self._recursion(use, ridge, horizon) for use in uses] for ridge in HORIZON_RIDGES])
        steady = ((values >= low) & (values <= high)).all(axis=1) & (np.ptp(values, axis=1) <= _APART * (high - low))
        if not steady.any():
            raise UsageError(
                "'lstdq' cannot follow the target over this horizon: its values leave the range of the rewards, or"
                " differ from one part of the episodes to the next. Use"
                " importance sampling ('wis-step'), a discount, or more rows"
            )
        return float(values[np.flatnonzero(steady)[0], 0])

    def _recursion(self, use: IntArray, ridge: float, horizon: int) -> float:
        """β_T = 0, (Σ xxᵀ + λ) β_t = Σ x [r + x(s′,π)·β_{t+1}]: one factorisation, T substitutions.

        Rewards are taken less their mean, which is put back, unless episodes end and earn nothing from there on.
        """
        sums = {name: self.moments[name][use].sum(axis=0) for name in ("n", "r", "a", "b", "e")}
        n = float(sums["n"])
        level = 0.0 if self.moments["ends"].any() else float(sums["r"]) / n
        whole = self.gram[use].sum(axis=0) / n
        ahead = whole - sums["a"] / n  # Σ x x(s′,π)ᵀ of the rows that go on, γ = 1
        factor = linalg.cho_factor(whole + ridge * np.eye(len(whole)))
        reward, beta = (sums["b"] - level * sums["e"]) / n, np.zeros(self.design.size)
        for _ in range(horizon):
            beta = linalg.cho_solve(factor, reward + ahead @ beta)
        return level + float(self.start @ beta) / horizon
