"""The episode bootstrap: resample episodes and refit everything: behaviour, calibration, ratio, value.

Rows are read once. One GROUP BY over (episode, transition) gives n_{eg}, the counts of every episode; a resampled log
is then the same transitions with counts Σ_e w_e n_{eg}, where w_e says how often episode e was drawn. So a refit costs
a solve, not a scan. Whole trajectories are kept as one number a row (which transition), and their ratios are made
anew from the resampled counts.

Episodes are drawn within each logger, as often as it has episodes. Replicate b depends on (seed, b) alone: the
result does not depend on how many processes shared the work.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixope.arrays import FloatArray, IntArray, sum_by
from mixope.engines import in_order
from mixope.errors import DataError, MixopeError, UsageError
from mixope.estimand import Estimand
from mixope.estimators import AnyEstimator, Solution, TrajectoryEstimator, make
from mixope.intervals import Interval, batch_means_interval, bca_interval, percentile_interval
from mixope.intervals.bootstrap import Method
from mixope.logs import EPISODE_KEYS
from mixope.policies import Policy, TabularPolicy
from mixope.policies.protocol import DiscretePolicy
from mixope.problem import Problem, pair_probabilities, restrict
from mixope.statistics.grouping import Grouping, Lookup
from mixope.statistics.trajectories import COLUMNS, RatioColumns, Trajectories, merge_all, running_sums, trajectories_of
from mixope.statistics.transitions import BASIS, Transitions, transition_grouping, transition_keys
from mixope.tabular import Counted
from mixope.targets import check_labels, check_level, resolve_policy

Progress = Callable[[int, int], None]
_KEY = "transition"
_SHORT_SECONDS = 2.0
"""Work shorter than this is not worth starting processes for."""


@dataclass(frozen=True)
class EpisodeCounts:
    """Cells (episode, transition group) and the sums of each; ``logger`` is that of every episode."""

    transitions: Transitions
    logger: IntArray
    episode: IntArray
    group: IntArray
    sums: Mapping[str, FloatArray]

    @property
    def n_episodes(self) -> int:
        """Episodes in the logs."""
        return len(self.logger)

    def reweighted(self, weight: FloatArray) -> Transitions:
        """The counts of a log in which episode e occurs ``weight[e]`` times; what does not occur is dropped."""
        rows, times = self.transitions, weight[self.episode]
        totals: dict[str, Any] = {
            name: sum_by(self.group, times * cell, rows.n_groups) for name, cell in self.sums.items()
        }
        return restrict(replace(rows, **totals), np.flatnonzero(totals["rows"] > 0))

    def scores(self, table: FloatArray) -> FloatArray:
        """A score table (groups × basis) summed by episode."""
        cells = np.zeros(len(self.group))
        for position, basis in enumerate(BASIS):
            coefficient = table[:, position]
            if coefficient.any():
                cells += coefficient[self.group] * self.sums[basis]
        return sum_by(self.episode, cells, self.n_episodes)


def count_episodes(counted: Counted) -> EpisodeCounts:
    """One scan: the aggregates of the transition counts, by episode."""
    plain = transition_grouping(counted.logs.schema)
    aggregates = tuple(a for a in plain.aggregates if a.operation in ("count", "sum"))
    grouping = Grouping((*EPISODE_KEYS, _KEY), aggregates, plain.belongs_to)
    groups = counted.engine.group_sums(counted.logs, grouping, _numbered(counted))
    assert groups.table is not None
    changed = np.zeros(groups.n_groups, dtype=bool)
    for key in EPISODE_KEYS:
        values = groups.table.column(key).to_numpy()
        changed[1:] |= values[1:] != values[:-1]
    group = groups.column(_KEY).astype(np.int64)
    first = np.append(0, np.flatnonzero(changed)).astype(np.int64)
    sums = {a.name: groups.column(a.name) for a in aggregates}
    if float(sums["rows"].sum()) != counted.transitions.n_rows:
        raise MixopeError("the scan by episode did not see the rows that were counted")
    return EpisodeCounts(
        counted.transitions, counted.transitions.logger[group[first]], np.cumsum(changed).astype(np.int64), group, sums
    )


def _numbered(counted: Counted) -> Lookup:
    """Every transition's number, keyed by its raw values."""
    import pyarrow as pa

    keys = transition_keys(counted.logs.schema)
    assert counted.groups.table is not None
    table = counted.groups.table.select(list(keys))
    return Lookup(table.append_column(_KEY, pa.array(np.arange(table.num_rows))), keys)


@dataclass(frozen=True)
class OrderedRows:
    """Rows of whole episodes in step order: the transition and propensity of each, besides rewards and lengths."""

    episodes: Trajectories
    group: IntArray
    propensity: FloatArray

    def weighed(self, joined: Mapping[str, FloatArray], ratio: RatioColumns) -> Trajectories:
        """With log W_t from log-probabilities by transition, as a pass over the logs would give."""
        from scipy.special import logsumexp

        episode = self.episodes.episode
        target = running_sums(joined[ratio.target][self.group], episode)
        if ratio.denominators:
            parts = np.stack([running_sums(joined[name][self.group], episode) for name in ratio.denominators])
            base = logsumexp(parts + np.log(np.asarray(ratio.shares))[:, None], axis=0)
        else:
            with np.errstate(divide="ignore"):
                base = running_sums(np.log(self.propensity), episode)
        with np.errstate(invalid="ignore"):
            weight = np.where(np.isneginf(target), -np.inf, target - base)
        return replace(self.episodes, log_weight=weight)

    def scores(self, table: FloatArray) -> FloatArray:
        """A score table (groups × basis) by row."""
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / self.propensity
        reward, first = self.episodes.reward, np.zeros(len(self.group))
        first[self.episodes.first] = 1.0
        basis = {"rows": 1.0, "reward": reward, "inverse": inverse, "inverse_reward": inverse * reward, "starts": first}
        used = [(k, name) for k, name in enumerate(BASIS) if table[:, k].any()]
        return np.asarray(sum((table[self.group, k] * basis[name] for k, name in used), np.zeros(len(self.group))))


def order_rows(counted: Counted) -> OrderedRows:
    """One pass over whole episodes."""

    def keep(table: Any) -> tuple[Trajectories, IntArray, FloatArray]:
        group = np.asarray(table.column(_KEY).to_numpy(), dtype=np.int64)
        propensity = np.asarray(table.column("propensity").to_numpy(), dtype=np.float64)
        return trajectories_of(table, np.zeros(table.num_rows)), group, propensity

    pieces = counted.engine.map_fragments(counted.logs, keep, COLUMNS, lookup=_numbered(counted), by_episode=True)
    parts, groups, propensities = zip(*in_order(pieces), strict=True)
    merged = merge_all(list(parts), int(counted.transitions.n_rows))
    return OrderedRows(merged, np.concatenate(groups), np.concatenate(propensities))


def _repeated(data: Trajectories, weight: FloatArray) -> Trajectories:
    """Episode e as often as ``weight[e]`` says."""
    chosen = np.repeat(np.arange(data.n_episodes), weight.astype(np.int64))
    length = data.length[chosen]
    begin = np.repeat(data.first[chosen] - (np.cumsum(length) - length), length)
    rows = begin + np.arange(int(length.sum()))
    return replace(
        data,
        log_weight=data.log_weight[rows],
        reward=data.reward[rows],
        length=length,
        terminated=data.terminated[chosen],
    )


@dataclass(frozen=True)
class Refit:
    """An estimator and its question, ready to be asked again of any re-weighting of the episodes."""

    problem: Problem
    estimator: AnyEstimator
    counts: EpisodeCounts
    rows: OrderedRows | None
    seed: int

    def solve(self, weight: FloatArray) -> Solution:
        """Everything fitted anew, on the log in which episode e occurs ``weight[e]`` times."""
        problem = replace(self.problem, transitions=self.counts.reweighted(weight))
        if not isinstance(self.estimator, TrajectoryEstimator):
            return self.estimator.solve(problem)
        assert self.rows is not None
        joined, ratio = self.estimator.columns(problem)
        kept = np.flatnonzero(sum_by(self.counts.group, weight[self.counts.episode]) > 0)
        everywhere = {name: np.full(self.counts.transitions.n_groups, -np.inf) for name in joined}
        for name, values in joined.items():
            everywhere[name][kept] = values
        return self.estimator.solve_trajectories(problem, _repeated(self.rows.weighed(everywhere, ratio), weight))

    @cached_property
    def whole(self) -> Solution:
        """On the logs as they are."""
        return self.solve(np.ones(self.counts.n_episodes))

    def weights(self, replicate: int) -> FloatArray:
        """How often each episode was drawn, within its logger."""
        generator = np.random.default_rng([self.seed, replicate])
        weight = np.zeros(self.counts.n_episodes)
        for label in range(len(self.counts.transitions.loggers)):
            mine = np.flatnonzero(self.counts.logger == label)
            if len(mine):
                weight[mine] = generator.multinomial(len(mine), np.full(len(mine), 1.0 / len(mine)))
        return weight

    def replicate(self, number: int) -> float | str:
        """The value of one resampled log, or why there is none."""
        return self._attempt(self.weights(number))

    def without(self, episode: int) -> float | str:
        """The value with one episode left out (the jackknife)."""
        weight = np.ones(self.counts.n_episodes)
        weight[episode] = 0.0
        return self._attempt(weight)

    def _attempt(self, weight: FloatArray) -> float | str:
        try:
            value = self.solve(weight).value
        except (MixopeError, np.linalg.LinAlgError, RuntimeError) as refusal:  # a singular factor is a RuntimeError
            return str(refusal).splitlines()[0]
        return value if np.isfinite(value) else "the value is not finite"


def prepare(
    counted: Counted,
    target: Any,
    estimator: str | AnyEstimator,
    *,
    estimand: Estimand | None = None,
    loggers: Mapping[str, Any] | None = None,
    seed: int = 0,
    counts: EpisodeCounts | None = None,
    rows: OrderedRows | None = None,
) -> Refit:
    """The scans and the policies, once; give ``counts`` (and ``rows``) where several refits share the logs."""
    logs, seen = counted.logs, counted.transitions
    known = {str(label): tabulated(resolve_policy(p, logs), seen) for label, p in (loggers or {}).items()}
    check_labels(known, seen.loggers)
    policy = tabulated(resolve_policy(target, logs), seen)
    made = make(estimator)
    problem = Problem(seen, policy, estimand or Estimand(), known, seed=seed)
    if rows is None and isinstance(made, TrajectoryEstimator):
        rows = order_rows(counted)
    return Refit(problem, made, counts or count_episodes(counted), rows, seed)


def tabulated(policy: Policy, transitions: Transitions) -> Policy:
    """A discrete policy as a table over the logged states, so that refits do not call it again."""
    if isinstance(policy, TabularPolicy) or not isinstance(policy, DiscretePolicy):
        return policy
    pair_probabilities(policy, transitions, "the policy")  # an action that it refuses is refused here
    laws, states = policy.probs(transitions.observations), transitions.observations
    return TabularPolicy(laws, states, policy.actions, unknown_actions="zero")


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
            return percentile_interval(self.values, level)
        influence = np.zeros(1) if self.influence is None else self.influence
        return bca_interval(self.estimate, self.values, influence, level)


def bootstrap(
    counted: Counted,
    target: Any,
    estimator: str | AnyEstimator,
    *,
    estimand: Estimand | None = None,
    loggers: Mapping[str, Any] | None = None,
    replicates: int = 500,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | Progress = False,
    counts: EpisodeCounts | None = None,
) -> BootstrapSample:
    """Refit on ``replicates`` resampled logs.

    ``jobs`` is the number of processes (None: one a core, none where the work is short). ``progress`` prints to the
    error stream, or calls a function with (done, total).
    """
    options: dict[str, Any] = {"estimand": estimand, "loggers": loggers, "seed": seed, "counts": counts}
    return resample(prepare(counted, target, estimator, **options), replicates, jobs=jobs, progress=progress)


def resample(
    refit: Refit, replicates: int = 500, *, jobs: int | None = None, progress: bool | Progress = False
) -> BootstrapSample:
    """The replicates of a prepared refit."""
    n = refit.counts.n_episodes
    if replicates < 1:
        raise UsageError(f"a bootstrap needs at least one replicate, got {replicates}")
    if n < 2:
        raise DataError(
            "a bootstrap of episodes needs at least two, these logs have one",
            hint="one long episode has batch means: mixope.resampling.one_episode_interval",
        )
    estimate = refit.whole.value
    found = list(_run(refit.replicate, range(replicates), jobs, progress))
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
    solution = refit.whole
    if solution.episode_scores is not None:
        return solution.episode_scores
    if solution.scores is not None:
        return refit.counts.scores(solution.scores)
    found = list(_run(refit.without, range(refit.counts.n_episodes), jobs, False))
    if any(isinstance(value, str) for value in found):
        return None
    left_out = np.array(found, dtype=np.float64)
    return np.asarray(left_out.mean() - left_out)


def _run(
    task: Callable[[int], float | str], numbers: Sequence[int], jobs: int | None, progress: bool | Progress
) -> Iterator[float | str]:
    """Results in the order of ``numbers``, from this process or from several."""
    report = progress if callable(progress) else _print_progress if progress else None
    begin = time.perf_counter()
    yield task(numbers[0])
    total = len(numbers)
    rest = numbers[1:]
    cores = min(os.cpu_count() or 1, len(rest)) if jobs is None else jobs
    if jobs is None and (time.perf_counter() - begin) * len(rest) < _SHORT_SECONDS:
        cores = 1
    done = 1
    for results in _pieces(task, rest, max(cores, 1)):
        for result in results:
            yield result
            done += 1
        if report:
            report(done, total)


def _pieces(task: Callable[[int], float | str], numbers: Sequence[int], cores: int) -> Iterable[list[float | str]]:
    size = max(1, min(25, len(numbers) // (4 * cores)))
    cuts = [numbers[k : k + size] for k in range(0, len(numbers), size)]
    if cores == 1:
        return (_batch(task, cut) for cut in cuts)
    # Processes, because a solve holds the interpreter; these need no guard in the caller's script and take closures.
    from joblib import Parallel, delayed

    lent: Iterable[list[float | str]] = Parallel(n_jobs=cores, return_as="generator")(
        delayed(_batch)(task, cut) for cut in cuts
    )
    return lent


def _batch(task: Callable[[int], float | str], numbers: Sequence[int]) -> list[float | str]:
    return [task(number) for number in numbers]


def _print_progress(done: int, total: int) -> None:
    print(f"\r  bootstrap {done}/{total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def bootstrap_estimate(
    counted: Counted,
    name: str,
    target: Any,
    estimator: str | AnyEstimator,
    *,
    level: float = 0.95,
    method: Method = "bca",
    **options: Any,
) -> tuple[Interval, int]:
    """The bootstrap interval of one estimate, and how many replicates failed; ``options`` are :func:`bootstrap`'s."""
    check_level(level)
    try:
        sample = bootstrap(counted, target, estimator, **options)
    except DataError as error:
        raise DataError(f"{name}: {error.problem}", expected=error.expected, hint=error.hint) from error
    return sample.interval(level, method), sample.failed


def one_episode_interval(
    counted: Counted,
    target: Any,
    estimator: str | AnyEstimator,
    *,
    level: float = 0.95,
    estimand: Estimand | None = None,
    loggers: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Interval | None:
    """Batch means over the steps in order, for logs of one long episode; nothing where there are no scores by row."""
    check_level(level)
    refit = prepare(counted, target, estimator, estimand=estimand, loggers=loggers, seed=seed)
    solution = refit.whole
    if solution.scores is None:
        return None
    return batch_means_interval(solution.value, order_rows(counted).scores(solution.scores), level)
