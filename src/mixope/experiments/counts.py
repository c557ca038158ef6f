"""How often each arm led from state to state and what it earned, by bucket of units.

Everything that is computed from counts of all units can be computed without the units of one bucket, and the spread of
these tells how sure it is (the delete-a-group jackknife):

    se² = (B − 1)/B · Σ_b (θ₍₋b₎ − θ̄)²,       t with B − 1 degrees of freedom

Units are independent and fall into buckets by chance, so that no formula for the derivative of θ is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray, distinct, sum_by
from mixope.logs.sources import arrow_batches, quote

if TYPE_CHECKING:
    from mixope.experiments.panel import Panel

KEYS = ("bucket", "arm", "state", "next_state")
SUMS = ("rows", "reward", "starts", "times", "timed_reward")


@dataclass(frozen=True)
class Counts:
    """Arrays over groups g = (bucket, arm, state, next state); the next state of a unit's last row is −1.

    ``reward`` is what all rows of a group earned, ``starts`` how many of them were their unit's first; ``times`` and
    ``timed_reward`` add up the root of the periods since entry, and that times the reward.
    """

    arms: tuple[str, ...]
    columns: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    bucket: IntArray
    arm: IntArray
    state: IntArray
    next_state: IntArray
    rows: FloatArray
    reward: FloatArray
    starts: FloatArray
    times: FloatArray
    timed_reward: FloatArray

    @property
    def n_states(self) -> int:
        """States seen, before or after a period."""
        return len(self.states)

    def take(self, chosen: BoolArray) -> Counts:
        """The groups that are chosen."""
        return Counts(self.arms, self.columns, self.states, *(getattr(self, name)[chosen] for name in (*KEYS, *SUMS)))


@dataclass(frozen=True)
class Histories:
    """Counts with what came before the state: arrays over groups (bucket, arm, before, state, next state).

    ``oldest`` is what of every state will be history one period later.
    """

    counts: Counts
    before: IntArray
    oldest: IntArray

    @property
    def n_before(self) -> int:
        """Different histories."""
        return int(max(self.before.max(), self.oldest.max())) + 1

    @property
    def past(self) -> IntArray:
        """(before, state) of every group as one number."""
        found: IntArray = self.before * self.counts.n_states + self.counts.state
        return found

    @property
    def next_past(self) -> IntArray:
        """The same one period later; −1 where that is not known."""
        fine = self.counts
        return np.where(fine.next_state >= 0, self.oldest[fine.state] * fine.n_states + fine.next_state, -1)

    def merged(self) -> Counts:
        """Without what came before."""
        fine, n = self.counts, self.counts.n_states + 1
        code = ((fine.bucket * len(fine.arms) + fine.arm) * n + fine.state) * n + fine.next_state + 1
        _, first, group = np.unique(code, return_index=True, return_inverse=True)
        keys = [getattr(fine, name)[first] for name in KEYS]
        sums = [sum_by(group.ravel(), getattr(fine, name), len(first)) for name in SUMS]
        return Counts(fine.arms, fine.columns, fine.states, *keys, *sums)


def count(panel: Panel, metric: str, where: str = "true") -> Histories:
    """The counts of a panel under one metric; of some rows only where ``where``, an SQL condition, says so."""
    names = {"before": panel.base, "state": panel.states, "next": panel.states}
    keys = [quote(f"{when} {name}") for when, columns in names.items() for name in columns]
    query = f"SELECT bucket, action, {', '.join(keys)}, {added_up(metric)}"
    with panel.open() as (connection, rows):
        found = connection.sql(f"{query} FROM {rows} WHERE {where} GROUP BY ALL ORDER BY ALL")
        table = arrow_batches(found, 1 << 20).read_all()
    return _encoded(table, panel)


def added_up(metric: str) -> str:
    """The sums of a group, as SQL."""
    value = quote(f"metric {metric}")
    sums = (
        "count(*)",
        f"fsum({value})",
        "count(*) FILTER (step = 0)",
        "fsum(sqrt(step))",
        f"fsum(sqrt(step) * {value})",
    )
    return ", ".join(f"{what} AS {name}" for what, name in zip(sums, SUMS, strict=True))


def _encoded(table: Any, panel: Panel) -> Histories:
    """What came before, as numbers beside those of the counts."""
    counts, states = encode(table, panel)
    places = [panel.states.index(name) for name in panel.oldest]
    befores = np.concatenate([_classes(table, "before", panel.base), states[:, places]])
    _, pasts = _numbered(befores)
    return Histories(counts, pasts[: len(counts.rows)], pasts[len(counts.rows) :])


def encode(table: Any, panel: Panel) -> tuple[Counts, IntArray]:
    """Groups of a panel as counts, and the classes of every state; states are those before and after a period."""
    now = _classes(table, "state", panel.states)
    known = np.asarray(table.column(f"next {panel.states[0]}").is_valid().to_numpy())
    later = _classes(table.filter(known), "next", panel.states)
    states, numbers = _numbered(np.concatenate([now, later]))
    next_state = np.full(len(known), -1, dtype=np.int64)
    next_state[known] = numbers[len(known) :]
    arms = panel.facts.names
    action = np.asarray(table.column("action").to_numpy(zero_copy_only=False)).astype(str)
    counts = Counts(
        arms,
        panel.states,
        tuple(panel.words(row) for row in states.tolist()),
        table.column("bucket").to_numpy().astype(np.int64),
        np.searchsorted(np.array(arms), action).astype(np.int64),
        numbers[: len(known)],
        next_state,
        *(table.column(name).to_numpy().astype(np.float64) for name in SUMS),
    )
    return counts, states


def _numbered(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The different rows in their order, and the number of every row among them."""
    numbers, n = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        width = int(column.max() - column.min()) + 1
        found, numbers = distinct(numbers * width + column - column.min(), n * width)
        n = len(found)
    first = np.empty(n, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(rows))[::-1]
    return rows[first], numbers


def _classes(table: Any, when: str, names: Sequence[str]) -> IntArray:
    columns = [table.column(f"{when} {name}").to_numpy(zero_copy_only=False) for name in names]
    return np.stack(columns, axis=1).astype(np.int64)


def jackknife(counts: Counts, compute: Callable[[Counts], FloatArray]) -> tuple[FloatArray, FloatArray, int]:
    """θ on all units, its standard error, and the degrees of freedom; θ is an array of any length."""
    whole = np.asarray(compute(counts), dtype=np.float64)
    buckets = np.unique(counts.bucket)
    others = np.stack([compute(counts.take(counts.bucket != bucket)) for bucket in buckets])
    return whole, jackknife_error(others), len(buckets) - 1


def jackknife_error(others: FloatArray) -> FloatArray:
    """The standard error of what was computed without each of some groups of units; one row per group."""
    n = len(others)
    return np.asarray(np.sqrt((n - 1) / n * np.sum((others - others.mean(axis=0)) ** 2, axis=0)))


def t_value(by_bucket: FloatArray) -> float:
    """How many standard errors the sum of independent numbers is from zero; 0 where they do not vary."""
    spread = float(np.sqrt(len(by_bucket) * by_bucket.var(ddof=1))) if len(by_bucket) > 1 else 0.0
    return float(by_bucket.sum()) / spread if spread > 0 else 0.0
