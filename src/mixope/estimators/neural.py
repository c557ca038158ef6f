"""EMP with a network for the state ratio: ``emp-neural``, an option beside the linear closed form, never the default.

Behaviour and calibration are those of ``emp``; the network is trained on the sample of rows by
:mod:`mixope.solvers.neural`, and the score pass is the one every ratio goes through. Of an ended row, s′ follows the
start law (average) or is nothing (discounted). Reported besides: by how much the loss fell, and the median and standard
deviation of the value over seeds, on the sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.behaviours import Behaviour, DefaultMixture, as_behaviour
from mixope.estimators.asking import Asking
from mixope.estimators.features.estimators import with_value
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.features.ratio import CalibratedRatio, calibrate, calibration_requests
from mixope.estimators.features.scores import score
from mixope.estimators.solution import Solution
from mixope.features import FittedMap, NormalisedBumps, default_size, fit_encoded, standardised
from mixope.requests.rows import Rows, required
from mixope.solvers.linear import Whitening
from mixope.solvers.neural import NeuralRows, NeuralSettings, TrainedNetworks, load_jax, train
from mixope.solvers.outcome import Outcome, Solved

_MOST_TESTS = 300
#: Directions of the tests with less than this share of the largest mean square: noise, which whitening would blow up
_SMALLEST = 1e-3
_PARTS = 5


@dataclass(frozen=True)
class NeuralRatio:
    """``behaviour``: what ρ divides by, such as the fitted mixture or "logged"; ``settings``: how to train.

    ``tests``: how many landmarks, by default as many as ``emp`` has, and at most 300.
    """

    settings: NeuralSettings = field(default_factory=NeuralSettings)
    behaviour: Behaviour | str = field(default_factory=DefaultMixture)
    tests: int | None = None
    doubly_robust: bool = False
    name: str = "emp-neural"

    def solve(self, problem: FeatureProblem) -> Asking[Solution]:
        """Train on the sample, then weigh all rows."""
        load_jax()
        problem.refuse_horizon(self.name)
        if not problem.estimand.restarts and self.settings.loss == "kernel":
            raise UsageError("the kernel loss is for the average; for other values use loss='tests'")
        behaviour, weights = as_behaviour(self.behaviour), dict.fromkeys(problem.labels, 1.0)
        fitted = problem.known.fitted(behaviour.knowing(problem.loggers), weights)
        (request,) = calibration_requests(problem, fitted, weights, coarse=False)
        moments, model = yield from with_value(problem, (request,), needed=self.doubly_robust)
        ratio, report = calibrate(problem, request, moments)
        tests = self.tests or min(default_size(len(problem.known.sample)), _MOST_TESTS)
        trainer = NeuralTrainer(problem, ratio, self.settings, tests)
        report = replace(report, solved=trainer.solved, condition=trainer.prepared[1])
        fit = trainer.fit(cross_fit=self.doubly_robust and problem.cross_fit)
        found = yield from score(
            problem, fit, report, model, logged=not behaviour.fitted, doubly_robust=self.doubly_robust
        )
        bias = found.known_bias if trainer.training.moved else trainer.training.message
        measured: dict[str, Any] = trainer.measures
        return replace(found, measures=replace(found.measures, **measured), known_bias=bias)


@dataclass(frozen=True)
class NeuralFit:
    """Trained networks that weigh rows: ω the mean over seeds, each such that it accounts for all mass of the sample.

    ``trained`` is the training on all rows first, then one without each fold where there is cross-fitting.
    """

    ratio: CalibratedRatio
    scale: FittedMap
    trained: tuple[TrainedNetworks, ...]
    levels: tuple[FloatArray, ...]

    def weight(self, rows: Rows) -> FloatArray:
        """c."""
        return self.ratio.raw.weight(rows)

    def weights(self, rows: Rows, fold: int | None = None) -> FloatArray:
        """c ω ρ."""
        which = 0 if fold is None or len(self.trained) == 1 else 1 + fold % (len(self.trained) - 1)
        states = self.scale.transform(rows.observation)
        omega = (self.trained[which].ratios(states) / self.levels[which][:, None]).mean(axis=0)
        return np.asarray(self.weight(rows) * omega * self.ratio.of(rows)[0])


@dataclass(frozen=True)
class NeuralTrainer:
    """Trains on the sample of a problem."""

    problem: FeatureProblem
    ratio: CalibratedRatio
    settings: NeuralSettings
    tests: int

    @cached_property
    def scale(self) -> FittedMap:
        """z."""
        return standardised(self.problem.known.sample.observation, self.problem.known.sample.roles)

    @cached_property
    def prepared(self) -> tuple[NeuralRows, float]:
        """The sample as the solver wants it, and the condition number of the tests."""
        sample, gamma = self.problem.known.sample, self.problem.gamma
        rho, weight = self.ratio.of(sample)[0], self.ratio.raw.weight(sample)
        psi = fit_encoded(NormalisedBumps(self.tests), sample.observation, sample.roles, self.problem.seed)
        here, ahead = psi.transform(sample.observation), psi.transform(sample.next_observation)
        white = Whitening.of(here.T @ (here * weight[:, None]) / weight.sum(), _SMALLEST)
        begun = sample.begun / max(float(sample.begun.sum()), 1.0)
        start = begun @ here
        average = self.problem.estimand.restarts
        ahead[sample.terminated] = start if average else 0.0
        difference = (here - gamma * rho[:, None] * ahead) @ white.root
        right = np.zeros(difference.shape[1])
        if not average:  # in the units in which the best constant ratio is one, where training begins
            due, even = start @ white.root, weight @ difference / weight.sum()
            right = due * float(even @ even) / max(float(even @ due), 1e-300)
        states, following = self.scale.transform(sample.observation), self.scale.transform(self._following(sample))
        return NeuralRows(states, following, rho, weight, difference, right), white.condition

    def _following(self, sample: Rows) -> FloatArray:
        """s′, after an end a start drawn from the sample."""
        following = np.array(sample.next_observation, dtype=np.float64)
        if sample.terminated.any() and sample.start.any():
            generator = np.random.default_rng([self.problem.seed, 31])
            starts = sample.observation[sample.start]
            following[sample.terminated] = starts[generator.integers(len(starts), size=int(sample.terminated.sum()))]
        return following

    def _train(self, left_out: int | None) -> TrainedNetworks:
        """One network per seed; held-out part k of the episodes judges seed k; a fold may be left out altogether."""
        rows, _ = self.prepared
        sample = self.problem.known.sample
        episode = required(sample.episode)
        if left_out is not None:
            mine = self.problem.fold_of(sample) != left_out
            rows = replace(rows, weight=rows.weight * mine)
        judged = self.settings.stop == "held-out"
        held_out = np.stack([_part(episode, k) & judged for k in range(self.settings.seeds)])
        return train(rows, held_out, self.settings, self.problem.seed)

    @cached_property
    def training(self) -> TrainedNetworks:
        """On all rows of the sample."""
        return self._train(None)

    @property
    def solved(self) -> Solved:
        """How well."""
        done = self.training
        outcome = Outcome.ITERATED if done.moved else Outcome.INACCURATE
        return Solved(outcome, float(np.median(done.residual)), done.steps)

    def fit(self, cross_fit: bool) -> NeuralFit:
        """Ready to weigh rows."""
        trained = [self.training, *(self._train(k) for k in range(self.problem.folds) if cross_fit)]
        rows, _ = self.prepared
        due = rows.weight if self.problem.estimand.restarts else rows.weight * self._accounting(rows.ratio)
        levels = [done.ratios(rows.states) @ due / rows.weight.sum() for done in trained]
        return NeuralFit(self.ratio, self.scale, tuple(trained), tuple(levels))

    def _accounting(self, rho: FloatArray) -> FloatArray:
        """What a row of ratio one accounts for where ends are absorbing: ρ ((1−γ) + γ at an end)/k."""
        estimand, ended = self.problem.estimand, self.problem.known.sample.terminated
        return np.asarray(rho * (1.0 - estimand.discount * ~ended) / estimand.scale)

    @property
    def measures(self) -> dict[str, float]:
        """The fall of the loss, and the spread of the value over seeds on the sample."""
        done, (rows, _) = self.training, self.prepared
        w = done.ratios(rows.states) * rows.ratio * rows.weight
        values = w @ self.problem.known.sample.reward / w.sum(axis=1)
        found = {
            "loss_fall": done.fall,
            "seed_median": float(np.median(values)),
            "seed_spread": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        }
        if self.settings.stop == "held-out":
            found["held_out_fall"] = float(np.median(done.last_held_out / np.maximum(done.first_held_out, 1e-300)))
        return found


def _part(episode: IntArray, k: int) -> BoolArray:
    """A fifth of the episodes; another one for every k below five."""
    return np.asarray((episode // 11) % _PARTS == k % _PARTS)
