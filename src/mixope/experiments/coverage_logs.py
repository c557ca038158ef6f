"""One simulated log and all its intervals, with the truth beside them.

    scores    t, normal, likelihood: from the scores of the episodes; ``pair``: the difference between the target and
              one near it (9 parts target, 1 part the first logger), t
    refits    bca, percentile: from the same refits on resampled episodes
    blocks    batch means: one episode by the last logger, as long as the episodes together

Scores come from :func:`mixope.answering.answer`, once for all targets and estimators, and intervals from them as
``evaluate`` makes them, widened by what the estimate thinks it is off. The behaviour is not told, states are logged as
factors where there are some. Trajectory weights estimate the mean of the first steps, and are held against that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from mixope import environments
from mixope.answering import answer
from mixope.arrays import FloatArray
from mixope.differences import JointScores, pairwise
from mixope.errors import MixopeError
from mixope.estimand import Estimand
from mixope.estimate import Estimate
from mixope.estimators import REGISTRY
from mixope.experiments.experiment import Row
from mixope.experiments.worlds import log_seed, world
from mixope.intervals import Interval, IntervalChoice, Scores, judge_scores, widen
from mixope.policies import TabularPolicy
from mixope.resampling import episode_counts_request, prepare, resample
from mixope.seen import Counted, count

LEVEL = 0.95
Source = Literal["scores", "refits", "blocks"]
SCORES, REFITS, BLOCKS, PAIR = ("t", "normal", "likelihood"), ("bca", "percentile"), "blocks", "pair"
TARGET, NEAR = "target", "near"


@dataclass(frozen=True)
class CoveredLog:
    """``estimators`` are names with commas between; ``replicates`` counts where ``source`` is refits.

    The log depends on the environment, its size, the seed and the repetition: intervals of all sources see the same.
    """

    environment: str
    loggers: int
    episodes: int
    horizon: int
    estimators: str
    source: Source
    replicates: int
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-15, one core."""
        names, rows = self.estimators.split(","), self.episodes * self.horizon
        if self.source == "refits":
            return len(names) * self.replicates * (0.0013 + rows / 5_000_000)
        each = 0.02 + rows / 500_000 + len(names) * (0.015 + rows / 1_000_000)
        return each + (2.5 if self.environment == "taxi" and "dr" in names else 0.0)

    def simulation_seed(self) -> int:
        """Of everything that the log depends on."""
        return log_seed(self.seed, self.repetition, self.environment, self.loggers, self.episodes, self.horizon)

    def measure(self) -> list[Row]:
        """One row an estimator and interval; a refusal is a row without an interval."""
        counted = count(self._simulate())
        made = {"scores": self._from_scores, "refits": self._from_refits, "blocks": self._from_blocks}[self.source]
        return [row for estimand, names in self._questions().items() for row in made(counted, estimand, names)]

    def _simulate(self) -> object:
        here, one = world(self.environment, self.loggers), self.source == "blocks"
        return environments.simulate(
            here.known,
            here.laws[-1:] if one else here.laws,
            1 if one else self.episodes,
            self.episodes * self.horizon if one else self.horizon,
            seed=self.simulation_seed(),
            observed="factors" if here.known.factors else "id",
        )

    def _questions(self) -> dict[Estimand, list[str]]:
        found: dict[Estimand, list[str]] = {}
        for name in self.estimators.split(","):
            by_trajectory = REGISTRY[name].family == "trajectory weights"
            estimand = Estimand("horizon", horizon=self.horizon) if by_trajectory else Estimand("average")
            found.setdefault(estimand, []).append(name)
        return found

    def _from_scores(self, counted: Counted, estimand: Estimand, names: list[str]) -> Iterator[Row]:
        targets, true = policies(self.environment, self.loggers), truths(self.environment, self.loggers, estimand)
        by_name = self._answers(counted, targets, estimand, names, "t")
        for name in names:
            if TARGET not in by_name[name] or NEAR not in by_name[name]:
                yield from (_row(name, kind, true[TARGET]) for kind in (*SCORES, PAIR))
                continue
            first, second = by_name[name][TARGET], by_name[name][NEAR]
            for kind in SCORES:
                yield _judged(first, kind, true[TARGET], *from_scores(first, kind))
            yield _judged(first, PAIR, true[TARGET] - true[NEAR], *difference(first, second))

    def _from_blocks(self, counted: Counted, estimand: Estimand, names: list[str]) -> Iterator[Row]:
        target = {TARGET: policies(self.environment, self.loggers)[TARGET]}
        true = truths(self.environment, self.loggers, estimand)[TARGET]
        for name, found in self._answers(counted, target, estimand, names, BLOCKS).items():
            if TARGET in found:
                e = found[TARGET]
                yield _judged(e, BLOCKS, true, e.value, e.standard_error, e.interval)
            else:
                yield _row(name, BLOCKS, true)

    def _answers(
        self, counted: Counted, targets: Mapping[str, TabularPolicy], estimand: Estimand, names: list[str], kind: str
    ) -> dict[str, dict[str, Estimate]]:
        """Estimates by estimator and target; one that refused is not there."""
        choice, refused = IntervalChoice(kind), list[tuple[str, str]]()
        found = answer(counted, targets, names, estimand=estimand, level=LEVEL, interval=choice, skipped=refused)
        return {name: {e.target: e for e in found if e.estimator == name} for name in names}

    def _from_refits(self, counted: Counted, estimand: Estimand, names: list[str]) -> Iterator[Row]:
        target = policies(self.environment, self.loggers)[TARGET]
        true = truths(self.environment, self.loggers, estimand)[TARGET]
        (groups,) = counted.rounds().ask([episode_counts_request(counted)])
        for name in names:
            try:
                refit = prepare(counted, target, name, estimand=estimand, seed=self.repetition, groups=groups)
                sample = resample(refit, self.replicates, jobs=1)
            except MixopeError:
                yield from (_row(name, kind, true) for kind in REFITS)
                continue
            for kind, interval in (
                ("bca", sample.interval(LEVEL)),
                ("percentile", sample.interval(LEVEL, "percentile")),
            ):
                yield _row(name, kind, true, sample.estimate, sample.standard_error, interval)


def from_scores(estimate: Estimate, kind: str) -> tuple[float, float | None, Interval | None]:
    """Value, standard error and an interval of that kind, as ``evaluate`` makes them."""
    choice, off = IntervalChoice(kind), estimate.measures.approximation or 0.0
    scores = Scores(estimate.scores)
    sure = judge_scores(choice, estimate.value, scores, LEVEL, estimate.estimand, estimate.n_episodes)
    sure = widen(sure, estimate.value, off, estimate.n_episodes)
    return estimate.value, sure.standard_error, sure.interval


def difference(first: Estimate, second: Estimate) -> tuple[float, float | None, Interval | None]:
    """First less second, as ``compare`` has it."""
    if first.scores is None or second.scores is None:
        return first.value - second.value, None, None
    values, scores = np.array([first.value, second.value]), np.stack([first.scores, second.scores], axis=1)
    (pair,) = pairwise(JointScores((TARGET, NEAR), values, scores), LEVEL)
    return pair.value, pair.standard_error, pair.interval


def _judged(
    estimate: Estimate, kind: str, true: float, value: float, error: float | None, interval: Interval | None
) -> Row:
    """With what the estimate says of itself."""
    row = _row(estimate.estimator, kind, true, value, error, interval)
    return {**row, "uncovered": estimate.uncovered_mass, "verdict": estimate.verdict.value}


def _row(
    name: str,
    kind: str,
    true: float,
    value: float | None = None,
    error: float | None = None,
    interval: Interval | None = None,
) -> Row:
    low, high = (interval.low, interval.high) if interval else (None, None)
    return {
        "estimator": name,
        "interval": kind,
        "truth": true,
        "value": value,
        "error": error,
        "low": low,
        "high": high,
        "uncovered": None,
        "verdict": None,
    }


@lru_cache(maxsize=16)
def policies(name: str, loggers: int) -> dict[str, TabularPolicy]:
    """The target and one near it, on states as they are logged."""
    here = world(name, loggers)
    law = here.target.probabilities
    laws = {TARGET: law, NEAR: 0.9 * law + 0.1 * here.laws[0]}
    return {label: _on_factors(here.known, mixed) for label, mixed in laws.items()}


def _on_factors(model: environments.Model, law: FloatArray) -> TabularPolicy:
    if not model.factors:
        return TabularPolicy(law)
    return TabularPolicy(law, np.stack(list(model.factors.values()), 1), factors=list(model.factors))


@lru_cache(maxsize=64)
def truths(name: str, loggers: int, estimand: Estimand) -> dict[str, float]:
    """Of both targets: the long run, or the mean of the first steps."""
    model = world(name, loggers).known
    laws = {label: policy.probabilities for label, policy in policies(name, loggers).items()}
    if estimand.kind == "average":
        return {label: environments.truth.average(model, law) for label, law in laws.items()}
    assert estimand.horizon is not None
    steps = estimand.horizon
    return {label: environments.truth.horizon(model, law, steps) for label, law in laws.items()}
