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
from mixope.logs.sources import Piece, outside, reading
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.episodes import AGAIN, MAIN, episode_files, read_episodes
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.gate import Gate, record_text
from mixope.logs.sources.steps import Spaces, columns_of
from mixope.logs.sources.stores import Store

SCHEME = "minari:"
RECORD = "metadata.json"
STORAGES = ("hdf5", "arrow", "parquet")


def is_minari(folder: str) -> bool:
    """Whether a folder is the ``data`` folder of a data set, also of one that is not whole."""
    if os.path.isfile(os.path.join(folder, MAIN)) or os.path.isfile(os.path.join(folder, "0", RECORD)):
        return True
    text = record_text(os.path.join(folder, RECORD))
    return all(f'"{key}"' in text for key in ("total_steps", "total_episodes", "observation_space"))


def whole_minari(path: str) -> str | None:
    """The ``data`` folder where a path is this folder, the one around it, or the hdf5 file in it."""
    around = os.path.dirname(path) if os.path.basename(path) == MAIN and os.path.isfile(path) else path
    return next((each for each in (around, os.path.join(around, "data")) if is_minari(each)), None)


def resolve_minari(text: str) -> str:
    """The folder behind ``minari:ID`` or ``minari:/path``."""
    name = os.path.expanduser(text.removeprefix(SCHEME))
    if os.path.isabs(name) or os.path.exists(name):
        return _known(name, text)
    kept = os.environ.get("MINARI_DATASETS_PATH") or os.path.join(os.path.expanduser("~"), ".minari", "datasets")
    return _known(os.path.join(kept, name), text)


def _known(path: str, text: str) -> str:
    if whole_minari(path) is None:
        raise DataError(
            "There is no such Minari data set here",
            where=path,
            got=text,
            hint=f"download it: minari download {text.removeprefix(SCHEME)}; or set MINARI_DATASETS_PATH to the folder"
            " that holds it",
        )
    return path


def find_minari(folder: str) -> Finds:
    """The data set as one source, with its logger and the roles that its spaces give to columns."""
    record = Record.of(folder)
    files = (os.path.join(folder, RECORD), *episode_files(folder, record.storage, record.episodes))
    found = Found(folder, format="minari", parts=files)
    return Finds((found,), _notes(record), record.algorithm, record.spaces.roles, alone=True)


@dataclass(frozen=True)
class Record:
    """What ``metadata.json`` says."""

    folder: str
    storage: str
    episodes: int
    steps: int
    spaces: Spaces
    algorithm: str | None

    @classmethod
    def of(cls, folder: str) -> Record:
        """The record of a data set."""
        where = os.path.join(folder, RECORD)
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
    where = os.path.join(folder, RECORD)
    if not os.path.isfile(where):
        raise DataError(
            "The Minari data set has no metadata.json, or was written by Minari before 0.5",
            where=where,
            hint="download it anew with minari 0.5 or later",
        )
    try:
        with reading(where):
            said = json.loads(Gate(folder, None, "data set").read(RECORD))
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


def _notes(record: Record) -> tuple[str, ...]:
    if not record.spaces.joined:
        return ()
    return (f"{record.folder}: an action has several classes; together they are one id, with commas between: '0,2'",)


def open_minari(
    paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None
) -> Iterator[Piece]:
    """A table of all steps per data set."""
    for folder in paths:
        record = Record.of(folder)
        table = table_of_arrays(_arrays(record), folder)
        yield ArrowTable(table, (folder,), outside(constants, table.column_names))


def some_episodes(folder: str, numbers: Container[int]) -> tuple[Any, Finds]:
    """A table of some episodes of a data set, and what the record says of them."""
    return table_of_arrays(_arrays(Record.of(folder), numbers), folder), find_minari(folder)


def _arrays(record: Record, numbers: Container[int] | None = None) -> dict[str, Any]:
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
            where=os.path.join(record.folder, RECORD),
            expected=f"total_steps: {record.steps}",
            got=f"{steps} steps in {record.episodes} episodes",
            hint=AGAIN,
        )
    return {name: np.concatenate(arrays) for name, arrays in found.items()}
