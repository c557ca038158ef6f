"""Backtest: predict what every logger earned from the rows of the others, and compare with what it really earned.

    1  transition counts (one scan), 2  the episodes of every logger (one scan)
    3  hold out one logger after the other: restrict the counts, solve, embed the scores in the full table
    4  all scores by episode (one scan)

Like is compared with like: the mean of T steps after a reset is not the long-run average, so where a logger's episodes
were all cut after the same number of steps its prediction is for that horizon. Where all of them ended for good, the
mean over rows is the average of a process that starts again, and that is predicted. The held-out policy is the known
one, or the frequencies of its own actions; in that case the two sides share the noise of its actions, and a comparison
errs towards agreement. A prediction z standard errors off is so on both errors together, z² = (predicted − earned)² /
(se² of the prediction + se² of what was earned), and *covered* means that z is inside the level.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mixope.arrays import FloatArray, IntArray, sum_by
from mixope.assembly import Question, assemble
from mixope.diagnostics import Diagnostic, Verdict
from mixope.engines import Engine
from mixope.errors import DataError, MixopeError, UsageError
from mixope.estimand import Estimand
from mixope.estimate import Estimate
from mixope.estimators import DoublyRobust, Estimator, Solution, make
from mixope.intervals import Interval, clustered_interval, standard_error
from mixope.logs import EPISODE_KEYS, UNLABELLED, Logs, read
from mixope.policies import Policy, TabularPolicy
from mixope.problem import Problem, restrict
from mixope.report.text import number
from mixope.statistics.episodes import episode_sums, score_lookup
from mixope.statistics.grouping import Aggregate, Grouping, Lookup
from mixope.statistics.transitions import BASIS, Transitions, transition_keys
from mixope.survey import LoggerSummary, Survey
from mixope.tabular import Counted, count
from mixope.targets import check_labels, check_level, resolve_policy

FAR = 4.0
"""Standard errors at which a prediction is wrong beyond chance, some ten loggers being looked at."""
EXPECTED_Z = math.sqrt(2 / math.pi)
"""E |z| of a standard normal: what the mean |z| is near to if predictions and intervals are right."""


@dataclass(frozen=True)
class BacktestRow:
    """One logger: predicted from the others, and what it earned. Without a prediction ``predicted`` is NaN."""

    label: str
    predicted: float
    low: float | None
    high: float | None
    earned: float
    earned_low: float | None
    earned_high: float | None
    covered: bool
    verdict: str
    uncovered_mass: float
    z: float | None = None
    estimand: str = ""
    policy: str = "counted"
    n_rows: int = 0
    n_episodes: int = 0
    note: str = ""

    @property
    def supported(self) -> bool:
        """Whether the others' rows can carry a prediction with an interval."""
        return self.z is not None and self.verdict != str(Verdict.UNSUPPORTED)


@dataclass(frozen=True)
class Backtest:
    """Every labelled logger held out in turn."""

    rows: tuple[BacktestRow, ...]
    estimator: str
    level: float
    notes: tuple[str, ...] = ()

    @property
    def supported(self) -> tuple[BacktestRow, ...]:
        """The loggers that could be predicted."""
        return tuple(row for row in self.rows if row.supported)

    @property
    def coverage(self) -> float | None:
        """The share of predictable loggers whose earnings agree with the prediction, both errors counted."""
        judged = self.supported
        return sum(row.covered for row in judged) / len(judged) if judged else None

    @property
    def mean_abs_z(self) -> float | None:
        """The mean distance in standard errors; near 0.8 if predictions and intervals are right."""
        distances = [abs(row.z) for row in self.supported if row.z is not None]
        return sum(distances) / len(distances) if distances else None

    @property
    def check(self) -> Diagnostic | None:
        """The backtest as one more diagnostic of an estimate; None where no logger could be predicted."""
        judged = self.supported
        if not judged:
            return None
        worst = max(judged, key=lambda row: abs(row.z or 0.0))
        off = abs(worst.z or 0.0)
        words = f"every logger is predicted from the others to within {off:.1f} standard errors"
        if off > FAR:
            words = f"logger {worst.label} earned {off:.1f} standard errors off what the others' rows predict"
        return Diagnostic("backtest", off, FAR, "warn" if off > FAR else "pass", words)

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        judged = self.supported
        if not judged:
            return f"none of {len(self.rows)} loggers can be predicted from the others"
        agree = sum(row.covered for row in judged)
        left = len(self.rows) - len(judged)
        rest = f"; {left} cannot be predicted from the others" if left else ""
        return (
            f"{agree} of {len(judged)} predictions agree with what was earned at level {self.level:.4g}; mean distance"
            f" {number(self.mean_abs_z)} standard errors ({EXPECTED_Z:.1f} if all is well){rest}"
        )

    def __str__(self) -> str:
        header = ("logger", "predicted", "interval", "earned", "interval", "z", "uncovered", "agrees", "verdict")
        table = [header, *(_cells(row) for row in self.rows)]
        widths = [max(len(line[k]) for line in table) for k in range(len(header))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in table]
        return "\n".join([*lines, self.summary, *(f"note {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that do not exist are None."""
        return {
            "estimator": self.estimator,
            "level": self.level,
            "coverage": _plain(self.coverage),
            "mean_abs_z": _plain(self.mean_abs_z),
            "supported": len(self.supported),
            "rows": [{name: _plain(value) for name, value in asdict(row).items()} for row in self.rows],
            "notes": list(self.notes),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The record as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


@dataclass(frozen=True)
class Episodes:
    """Every episode: whose, how long, what it earned, whether it ended for good and whether its start was logged."""

    logger: IntArray
    length: FloatArray
    reward: FloatArray
    ended: FloatArray
    starts: FloatArray

    def of(self, logger: int) -> Episodes:
        """One logger's."""
        mine = self.logger == logger
        return Episodes(self.logger[mine], self.length[mine], self.reward[mine], self.ended[mine], self.starts[mine])

    @property
    def whole(self) -> bool:
        """Whether every episode was logged from its start to a true end: then a mean over rows is the average."""
        return bool(np.all(self.ended == 1) and np.all(self.starts == 1))

    @property
    def horizon(self) -> int | None:
        """T, if every episode began at its start and was cut after T steps or ended for good before; else None."""
        cut, longest = self.length[self.ended == 0], float(self.length.max())
        if self.whole or not np.all(self.starts == 1):
            return None
        return int(longest) if cut.min() == longest else None

    def earned(self, horizon: int | None, everybody: Episodes) -> tuple[float, FloatArray]:
        """The mean over T steps (nothing is earned after an end), or over all rows; and the scores of the episodes.

        A good logger may succeed in all of a few episodes and show no spread at all. So one more score is added, as of
        one episode with the spread of ``everybody``: it keeps the error from being nothing and vanishes with more data.
        """
        steps = self.length if horizon is None else np.full(len(self.length), float(horizon))
        value = float(self.reward.sum() / steps.sum())
        all_steps = everybody.length if horizon is None else np.full(len(everybody.length), float(horizon))
        spread = np.std(everybody.reward - everybody.reward.sum() / all_steps.sum() * all_steps)
        return value, np.append(self.reward - value * steps, spread) / steps.sum()


@dataclass(frozen=True)
class _HeldOut:
    """One question of the backtest, solved or refused."""

    number: int
    policy: Policy
    known: bool
    estimand: Estimand
    others: IntArray
    solution: Solution | None
    refusal: str = ""


def backtest(
    logs: Any,
    *,
    loggers: Mapping[str, Any] | None = None,
    estimator: Any = "auto",
    level: float = 0.95,
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Backtest:
    """Predict what each labelled logger earned from the rows of the others.

    ``loggers`` maps labels to policies where they are known; the others are counted from their own rows. The estimator
    is one that solves from transition counts (``"auto"``: doubly robust where states have factors, else EMP).
    """
    check_level(level)
    counted = _count(logs, engine)
    labels = _labels(counted.transitions)
    known = {str(label): resolve_policy(policy, counted.logs) for label, policy in (loggers or {}).items()}
    check_labels(known, counted.transitions.loggers)
    chosen = make(counted.automatic[0] if isinstance(estimator, str) and estimator == "auto" else estimator)
    if not isinstance(chosen, Estimator):
        raise UsageError(
            f"estimator {chosen.name!r} needs whole episodes and is not backtested; choose one that solves from"
            " transition counts, such as 'emp', 'dr' or 'bch'"
        )
    episodes = read_episodes(counted)
    held = [_hold_out(counted, episodes, chosen, label, known, seed) for label in labels]
    scores = _scores(counted, held, seed)
    rows = tuple(
        _row(counted, episodes, chosen, one, mine, level, seed) for one, mine in zip(held, scores, strict=True)
    )
    return Backtest(rows, chosen.name, level, _notes(counted, episodes, held))


def counted_policy(transitions: Transitions, logger: int) -> TabularPolicy:
    """π̂_j: how often the logger took each action in each of its states; elsewhere, how often it took it at all."""
    mine = np.flatnonzero(transitions.logger == logger)
    n_states, n_actions = transitions.n_states, len(transitions.actions)
    code = transitions.state[mine] * n_actions + transitions.action[mine]
    counts = sum_by(code, transitions.rows[mine], n_states * n_actions).reshape(n_states, n_actions)
    visited = np.flatnonzero(counts.sum(axis=1))
    return TabularPolicy(
        counts[visited] / counts[visited].sum(axis=1, keepdims=True),
        transitions.observations[visited],
        transitions.actions,
        default=counts.sum(axis=0) / counts.sum(),
    )


def without(transitions: Transitions, logger: int) -> Transitions:
    """The rows of the other loggers; states keep their numbers, the loggers close ranks."""
    rest = restrict(transitions, np.flatnonzero(transitions.logger != logger))
    names = tuple(label for j, label in enumerate(transitions.loggers) if j != logger)
    return replace(rest, loggers=names, logger=rest.logger - (rest.logger > logger))


def read_episodes(counted: Counted) -> Episodes:
    """One scan over the episodes."""
    import pyarrow as pa

    keys = transition_keys(counted.logs.schema)
    assert counted.groups.table is not None
    ended = (counted.transitions.next_state < 0).astype(np.float64)
    table = counted.groups.table.select(list(keys)).append_column("ended", pa.array(ended))
    grouping = Grouping(
        EPISODE_KEYS,
        (
            Aggregate("rows", "count"),
            Aggregate("reward", "sum", ("reward",)),
            Aggregate("ended", "sum", ("ended",)),
            Aggregate("starts", "sum", ("start",)),
        ),
    )
    groups = counted.engine.group_sums(counted.logs, grouping, Lookup(table, keys))
    assert groups.table is not None
    names = groups.table.column("policy_id").to_numpy().astype(str)
    numbers = {label: j for j, label in enumerate(counted.transitions.loggers)}
    logger = np.array([numbers[name] for name in names.tolist()], dtype=np.int64)
    return Episodes(logger, *(groups.column(name) for name in ("rows", "reward", "ended", "starts")))


def _count(logs: Any, engine: str | Engine | None) -> Counted:
    logs = logs if isinstance(logs, Logs) else read(logs)
    if not logs.schema.discrete:
        raise UsageError(
            "a backtest counts transitions, and these logs have vectors for states or actions. Discretise them into"
            " factor columns, or evaluate the policy of one logger on files that leave its rows out"
        )
    return count(logs, engine)


def _labels(transitions: Transitions) -> tuple[str, ...]:
    named = tuple(label for label in transitions.loggers if label != UNLABELLED)
    if not named or len(transitions.loggers) < 2:
        found = ", ".join(map(repr, transitions.loggers))
        raise UsageError(
            f"a backtest predicts one logger from the others, so it needs at least two labelled loggers; these logs"
            f" have {found}. Label them with a column policy_id, or file by file: a=one.parquet b=two.parquet"
        )
    return named


def _hold_out(
    counted: Counted, episodes: Episodes, estimator: Estimator, label: str, known: Mapping[str, Policy], seed: int
) -> _HeldOut:
    rows = counted.transitions
    j = rows.loggers.index(label)
    policy = known.get(label) or counted_policy(rows, j)
    steps = episodes.of(j).horizon
    estimand = Estimand("horizon", horizon=steps) if steps else Estimand()
    others = np.flatnonzero(rows.logger != j)
    rest = {name: found for name, found in known.items() if name != label}
    problem = Problem(without(rows, j), policy, estimand, rest, seed=seed)
    solution, refusal = None, ""
    try:
        solution = estimator.solve(problem)
    except DataError as error:
        refusal = error.problem
    if solution is not None:
        mass = max(solution.uncovered_mass, strange_rows(rows, j))
        solution = replace(solution, uncovered_mass=mass)
    return _HeldOut(j, policy, label in known, estimand, others, solution, refusal)


def strange_rows(transitions: Transitions, logger: int) -> float:
    """The share of a logger's rows whose action nobody else took in that state."""
    mine = transitions.logger == logger
    others = np.zeros(transitions.n_pairs, dtype=bool)
    others[transitions.pair[~mine]] = True
    rows = transitions.rows[mine]
    return float(rows[~others[transitions.pair[mine]]].sum() / rows.sum())


def _scores(counted: Counted, held: list[_HeldOut], seed: int) -> list[FloatArray | None]:
    """The scores of every solution by episode of the others, in one scan."""
    rows = counted.transitions
    tables = []
    for one in held:
        if one.solution is not None and one.solution.scores is not None:
            table = np.zeros((rows.n_groups, len(BASIS)))
            table[one.others] = one.solution.scores
            tables.append(table)
    lookup, grouping = score_lookup(rows, counted.groups, counted.logs.schema, tables, seed)
    groups = counted.engine.group_sums(counted.logs, grouping, lookup)
    assert groups.table is not None
    names = groups.table.column("policy_id").to_numpy().astype(str)
    sums = episode_sums(groups, rows, len(tables), counted.logs.step_base, seed)
    if float(sums.rows.sum()) != rows.n_rows:
        raise MixopeError(
            f"the scores were summed over {sums.rows.sum():.0f} rows where {rows.n_rows:.0f} were counted"
        )
    columns = iter(sums.scores.T)
    return [
        next(columns)[names != rows.loggers[one.number]]
        if one.solution is not None and one.solution.scores is not None
        else None
        for one in held
    ]


def _row(
    counted: Counted,
    episodes: Episodes,
    estimator: Estimator,
    held: _HeldOut,
    scores: FloatArray | None,
    level: float,
    seed: int,
) -> BacktestRow:
    label, mine = counted.transitions.loggers[held.number], episodes.of(held.number)
    earned, own = mine.earned(held.estimand.horizon, episodes)
    around = clustered_interval(earned, own, level)
    estimate = None
    if held.solution is not None:
        estimate = assemble(
            _survey(counted, episodes, held.number),
            Question(label, held.policy, held.estimand, level, seed),
            estimator.name,
            held.solution,
            scores,
            (),
            corrects_coverage=isinstance(estimator, DoublyRobust) and bool(counted.transitions.factors),
        )
    z, covered = _agreement(estimate, earned, around, standard_error(own))
    found = estimate.interval if estimate else None
    return BacktestRow(
        label=label,
        predicted=estimate.value if estimate else math.nan,
        low=found.low if found else None,
        high=found.high if found else None,
        earned=earned,
        earned_low=around.low if around else None,
        earned_high=around.high if around else None,
        covered=covered,
        verdict=str(estimate.verdict if estimate else Verdict.UNSUPPORTED),
        uncovered_mass=estimate.uncovered_mass if estimate else strange_rows(counted.transitions, held.number),
        z=z,
        estimand=str(held.estimand),
        policy="known" if held.known else "counted",
        n_rows=int(mine.length.sum()),
        n_episodes=len(mine.length),
        note=held.refusal or _worst(estimate),
    )


def _agreement(
    estimate: Estimate | None, earned: float, around: Interval | None, own_error: float
) -> tuple[float | None, bool]:
    """z and whether it is inside the level; both intervals are symmetric, so their halves add as errors do."""
    if estimate is None or estimate.interval is None or around is None or estimate.standard_error is None:
        return None, False
    off, error = estimate.value - earned, math.hypot(estimate.standard_error, own_error)
    if abs(off) <= 1e-9 * max(abs(earned), 1.0):
        return 0.0, True
    halves = math.hypot(estimate.interval.high - estimate.value, around.high - earned)
    return off / error if error > 0 else math.copysign(math.inf, off), abs(off) <= halves


def _worst(estimate: Estimate | None) -> str:
    """The sentence of the first failure, else of the first warning."""
    found = () if estimate is None else estimate.diagnostics
    return next((d.sentence for status in ("fail", "warn") for d in found if d.status == status), "")


def _survey(counted: Counted, episodes: Episodes, logger: int) -> Survey:
    """The others' rows, as the logs of a prediction."""
    rest = without(counted.transitions, logger)
    summaries = zip(rest.loggers, rest.logger_rows(), rest.logger_means(), strict=True)
    return Survey(
        logs=counted.logs,
        engine=counted.engine.name,
        n_rows=int(rest.n_rows),
        n_episodes=int((episodes.logger != logger).sum()),
        loggers=tuple(LoggerSummary(label, int(n), float(mean)) for label, n, mean in summaries),
        lowest=float(rest.lowest.min()),
        highest=float(rest.highest.max()),
        alerts=(),
    )


def _notes(counted: Counted, episodes: Episodes, held: list[_HeldOut]) -> tuple[str, ...]:
    notes, names = list(counted.logs.notes), counted.transitions.loggers
    unlike = [names[one.number] for one in held if one.estimand.horizon is None and not episodes.of(one.number).whole]
    if unlike:
        notes.append(
            f"the episodes of {', '.join(unlike)} were cut after different numbers of steps or lack their first ones,"
            " so the long-run average is predicted and compared with the mean of the rows: they may differ for that"
        )
    counts = [names[one.number] for one in held if not one.known]
    if counts:
        notes.append(
            f"the policies of {', '.join(counts)} were counted from their own rows; comparisons err towards agreement"
        )
    if UNLABELLED in names:
        notes.append("rows without a label help to predict the others and are not predicted")
    return tuple(notes)


def _cells(row: BacktestRow) -> tuple[str, ...]:
    return (
        row.label,
        number(row.predicted),
        f"[{number(row.low)}, {number(row.high)}]" if row.low is not None else "–",
        number(row.earned),
        f"[{number(row.earned_low)}, {number(row.earned_high)}]" if row.earned_low is not None else "–",
        "–" if row.z is None else f"{row.z:+.2f}",
        f"{row.uncovered_mass:.2%}",
        "yes" if row.covered else "no" if row.supported else "–",
        row.verdict,
    )


def _plain(value: Any) -> Any:
    """Finite numbers to twelve digits, everything else as JSON knows it."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.12g}") if math.isfinite(value) else None
