"""What each arm led to, with the metric in a few classes: how far outcomes of one state and arm lie apart.

Means would hide it: two users of one state may earn 0 and 10, and a bound on what hidden reasons can do needs to know.
The metric is cut at its quantiles over all rows; a metric with few values is kept as it is. Within a class outcomes
count as equal, which makes bounds tighter by what little the one class at the quantile in question spreads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import IntArray
from mixope.experiments.counts import Counts, added_up, encode
from mixope.experiments.ordering import BUCKETS
from mixope.experiments.panel import Panel
from mixope.logs.sources import arrow_batches, quote

CLASSES = 8
ENOUGH = 1_000_000
"""Rows from which quantiles are taken: those of as many buckets of units as it needs."""
MOST_GROUPS, LEAST_BUCKETS = 2_000_000, 8
"""Where there would be more groups, units fall into fewer buckets."""


@dataclass(frozen=True)
class Outcomes:
    """Counts by (bucket, arm, state, next state) and class of the metric; the least and the most that a row earned."""

    counts: Counts
    cut: IntArray
    least: float
    most: float


def count_outcomes(panel: Panel, metric: str, known: Counts) -> Outcomes:
    """One scan for the quantiles and one for the counts; ``known``, without the metric, says how many there will be."""
    value = quote(f"metric {metric}")
    keys = [quote(f"{when} {name}") for when in ("state", "next") for name in panel.states]
    shares = ", ".join(f"{k / CLASSES:.6g}" for k in range(1, CLASSES))
    sampled = -(-BUCKETS * ENOUGH // panel.facts.rows)
    buckets = int(np.clip(MOST_GROUPS // (pairs_of(known) * CLASSES), LEAST_BUCKETS, BUCKETS))
    with panel.open() as (connection, rows):
        edges, least, most = connection.execute(
            f"SELECT coalesce(quantile_disc({value}, [{shares}]) FILTER (bucket < {sampled}), []), min({value}),"
            f" max({value}) FROM {rows}"
        ).fetchall()[0]
        cut = " + ".join(["0", *(f"CAST({value} > {edge!r} AS INTEGER)" for edge in sorted(set(edges)))])
        found = connection.sql(
            f"SELECT bucket % {buckets} AS bucket, action, {', '.join(keys)}, {cut} AS cut, {added_up(metric)}"
            f" FROM {rows} GROUP BY ALL ORDER BY ALL"
        )
        table = arrow_batches(found, 1 << 20).read_all()
    counts, _ = encode(table, panel)
    return Outcomes(counts, table.column("cut").to_numpy().astype(np.int64), least, most)


def pairs_of(counts: Counts) -> int:
    """How many steps of an arm from a state to a state were seen at all."""
    n = counts.n_states + 1
    return len(np.unique((counts.arm * n + counts.state) * n + counts.next_state + 1))
