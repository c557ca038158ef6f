"""The episode bootstrap: resample episodes and refit everything, from rows or counts that are read once.

A log in which episode e occurs w_e times is the same rows with counts: *a group is a row that happened n times*. Where
transitions are counted, one GROUP BY over (episode, transition) gives n_{eg}, and the re-weighted log has the counts
Σ_e w_e n_{eg}. Elsewhere the rows are held in memory, each with the count of its episode, and behaviour, calibration,
ratio and value are fitted to them again (on the features of the whole log). A refit costs a solve, not a scan.

Episodes are drawn within each logger, as often as it has episodes. Replicate b depends on (seed, b) alone, so the
result does not depend on how many processes shared the work. BCa also wants the influence of every episode: its score,
or what leaving it out changes where an estimator has no scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, DataError, MixopeError, Setting, UsageError, must_fit
from mixope.base.estimand import Estimand
from mixope.base.processes import Progress, run_tasks
from mixope.estimators import Estimator, Solution, make
from mixope.estimators.asking import Rounds, answered
from mixope.estimators.counts.solution import without_scores
from mixope.estimators.features.problem import FeatureProblem, SampledRows
from mixope.logs import EPISODE_KEYS, Logs
from mixope.policies import Policy, TabularPolicy
from mixope.policies.own_code import asking
from mixope.policies.protocol import DiscretePolicy
from mixope.requests.by_episode import first_of_runs
from mixope.requests.episode_counts import EpisodeCounts, episode_counts
from mixope.requests.episodes import EpisodeSurvey
from mixope.requests.grouping import Grouped, GroupSums
from mixope.requests.problem import Problem, pair_probabilities
from mixope.requests.request import Request, merge_in_order, partials
from mixope.requests.rows import TIMES, episode_hash, unfollowed_of
from mixope.requests.scores import ScoreTable
from mixope.requests.trajectories import NumberedSteps, OrderedRows
from mixope.requests.transitions import Transitions
from mixope.session.questions import ask
from mixope.session.session import Counted, Session
from mixope.uncertainty import Interval, IntervalChoice, Uncertainty, bca_interval, few_episodes, percentile_interval
from mixope.uncertainty.refits import Method

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE_ROWS = 1 << 16


class Refit(ABC):
    """An estimator and its question, ready to be asked again of any re-weighting of the episodes."""

    logger: IntArray
    seed: int
    unit: IntArray | None
    """Who an episode belongs to, where that is something else: units are drawn and left out whole."""

    @abstractmethod
    def solve(self, weight: FloatArray) -> Solution:
        """Everything fitted anew, on the log in which episode e occurs ``weight[e]`` times."""

    @abstractmethod
    def influence(self) -> FloatArray | None:
        """What each episode adds to the value, where the estimator has scores."""

    @property
    def n_episodes(self) -> int:
        """Episodes in the logs."""
        return len(self.logger)

    @cached_property
    def whole(self) -> Solution:
        """On the logs as they are."""
        return self.solve(np.ones(self.n_episodes))

    def weights(self, replicate: int) -> FloatArray:
        """How often each episode was drawn, within its logger."""
        generator = np.random.default_rng([self.seed, replicate])
        stratum = self._strata
        weight = np.zeros(len(stratum))
        for label in range(int(stratum.max(initial=-1)) + 1):
            mine = np.flatnonzero(stratum == label)
            if len(mine):
                weight[mine] = generator.multinomial(len(mine), np.full(len(mine), 1.0 / len(mine)))
        return weight if self.unit is None else weight[self.unit]

    @property
    def n_clusters(self) -> int:
        """Episodes, or units."""
        return self.n_episodes if self.unit is None else int(self.unit.max(initial=-1)) + 1

    @cached_property
    def _strata(self) -> IntArray:
        """Within what clusters are drawn: the logger of each; all together where a unit has episodes of several."""
        if self.unit is None:
            return self.logger
        least, most = np.full(self.n_clusters, len(self.logger)), np.full(self.n_clusters, -1)
        np.minimum.at(least, self.unit, self.logger)
        np.maximum.at(most, self.unit, self.logger)
        return least if bool(np.all(least == most)) else np.zeros_like(least)

    def replicate(self, number: int) -> float | str:
        """The value of one resampled log, or why there is none."""
        return self._attempt(self.weights(number))

    def without(self, cluster: int) -> float | str:
        """The value with one episode, or unit, left out (the jackknife)."""
        weight = np.ones(self.n_episodes)
        weight[cluster if self.unit is None else self.unit == cluster] = 0.0
        return self._attempt(weight)

    def by_cluster(self, scores: FloatArray) -> FloatArray:
        """Scores of episodes, or of the units that they belong to."""
        return scores if self.unit is None else sum_by(self.unit, scores, self.n_clusters)

    def _attempt(self, weight: FloatArray) -> float | str:
        try:
            value = self.solve(weight).value
        except MixopeError as refusal:
            return refusal.reason
        except np.linalg.LinAlgError as refusal:
            return str(refusal).splitlines()[0]
        except RuntimeError as refusal:
            if "singular" not in str(refusal):  # what SuperLU says of a factor that has no inverse
                raise
            return str(refusal).splitlines()[0]
        return value if np.isfinite(value) else "the value is not finite"


def episode_counts_request(counted: Counted) -> Grouped:
    """The request for the aggregates of the transition counts, by episode."""
    return counted.by_episode


def _in_order(requests: Sequence[Any], rows: OrderedRows | None) -> tuple[Any, ...]:
    """The rows in order for who asks for them; of resampled logs nobody surveys the episodes."""
    return tuple(rows if isinstance(request, NumberedSteps) else None for request in requests)


@dataclass(frozen=True)
class CountedRefit(Refit):
    """Refits from counts; ``rows`` in order are there for estimators that look at whole episodes."""

    problem: Problem
    estimator: Estimator
    counts: EpisodeCounts
    rows: OrderedRows | None
    unit: IntArray | None = None

    @property
    def logger(self) -> IntArray:  # type: ignore[override]
        """Of every episode."""
        return self.counts.logger

    @property
    def seed(self) -> int:  # type: ignore[override]
        """Of the question."""
        return self.problem.seed

    @classmethod
    def prepare(
        cls,
        problem: Problem,
        estimator: Estimator,
        groups: GroupSums,
        rows: Callable[[], tuple[OrderedRows]],
        unit: IntArray | None = None,
    ) -> CountedRefit:
        """Policies become tables, and rows in order are asked for only if the estimator wants them."""
        plain = replace(problem, reader=None, piece_steps=None)
        refit = cls(tabulate(plain), estimator, episode_counts(groups, problem.logged), None, unit)
        asked: list[Request] = []

        def note(requests: Sequence[Request]) -> tuple[Any, ...]:
            asked.extend(request for request in requests if isinstance(request, NumberedSteps))
            counted = any(isinstance(request, Grouped) for request in requests)
            return (groups,) * len(requests) if counted else _in_order(requests, rows()[0])

        without_scores(lambda: estimator.solve(refit.problem), note)
        return replace(refit, rows=rows()[0].in_key_order()) if asked else refit

    def solve(self, weight: FloatArray) -> Solution:
        """On re-weighted counts, and whole episodes repeated as often as they occur."""
        problem = self.problem.with_counts(self.counts.reweighted(weight))

        def answer(requests: Sequence[Request]) -> tuple[Any, ...]:
            if all(isinstance(request, Grouped) for request in requests):
                return (replace(self.counts, unit=self.unit).drawn(weight),) * len(requests)
            if self.rows is None or not all(isinstance(request, NumberedSteps | EpisodeSurvey) for request in requests):
                raise UsageError(f"{self.estimator.name!r} asks for more than counts and whole episodes")
            kept = sum_by(self.counts.group, weight[self.counts.episode], self.counts.transitions.n_groups) > 0
            number = np.cumsum(kept) - 1
            repeated = self.rows.repeat(weight)
            bare = replace(repeated.episodes, keys=None)  # the order is that of the repetition
            return _in_order(requests, OrderedRows(bare, number[repeated.group], repeated.propensity))

        return without_scores(lambda: self.estimator.solve(problem), answer)

    def influence(self) -> FloatArray | None:
        """The scores of the whole log, by episode."""

        def answer(requests: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(self._whole(request) for request in requests)

        scores = answered(lambda: self.estimator.solve(self.problem), answer).scores
        return None if scores is None else self.by_cluster(scores.by_cluster)

    def _whole(self, request: Any) -> Any:
        """The answer to one request, of all episodes once."""
        if isinstance(request, ScoreTable):
            return self.counts.scores(request)
        if isinstance(request, Grouped):
            return replace(self.counts, unit=self.unit)
        return self.rows if isinstance(request, NumberedSteps) else None


def prepare(
    counted: Counted,
    target: Any,
    estimator: str | Estimator,
    *,
    estimand: Estimand | None = None,
    loggers: Mapping[str, Any] | None = None,
    seed: int = 0,
    groups: GroupSums | None = None,
) -> CountedRefit:
    """The scans and the policies, once; give ``groups`` (the counts by episode) where several refits share them."""
    (question,) = ask(
        counted.logs, counted.labels, {"target": target}, estimand=estimand or Estimand(), loggers=loggers, seed=seed
    )
    problem, rounds = counted.problem(question), counted.rounds()
    if groups is None:
        (groups,) = rounds.ask([episode_counts_request(counted)])
    return CountedRefit.prepare(problem, make(estimator), groups, lambda: rounds.ask([problem.steps_in_order()]))


def refit_of(
    session: Session,
    rounds: Rounds,
    problem: Problem | FeatureProblem,
    estimator: Estimator,
    unit: IntArray | None = None,
) -> Refit:
    """What is needed to refit an estimator, whatever the states are made of; ``unit`` is that of every episode."""

    def from_counts(problem: Problem) -> Refit:
        assert session.counted is not None
        (groups,) = rounds.ask([episode_counts_request(session.counted)])
        return CountedRefit.prepare(problem, estimator, groups, lambda: rounds.ask([problem.steps_in_order()]), unit)

    def from_rows(problem: FeatureProblem) -> Refit:
        return replace(FeatureRefit.prepare(session.logs, problem, estimator), unit=unit)

    return problem.either(from_counts, from_rows)


def tabulate(problem: Problem) -> Problem:
    """The same question with its policies as tables, so that refits do not ask them again."""
    logged = problem.logged
    loggers = {label: tabulated(policy, logged) for label, policy in problem.loggers.items()}
    return replace(problem, target=tabulated(problem.target, logged), loggers=loggers)


def tabulated(policy: Policy, transitions: Transitions) -> Policy:
    """A discrete policy as a table over the logged states."""
    if isinstance(policy, TabularPolicy) or not isinstance(policy, DiscretePolicy):
        return policy
    pair_probabilities(policy, transitions, "the policy")  # an action that it refuses is refused here
    with asking(policy):
        laws = policy.probs(transitions.observations)
    return TabularPolicy(laws, transitions.observations, policy.actions, unknown_actions="zero")


@dataclass(frozen=True)
class FeatureRefit(Refit):
    """Refits from rows that are held in memory, sorted by episode and step, each with the count of its episode."""

    problem: FeatureProblem
    estimator: Estimator
    table: pa.Table = field(repr=False)
    episode: IntArray
    logger: IntArray
    sample_episode: IntArray
    unit: IntArray | None = None

    @property
    def seed(self) -> int:  # type: ignore[override]
        """Of the question."""
        return self.problem.seed

    @classmethod
    def prepare(cls, logs: Logs, problem: FeatureProblem, estimator: Estimator) -> FeatureRefit:
        """Read all rows once; they must fit in memory."""
        columns = logs.schema.columns
        must_fit(
            f"refitting {estimator.name!r} on vectors",
            (problem.known.n_rows, len(columns)),
            "Use an interval from scores (t, normal, likelihood or blocks), or refit on a part of the logs",
        )
        table = logs.table(columns).sort_by([(key, "ascending") for key in (*EPISODE_KEYS, "step")])
        first = first_of_runs(table, EPISODE_KEYS)
        episode = np.repeat(np.arange(len(first)), np.diff(np.append(first, table.num_rows))).astype(np.int64)
        labels = np.asarray(table.column("policy_id").take(first).to_numpy()).astype(str)
        logger = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        hashes = episode_hash(table.take(first), EPISODE_KEYS)
        order = np.argsort(hashes)
        sampled = problem.known.sample.episode
        if sampled is None:
            raise UsageError("the sample does not say which episodes its rows belong to")
        sample_episode = order[np.searchsorted(hashes[order], sampled)].astype(np.int64)
        problem = replace(problem, piece_steps=None)
        return cls(problem, estimator, table, episode, logger, sample_episode)

    def solve(self, weight: FloatArray) -> Solution:
        """Behaviour, calibration, ratio and value fitted anew; the features are those of the whole log."""
        import pyarrow as pa

        times = weight[self.episode]
        table = self.table.append_column(TIMES, pa.array(times)).filter(pa.array(times > 0))
        problem = replace(self.problem, known=self._reweighted(weight))

        def answer(requests: Sequence[Request]) -> tuple[Any, ...]:
            whole = any(request.whole_episodes for request in requests)
            size = max(table.num_rows, 1) if whole else _PIECE_ROWS
            pieces = (table.slice(low, size) for low in range(0, max(table.num_rows, 1), size))
            schema = self.problem.known.schema
            merged = merge_in_order(partials(piece, schema, requests, k) for k, piece in enumerate(pieces))
            return () if merged is None else merged.partials

        found: Solution = answered(lambda: self.estimator.solve(problem), answer)
        return found

    def _reweighted(self, weight: FloatArray) -> SampledRows:
        known, times = self.problem.known, weight[self.sample_episode]
        kept = np.flatnonzero(times > 0)
        sample = replace(known.sample.take(kept), count=times[kept])
        share = sum_by(self.logger, sum_by(self.episode, (~unfollowed_of(self.table)).astype(np.float64)) * weight)
        rows = dict(zip(known.labels, share.tolist(), strict=True))
        starts = dict(zip(known.labels, sum_by(self.logger, weight).tolist(), strict=True))
        return replace(known, n_rows=int(share.sum()), logger_rows=rows, logger_starts=starts, sample=sample, fits={})

    def influence(self) -> FloatArray | None:
        """The scores of the whole log, by episode."""
        return None if self.whole.scores is None else self.by_cluster(self.whole.scores.by_cluster)


@dataclass(frozen=True)
class BootstrapSample:
    """The values of the replicates that had one; how many refused, and the first reasons."""

    estimate: float
    values: FloatArray
    failed: int
    reasons: tuple[str, ...]
    influence: FloatArray | None
    n_episodes: int
    seed: int

    @property
    def standard_error(self) -> float:
        """The spread of the replicates."""
        return float(np.std(self.values, ddof=1))

    def interval(self, level: float = 0.95, method: Method = "bca") -> Interval:
        """BCa or percentile; without an influence of the episodes there is no acceleration to correct."""
        if method not in ("bca", "percentile"):
            raise UsageError(f"the bootstrap method must be 'bca' or 'percentile', got {method!r}")
        if method == "percentile":
            found = percentile_interval(self.values, level)
        else:
            known = np.zeros(1) if self.influence is None else self.influence
            found = bca_interval(self.estimate, self.values, known, level)
        return replace(found, replicates=len(self.values), failed=self.failed)


def resample(
    refit: Refit, replicates: int = 500, *, jobs: int | None = None, progress: bool | Progress | None = False
) -> BootstrapSample:
    """The replicates of a prepared refit."""
    n = refit.n_clusters
    if replicates < 1:
        raise UsageError(f"a bootstrap needs at least one replicate, got {replicates}")
    if n < 2:
        raise DataError(
            f"a bootstrap of {'episodes' if refit.unit is None else 'units'} needs at least two, these logs have one",
            hint=Advice("one long episode has blocks of steps: ", Setting("interval", "blocks")),
        )
    estimate = refit.whole.value
    found = run_tasks(refit.replicate, range(replicates), jobs, progress)
    values = np.array([v for v in found if not isinstance(v, str)])
    reasons = [v for v in found if isinstance(v, str)]
    if len(values) < max(2, replicates // 2):
        raise DataError(
            f"{len(reasons)} of {replicates} resampled logs cannot be evaluated: {reasons[0] if reasons else ''}",
            expected="logs that still carry the target when some episodes are left out",
            hint="there is too little data for a bootstrap; more episodes, or a target nearer to the loggers",
        )
    return BootstrapSample(
        estimate, values, len(reasons), tuple(dict.fromkeys(reasons))[:5], influence(refit, jobs=jobs), n, refit.seed
    )


def influence(refit: Refit, *, jobs: int | None = None) -> FloatArray | None:
    """What each episode adds to the value: its score, or by leaving it out where an estimator has no scores."""
    scores = refit.influence()
    if scores is not None:
        return scores
    found = run_tasks(refit.without, range(refit.n_clusters), jobs)
    if any(isinstance(value, str) for value in found):
        return None
    left_out = np.array(found, dtype=np.float64)
    return np.asarray(left_out.mean() - left_out)


def refitted_uncertainty(refit: Refit, choice: IntervalChoice, level: float) -> Uncertainty:
    """The interval of refits, with a word on those that failed; too little data is a reason and no error."""
    try:
        sample = resample(refit, choice.replicates, jobs=choice.jobs, progress=choice.progress)
    except DataError as error:
        return Uncertainty(because=Advice(error.problem, "; ", error.hint or "it cannot be refitted"))
    method: Method = "bca" if choice.name == "bca" else "percentile"
    said = [few_episodes(sample.n_episodes, units=refit.unit is not None)]
    if sample.failed:
        why = "; ".join(sample.reasons)
        said.append(f"{sample.failed} of {choice.replicates} refits could not be solved and were left out: {why}")
    alerts = tuple(sentence for sentence in said if sentence)
    return Uncertainty(sample.interval(level, method), sample.standard_error, alerts=alerts)
