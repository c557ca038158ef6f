"""Batches as RLlib's JSON writer keeps them: one ``SampleBatch`` per line, a list per column.

    {"type": "SampleBatch", "eps_id": [7, 7], "t": [0, 1], "obs": [[0.1, 0.2], [0.3, 0.1]], "actions": [0, 1], …}

By default RLlib packs observations (LZ4, then base64, around a pickle). These are not unpacked, because a pickle can
run anything: the error says how to write them plainly. The same holds for the Parquet files of later versions, which
are otherwise plain tables (:func:`dialect`). Rows are held in memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.database import connect
from mixope.logs.names import meaning_of
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, outside, quote, reading
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.formats import Dialect, Format
from mixope.logs.sources.lines import objects_of
from mixope.logs.sources.marks import BATCHES, RLLIB_EPISODES, RLLIB_STEPS
from mixope.logs.sources.stores import Store, here

PACKED = "BCJNG"
"""How base64 of an LZ4 frame begins."""
PLAINLY = "write it plainly: config.offline_data(output_write_episodes=False, output_compress_columns=[])"


def open_batches(
    paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None
) -> Iterator[Piece]:
    """A table of all steps per file."""
    for path in paths:
        place = here(path, store)
        table = table_of_batches(objects_of(place, path), path)
        yield ArrowTable(table, (path,), outside(constants, table.column_names), hash_file(place))


def table_of_batches(lines: Iterable[tuple[int, Mapping[str, Any]]], path: str) -> Any:
    """The steps of all batches, which come with the numbers of their lines."""
    columns: dict[str, list[Any]] = {}
    for number, line in lines:
        batch = _columns(_single(line, number, path), number, path)
        missing = {name for name in columns.keys() ^ batch.keys() if columns and meaning_of(name)}
        if missing:
            raise _wrong("Some batches have a column that others lack", path, number, column=min(missing))
        for name in columns.keys() - batch.keys():
            del columns[name]
        for name in columns or batch:
            columns.setdefault(name, []).extend(batch[name])
    return table_of_arrays(columns, path)


def _single(line: Mapping[str, Any], number: int, path: str) -> Mapping[str, Any]:
    """The batch of a line; of several policies only if there is one."""
    if line.get("type") == BATCHES[0]:
        return line
    policies = line.get("policy_batches")
    if line.get("type") == BATCHES[1] and isinstance(policies, dict) and len(policies) == 1:
        batch = next(iter(policies.values()))
        if isinstance(batch, dict):
            return batch
    if line.get("type") == BATCHES[1] and isinstance(policies, dict):
        raise _wrong(
            "A batch holds several policies, which act on one another",
            path,
            number,
            expected="the steps of one policy",
            got=", ".join(map(str, policies)),
            hint="write the steps of each policy to a file of its own",
        )
    raise _wrong("A line is no batch of RLlib", path, number, got=f"type {line.get('type')!r}")


def _columns(batch: Mapping[str, Any], number: int, path: str) -> dict[str, list[Any]]:
    """The lists of a batch: those that mean something, and others with one value per step."""
    rewards = batch.get("rewards")
    if not isinstance(rewards, list):
        raise _wrong("A batch has no list of rewards", path, number, column="rewards")
    found: dict[str, list[Any]] = {}
    for name, values in batch.items():
        if isinstance(values, str) and meaning_of(name) is not None and name != "policy_id":
            raise packed(path, name)
        whole = isinstance(values, list) and len(values) == len(rewards)
        if meaning_of(name) is not None and isinstance(values, list) and not whole:
            got = f"{len(values)} values, and {len(rewards)} rewards"
            raise _wrong("The lists of a batch have different lengths", path, number, column=name, got=got)
        if whole and (meaning_of(name) is not None or not any(isinstance(v, dict | list) for v in values)):
            found[name] = values
    return found


def packed(where: str, column: str | None) -> DataError:
    """The error for what only RLlib can unpack."""
    return DataError(
        "RLlib packed the rows as pickles, which are not opened: a pickle can run anything",
        where=where,
        column=column,
        expected="numbers, or lists of them",
        hint=PLAINLY,
    )


def dialect(name: str, pieces: Sequence[Piece], said: Container[str]) -> Dialect:
    """Plain names; an error if a table was written by RLlib and holds packed episodes or observations."""
    for piece in pieces:
        if tuple(piece.fields) == RLLIB_EPISODES and piece.fields["item"].words in ("binary", "large_binary"):
            raise packed(piece.files[0], "item")
        texts = [n for n in ("obs", "new_obs", "actions") if n in piece.fields and piece.fields[n].kind == "string"]
        for column in texts if piece.fields.keys() >= RLLIB_STEPS else ():
            with reading(piece.files[0]), connect() as connection:
                first = f"SELECT {quote(column)} FROM {piece.relation(connection)} LIMIT 1"
                found = connection.execute(f"SELECT * FROM ({first}) AS t(x) WHERE starts_with(x, '{PACKED}')")
                if found.fetchall():
                    raise packed(piece.files[0], column)
    return Dialect()


def _wrong(problem: str, path: str, number: int, **facts: Any) -> DataError:
    return DataError(problem, where=f"{path}, line {number}", **facts)


FORMAT = Format("rllib", open=open_batches, dialect=dialect)
