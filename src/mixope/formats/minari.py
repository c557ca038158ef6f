"""Minari data sets, read without minari or gymnasium: one row per step, each with the observation that came next.

An episode of T steps has T + 1 observations, so that every step has both and no last row is lost. What an episode knows
of its steps besides (``infos``) begins with the answer of reset and belongs to the step before: entry t + 1 is that of
step t. Of it, ``action_prob``, ``action_logp`` and ``policy_id`` are read. ``prob`` is nobody's, as in every log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.base.errors import DataError
from mixope.formats.episodes import AGAIN, episode_files, read_episodes
from mixope.logs.sources import Piece, outside, reading
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.formats import BufferTable, Format
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.gate import Gate
from mixope.logs.sources.marks import MINARI_RECORD, is_minari
from mixope.logs.sources.steps import Spaces, columns_of
from mixope.logs.sources.stores import Store

STORAGES = ("hdf5", "arrow", "parquet")


def find_minari(folder: str, store: Store | None = None, part: Any = None) -> Finds:
    """The data set as one source, with its logger and the roles that its spaces give to columns."""
    record = MinariMetadata.of(folder)
    files = (os.path.join(folder, MINARI_RECORD), *episode_files(folder, record.storage, record.episodes))
    found = Found(folder, format="minari", parts=files)
    return Finds((found,), _notes(record), record.algorithm, record.spaces.roles, alone=True)


@dataclass(frozen=True)
class MinariMetadata:
    """What ``metadata.json`` says."""

    folder: str
    storage: str
    episodes: int
    steps: int
    spaces: Spaces
    algorithm: str | None

    @classmethod
    def of(cls, folder: str) -> MinariMetadata:
        """The record of a data set."""
        where = os.path.join(folder, MINARI_RECORD)
        said = _metadata(folder)
        storage = said.get("data_format", "hdf5")
        if storage not in STORAGES:
            raise DataError("Unknown storage", where=where, expected=", ".join(STORAGES), got=repr(storage))
        algorithm = said.get("algorithm_name")
        return cls(
            folder,
            storage,
            _count(said, "total_episodes", where),
            _count(said, "total_steps", where),
            Spaces.of(said.get("observation_space"), said.get("action_space"), where),
            algorithm if isinstance(algorithm, str) and algorithm.strip() else None,
        )


def _metadata(folder: str) -> Mapping[str, Any]:
    where = os.path.join(folder, MINARI_RECORD)
    if not os.path.isfile(where):
        raise DataError(
            "The Minari data set has no metadata.json, or was written by Minari before 0.5",
            where=where,
            hint="download it anew with minari 0.5 or later",
        )
    try:
        with reading(where):
            said = json.loads(Gate(folder, None, "data set").read(MINARI_RECORD))
    except (ValueError, RecursionError) as error:
        raise DataError(f"The metadata are not JSON: {error}", where=where, hint=AGAIN) from error
    if not isinstance(said, dict):
        raise DataError("The metadata are no JSON object", where=where, hint=AGAIN)
    return said


def _count(said: Mapping[str, Any], name: str, where: str) -> int:
    found = said.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or found <= 0:
        raise DataError("The data set has no steps", where=where, expected=f"{name} above 0", got=repr(found))
    return found


def _notes(record: MinariMetadata) -> tuple[str, ...]:
    if not record.spaces.joined:
        return ()
    return (f"{record.folder}: an action has several classes; together they are one id, with commas between: '0,2'",)


def open_minari(
    paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None
) -> Iterator[Piece]:
    """A table of all steps per data set."""
    for folder in paths:
        record = MinariMetadata.of(folder)
        table = table_of_arrays(_arrays(record), folder)
        yield ArrowTable(table, (folder,), outside(constants, table.column_names))


def hold(dataset: Any) -> BufferTable:
    """A data set that is open in this process, read from its files: as a whole, or the episodes that were chosen."""
    folder = str(dataset.storage.data_path)
    chosen = {int(number) for number in dataset.episode_indices}
    found = find_minari(folder)
    table = table_of_arrays(_arrays(MinariMetadata.of(folder), chosen), folder)
    return BufferTable(folder, table, found.notes, found.roles, found.label)


def _arrays(record: MinariMetadata, numbers: Container[int] | None = None) -> dict[str, Any]:
    """The columns of all or some episodes, held against the number of steps in the record."""
    found: dict[str, list[Any]] = {}
    steps = 0
    for number, episode in enumerate(read_episodes(record.folder, record.storage, record.episodes)):
        columns = columns_of(record.spaces, episode, number)
        steps += len(columns["reward"])
        if numbers is not None and number not in numbers:
            continue
        for name in found.keys() ^ columns.keys() if found else ():
            raise DataError("Some episodes have a column that others lack", where=episode.where, column=name)
        for name, array in columns.items():
            found.setdefault(name, []).append(array)
    if steps != record.steps:
        raise DataError(
            "The data set has another number of steps than its metadata say",
            where=os.path.join(record.folder, MINARI_RECORD),
            expected=f"total_steps: {record.steps}",
            got=f"{steps} steps in {record.episodes} episodes",
            hint=AGAIN,
        )
    return {name: np.concatenate(arrays) for name, arrays in found.items()}


FORMAT = Format("minari", open=open_minari, marks=is_minari, find=find_minari, title="a Minari data set", hold=hold)
