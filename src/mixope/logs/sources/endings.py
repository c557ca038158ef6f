"""What the name of a file says: its format by its ending, and columns by the folders on the way (``policy_id=old/``).

No file of a folder is passed over in silence: one that looks like a log of an ending that is not read
(``b.parquet.gz``) is an error, other files are counted in a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mixope.base import plugins
from mixope.base.errors import DataError
from mixope.logs.sources.formats import others

FORMATS: dict[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz"),
    "tsv": (".tsv", ".tsv.gz"),
    "jsonl": (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"),
    "dsjson": (".dsjson", ".dsjson.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npz": (".npz",),
    "hdf5": (".h5", ".hdf5"),
}
"""Our formats of files → the endings of file names."""

plugins.reserve("formats", FORMATS.keys() - plugins.WINGS["formats"].keys())
LINES = (".json", ".json.gz")
"""Endings of files that may be JSON lines: read as such if they are named one by one, or as RLlib names its own."""
_RLLIB = re.compile(r"output-.*_worker-\d+_\d+\.json")

SHOWN = 3
"""How many of the files that are not read a note names."""


def formats() -> dict[str, tuple[str, ...]]:
    """Format → endings, with those of other packages; an ending of ours stays ours."""
    taken = {ending for ends in FORMATS.values() for ending in ends}
    added = {each.name: tuple(e for e in each.endings if e not in taken) for each in others() if each.open is not None}
    return {**FORMATS, **added}


def format_of(path: str) -> str | None:
    """The format that a file's name says."""
    lower = path.lower()
    known = next((name for name, ends in formats().items() if lower.endswith(ends)), None)
    return "jsonl" if known is None and _RLLIB.fullmatch(_last(path)) else known


def ending_of(path: str) -> str:
    """The known ending of a file's name, the longest that fits; nothing where there is none."""
    known = (ending for ends in formats().values() for ending in ends if path.lower().endswith(ending))
    return max(known, key=len, default="")


def endings() -> str:
    """All known endings, for messages."""
    return ", ".join(ending for ends in formats().values() for ending in ends)


def sort_out(found: Iterable[str]) -> tuple[list[str], list[str]]:
    """The logs among the files of a folder, and the other files; an error where one of these may be a log."""
    names = sorted(found)
    logs = [name for name in names if format_of(name)]
    others = [name for name in names if not format_of(name)]
    strange = next((name for name in others if _looks_like_a_log(name)), None)
    if strange is not None:
        raise DataError(
            "A file of the folder looks like a log and cannot be read as one",
            where=strange,
            expected=f"a name ending in {endings()}",
            hint="unpack or rename it, or move it out of the folder",
        )
    return logs, others


def no_logs(folder: str) -> DataError:
    """The error for a folder without logs."""
    return DataError("The folder holds no logs", where=folder, expected=f"files ending in {endings()}")


def left_out(folder: str, others: Sequence[str]) -> str:
    """A note on the files of a folder, named from there, that are not read."""
    shown = ", ".join(others[:SHOWN])
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    are = (
        "1 file is not read: its ending is"
        if len(others) == 1
        else f"{len(others)} files are not read: their endings are"
    )
    return f"{folder}: {are} none of those of logs ({shown}{more})"


def constants_of(folders: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The columns that folders hold in their names."""
    pairs = (folder.partition("=") for folder in folders if "=" in folder)
    return tuple((key, value) for key, _, value in pairs if key and value)


def _looks_like_a_log(path: str) -> bool:
    """Whether a known ending stands in the middle of the name: ``b.parquet.gz``, ``b.csv.part``."""
    name = _last(path).lower()
    return any(f"{ending}." in name for ends in formats().values() for ending in ends)


def _last(path: str) -> str:
    """The name of a file without its folders."""
    return path.replace("\\", "/").rpartition("/")[2]
