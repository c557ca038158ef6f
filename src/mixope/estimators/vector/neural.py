"""EMP with a network for the state ratio: ``emp-neural``, an option beside the linear closed form, never the default.

Behaviour and calibration are those of ``emp``; the network is trained on the sample of rows by
:mod:`mixope.solvers.neural`, and the score pass is the one every ratio goes through. Of an ended row, s′ follows the
start law (average) or is nothing (discounted). Reported besides: by how much the loss fell, and the median and standard
deviation of the value over seeds, on the sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from mixope.arrays import BoolArray, FloatArray, IntArray
from mixope.behaviours.logged_rows import LoggedRows
from mixope.behaviours.rows_protocol import RowBehaviour
from mixope.errors import UsageError
from mixope.estimators.solution import Solution
from mixope.estimators.vector.defaults import default_behaviour
from mixope.estimators.vector.problem import VectorProblem
from mixope.estimators.vector.ratio import RatioFit
from mixope.estimators.vector.scores import score
from mixope.estimators.vector.value import fold_of
from mixope.features import NormalisedBumps, default_size
from mixope.features.standard import FittedStandard, Standardise
from mixope.solvers.linear import Whitening
from mixope.solvers.neural import NeuralRows, NeuralSettings, Training, train
from mixope.solvers.outcome import Outcome, Solved
from mixope.statistics.device_moments import load_jax
from mixope.statistics.rows import Rows

_MOST_TESTS = 300
#: Directions of the tests with less than this share of the largest mean square: noise, which whitening would blow up
_SMALLEST = 1e-3
_PARTS = 5


@dataclass(frozen=True)
class NeuralRatio:
    """``source`` of ρ: the fitted mixture or logged propensities; ``settings``: how to train.

    ``tests``: how many landmarks, by default as many as ``emp`` has, and at most 300.
    """

    settings: NeuralSettings = field(default_factory=NeuralSettings)
    source: Literal["mixture", "logged"] = "mixture"
    behaviour: RowBehaviour | None = None
    tests: int | None = None
    doubly_robust: bool = False
    name: str = "emp-neural"

    def solve(self, problem: VectorProblem) -> Solution:
        """Train on the sample, then weigh all rows."""
        load_jax("a neural ratio")
        kind = problem.estimand.kind
        if kind == "horizon":
            raise UsageError(f"{self.name!r} estimates the average and the discounted value; use 'wis-step'")
        if kind == "discounted" and self.settings.loss == "kernel":
            raise UsageError("the kernel loss is for the average; for a discounted value use loss='tests'")
        fit = NeuralFit(problem, self._base(problem), self.settings, self.tests or self._default_tests(problem))
        solution = score(problem, fit, self.name, logged=self.source == "logged", doubly_robust=self.doubly_robust)
        training = fit.training
        bias = solution.known_bias if training.moved else training.message
        return replace(solution, measures={**solution.measures, **fit.measures}, known_bias=bias)

    def _default_tests(self, problem: VectorProblem) -> int:
        return min(default_size(len(problem.scan.sample)), _MOST_TESTS)

    def _base(self, problem: VectorProblem) -> RatioFit:
        """Behaviour and calibration, shared with ``emp`` (or ``bch-pooled``) of the same problem."""
        weights = dict.fromkeys(problem.labels, 1.0)
        key = f"{self.source} {type(self.behaviour).__name__} {sorted(weights.items())}"
        logged = LoggedRows(problem.loggers) if self.source == "logged" else None
        behaviour = logged or self.behaviour or default_behaviour(problem)
        return problem.ratio(key, problem.fitted(behaviour, key), _ones)


def _ones(rows: Rows) -> FloatArray:
    return np.ones(len(rows))


@dataclass(frozen=True)
class NeuralFit:
    """A trained ratio as the score pass sees it."""

    problem: VectorProblem
    base: RatioFit
    settings: NeuralSettings
    tests: int

    @property
    def misfit(self) -> float:
        """Of the behaviour, before calibration."""
        return self.base.misfit

    @cached_property
    def scale(self) -> FittedStandard:
        """z."""
        return Standardise().fit(self.problem.scan.sample.observation)

    @cached_property
    def _prepared(self) -> tuple[NeuralRows, float]:
        """The sample as the solver wants it, and the condition number of the tests."""
        sample, gamma = self.problem.scan.sample, self.base.gamma
        ratio = self.base.ratio(sample, self.base.features.transform(sample.observation))
        weight = self.base.weight(sample)
        psi = NormalisedBumps(self.tests).fit(sample.observation, self.problem.seed)
        here, ahead = psi.transform(sample.observation), psi.transform(sample.next_observation)
        white = Whitening.of(here.T @ (here * weight[:, None]) / weight.sum(), _SMALLEST)
        start = here[sample.start].mean(axis=0) if sample.start.any() else np.zeros(psi.size)
        average = self.problem.estimand.kind == "average"
        ahead[sample.terminated] = start if average else 0.0
        right = np.zeros(psi.size) if average else (1.0 - gamma) * start
        difference = (here - gamma * ratio[:, None] * ahead) @ white.root
        states, following = self.scale.transform(sample.observation), self.scale.transform(self._following(sample))
        return NeuralRows(states, following, ratio, weight, difference, right @ white.root), white.condition

    def _following(self, sample: Rows) -> FloatArray:
        """s′, after an end a start drawn from the sample."""
        following = np.array(sample.next_observation, dtype=np.float64)
        if sample.terminated.any() and sample.start.any():
            generator = np.random.default_rng([self.problem.seed, 31])
            starts = sample.observation[sample.start]
            following[sample.terminated] = starts[generator.integers(len(starts), size=int(sample.terminated.sum()))]
        return following

    def _train(self, left_out: int | None) -> Training:
        """One network a seed; where rows are held out, part k of the episodes judges seed k; a fold may be left out."""
        rows, _ = self._prepared
        sample = self.problem.scan.sample
        assert sample.episode is not None
        if left_out is not None:
            mine = fold_of(sample, self.base.folds) != left_out
            rows = replace(rows, weight=rows.weight * mine)
        judged = self.settings.stop == "held-out"
        held_out = np.stack([_part(sample.episode, k) & judged for k in range(self.settings.seeds)])
        return train(rows, held_out, self.settings, self.problem.seed)

    @cached_property
    def training(self) -> Training:
        """On all rows of the sample."""
        return self._train(None)

    @cached_property
    def _crossed(self) -> tuple[Training, ...]:
        return tuple(self._train(k) for k in range(self.base.folds))

    @cached_property
    def whole(self) -> tuple[FloatArray, Solved, float]:
        """No coefficients to show; how it was solved; the condition number of the tests."""
        done = self.training
        outcome = Outcome.ITERATED if done.moved else Outcome.INACCURATE
        return np.zeros(0), Solved(outcome, float(np.median(done.residual)), done.steps), self._prepared[1]

    @property
    def measures(self) -> dict[str, float]:
        """The fall of the loss, and the spread of the value over seeds on the sample."""
        done = self.training
        values = self.values_by_seed
        found = {
            "loss_fall": done.fall,
            "seed_median": float(np.median(values)),
            "seed_spread": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        }
        if self.settings.stop == "held-out":
            found["held_out_fall"] = float(np.median(done.last_held_out / np.maximum(done.first_held_out, 1e-300)))
        return found

    @property
    def values_by_seed(self) -> FloatArray:
        """Σ c ω ρ r / Σ c ω ρ on the sample, one a seed."""
        rows, _ = self._prepared
        w = self.training.ratios(rows.states) * rows.ratio * rows.weight
        return np.asarray(w @ self.problem.scan.sample.reward / w.sum(axis=1))

    def weight(self, rows: Rows) -> FloatArray:
        """c."""
        return self.base.weight(rows)

    def weights(self, rows: Rows, crossed: bool = False) -> FloatArray:
        """c ω ρ, ω the mean over seeds, each with mean 1 on the sample."""
        rho = self.base.ratio(rows, self.base.features.transform(rows.observation))
        omega = self._omega(rows, crossed)
        return np.asarray(self.base.weight(rows) * omega * rho)

    def _omega(self, rows: Rows, crossed: bool) -> FloatArray:
        states = self.scale.transform(rows.observation)
        if not crossed:
            return self._mean(self.training, states)
        fold = fold_of(rows, self.base.folds)
        by_fold = np.stack([self._mean(done, states) for done in self._crossed])
        return np.asarray(by_fold[fold, np.arange(len(rows))])

    def _mean(self, done: Training, states: FloatArray) -> FloatArray:
        sample, weight = self._prepared[0].states, self._prepared[0].weight
        level = done.ratios(sample) @ weight / weight.sum()
        return np.asarray((done.ratios(states) / level[:, None]).mean(axis=0))


def _part(episode: IntArray, k: int) -> BoolArray:
    """A fifth of the episodes; another one for every k below five."""
    return np.asarray((episode // 11) % _PARTS == k % _PARTS)
