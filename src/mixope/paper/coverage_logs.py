"""One simulated log and all its intervals, with the truth beside them.

    scores    t, normal, likelihood: from the scores of the episodes; ``pair``: the difference between the target and
              one near it (9 parts target, 1 part the first logger), t
    refits    bca, percentile: from the same refits on resampled episodes
    blocks    batch means: one episode by the last logger, as long as the episodes together

Scores come from :func:`mixope.answers.answering.answer`, once for all targets and estimators, and intervals from them
as ``evaluate`` makes them, widened by what the estimate thinks it is off. The behaviour is not told. States are logged
as ids, as factors, or as vectors of floats. The truth is that of the estimand; where that is the long-run average,
trajectory weights, which estimate the mean of the first steps, are held against that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from mixope import worlds
from mixope.answers.answering import answer
from mixope.answers.estimate import Estimate
from mixope.answers.resampling import episode_counts_request, prepare, resample
from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import MixopeError
from mixope.base.estimand import Estimand
from mixope.differences import JointScores, pairwise
from mixope.estimators import REGISTRY
from mixope.paper.cases import CARTPOLE, log_seed, world
from mixope.paper.experiment import Row
from mixope.policies import DiscreteCallablePolicy, Mixture, Policy, TabularPolicy
from mixope.session.session import Session, look
from mixope.uncertainty import Interval, IntervalChoice, Scores, judge_scores, widen

LEVEL = 0.95
Source = Literal["scores", "refits", "blocks"]
Observed = Literal["id", "factors", "vector"]
SCORES, REFITS, BLOCKS, PAIR = ("t", "normal", "likelihood"), ("bca", "percentile"), "blocks", "pair"
TARGET, NEAR = "target", "near"
SHARE = 0.9
"""Of the target in the one near it."""
TRUTH_CHAINS = 20_000
WHOLE = 20
"""Steps of an episode that is logged to its end, about; for telling the cost beforehand."""


def asked(words: str) -> Estimand:
    """An estimand by its name and its number: ``average``, ``discounted 0.95``, ``horizon 20``, ``episode``."""
    kind, _, number = words.partition(" ")
    if kind == "horizon":
        return Estimand("horizon", horizon=int(number))
    gamma = float(number) if number else None
    return Estimand("episode", gamma=gamma) if kind == "episode" else _per_step(kind, gamma)


def _per_step(kind: str, gamma: float | None) -> Estimand:
    return Estimand("average") if kind == "average" else Estimand("discounted", gamma=gamma)


def called(estimand: Estimand) -> str:
    """The words that :func:`asked` understands."""
    number = estimand.horizon if estimand.kind == "horizon" else estimand.gamma
    return estimand.kind if number is None else f"{estimand.kind} {number:g}"


@dataclass(frozen=True)
class CoveredLog:
    """``estimators`` are names with commas between; ``replicates`` counts where ``source`` is refits.

    Without a ``horizon``, episodes are logged to their end.

    The log depends on the environment, its size, the seed and the repetition: intervals of all sources see the same.
    """

    environment: str
    loggers: int
    episodes: int
    horizon: int | None
    estimators: str
    source: Source
    replicates: int
    seed: int
    repetition: int
    observed: Observed = "id"
    estimand: str = "average"

    @property
    def seconds(self) -> float:
        """Measured 2026-11-15, one core."""
        names, rows = self.estimators.split(","), self.episodes * (self.horizon or WHOLE)
        if self.observed == "vector":
            return 0.5 + len(names) * rows / 4_000
        if self.source == "refits":
            return len(names) * self.replicates * (0.0013 + rows / 5_000_000)
        each = 0.02 + rows / 500_000 + len(names) * (0.015 + rows / 1_000_000)
        return each + (2.5 if self.environment == "taxi" and "dr" in names else 0.0)

    def simulation_seed(self) -> int:
        """Of everything that the log depends on."""
        return log_seed(self.seed, self.repetition, self.environment, self.loggers, self.episodes, self.horizon)

    def measure(self) -> list[Row]:
        """One row per estimator and interval; a refusal is a row without an interval."""
        session = look(self._simulate())
        made = {"scores": self._from_scores, "refits": self._from_refits, "blocks": self._from_blocks}[self.source]
        return [
            {"estimand": called(estimand), **row}
            for estimand, names in self._questions().items()
            for row in made(session, estimand, names)
        ]

    def _simulate(self) -> Any:
        here, seed = world(self.environment, self.loggers), self.simulation_seed()
        if here.model is None:
            return here.simulate(self.episodes, self.horizon, seed)
        laws, episodes, horizon = here.laws, self.episodes, self.horizon
        if self.source == "blocks" and horizon is not None:
            laws, episodes, horizon = laws[-1:], 1, episodes * horizon
        return worlds.simulate(here.model, laws, episodes, horizon, seed=seed, observed=self.observed)

    def _questions(self) -> dict[Estimand, list[str]]:
        found: dict[Estimand, list[str]] = {}
        for name in self.estimators.split(","):
            estimand = asked(self.estimand)
            if estimand.kind == "average" and REGISTRY[name].family == "trajectory weights":
                estimand = Estimand("horizon", horizon=self.horizon)
            found.setdefault(estimand, []).append(name)
        return found

    def _targets(self) -> dict[str, Policy]:
        return policies(self.environment, self.loggers, self.observed)

    def _from_scores(self, session: Session, estimand: Estimand, names: list[str]) -> Iterator[Row]:
        targets, true = self._targets(), truths(self.environment, self.loggers, estimand)
        by_name = self._answers(session, targets, estimand, names, "t")
        for name in names:
            if TARGET not in by_name[name] or NEAR not in by_name[name]:
                yield from (_row(name, kind, true[TARGET]) for kind in (*SCORES, PAIR))
                continue
            first, second = by_name[name][TARGET], by_name[name][NEAR]
            for kind in SCORES:
                yield _judged(first, kind, true[TARGET], *from_scores(first, kind))
            yield _judged(first, PAIR, true[TARGET] - true[NEAR], *difference(first, second))

    def _from_blocks(self, session: Session, estimand: Estimand, names: list[str]) -> Iterator[Row]:
        target = {TARGET: self._targets()[TARGET]}
        true = truths(self.environment, self.loggers, estimand)[TARGET]
        for name, found in self._answers(session, target, estimand, names, BLOCKS).items():
            if TARGET in found:
                e = found[TARGET]
                yield _judged(e, BLOCKS, true, e.value, e.standard_error, e.interval)
            else:
                yield _row(name, BLOCKS, true)

    def _answers(
        self, session: Session, targets: Mapping[str, Policy], estimand: Estimand, names: list[str], kind: str
    ) -> dict[str, dict[str, Estimate]]:
        """Estimates by estimator and target; one that refused is not there."""
        choice = IntervalChoice(kind)
        found = answer(session, targets, names, estimand=estimand, level=LEVEL, interval=choice, skipped=[])
        return {name: {e.target: e for e in found if e.estimator == name} for name in names}

    def _from_refits(self, session: Session, estimand: Estimand, names: list[str]) -> Iterator[Row]:
        counted = session.counted
        assert counted is not None
        target = self._targets()[TARGET]
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
def policies(name: str, loggers: int, observed: Observed) -> dict[str, Policy]:
    """The target and one near it, on states as they are logged."""
    here = world(name, loggers)
    if here.model is None:
        first = next(iter(here.loggers.values()))
        return {TARGET: here.target, NEAR: Mixture([here.target, first], [SHARE, 1 - SHARE])}
    return {label: _as_logged(here.model, law, observed) for label, law in _laws(name, loggers).items()}


def _laws(name: str, loggers: int) -> dict[str, FloatArray]:
    here = world(name, loggers)
    law = here.target.probabilities
    return {TARGET: law, NEAR: SHARE * law + (1 - SHARE) * here.laws[0]}


def _as_logged(model: worlds.Model, law: FloatArray, observed: Observed) -> Policy:
    if observed == "id":
        return TabularPolicy(law)
    by_factors = TabularPolicy(law, np.stack(list(model.factors.values()), 1), factors=list(model.factors))
    return by_factors if observed == "factors" else DiscreteCallablePolicy(OnVectors(by_factors), by_factors.actions)


@dataclass(frozen=True, eq=False)
class OnVectors:
    """A table of factors, asked for vectors that are made of them."""

    table: TabularPolicy

    def __call__(self, observations: AnyArray) -> FloatArray:
        """The action laws, a row each."""
        return self.table.probs(np.rint(observations).astype(np.int64))


@lru_cache(maxsize=64)
def truths(name: str, loggers: int, estimand: Estimand) -> dict[str, float]:
    """Of both targets; CartPole's is simulated, with an error far below that of any log here."""
    if name == CARTPOLE:
        targets = policies(name, loggers, "vector")
        simulated = worlds.cartpole.truth
        return {label: simulated(p, estimand, chains=TRUTH_CHAINS).value for label, p in targets.items()}
    model = world(name, loggers).known
    return {label: worlds.truth.value(model, law, estimand) for label, law in _laws(name, loggers).items()}
