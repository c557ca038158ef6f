"""A batch of canonical rows, or of groups of equal rows, as arrays: what passes and behaviours work on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray, number_tuples, runs
from mixope.base.errors import UsageError
from mixope.logs import CODED, EPISODE_KEYS, UNFOLLOWED, UNIT, codes_of

if TYPE_CHECKING:
    import pyarrow as pa

    from mixope.logs import Role, Schema


T = TypeVar("T")
TIMES = "times"
"""A column that a re-weighted log has besides the canonical ones: how often each row happened."""
FOLDS = 4
"""Episodes are dealt into so many folds for cross-fitting."""


@dataclass(frozen=True)
class Rows:
    """n rows, or n groups of equal ones: **a group is a row that happened n times**.

    Observations and actions are as policies see them; ``propensity`` is NaN where none was recorded. ``episode`` is a
    hash of the episode's key, the same in every batch: rows of one episode share it. ``draw`` is a hash of its id
    alone, by which episodes are dealt into folds whatever their logger is called; of its unit, where there are such.

    A batch of groups (:meth:`~mixope.requests.transitions.Transitions.as_rows`) says in ``count`` how often each row
    happened, so that what is written Σ c … over rows is Σ c n … over groups. What varies inside a group is kept as sums
    over its rows: ``rewards`` Σ r, ``starts`` (first rows of episodes) and, of recorded propensities b, ``inverse``
    Σ 1/b, ``inverse_reward`` Σ r/b and ``inverse_squared`` Σ 1/b²; ``reward`` is the mean reward, ``propensity`` the
    harmonic mean. ``state``, ``next_state`` (−1 after an end), ``action_code`` and ``pair`` number distinct values, the
    same in all batches of one log, so that nobody needs to number them again.

    ``roles`` says what the columns of an observation are, where they are not all of one kind.
    """

    observation: AnyArray
    action: AnyArray
    reward: FloatArray
    next_observation: AnyArray
    terminated: BoolArray
    start: BoolArray
    propensity: FloatArray
    logger: AnyArray
    episode: IntArray | None = None
    draw: IntArray | None = None
    count: FloatArray | None = None
    rewards: FloatArray | None = None
    starts: FloatArray | None = None
    inverse: FloatArray | None = None
    inverse_reward: FloatArray | None = None
    inverse_squared: FloatArray | None = None
    state: IntArray | None = None
    next_state: IntArray | None = None
    action_code: IntArray | None = None
    pair: IntArray | None = None
    roles: tuple[Role, ...] | None = None
    _made: dict[Hashable, tuple[Any, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def times(self) -> FloatArray:
        """How often each row happened: its count, or 1."""
        return np.ones(len(self)) if self.count is None else self.count

    @property
    def earned(self) -> FloatArray:
        """What the rows behind each entry earned together."""
        return self.times * self.reward if self.rewards is None else self.rewards

    @property
    def begun(self) -> FloatArray:
        """How many of the rows behind each entry are the first of their episode."""
        return self.start * self.times if self.starts is None else self.starts

    def __len__(self) -> int:
        return len(self.reward)

    def once(self, what: Hashable, source: object, make: Callable[[], T]) -> T:
        """``make()``, or what it gave before for the same ``what`` and the very same ``source`` object."""
        key = (what, id(source))
        if key not in self._made:
            self._made[key] = (source, make())
        found: T = self._made[key][1]
        return found

    def take(self, index: IntArray | BoolArray) -> Rows:
        """Some of the rows."""
        chosen: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value[index] for name in _arrays_of(Rows)
        }
        return Rows(**chosen, roles=self.roles)

    @classmethod
    def concatenate(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of all parts in order; what some part lacks is left out."""
        columns = {name: [getattr(part, name) for part in parts] for name in _arrays_of(cls)}
        joined: dict[str, Any] = {
            name: None if any(v is None for v in of) else np.concatenate(of) for name, of in columns.items()
        }
        return cls(**joined, roles=parts[0].roles)


def _arrays_of(rows: type[Rows]) -> list[str]:
    """The fields with one entry per row."""
    return [each.name for each in fields(rows) if each.init and each.name != "roles"]


def stands_still(rows: Rows, least: float = 1.0) -> BoolArray:
    """Rows that lead exactly where they begin, at least so many from one place, from where no other row leads away.

    None of them where all rows do, or where not all of them earn the same.
    """
    here, there = rows.observation.reshape(len(rows), -1), rows.next_observation.reshape(len(rows), -1)
    same = here == there
    if here.dtype.kind == "f":
        same |= np.isnan(here) & np.isnan(there)
    still = np.asarray(same.all(axis=1) & ~rows.terminated, dtype=np.bool_)
    if not still.any() or still.all():
        return np.zeros(len(rows), dtype=np.bool_)
    place, _ = number_tuples(list(np.nan_to_num(here, nan=np.inf).T if here.dtype.kind == "f" else here.T))
    still &= ~np.isin(place, place[~still]) & (np.bincount(place)[place] >= least)
    reward = rows.reward[still]
    alike = len(reward) > 0 and bool(np.all(reward == reward[0]))
    return still if alike else np.zeros(len(rows), dtype=np.bool_)


def row_columns(schema: Schema) -> tuple[str, ...]:
    """The canonical columns that make a :class:`Rows`."""
    names = (*schema.observation, *schema.action, *schema.next_observation)
    return (*EPISODE_KEYS, *names, "reward", "terminated", "start", "propensity", UNFOLLOWED, *schema.unit)


def as_rows(table: pa.Table, schema: Schema) -> Rows:
    """From a piece of the canonical table; next observations of ended episodes are filled with the last ones.

    So are those that nobody knows: who takes such rows must not look at what came next.
    """
    ended, kind = _column(table, "terminated").astype(np.bool_), schema.observation_kind
    nothing = ended | unfollowed_of(table)
    roles = schema.roles if kind == "mixed" else None
    observation = _stack(table, schema.observation, kind, roles)
    following = _stack(table, schema.next_observation, kind, roles, fill=observation, missing=nothing)
    return Rows(
        observation=observation,
        action=_stack(table, schema.action, "vector" if schema.action_kind == "continuous" else "id"),
        reward=_column(table, "reward").astype(np.float64),
        next_observation=following,
        terminated=ended,
        start=_column(table, "start").astype(np.bool_),
        propensity=_column(table, "propensity").astype(np.float64),
        logger=_text(_column(table, "policy_id")),
        episode=episode_hash(table, EPISODE_KEYS),
        draw=drawn(table),
        count=_column(table, TIMES).astype(np.float64) if TIMES in table.column_names else None,
        roles=roles,
    )


def unfollowed_of(table: pa.Table) -> BoolArray:
    """Which rows of a piece of the canonical table are those after which nobody knows what came."""
    return _column(table, UNFOLLOWED).astype(np.bool_)


def episode_hash(table: pa.Table, keys: Sequence[str]) -> IntArray:
    """A number below 2³² for every row's episode, from the values of its key alone."""
    result = np.zeros(table.num_rows, dtype=np.int64)
    for key in keys:
        heads, run = runs(_column(table, key))
        values, inverse = np.unique(heads.astype(str), return_inverse=True)
        codes = np.array([zlib.crc32(value.encode()) for value in values.tolist()], dtype=np.int64)
        result = (result * 1_000_003 + codes[inverse][run]) % (1 << 32)
    return result


def drawn(table: pa.Table) -> IntArray:
    """A number for every row by which it is dealt into folds: of its unit, or else of its episode's id alone."""
    if UNIT not in table.column_names:
        return episode_hash(table, ("episode_id",))
    unit = table.column(UNIT)
    found = episode_hash(table, (UNIT,))
    if unit.null_count == 0:
        return found
    return np.where(unit.is_null().to_numpy(), episode_hash(table, ("episode_id",)), found)


def required(episodes: IntArray | None) -> IntArray:
    """Which episodes rows belong to, where they say so."""
    if episodes is None:
        raise UsageError("these rows do not say which episode they belong to")
    return episodes


def fold_of(draw: IntArray, folds: int) -> IntArray:
    """The fold of every row's episode, from the hash of its id."""
    return np.asarray((draw // 7) % folds)


def _text(column: AnyArray) -> AnyArray:
    heads, run = runs(column)
    return heads.astype(str)[run]


def _column(table: pa.Table, name: str) -> AnyArray:
    return np.asarray(table.column(name).to_numpy())


def _stack(
    table: pa.Table,
    names: Sequence[str],
    kind: str,
    roles: Sequence[Role] | None = None,
    fill: AnyArray | None = None,
    missing: BoolArray | None = None,
) -> AnyArray:
    """Columns side by side: floats for vectors, integers (or objects) for factors, one column for ids.

    Where columns have ``roles``, all are floats: numbers as they are, categories by their codes.
    """
    coded = [role in CODED for role in roles or ()] or [False] * len(names)
    columns = [codes_of(table.column(n)) if code else _column(table, n) for n, code in zip(names, coded, strict=True)]
    if fill is not None and missing is not None and missing.any():
        parts = fill.reshape(len(fill), -1)
        columns = [np.where(missing, parts[:, k], column) for k, column in enumerate(columns)]
    if kind == "id":
        return _integers(columns[0]) if fill is not None else columns[0]
    if kind in {"vector", "mixed"}:
        return np.stack([column.astype(np.float64) for column in columns], axis=1)
    columns = [_integers(column) for column in columns]
    whole = all(column.dtype.kind in "iu" for column in columns)
    return np.stack([column if whole else column.astype(object) for column in columns], axis=1)


def _integers(column: AnyArray) -> AnyArray:
    """Integers that came as floats or objects because of nulls are integers again."""
    if column.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # rows without a value are refused once they are seen
            return column.astype(np.int64)
    if column.dtype.kind == "O" and all(isinstance(value, (int, np.integer)) for value in column[:1]):
        return column.astype(np.int64)
    return column
