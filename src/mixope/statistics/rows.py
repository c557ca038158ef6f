"""A batch of canonical rows as arrays: what every pass over vectors works on."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.logs import EPISODE_KEYS

if TYPE_CHECKING:
    import pyarrow as pa

    from mixope.logs import Schema


@dataclass(frozen=True)
class Rows:
    """n rows. Observations and actions as policies see them; ``propensity`` is NaN where none was recorded.

    ``episode`` is a hash of the episode's key, the same in every batch: rows of one episode share it. ``draw`` is a
    hash of its id alone, by which episodes are dealt into folds whatever their logger is called.
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

    def __len__(self) -> int:
        return len(self.reward)

    def take(self, index: IntArray | BoolArray) -> Rows:
        """Some of the rows."""
        chosen: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value[index] for name in self.__dataclass_fields__
        }
        return Rows(**chosen)


def row_columns(schema: Schema) -> tuple[str, ...]:
    """The canonical columns that make a :class:`Rows`."""
    names = (*schema.observation, *schema.action, *schema.next_observation)
    return (*EPISODE_KEYS, *names, "reward", "terminated", "start", "propensity")


def as_rows(table: pa.Table, schema: Schema) -> Rows:
    """From a piece of the canonical table; next observations of ended episodes are filled with the last ones."""
    observation = _stack(table, schema.observation, schema.observation_kind)
    ended = _column(table, "terminated").astype(np.bool_)
    following = _stack(table, schema.next_observation, schema.observation_kind, fill=observation, missing=ended)
    return Rows(
        observation=observation,
        action=_stack(table, schema.action, "vector" if schema.action_kind == "continuous" else "id"),
        reward=_column(table, "reward").astype(np.float64),
        next_observation=following,
        terminated=ended,
        start=_column(table, "start").astype(np.bool_),
        propensity=_column(table, "propensity").astype(np.float64),
        logger=_column(table, "policy_id").astype(str),
        episode=_episode_hash(table, EPISODE_KEYS),
        draw=_episode_hash(table, ("episode_id",)),
    )


def _episode_hash(table: pa.Table, keys: Sequence[str]) -> IntArray:
    """A number below 2³² for every row's episode, from the values of its key alone."""
    result = np.zeros(table.num_rows, dtype=np.int64)
    for key in keys:
        values, inverse = np.unique(_column(table, key).astype(str), return_inverse=True)
        codes = np.array([zlib.crc32(value.encode()) for value in values.tolist()], dtype=np.int64)
        result = (result * 1_000_003 + codes[inverse]) % (1 << 32)
    return result


def _column(table: pa.Table, name: str) -> AnyArray:
    return np.asarray(table.column(name).to_numpy())


def _stack(
    table: pa.Table, names: Sequence[str], kind: str, fill: AnyArray | None = None, missing: BoolArray | None = None
) -> AnyArray:
    """Columns side by side: floats for vectors, integers (or objects) for factors, one column for ids."""
    columns = [_column(table, name) for name in names]
    if fill is not None and missing is not None and missing.any():
        parts = fill.reshape(len(fill), -1)
        columns = [np.where(missing, parts[:, k], column) for k, column in enumerate(columns)]
    if kind == "id":
        return _integers(columns[0]) if fill is not None else columns[0]
    if kind == "vector":
        return np.stack([column.astype(np.float64) for column in columns], axis=1)
    columns = [_integers(column) for column in columns]
    whole = all(column.dtype.kind in "iu" for column in columns)
    return np.stack([column if whole else column.astype(object) for column in columns], axis=1)


def _integers(column: AnyArray) -> AnyArray:
    """Integers that came as floats or objects because of nulls are integers again."""
    if column.dtype.kind == "f":
        return column.astype(np.int64)
    if column.dtype.kind == "O" and all(isinstance(value, (int, np.integer)) for value in column[:1]):
        return column.astype(np.int64)
    return column
