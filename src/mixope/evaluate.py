"""From logs and a target to an estimate: the passes, in order.

    1  transition counts (one scan)
    2  solve every target and estimator from them (trajectory estimators: one pass over whole episodes)
    3  scores by episode (one scan for all), which also checks that the rows of every episode fit together
    4  intervals, diagnostics, verdicts

Any number of targets and estimators share the scans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from mixope.arrays import FloatArray
from mixope.diagnostics import Facts, diagnose, verdict
from mixope.engines import Engine, choose
from mixope.errors import DataError, MixopeError, UsageError
from mixope.estimand import Estimand, Kind
from mixope.estimate import Estimate, LoggerShare, Provenance
from mixope.estimators import AnyEstimator, DoublyRobust, Solution, TrajectoryEstimator, make
from mixope.intervals import clustered_interval, standard_error
from mixope.logs import Logs, read
from mixope.logs.validation import explain_episodes, explain_rows
from mixope.policies import Policy, read_policy
from mixope.problem import Problem
from mixope.statistics.episodes import EpisodeSums, episode_sums, score_lookup
from mixope.statistics.grouping import GroupSums, Lookup
from mixope.statistics.trajectories import COLUMNS, RatioColumns, Trajectories, merge_all, trajectories
from mixope.statistics.transitions import Transitions, encode, transition_grouping, transition_keys
from mixope.version import __version__


@dataclass(frozen=True)
class Counted:
    """Logs after the first scan."""

    logs: Logs
    engine: Engine
    groups: GroupSums
    transitions: Transitions

    @property
    def dropped(self) -> int:
        """Rows of the inputs that could not be used."""
        return max(0, self.logs.total_rows() - int(self.transitions.n_rows))


def evaluate(
    logs: Any,
    target: Any,
    estimator: str | AnyEstimator = "auto",
    *,
    estimand: Kind | Estimand = "average",
    gamma: float | None = None,
    horizon: int | None = None,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Estimate:
    """What ``target`` would earn per step, from ``logs`` that others wrote.

    ``estimator="auto"`` is doubly robust EMP where states have factors and EMP for opaque ids; EMP is shown beside it.
    ``loggers`` maps labels to the policies that wrote the logs, where they are known.
    """
    counted = count(logs, engine)
    names: list[str | AnyEstimator] = [estimator]
    if estimator == "auto":
        names = ["dr", "emp"] if counted.transitions.factors else ["emp"]
    first, *others = run(
        counted,
        {"target": target},
        names,
        estimand=as_estimand(estimand, gamma, horizon),
        level=level,
        loggers=loggers,
        seed=seed,
    )
    return replace(first, beside=tuple(others))


def as_estimand(estimand: Kind | Estimand, gamma: float | None, horizon: int | None) -> Estimand:
    """A named estimand with its parameter; gamma or horizon alone name theirs."""
    if isinstance(estimand, Estimand):
        return estimand
    if estimand == "average" and gamma is not None and horizon is None:
        estimand = "discounted"
    if estimand == "average" and horizon is not None and gamma is None:
        estimand = "horizon"
    return Estimand(estimand, gamma, horizon)


def count(logs: Any, engine: str | Engine | None = None) -> Counted:
    """The first scan: transition counts, checked and encoded."""
    logs = logs if isinstance(logs, Logs) else read(logs)
    schema = logs.schema
    if schema.observation_kind == "vector" or schema.action_kind == "continuous":
        what = "observation" if schema.observation_kind == "vector" else "action"
        raise DataError(
            f"the {what} is a vector of floats, and the estimators of this version are tabular",
            column=what,
            expected="integer or string ids, or factors of these",
            hint="discretise it into an id or factor columns (integers), for instance by quantiles",
        )
    chosen = choose(engine, logs)
    groups = chosen.group_sums(logs, transition_grouping(schema))
    _refuse_bad_rows(logs, groups)
    return Counted(logs, chosen, groups, encode(groups, schema))


def _refuse_bad_rows(logs: Logs, groups: GroupSums) -> None:
    """A null key, a sum that is not a number, or nothing at all: find the rows and say so."""
    table = groups.table
    if table is None or table.num_rows == 0:
        raise explain_rows(logs) or DataError(
            "no row can be used",
            where=logs.name,
            expected="rows with a next observation, or a terminated end",
            hint=f"all rows were dropped: {logs.drop_reason}",
        )
    keys = (*logs.schema.observation, *logs.schema.action)
    suspicious = any(table.column(key).null_count for key in keys)
    for name in ("reward", "inverse"):
        suspicious |= name in table.column_names and not np.all(np.isfinite(groups.column(name)))
    error = explain_rows(logs) if suspicious else None
    if error:
        raise error


def run(
    counted: Counted,
    targets: Mapping[str, Any],
    estimators: Sequence[str | AnyEstimator],
    *,
    estimand: Estimand,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    seed: int = 0,
    skipped: list[tuple[str, str]] | None = None,
) -> list[Estimate]:
    """Every estimator on every target; two scans in all, one more for each trajectory estimator.

    An estimator that does not apply raises, or is noted in ``skipped`` (its name and the reason) where one is given.
    """
    if not 0.0 < level < 1.0:
        raise UsageError(f"level must lie between 0 and 1, got {level}; 0.95 is usual")
    known = {str(label): _policy(policy, counted.logs) for label, policy in (loggers or {}).items()}
    _check_labels(known, counted.transitions)
    made = [make(name) for name in estimators]
    questions = [
        (name, Problem(counted.transitions, _policy(policy, counted.logs), estimand, known, seed=seed))
        for name, policy in targets.items()
    ]
    solved = []
    for (name, problem), estimator in product(questions, made):
        try:
            solved.append((name, problem, estimator, _solve(counted, problem, estimator)))
        except MixopeError as refusal:
            if skipped is None:
                raise
            skipped.append((estimator.name, str(refusal).splitlines()[0]))
    sums = _sum_scores(counted, [solution for *_, solution in solved], seed)
    alerts = _alerts(counted, sums)
    return [
        _estimate(counted, name, problem, estimator, solution, scores, len(sums.rows), level, alerts)
        for (name, problem, estimator, solution), scores in zip(solved, sums.scores.T, strict=True)
    ]


def _policy(policy: Any, logs: Logs) -> Policy:
    """Any policy source; factor columns in the order of the logs."""
    found = read_policy(policy)
    names = tuple(column.partition(".")[2] for column in logs.schema.observation)
    if logs.schema.observation_kind == "factors" and getattr(found, "factors", None):
        return found.in_factor_order(names)  # type: ignore[attr-defined, no-any-return]
    return found


def _check_labels(known: Mapping[str, Policy], transitions: Transitions) -> None:
    strangers = [label for label in known if label not in transitions.loggers]
    if strangers:
        raise UsageError(
            f"no rows belong to logger {strangers[0]!r}; the logs know {', '.join(map(repr, transitions.loggers))}"
        )


def _solve(counted: Counted, problem: Problem, estimator: AnyEstimator) -> Solution:
    if isinstance(estimator, TrajectoryEstimator):
        joined, ratio = estimator.columns(problem)
        return estimator.solve_trajectories(problem, _whole_episodes(counted, joined, ratio))
    return estimator.solve(problem)


def _whole_episodes(counted: Counted, joined: Mapping[str, FloatArray], ratio: RatioColumns) -> Trajectories:
    import pyarrow as pa

    keys = transition_keys(counted.logs.schema)
    assert counted.groups.table is not None
    table = counted.groups.table.select(list(keys))
    for name, values in joined.items():
        table = table.append_column(name, pa.array(values))
    parts = counted.engine.map_fragments(
        counted.logs, lambda rows: trajectories(rows, ratio), COLUMNS, lookup=Lookup(table, keys), by_episode=True
    )
    return merge_all([part for _, part in parts])


def _sum_scores(counted: Counted, solutions: Sequence[Solution], seed: int) -> EpisodeSums:
    """The last scan: all score tables by episode. Trajectory scores are by episode already, in the same order."""
    tables = [s.scores for s in solutions if s.scores is not None]
    schema, rows = counted.logs.schema, counted.transitions
    lookup, grouping = score_lookup(rows, counted.groups, schema, tables, seed)
    groups = counted.engine.group_sums(counted.logs, grouping, lookup)
    sums = episode_sums(groups, rows, len(tables), counted.logs.step_base, seed)
    scores = np.full((len(sums.rows), len(solutions)), np.nan)
    summed = iter(sums.scores.T)
    for column, solution in enumerate(solutions):
        if solution.scores is not None:
            scores[:, column] = next(summed)
        elif solution.episode_scores is not None:
            scores[:, column] = solution.episode_scores
    return replace(sums, scores=scores)


def _alerts(counted: Counted, sums: EpisodeSums) -> tuple[str, ...]:
    """What was dropped or does not fit together; a real contradiction is an error."""
    alerts = list(counted.logs.notes)
    if counted.dropped:
        alerts.append(f"{counted.dropped:,} rows were dropped: {counted.logs.drop_reason}")
    if sums.irregular_steps.any() or sums.broken_chain.any():
        for finding in explain_episodes(counted.logs):
            if finding.error is not None and finding.status == "error":
                raise finding.error
            alerts.append(finding.sentence)
    return tuple(dict.fromkeys(alerts))


def _estimate(
    counted: Counted,
    target: str,
    problem: Problem,
    estimator: AnyEstimator,
    solution: Solution,
    scores: FloatArray,
    n_episodes: int,
    level: float,
    alerts: tuple[str, ...],
) -> Estimate:
    rows, has_scores = counted.transitions, bool(np.all(np.isfinite(scores)))
    interval = clustered_interval(solution.value, scores, level) if has_scores else None
    size = _effective_size(solution)
    facts = _facts(rows, solution, estimator, size, n_episodes)
    found = diagnose(facts)
    reason = solution.no_interval_because or (
        None if interval else "an interval needs at least two episodes, these logs have one"
    )
    return Estimate(
        estimator=estimator.name,
        estimand=problem.estimand,
        target=target,
        value=solution.value,
        standard_error=standard_error(scores) if interval else None,
        interval=interval,
        n_rows=int(rows.n_rows),
        n_episodes=n_episodes,
        n_dropped=counted.dropped,
        loggers=_shares(rows, solution),
        effective_sample_size=size,
        uncovered_mass=solution.uncovered_mass,
        outside_mass=solution.outside_mass,
        logged_mean=float(rows.reward.sum() / rows.n_rows),
        verdict=verdict(found),
        diagnostics=found,
        solver=solution.solved.outcome.value,
        residual=solution.solved.residual,
        measures=solution.measures,
        alerts=alerts,
        provenance=_provenance(counted, problem),
        no_interval_because=reason,
    )


def _effective_size(solution: Solution) -> float:
    if solution.weights is not None:
        return solution.weights.effective_sample_size()
    return solution.measures.get("effective_sample_size", 0.0)


def _facts(rows: Transitions, solution: Solution, estimator: AnyEstimator, size: float, n_episodes: int) -> Facts:
    weights = solution.weights
    total = float(weights.total.sum()) if weights is not None else 0.0
    share = weights.largest / total if weights is not None and total > 0 else 1.0
    return Facts(
        value=solution.value,
        effective_sample_size=size,
        uncovered_mass=solution.uncovered_mass,
        outside_mass=solution.outside_mass,
        largest_share=solution.measures.get("largest_share", share),
        mean_weight=solution.measures.get("mean_weight", 1.0),
        n_rows=rows.n_rows,
        n_episodes=n_episodes,
        lowest_reward=float(rows.lowest.min()),
        highest_reward=float(rows.highest.max()),
        behaviour_misfit=solution.measures.get("behaviour_misfit"),
        solver_ok=solution.solved.ok,
        solver_message=solution.solved.outcome.value,
        residual=solution.solved.residual,
        corrects_coverage=isinstance(estimator, DoublyRobust) and bool(rows.factors),
        is_reference=estimator.name == "logged-mean",
    )


def _shares(rows: Transitions, solution: Solution) -> tuple[LoggerShare, ...]:
    counts, means = rows.logger_rows(), rows.logger_means()
    shares = []
    for j, label in enumerate(rows.loggers):
        mine = (rows.logger == j).astype(np.float64)
        weight = size = None
        if solution.weights is not None:
            weight = float(solution.weights.total @ mine / solution.weights.total.sum())
            size = solution.weights.effective_sample_size(mine)
        shares.append(LoggerShare(label, int(counts[j]), float(means[j]), weight, size))
    return tuple(shares)


def _provenance(counted: Counted, problem: Problem) -> Provenance:
    return Provenance(
        version=__version__,
        seed=problem.seed,
        engine=counted.engine.name,
        logs_fingerprint=counted.logs.fingerprint(),
        target_fingerprint=problem.target.fingerprint(),
        inputs=tuple(counted.logs.inputs()),
    )
