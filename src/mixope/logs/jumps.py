"""How the reward jumps from row to row at the end of episodes, and how it jumps onto rows that lead nowhere.

A row after which nobody knows what came is *lost* to what needs to know it. It is best compared with the rows before it
in its own episode: rewards that drift, or go up and down with the season, do so along the episode, and a jump onto the
lost row is then like the jumps before it; a purchase is unlike them. Of every episode that lost a row, the last rows
are looked at: one scan by episode, and a few sums over episodes, which merge. Rewards that are missing or not finite
are left aside, and so are rows that ended their episode: what is earned with an end is nothing to compare a row with
that ended nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixope.logs import view
from mixope.logs.schema import EPISODE_KEYS, UNFOLLOWED
from mixope.logs.sources import arrow_batches, reading
from mixope.logs.table import codes_of, marked_rows

if TYPE_CHECKING:
    from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
    from mixope.logs.logs import Logs
    from mixope.logs.plan import ReadingPlan

LAST = 10
"""So many rows of an episode are looked at: a week of days, with what leads to it."""
EPISODES = 65_536
"""So many of them are held at a time."""
ROWS = 2_000_000
"""About so many rows are gone through in one query."""


@dataclass(frozen=True)
class Numbers:
    """Some numbers: how many there are, their sum, and the sum of their squares."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        """0 where there are none."""
        return self.total / self.count if self.count else 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite where there are fewer than two."""
        if self.count < 2:
            return float("inf")
        return float(np.sqrt(max(self.squares / self.count - self.mean**2, 0.0) / (self.count - 1)))

    def merge(self, other: Numbers) -> Numbers:
        """Both together."""
        return Numbers(self.count + other.count, self.total + other.total, self.squares + other.squares)


@dataclass(frozen=True)
class Jumps:
    """Of episodes that lost a row, one number each: the jump of the reward onto lost rows, and the usual ones.

    ``usual`` has those between the rows that can be used, by their place before the end. Of ``lost`` episodes no row
    can be used: ``alone`` is what their rows earn, ``first`` what the first rows of the other episodes earn.
    """

    onto: Numbers = Numbers()
    usual: tuple[Numbers, ...] = (Numbers(),) * LAST
    lost: int = 0
    alone: Numbers = Numbers()
    first: Numbers = Numbers()

    def merge(self, other: Jumps) -> Jumps:
        """Of the episodes of both."""
        return Jumps(
            self.onto.merge(other.onto),
            tuple(a.merge(b) for a, b in zip(self.usual, other.usual, strict=True)),
            self.lost + other.lost,
            self.alone.merge(other.alone),
            self.first.merge(other.first),
        )


NO_JUMPS = Jumps()


class _Ends(NamedTuple):
    """The last rows of some episodes, (episodes × LAST), the last one first; ``there``: the episode has such a row."""

    label: AnyArray
    rows_used: IntArray
    first: FloatArray
    there: BoolArray
    reward: FloatArray
    used: BoolArray
    terminated: BoolArray


def jumps(logs: Logs) -> dict[str, Jumps]:
    """By logger."""
    found: dict[str, Jumps] = {}
    with reading(logs.name):
        for ends in _in_memory(logs.plans) if logs.in_memory else _by_sql(logs):
            for label, some in _summed(ends):
                found[label] = found.get(label, NO_JUMPS).merge(some)
    return dict(sorted(found.items()))


def _summed(ends: _Ends) -> Iterator[tuple[str, Jumps]]:
    """The jumps of some episodes, by logger; where a row is lost, the next one is compared with the one before it."""
    gone = ends.there & ~ends.used
    cut = gone.any(axis=1)
    before = np.full(len(ends.label), np.nan)
    onto, usual = np.full(gone.shape, np.nan), np.full(gone.shape, np.nan)
    for place in reversed(range(LAST)):
        goes_on = ends.used[:, place] & ~ends.terminated[:, place]
        jump = ends.reward[:, place] - before
        onto[gone[:, place], place] = jump[gone[:, place]]
        usual[goes_on & cut, place] = jump[goes_on & cut]
        before = np.where(goes_on & np.isfinite(ends.reward[:, place]), ends.reward[:, place], before)
    lost = ends.rows_used == 0
    alone = np.where(lost, _mean(np.where(gone, ends.reward, np.nan)), np.nan)
    for label in np.unique(ends.label).tolist():
        mine = ends.label == label
        yield (
            str(label),
            Jumps(
                _numbers(_mean(onto[mine])),
                tuple(_numbers(column) for column in usual[mine].T),
                int(lost[mine].sum()),
                _numbers(alone[mine]),
                _numbers(ends.first[mine]),
            ),
        )


def _mean(values: FloatArray) -> FloatArray:
    """Of every row its finite values; NaN where there are none."""
    known = np.isfinite(values)
    count = known.sum(axis=1)
    return np.where(count, np.where(known, values, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _numbers(values: FloatArray) -> Numbers:
    known = values[np.isfinite(values)]
    with np.errstate(over="ignore"):  # rewards whose squares are beyond all numbers are refused elsewhere
        return Numbers(len(known), float(known.sum()), float(known @ known))


def _in_memory(plans: tuple[ReadingPlan, ...]) -> Iterator[_Ends]:
    for plan in plans:
        table, _ = marked_rows(plan, 0, [*EPISODE_KEYS, "step", "reward", "terminated", UNFOLLOWED])
        if table.num_rows == 0:
            continue
        column = {name: table.column(name).combine_chunks() for name in table.column_names}
        used = ~_flags(column[UNFOLLOWED])
        codes = codes_of(column)
        late = np.iinfo(np.int64).max
        order = np.lexsort((np.asarray(column["step"].fill_null(late).to_numpy(zero_copy_only=False)), codes))
        new = np.flatnonzero(np.diff(codes[order], prepend=codes[order][0] - 1))
        n_rows = np.diff(new, append=len(order))
        used, terminated = used[order], _flags(column["terminated"])[order]
        reward = np.asarray(column["reward"].to_numpy(zero_copy_only=False), dtype=np.float64)[order]
        label = column["policy_id"].to_numpy(zero_copy_only=False).astype(str)[order][new]
        first = np.where(used[new] & ~terminated[new], reward[new], np.nan)
        there = np.arange(LAST) < n_rows[:, None]
        place = np.maximum((new + n_rows)[:, None] - 1 - np.arange(LAST), 0)
        known = [values[place] for values in (reward, used, terminated)]
        yield _Ends(label, np.add.reduceat(used.astype(np.int64), new), first, there, *_blanked(there, *known))


def _by_sql(logs: Logs) -> Iterator[_Ends]:
    """The last rows are held for all episodes of a query, and cannot be spilled: long logs take several queries."""
    keys = ", ".join(EPISODE_KEYS)
    row = "struct_pack(reward := reward, used := used, terminated := terminated)"
    parts = 1 + logs.total_rows() // ROWS
    with logs.connect() as connection:
        rows = f"({view.marked(logs.plans, logs.schema, connection)})"
        if parts > 1:
            connection.execute(f"CREATE TEMP TABLE marked AS SELECT * FROM {rows}")
            rows = "marked"
        asked = f"count(*) FILTER (used) AS n, min_by({row}, step) AS first, max_by({row}, step, {LAST}) AS rows"
        for part in range(parts):
            mine = f"{rows} WHERE hash({keys}) % {parts} = {part}" if parts > 1 else rows
            result = connection.sql(f"SELECT policy_id, {asked} FROM {mine} GROUP BY {keys} ORDER BY {keys}")
            for batch in arrow_batches(result, EPISODES):
                yield _of_batch(batch)


def _of_batch(batch: Any) -> _Ends:
    """Lists of rows, the last one first, as arrays of equal width."""
    import pyarrow.compute as pc

    lists, first = batch.column("rows"), batch.column("first")
    n_rows = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False))
    there = np.arange(LAST) < n_rows[:, None]
    reward, used, terminated = _fields(lists.flatten())
    place = np.minimum((np.cumsum(n_rows) - n_rows)[:, None] + np.arange(LAST), max(len(reward) - 1, 0))
    start, start_used, start_ended = _fields(first)
    return _Ends(
        batch.column("policy_id").to_numpy(zero_copy_only=False).astype(str),
        np.asarray(batch.column("n").to_numpy(zero_copy_only=False)),
        np.where(start_used & ~start_ended, start, np.nan),
        there,
        *_blanked(there, reward[place], used[place], terminated[place]),
    )


def _fields(rows: Any) -> tuple[FloatArray, BoolArray, BoolArray]:
    import pyarrow.compute as pc

    reward = np.asarray(pc.struct_field(rows, "reward").to_numpy(zero_copy_only=False), dtype=np.float64)
    return reward, _flags(pc.struct_field(rows, "used")), _flags(pc.struct_field(rows, "terminated"))


def _flags(column: Any) -> BoolArray:
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def _blanked(
    there: BoolArray, reward: FloatArray, used: BoolArray, terminated: BoolArray
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Nothing where an episode has no such row."""
    return np.where(there, reward, np.nan), used & there, terminated & there
