"""What is known of logs whatever the estimator: rows, episodes, loggers, rewards, what was dropped, and provenance.

What loggers earned is the mean of all their rows, also of those that cannot be used: last rows may hold all that an
episode earns. Rows after which nobody knows what came are *lost* to whatever needs to know it, and beside the others
their rewards tell whether more hangs on that; those that do not say what was done or earned, either, are dropped.

The rows of an episode must fit together. Telescoping sums that came with the scan say whether they do
(:mod:`mixope.requests.episodes`); where they do not, the rows are looked at, and a real contradiction is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, DataError, Setting
from mixope.engines import Engine
from mixope.logs import (
    NO_JUMPS,
    UNFOLLOWED,
    Earnings,
    Jumps,
    Logs,
    about_look_alikes,
    earnings,
    explain_episodes,
    explain_rows,
    jumps,
    look_alikes,
)
from mixope.requests.episodes import EpisodeSums, EpisodeTotals, episode_totals
from mixope.requests.grouping import Aggregate, Grouping, GroupSums
from mixope.requests.transitions import Transitions

QUICK_ROWS = 10_000_000
"""Up to so many rows are looked at to say what hangs on a question."""
_BY_LOGGER = Grouping(
    ("policy_id",),
    (
        Aggregate("rows", "count"),
        Aggregate("earned", "sum", ("reward",)),
        Aggregate("unfollowed", "sum", (UNFOLLOWED,)),
        Aggregate("unfollowed_earned", "sum", (UNFOLLOWED, "reward")),
    ),
)


@dataclass(frozen=True)
class LoggerSummary:
    """One logger: its rows that say something; of all its rows, what it earned per step and the range of rewards."""

    label: str
    rows: int
    mean: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Lost:
    """Rows of one logger after which nobody knows what came: how many, how many have a reward, and what these sum to.

    ``dropped`` of them do not say what was done or earned, either.
    """

    rows: int
    rewards: int
    total: float
    dropped: int = 0


@dataclass(frozen=True)
class Dropped:
    """Rows after which nobody knows what came, and the others: ``mean`` and ``others`` are what a row of each earned.

    A mean is None where there is no row, or none with a reward. ``jumps`` compares them with the rows before them in
    their ``episodes``, where it was asked for.
    """

    rows: int
    of: int
    mean: float | None
    others: float | None
    jumps: Jumps = NO_JUMPS
    episodes: int = 0
    gone: int = 0
    """Those of the rows that do not say what was done or earned, either, and count nowhere."""

    @property
    def share(self) -> float:
        """Of all rows."""
        return self.rows / self.of

    @property
    def share_lost(self) -> float:
        """Of all episodes, those of which nobody knows what came after any row."""
        return self.jumps.lost / self.episodes if self.jumps.lost else 0.0

    def __str__(self) -> str:
        rows = f"{self.rows:,} of {self.of:,} rows ({self.share:.2%})"
        if self.mean is None:
            return rows
        beside = "" if self.others is None else f", the others {self.others:.3g}"
        return f"{rows}, which earn {self.mean:.3g} on average{beside}"


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
    holes: int = 0
    """Rows before which others are missing: steps are left out, and the row before did not lead there."""
    late: tuple[str, ...] = ()
    """Loggers none of whose episodes begins where those of others do."""
    lost: Mapping[str, Lost] = field(default_factory=dict)
    """By logger, the rows after which nobody knows what came; a logger that is nowhere else has lost all its rows."""
    jumps: Mapping[str, Jumps] = field(default_factory=dict)
    """By logger, how the reward jumps onto these rows; empty where there are none."""

    @property
    def n_dropped(self) -> int:
        """Rows of the inputs that say nothing."""
        return sum(rows.dropped for rows in self.lost.values())

    @property
    def n_unfollowed(self) -> int:
        """Rows that count, but after which nobody knows what came."""
        return int(self.episodes.unfollowed.sum())

    @property
    def dropped(self) -> Dropped | None:
        """The rows after which nobody knows what came beside the others; None where there are none."""
        totals = self.episodes
        reward = float((totals.reward - totals.unfollowed_reward).sum())
        found = dropped_beside(self.lost, self.n_rows - self.n_unfollowed, reward)
        if found is None:
            return None
        together = reduce(Jumps.merge, self.jumps.values(), NO_JUMPS)
        counted = int((totals.rows > totals.unfollowed).sum())
        return replace(found, jumps=together, episodes=counted + together.lost)

    @property
    def mean(self) -> float:
        """What the loggers earned per step."""
        gone = [self.lost[logger.label].dropped if logger.label in self.lost else 0 for logger in self.loggers]
        rows = [logger.rows + n for logger, n in zip(self.loggers, gone, strict=True)]
        return sum(n * logger.mean for logger, n in zip(self.loggers, rows, strict=True)) / sum(rows)

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
        episodes, label = self.episodes.without(number), self.loggers[number].label
        return replace(
            self,
            n_rows=self.n_rows - self.loggers[number].rows,
            n_episodes=len(episodes.rows),
            loggers=tuple(found for j, found in enumerate(self.loggers) if j != number),
            episodes=episodes,
            alerts=(),
            astray=0,
            holes=0,
            late=tuple(name for name in self.late if name != label),
            lost={name: rows for name, rows in self.lost.items() if name != label},
            jumps={name: rows for name, rows in self.jumps.items() if name != label},
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
    found = rows.logger_rows(), rows.logger_means(), *_range(rows.logger, rows.lowest, rows.highest)
    return _survey(logs, engine, _summaries(rows.loggers, *found), sums.totals, suspicious)


def survey_of_episodes(logs: Logs, engine: str, groups: GroupSums, suspicious: bool | None) -> Survey:
    """From the totals of every episode; with ``suspicious`` None, without a word on whether its rows fit together."""
    labels, number = np.unique(groups.values("policy_id").astype(str), return_inverse=True)
    rows, names = groups.column("rows"), tuple(labels.tolist())
    counts, earned = sum_by(number, rows), sum_by(number, groups.column("earned"))
    ends = _range(number, groups.column("lowest"), groups.column("highest"))
    used = _summaries(names, counts, earned / counts, *ends)
    return _survey(logs, engine, used, episode_totals(groups, names), suspicious)


def _survey(
    logs: Logs, engine: str, used: Sequence[LoggerSummary], totals: EpisodeTotals, suspicious: bool | None
) -> Survey:
    """From what loggers did in the rows that are used; with what was dropped, and what does not fit together."""
    n_rows = int(totals.rows.sum())
    open_rows = int(totals.unfollowed.sum())
    alerts, broken = ((), Counter[str]()) if suspicious is None else _alerts(logs, n_rows, open_rows, suspicious)
    loggers, lost = _all_earned(logs, used, totals)
    late = late_loggers([one.label for one in loggers], sum_by(totals.logger, totals.starts, len(loggers)))
    return Survey(
        logs=logs,
        engine=engine,
        n_rows=n_rows,
        n_episodes=len(totals.rows),
        loggers=loggers,
        alerts=(*alerts, *_about_late(logs, late), *about_look_alikes(look_alikes(one.label for one in loggers))),
        late=late,
        episodes=totals,
        astray=broken["next-mismatch"],
        holes=broken["missing-rows"],
        lost=lost,
        jumps=jumps(logs) if lost else {},
    )


def late_loggers(labels: Sequence[str], starts: FloatArray) -> tuple[str, ...]:
    """Loggers none of whose episodes begins where those of others do: perhaps they count their steps from 1."""
    late = tuple(label for label, n in zip(labels, starts, strict=True) if n == 0)
    return late if len(late) < len(labels) else ()


def _about_late(logs: Logs, late: Sequence[str]) -> tuple[str, ...]:
    if not late:
        return ()
    shown = ", ".join(map(repr, late[:3])) + (f" and {len(late) - 3} more" if len(late) > 3 else "")
    return (
        f"no episode of {shown} begins at step {logs.step_base}, as those of other loggers do, and none of its starts"
        " is used; if its steps are counted from another number, count them from the same one",
    )


Sum = tuple[int, float]
"""Some rows, and what they earned."""


def lost_rows(
    logs: Logs, used: Mapping[str, Sum], unfollowed: Mapping[str, Sum]
) -> tuple[dict[str, Earnings], dict[str, Lost]]:
    """What all rows earned, and the rows after which nobody knows what came, by logger.

    ``used`` are the rows that say something, ``unfollowed`` those of them after which nobody knows what came. The first
    is empty, and nothing is read, where no row was dropped.
    """
    lost = {label: Lost(rows, rows, reward) for label, (rows, reward) in unfollowed.items() if rows}
    if logs.total_rows() == sum(rows for rows, _ in used.values()):
        return {}, lost
    every = earnings(logs)
    for label, all_rows in every.items():
        rows, reward = used.get(label, (0, 0.0))
        if (gone := all_rows.rows - rows) > 0:
            known = lost.get(label, Lost(0, 0, 0.0))
            rewards, total = known.rewards + all_rows.rewards - rows, known.total + all_rows.total - reward
            lost[label] = Lost(known.rows + gone, rewards, total, gone)
    return every, lost


def ask_for_ends(logs: Logs, engine: Engine) -> None:
    """Refuse logs whose last rows hang on how episodes end, where nothing says it; of small ones, what is at stake."""
    if not logs.asks_for_ends:
        return
    dropped = None
    if logs.total_rows() <= QUICK_ROWS:
        sums = engine.group_sums(logs, _BY_LOGGER)
        names = ("rows", "earned", "unfollowed", "unfollowed_earned")
        rows, reward, gone, lost_reward = (sums.column(name) if sums.n_groups else np.zeros(0) for name in names)
        labels = sums.values("policy_id").astype(str).tolist() if sums.n_groups else []
        _, lost = lost_rows(logs, _by_label(labels, rows, reward), _by_label(labels, gone, lost_reward))
        dropped = dropped_beside(lost, int((rows - gone).sum()), float((reward - lost_reward).sum()))
    raise unsaid_ends(logs, dropped)


def _by_label(labels: Sequence[str], rows: FloatArray, reward: FloatArray) -> dict[str, Sum]:
    return {label: (int(n), float(r)) for label, n, r in zip(labels, rows, reward, strict=True)}


def unsaid_ends(logs: Logs, dropped: Dropped | None) -> DataError:
    """Nothing says how episodes end: what hangs on it, and the two ways to say it."""
    ended, cut = Setting("ends", "terminated"), Setting("ends", "truncated")
    return DataError(
        "No column says how the episodes end: did their last rows end them, or did the recorder stop?",
        where=", ".join(plan.source.name for plan in logs.recorded.plans if plan.asks),
        expected=Advice("a column terminated or truncated, or ", ended, " or ", cut, " where the logs are read"),
        got=None if dropped is None else f"last rows without a next observation: {dropped}",
        hint=Advice(
            ended,
            " if nothing could follow the last row of an episode, ",
            cut,
            " if the recorder stopped (what came next is not known, and its reward counts)",
        ),
    )


def dropped_beside(lost: Mapping[str, Lost], rows: int, reward: float) -> Dropped | None:
    """The lost rows of all loggers beside so many others, and what these earned in all."""
    if not lost:
        return None
    gone, rewards = sum(part.rows for part in lost.values()), sum(part.rewards for part in lost.values())
    mean = sum(part.total for part in lost.values()) / rewards if rewards > 0 else None
    silent = sum(part.dropped for part in lost.values())
    return Dropped(gone, gone + rows, mean, reward / rows if rows else None, gone=silent)


def _all_earned(
    logs: Logs, used: Sequence[LoggerSummary], totals: EpisodeTotals
) -> tuple[tuple[LoggerSummary, ...], Mapping[str, Lost]]:
    """The loggers with what all their rows earned, and the rows after which nobody knows what came."""
    labels = [logger.label for logger in used]
    gone, reward = (sum_by(totals.logger, each, len(used)) for each in (totals.unfollowed, totals.unfollowed_reward))
    rows = {logger.label: (logger.rows, logger.rows * logger.mean) for logger in used}
    every, lost = lost_rows(logs, rows, _by_label(labels, gone, reward))
    short = {label for label, one in lost.items() if one.dropped}
    return tuple(_with(logger, every[logger.label]) if logger.label in short else logger for logger in used), lost


def _with(logger: LoggerSummary, rows: Earnings) -> LoggerSummary:
    return replace(logger, mean=rows.total / rows.rewards, lowest=rows.lowest, highest=rows.highest)


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


def _alerts(logs: Logs, n_rows: int, unfollowed: int, suspicious: bool) -> tuple[tuple[str, ...], Counter[str]]:
    """What was assumed, what was dropped, and what does not fit together; a real contradiction is raised.

    And how many rows there are of each kind that does not fit.
    """
    alerts, broken = list(logs.notes), Counter[str]()
    dropped = logs.total_rows() - n_rows
    if dropped > 0:
        alerts.append(f"{dropped:,} rows were dropped: {logs.drop_reason}; nor do they say what was done and earned")
    if unfollowed > 0:
        lead = "1 row leads" if unfollowed == 1 else f"{unfollowed:,} rows lead"
        said = f"{lead} to a state that is not known: {logs.drop_reason}"
        alerts.append(f"{said}; they count where no next state is needed")
    if suspicious or logs.step_base < 0:
        error = explain_rows(logs)
        if error:
            raise error
        for finding in explain_episodes(logs):
            if finding.error is not None and finding.status == "error":
                raise finding.error
            alerts.append(finding.sentence)
            broken[finding.name] += finding.count
    return tuple(dict.fromkeys(alerts)), broken
