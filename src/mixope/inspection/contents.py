"""What the usable rows hold: episodes and their lengths, loggers and what they earned, propensities that lack.

One GROUP BY by episode.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixope.arrays import AnyArray
from mixope.engines import Engine
from mixope.errors import DataError
from mixope.inspection.records import Bar, Contents, Lengths, LoggerRows
from mixope.logs import EPISODE_KEYS, Logs
from mixope.statistics.grouping import Aggregate, Grouping, GroupSums
from mixope.tabular import Counted

BINS = 8
_BY_EPISODE = Grouping(
    EPISODE_KEYS,
    (
        Aggregate("rows", "count"),
        Aggregate("reward", "sum", ("reward",)),
        Aggregate("lowest", "min", ("reward",)),
        Aggregate("highest", "max", ("reward",)),
        Aggregate("starts", "sum", ("start",)),
        Aggregate("terminated", "max", ("terminated",)),
        Aggregate("truncated", "max", ("truncated",)),
    ),
)


def sum_contents(logs: Logs, engine: Engine, counted: Counted | None) -> Contents:
    """Sum the usable rows by episode, then over all of them."""
    sums = engine.group_sums(logs, _BY_EPISODE)
    rows = sums.column("rows")
    if len(rows) == 0:
        raise DataError("no row can be used", where=logs.name, hint=f"all rows were dropped: {logs.drop_reason}")
    return Contents(
        rows=int(rows.sum()),
        episodes=len(rows),
        known_starts=int((sums.column("starts") > 0).sum()),
        terminated=int(sums.column("terminated").sum()),
        truncated=int(sums.column("truncated").sum()),
        lowest_reward=float(sums.column("lowest").min()),
        highest_reward=float(sums.column("highest").max()),
        logged_mean=float(sums.column("reward").sum() / rows.sum()),
        loggers=_loggers(sums),
        lengths=_lengths(rows.astype(np.int64)),
        rows_without_propensity=_without_propensity(logs, engine, counted, int(rows.sum())),
    )


def _loggers(sums: GroupSums) -> tuple[LoggerRows, ...]:
    assert sums.table is not None
    labels, logger = np.unique(np.asarray(sums.table.column("policy_id").to_numpy()).astype(str), return_inverse=True)
    rows, reward = (np.bincount(logger, weights=sums.column(name)) for name in ("rows", "reward"))
    episodes = np.bincount(logger)
    return tuple(
        LoggerRows(str(label), int(rows[j]), int(episodes[j]), float(reward[j] / rows[j]))
        for j, label in enumerate(labels)
    )


def _lengths(rows: AnyArray) -> Lengths:
    low, high = int(rows.min()), int(rows.max())
    edges = np.unique(np.linspace(low, high + 1, min(BINS, high - low + 1) + 1).astype(np.int64))
    counts, _ = np.histogram(rows, bins=edges)
    bars = tuple(Bar(int(a), int(b) - 1, int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True))
    return Lengths(low, float(np.median(rows)), float(rows.mean()), high, bars)


def _without_propensity(logs: Logs, engine: Engine, counted: Counted | None, rows: int) -> int:
    """Rows without one. Counts that have an inverse in every group need no further look."""
    if not logs.schema.has_propensity:
        return rows
    if (
        counted is not None
        and counted.transitions.inverse is not None
        and np.isfinite(counted.transitions.inverse).all()
    ):
        return 0

    def missing(fragment: Any) -> int:
        return int(np.isnan(np.asarray(fragment.column("propensity").to_numpy(), dtype=np.float64)).sum())

    return sum(n for _, n in engine.map_fragments(logs, missing, ("propensity",)))
