"""The episodes of a Minari data set, one at a time, as its two kinds of storage keep them.

hdf5             one file, a group ``episode_7`` per episode; rewards have T entries
arrow, parquet   a folder ``7/`` per episode with one file of T + 1 rows, the last of which is padding but for its
                 observation
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from mixope.base.errors import DataError
from mixope.formats.groups import Group, opened_hdf5
from mixope.logs.sources import reading
from mixope.logs.sources.arrow_sizes import refuse_larger
from mixope.logs.sources.checksums import VERIFIED
from mixope.logs.sources.gate import below
from mixope.logs.sources.marks import MINARI_MAIN
from mixope.logs.sources.spaces import Key
from mixope.logs.sources.steps import Episode

AGAIN = "copy or download the whole data set anew"
PADDED = ("actions", "rewards", "terminations", "truncations")
"""What has a row of padding in Arrow and Parquet."""


def episode_files(folder: str, storage: str, episodes: int) -> tuple[str, ...]:
    """The files of all episodes, in order; an error where one is missing."""
    if storage == "hdf5":
        return tuple(below(folder, [os.path.join(folder, MINARI_MAIN)], "data set"))
    return tuple(below(folder, (_file_of(folder, storage, number) for number in range(episodes)), "data set"))


def _file_of(folder: str, storage: str, number: int) -> str:
    inside = os.path.join(folder, str(number))
    names = os.listdir(inside) if os.path.isdir(inside) else []
    found = [name for name in names if name.endswith((".parquet", ".arrow", ".feather"))]
    if len(found) != 1:
        raise DataError(
            "An episode of the data set is not whole",
            where=inside,
            expected=f"one {storage} file",
            got=", ".join(sorted(found)) or "none",
            hint=AGAIN,
        )
    return os.path.join(inside, found[0])


def read_episodes(folder: str, storage: str, episodes: int) -> Iterator[Episode]:
    """All episodes, in order."""
    files = episode_files(folder, storage, episodes)
    if storage == "hdf5":
        yield from _hdf5(files[0], episodes)
        return
    for path in files:
        yield _Columns(path, _table(path, storage))


def _table(path: str, storage: str) -> Any:
    """The rows of an episode as one batch whose values all lie inside it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with reading(path):
        if storage == "parquet":
            with pq.ParquetFile(path, **VERIFIED) as file:
                table = file.read()
        else:
            with pa.OSFile(path) as stored:
                refuse_larger(stored, path)
                stored.seek(0)
                with pa.ipc.open_file(stored) as file:
                    table = file.read_all()
        table.validate(full=True)
        return table.combine_chunks()


class _Columns:
    """An episode of Arrow or Parquet."""

    remedy = AGAIN

    def __init__(self, where: str, table: Any) -> None:
        self.where, self.content = where, table

    def values(self, name: str, keys: Sequence[Key] = ()) -> Any:
        import pyarrow as pa

        if self.content.column_names.count(name) != 1:
            return None
        column = self.content.column(name)
        array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for key in keys:
            if not pa.types.is_struct(array.type) or array.type.get_field_index(str(key)) < 0:
                return None
            array = array.field(str(key))
        rows = len(array) - 1 if name in PADDED else len(array)
        with reading(self.where):
            array = array.slice(0, max(rows, 0))
            flat = array.flatten() if pa.types.is_fixed_size_list(array.type) else array
            return flat.to_numpy(zero_copy_only=False)


def _hdf5(path: str, episodes: int) -> Iterator[Episode]:
    with opened_hdf5(path, path, "reading a Minari data set that is stored as hdf5") as file:
        for number in range(episodes):
            name = f"episode_{number}"
            group = file.group(name)
            if group is None:
                raise DataError(
                    "An episode of the data set is not whole",
                    where=path,
                    expected=f"{episodes} episodes, as the metadata say",
                    got=f"no group {name!r}",
                    hint=AGAIN,
                )
            yield _Stored(group)


class _Stored:
    """An episode of hdf5."""

    remedy = AGAIN

    def __init__(self, group: Group) -> None:
        self.where, self.group = group.where, group

    def values(self, name: str, keys: Sequence[Key] = ()) -> Any:
        return self.group.values(name, *(f"_index_{key}" if isinstance(key, int) else key for key in keys))
