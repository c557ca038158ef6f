"""Logs to one Parquet file with the canonical names: read again, it needs no ``columns=`` and no ``ends=``.

    episode_id, step, observation…, action…, reward, next_observation…, terminated, truncated
    [, policy_id, action_prob, unit]

Rows that say nothing are left out, and what was derived is written. An episode of several sources is named after its
source as well, ``0-17``, because the same number in two of them is two episodes. The file is opened before it takes its
place: one whose columns would be taken for something else is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mixope.base.errors import DataError, UsageError
from mixope.base.files import replacing
from mixope.logs.logs import Logs
from mixope.logs.readers import open_sources
from mixope.logs.sources.endings import format_of
from mixope.logs.writing import ROW_GROUP_SIZE

SAVED_AS = {"propensity": "action_prob"}
"""Columns of the canonical rows that a file calls something else."""


def save(logs: Logs, path: str | os.PathLike[str]) -> Path:
    """Write the rows to a Parquet file; returns its path."""
    target = Path(path)
    if format_of(target.name) != "parquet":
        raise UsageError(f"save() writes Parquet: expected a name that ends in .parquet, got {target.name!r}")
    if "missing" in logs.schema.roles:
        raise UsageError(
            "Logs read with missing='keep' cannot be saved: the file would hold a mean where a value is missing. Keep"
            " the file that they were read from."
        )
    with replacing(target) as temporary:
        _write(logs, str(temporary))
        _check(logs, str(temporary))
    return target


def _columns(logs: Logs) -> tuple[str, ...]:
    """The columns to write; those that the reader makes itself, and those of which nothing is known, are not."""
    schema = logs.schema
    unknown = {
        *(() if schema.has_propensity else ("propensity",)),
        *(() if schema.has_policy_id else ("policy_id",)),
    }
    return tuple(name for name in schema.columns if name not in {"source", "start", "unfollowed", *unknown})


def _tables(logs: Logs) -> Iterator[Any]:
    import pyarrow.compute as pc

    columns, several = _columns(logs), len(logs.sources) > 1
    names = [SAVED_AS.get(name, name) for name in columns]
    for rows in logs.batches(("source", *columns) if several else columns, ROW_GROUP_SIZE):
        table = rows.select(columns).rename_columns(names)
        if several:
            keys = (rows.column(name).cast("string") for name in ("source", "episode_id"))
            named = pc.binary_join_element_wise(*keys, "-")
            table = table.set_column(names.index("episode_id"), "episode_id", named)
        yield table


def _write(logs: Logs, path: str) -> None:
    import pyarrow.parquet as pq

    tables = _tables(logs)
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as file:
        file.write_table(first)
        for table in tables:
            file.write_table(table)


def _check(logs: Logs, path: str) -> None:
    """The file is read as the same kind of rows."""
    again, schema = Logs(open_sources(path)).schema, logs.schema
    for name in ("observation", "observation_kind", "roles", "action", "action_kind"):
        if getattr(again, name) != getattr(schema, name):
            raise DataError(
                "These logs cannot be saved so that the file alone says what they are",
                expected=f"{name} {getattr(schema, name)!r}",
                got=f"{getattr(again, name)!r} when the file is read again",
                hint="keep the file that they were read from, and the roles= and columns= that were given",
            )
