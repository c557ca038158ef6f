"""HDF5 files of other tools: which tool wrote one is told from the names in it.

    D4RL     observations, actions, rewards, terminals …         :mod:`mixope.formats.d4rl`
    d3rlpy   episodes by number, or the arrays of an MDPDataset  :mod:`mixope.formats.d3rlpy`
    Minari   a group per episode: read with its folder           :mod:`mixope.formats.minari`

Everything else is refused, with the names that were found. Rows are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from mixope.base.errors import DataError
from mixope.formats.d3rlpy import read_buffer, read_mdp
from mixope.formats.d4rl import read_d4rl
from mixope.formats.groups import Group, NotedArrays, opened_hdf5
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, outside
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.formats import Format
from mixope.logs.sources.spaces import CONVERT
from mixope.logs.sources.stores import Store, here

SHOWN = 12
"""How many of the names in a file an error repeats."""


def open_hdf5(paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None) -> Iterator[Piece]:
    """A table of all steps per file; episodes are numbered on from file to file."""
    before = 0
    for path in paths:
        place = here(path, store)
        with opened_hdf5(place, path, "reading an hdf5 file") as file:
            rows = _reader_of(file)(file)
        episodes = rows.arrays["episode_id"] + before
        table = table_of_arrays({**rows.arrays, "episode_id": episodes}, path)
        before = int(episodes[-1]) + 1
        missing = outside(constants, table.column_names)
        yield ArrowTable(table, (path,), missing, hash_file(place), notes=rows.notes)


def _reader_of(file: Group) -> Callable[[Group], NotedArrays]:
    """The function that reads the file, by the names that its tool gives to arrays."""
    names = set(file.names)
    if {"columns", "num_episodes"} <= names:
        return read_buffer
    if {"observations", "actions"} <= names and names & {"episode_terminals", "discrete_action"}:
        return read_mdp
    if {"observations", "actions", "rewards"} <= names:
        return read_d4rl
    raise _unknown(file, names)


def _unknown(file: Group, names: set[str]) -> DataError:
    shown = sorted(names)
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    minari = "episode_0" in names
    return DataError(
        "The hdf5 file is the storage of a Minari data set" if minari else "The hdf5 file is of an unknown kind",
        where=file.where,
        expected="arrays observations, actions, rewards and terminals, as D4RL names them, or a dump of d3rlpy",
        got=", ".join(shown[:SHOWN]) + more if shown else "nothing in it",
        hint="give its data set as a whole: the folder around it, with metadata.json" if minari else CONVERT,
    )


FORMAT = Format("hdf5", (".h5", ".hdf5"), open_hdf5)
