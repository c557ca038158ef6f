"""Do units go at a pace of their own? Then their whole past tells the next steps, and one period back hardly does.

Units that differ for ever look alike in every state they share. Which of them are in a state changes while the test
runs, so that the chain of all of them is nobody's chain. What they do beyond their arm and state is then alike from
period to period, and draws them back to where they were: with ε what is new in a row (the next state, the metric) less
its mean for arm and state among other units, and m_t the mean of a column of the state over all earlier periods,

    Σ_t ε_t · Σ_{u<t} ε_u / (5 + t),      Σ_t ε_t (m_t − E(m_t | arm, state))      by unit

have mean zero if the state is all (:mod:`mixope.requests.pasts`, where units are episodes). Of long tables some units
are taken, by a hash of their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.base.arrays import IntArray
from mixope.checks.state import deviates_of
from mixope.experiments.counts import SUMS, encode
from mixope.experiments.panel import Panel
from mixope.logs.sources import arrow_batches, quote
from mixope.requests.pasts import REWARD, whole_pasts
from mixope.requests.replay import Laid, dealt
from mixope.requests.stale import paired

MOST_ROWS = 200_000


@dataclass(frozen=True)
class Pace:
    """What the whole past of a unit tells of its next state and of the metric, in standard deviations.

    ``share`` is how much of what the state leaves over of the next state it explains.
    """

    next_state: float
    metric: float
    share: float


def pace_of(panel: Panel, metric: str) -> Pace | None:
    """From rows in the order of their units; None where too few units have several."""
    rows, states = _laid(panel, metric)
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for trace in whole_pasts(rows, states):
        if np.count_nonzero(trace.by_episode) > 1 and (z := deviates_of(trace.by_episode)) is not None:
            found[trace.outcome == REWARD].append((z, trace.share or 0.0))
    if not any(found.values()):
        return None
    (next_z, share), (metric_z, _) = (max(found[reward], default=(0.0, 0.0)) for reward in (False, True))
    return Pace(next_z, metric_z, share)


def _laid(panel: Panel, metric: str) -> tuple[Laid, IntArray]:
    """The rows of some units in order, an arm being an action; and the classes of every state."""
    table = _rows_of(panel, metric)
    counts, states = encode(table, panel)
    unit, step = (table.column(name).to_numpy().astype(np.int64) for name in ("number", "step"))
    unit = np.unique(unit, return_inverse=True)[1].ravel()
    pair = paired(counts.arm, counts.state)
    following = counts.next_state
    cell = paired(pair, following)
    fold = dealt(counts.arm[np.unique(unit, return_index=True)[1]], 0)
    rows = Laid(
        state=counts.state,
        pair=pair,
        cell=cell,
        next_state=following,
        reward=counts.reward,
        episode=unit,
        step=step,
        logger=counts.arm,
        fold=fold[unit],
        fold_of_episode=fold,
        group=cell,
        n_states=counts.n_states,
        n_pairs=int(pair.max(initial=-1)) + 1,
        n_cells=int(cell.max(initial=-1)) + 1,
        n_loggers=len(counts.arms),
    )
    return rows, states


def _rows_of(panel: Panel, metric: str) -> Any:
    """Rows with a next state, unit by unit in order."""
    one_in = -(-panel.facts.rows // MOST_ROWS)
    names = {"state": panel.states, "next": panel.states}
    keys = ", ".join(quote(f"{when} {name}") for when, columns in names.items() for name in columns)
    sums = ("1", quote(f"metric {metric}"), "CAST(step = 0 AS BIGINT)", "0", "0")
    values = ", ".join(f"{what} AS {name}" for what, name in zip(sums, SUMS, strict=True))
    chosen = f"hash(CAST(unit AS VARCHAR), 2) % {one_in} = 0 AND {quote(f'next {panel.states[0]}')} IS NOT NULL"
    with panel.open() as (connection, rows):
        query = f"""SELECT dense_rank() OVER (ORDER BY unit) AS number, step, bucket, action, {keys}, {values}
        FROM {rows} WHERE {chosen} ORDER BY number, step"""
        return arrow_batches(connection.sql(query), 1 << 20).read_all()
