"""What is known of logs whatever the estimator: rows, episodes, loggers, rewards, what was dropped, and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixope.arrays import FloatArray, sum_by
from mixope.engines import Engine
from mixope.logs import EPISODE_KEYS, Logs
from mixope.statistics.episodes import EpisodeTotals, episode_totals
from mixope.statistics.grouping import Aggregate, Grouping


@dataclass(frozen=True)
class LoggerSummary:
    """One logger: its rows and what it earned a step."""

    label: str
    rows: int
    mean: float


@dataclass(frozen=True)
class Survey:
    """Facts about the logs that every estimate of a run shares."""

    logs: Logs
    engine: str
    n_rows: int
    n_episodes: int
    loggers: tuple[LoggerSummary, ...]
    lowest: float
    highest: float
    alerts: tuple[str, ...]
    episodes: EpisodeTotals | None = None

    @property
    def n_dropped(self) -> int:
        """Rows of the inputs that could not be used."""
        return max(0, self.logs.total_rows() - self.n_rows)

    @property
    def mean(self) -> float:
        """What the loggers earned a step."""
        return sum(logger.rows * logger.mean for logger in self.loggers) / self.n_rows

    @cached_property
    def inputs(self) -> tuple[Mapping[str, Any], ...]:
        """Path, rows and hash of every input."""
        return tuple(self.logs.inputs())

    @cached_property
    def fingerprint(self) -> str:
        """Of the logs."""
        return self.logs.fingerprint()


def dropped_alert(logs: Logs, n_rows: int) -> tuple[str, ...]:
    """A sentence if rows were dropped."""
    dropped = logs.total_rows() - n_rows
    return (f"{dropped:,} rows were dropped: {logs.drop_reason}",) if dropped > 0 else ()


def survey_episodes(logs: Logs, engine: Engine) -> tuple[Survey, FloatArray]:
    """One GROUP BY over the episodes; also the length of every episode."""
    grouping = Grouping(
        EPISODE_KEYS,
        (
            Aggregate("rows", "count"),
            Aggregate("earned", "sum", ("reward",)),
            Aggregate("starts", "sum", ("start",)),
            Aggregate("ended", "max", ("terminated",)),
            Aggregate("lowest", "min", ("reward",)),
            Aggregate("highest", "max", ("reward",)),
        ),
    )
    groups = engine.group_sums(logs, grouping)
    assert groups.table is not None
    labels, number = np.unique(groups.table.column("policy_id").to_numpy().astype(str), return_inverse=True)
    rows, reward = groups.column("rows"), groups.column("earned")
    counts, earned = sum_by(number, rows), sum_by(number, reward)
    survey = Survey(
        logs=logs,
        engine=engine.name,
        n_rows=int(rows.sum()),
        n_episodes=len(rows),
        loggers=tuple(
            LoggerSummary(label, int(n), float(r / n))
            for label, n, r in zip(labels.tolist(), counts, earned, strict=True)
        ),
        lowest=float(groups.column("lowest").min()),
        highest=float(groups.column("highest").max()),
        alerts=(*logs.notes, *dropped_alert(logs, int(rows.sum()))),
        episodes=episode_totals(groups, labels.tolist()),
    )
    return survey, rows
