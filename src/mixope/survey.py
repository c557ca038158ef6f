"""What is known of logs whatever the estimator: rows, episodes, loggers, rewards, what was dropped, and provenance.

The rows of an episode must fit together. Telescoping sums that came with the scan say whether they do
(:mod:`mixope.statistics.episodes`); where they do not, the rows are looked at, and a real contradiction is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixope.arrays import FloatArray, IntArray, sum_by
from mixope.logs import Logs, explain_episodes, explain_rows
from mixope.statistics.episodes import EpisodeSums, EpisodeTotals, episode_totals
from mixope.statistics.grouping import GroupSums
from mixope.statistics.transitions import Transitions


@dataclass(frozen=True)
class LoggerSummary:
    """One logger: its rows, what it earned per step, and the range of its rewards."""

    label: str
    rows: int
    mean: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Survey:
    """Facts about the logs that every estimate of a run shares."""

    logs: Logs
    engine: str
    n_rows: int
    n_episodes: int
    loggers: tuple[LoggerSummary, ...]
    episodes: EpisodeTotals
    alerts: tuple[str, ...] = ()
    astray: int = 0
    """Rows that do not begin where the row before them led."""

    @property
    def n_dropped(self) -> int:
        """Rows of the inputs that could not be used."""
        return max(0, self.logs.total_rows() - self.n_rows)

    @property
    def mean(self) -> float:
        """What the loggers earned per step."""
        return sum(logger.rows * logger.mean for logger in self.loggers) / self.n_rows

    @property
    def lowest(self) -> float:
        """The smallest reward."""
        return min(logger.lowest for logger in self.loggers)

    @property
    def highest(self) -> float:
        """The largest reward."""
        return max(logger.highest for logger in self.loggers)

    def without(self, number: int) -> Survey:
        """The same logs without the rows of one logger, as far as a prediction from the others needs them."""
        episodes = self.episodes.without(number)
        return replace(
            self,
            n_rows=self.n_rows - self.loggers[number].rows,
            n_episodes=len(episodes.rows),
            loggers=tuple(found for j, found in enumerate(self.loggers) if j != number),
            episodes=episodes,
            alerts=(),
            astray=0,
        )

    @cached_property
    def inputs(self) -> tuple[Mapping[str, Any], ...]:
        """Path, rows and hash of every input."""
        return tuple(self.logs.inputs())

    @cached_property
    def fingerprint(self) -> str:
        """Of the logs."""
        return self.logs.fingerprint()


def survey_of_counts(logs: Logs, engine: str, rows: Transitions, sums: EpisodeSums) -> Survey:
    """From transition counts and the sums by episode."""
    suspicious = bool(sums.irregular_steps.any() or sums.broken_chain.any())
    alerts, astray = _alerts(logs, int(rows.n_rows), suspicious)
    found = rows.logger_rows(), rows.logger_means(), *_range(rows.logger, rows.lowest, rows.highest)
    return Survey(
        logs=logs,
        engine=engine,
        n_rows=int(rows.n_rows),
        n_episodes=len(sums.rows),
        loggers=_summaries(rows.loggers, *found),
        alerts=alerts,
        episodes=sums.totals,
        astray=astray,
    )


def survey_of_episodes(logs: Logs, engine: str, groups: GroupSums, suspicious: bool | None) -> Survey:
    """From the totals of every episode; with ``suspicious`` None, without a word on whether its rows fit together."""
    labels, number = np.unique(groups.values("policy_id").astype(str), return_inverse=True)
    rows, names = groups.column("rows"), tuple(labels.tolist())
    counts, earned = sum_by(number, rows), sum_by(number, groups.column("earned"))
    ends = _range(number, groups.column("lowest"), groups.column("highest"))
    alerts, astray = ((), 0) if suspicious is None else _alerts(logs, int(rows.sum()), suspicious)
    return Survey(
        logs=logs,
        engine=engine,
        n_rows=int(rows.sum()),
        n_episodes=len(rows),
        loggers=_summaries(names, counts, earned / counts, *ends),
        alerts=alerts,
        episodes=episode_totals(groups, names),
        astray=astray,
    )


def _summaries(labels: Sequence[str], *columns: FloatArray) -> tuple[LoggerSummary, ...]:
    return tuple(
        LoggerSummary(label, int(n), *map(float, rest)) for label, n, *rest in zip(labels, *columns, strict=True)
    )


def _range(number: IntArray, lowest: FloatArray, highest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the most of every logger."""
    least, most = np.full(number.max() + 1, np.inf), np.full(number.max() + 1, -np.inf)
    np.minimum.at(least, number, lowest)
    np.maximum.at(most, number, highest)
    return least, most


def _alerts(logs: Logs, n_rows: int, suspicious: bool) -> tuple[tuple[str, ...], int]:
    """What was assumed, what was dropped, and what does not fit together; a real contradiction is raised.

    And how many rows do not begin where the row before them led.
    """
    alerts, astray = list(logs.notes), 0
    dropped = logs.total_rows() - n_rows
    if dropped > 0:
        alerts.append(f"{dropped:,} rows were dropped: {logs.drop_reason}")
    if suspicious or logs.step_base < 0:
        error = explain_rows(logs)
        if error:
            raise error
        for finding in explain_episodes(logs):
            if finding.error is not None and finding.status == "error":
                raise finding.error
            alerts.append(finding.sentence)
            astray += finding.count if finding.name == "next-mismatch" else 0
    return tuple(dict.fromkeys(alerts)), astray
