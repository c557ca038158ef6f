"""LeRobot data sets, versions 2 and 3: Parquet files below ``data/``, and a record of them in ``meta/info.json``.

    observation.state, observation.…   the state, as lists of numbers; pictures and videos are left out, and named
    action                             a list of numbers
    next.reward                        what the step earned; without it there is nothing to evaluate
    next.done                          ambiguous, as in every log: an end, or the end of the recording
    episode_index, frame_index         the episode, and the step in it

Read file by file, the folder would also give its record (``meta/episodes``). The rows are counted, and another number
than ``total_frames`` is an error.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from mixope.base.errors import Advice, DataError, Setting
from mixope.formats.hugging import record_of
from mixope.logs.names import meaning_of
from mixope.logs.sources import Piece
from mixope.logs.sources.formats import Dialect, Format
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.gate import below
from mixope.logs.sources.marks import LEROBOT_RECORD, is_lerobot
from mixope.logs.sources.parquet import open_parquet
from mixope.logs.sources.stores import Store

VERSIONS = ("v2", "v3")
STATE, REWARD, TASK = "observation.", "next.reward", "task_index"


def find_lerobot(folder: str, store: Store | None = None, part: Any = None) -> Finds:
    """The files with the rows, as one source, and the videos that are not read."""
    where = os.path.join(folder, LEROBOT_RECORD)
    said = record_of(folder, LEROBOT_RECORD)
    version = said.get("codebase_version")
    if not str(version).startswith(VERSIONS):
        raise DataError(
            "The data set is of another version of LeRobot",
            where=where,
            expected="v2.0, v2.1 or v3.0",
            got=repr(version),
            hint="convert it with the scripts of lerobot",
        )
    data = os.path.join(folder, "data")
    listed = sorted(os.path.join(at, name) for at, _, names in os.walk(data) for name in names if _holds_rows(name))
    files = list(below(folder, listed, "data set"))
    if not files:
        raise DataError("The data set has no files with rows", where=data, expected="chunk-000/….parquet")
    found = Found(folder, format="lerobot", parts=(where, *files))
    return Finds((found,), _videos(folder, said.get("features")), alone=True)


def _holds_rows(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith((".", "_"))


def _videos(folder: str, features: Any) -> tuple[str, ...]:
    kinds = features.items() if isinstance(features, dict) else ()
    videos = [str(name) for name, said in kinds if isinstance(said, dict) and said.get("dtype") == "video"]
    return (f"{folder}: videos are not part of the state: {', '.join(videos)}",) if videos else ()


def open_lerobot(
    paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None
) -> Iterator[Piece]:
    """The rows of a data set, as many as its record says."""
    for folder in paths:
        found = find_lerobot(folder).files[0]
        pieces = list(open_parquet(found.parts[1:], constants, store))
        rows, said = sum(sum(piece.counts()) for piece in pieces), record_of(folder, LEROBOT_RECORD).get("total_frames")
        if rows != said:
            raise DataError(
                "The data set has another number of rows than its record says",
                where=found.parts[0],
                expected=f"total_frames: {said}",
                got=f"{rows} rows in {len(found.parts) - 1} files",
                hint="copy or download the whole data set anew",
            )
        yield from pieces


def dialect(name: str, pieces: Sequence[Piece], said: Container[str]) -> Dialect:
    """The columns of the state, and notes; an error where there are none, or where no column is the reward."""
    kinds = {column: field.kind for piece in pieces for column, field in piece.fields.items()}
    if "reward" not in said and not any(meaning_of(column) == "reward" for column in kinds):
        raise DataError(
            "The data set has no rewards",
            where=name,
            expected=f"a column {REWARD!r} with what each step earned",
            got=", ".join(kinds),
            hint=Advice("add it, or say which column it is: ", Setting("columns", {"reward": ...})),
        )
    state = tuple(column for column, kind in kinds.items() if column.startswith(STATE) and kind != "other")
    pictures = [column for column, kind in kinds.items() if column.startswith(STATE) and kind == "other"]
    if not state and "observation" not in said:
        raise DataError(
            "The state has nothing but pictures",
            where=name,
            expected="a column observation.state with a few numbers",
            got=", ".join(pictures) or "no column observation.…",
        )
    notes = [f"{name}: pictures are not part of the state: {', '.join(pictures)}"] if pictures else []
    tasks = [bounds for piece in pieces if TASK in piece.fields and (bounds := piece.bounds(TASK)) is not None]
    if len({task for bounds in tasks for task in bounds}) > 1 and "observation" not in said:
        add = Setting("columns", {"observation": [*state, TASK]})
        notes.append(Advice(f"{name}: there are several tasks, which are not part of the state; to add them: ", add))
    return Dialect({"observation": state}, notes=tuple(notes))


FORMAT = Format(
    "lerobot",
    open=open_lerobot,
    marks=is_lerobot,
    find=find_lerobot,
    title="a LeRobot data set",
    dialect=dialect,
)
