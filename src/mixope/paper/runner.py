"""Repetitions over processes: what is missing is measured, and each one is kept as soon as it is done.

What has been measured so far is one JSON line per repetition, only ever appended to. The key of a repetition is a hash
of its record, so a line stays good as long as its settings are asked for. A line that an interruption cut short is not
JSON and is left out; the next line starts afresh after it. An interruption loses at most one repetition per process.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mixope.base.errors import MixopeWarning
from mixope.base.processes import as_done
from mixope.paper.experiment import Cell, Repetition, Row


@dataclass(frozen=True)
class FinishedRepetition:
    """A repetition that is done: its key, its settings, what it measured and how long that took on one core."""

    key: str
    settings: dict[str, Cell]
    rows: list[Row]
    seconds: float

    def whole_rows(self) -> list[Row]:
        """What was measured, with the settings in front."""
        return [{**self.settings, **row} for row in self.rows]


def settings_of(repetition: Repetition) -> dict[str, Cell]:
    """The fields of a repetition."""
    return asdict(repetition)


def key_of(repetition: Repetition) -> str:
    """A hash of the kind of repetition and of all its fields."""
    return _hash([type(repetition).__qualname__, settings_of(repetition)])


def group_of(settings: dict[str, Cell]) -> str:
    """A hash of all settings but the number of the repetition: what costs the same."""
    return _hash({name: value for name, value in settings.items() if name != "repetition"})


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def read_records(folder: Path) -> dict[str, FinishedRepetition]:
    """All records of a folder by key, whichever experiment wrote them."""
    found: dict[str, FinishedRepetition] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            record = _parsed(line)
            if record is not None:
                found[record.key] = record
    return found


def _parsed(line: str) -> FinishedRepetition | None:
    try:
        return FinishedRepetition(**json.loads(line))
    except (ValueError, TypeError):
        return None


def append_record(path: Path, record: FinishedRepetition) -> None:
    """One line, on a line of its own even where the last one was cut short."""
    rows = [{name: _plain(value) for name, value in row.items()} for row in record.rows]
    line = json.dumps({**asdict(record), "rows": rows}, allow_nan=False)
    with path.open("a+b") as file:
        end = file.seek(0, 2)
        file.seek(max(end - 1, 0))
        torn = end > 0 and file.read(1) != b"\n"
        file.write((b"\n" if torn else b"") + line.encode() + b"\n")


def _plain(value: Cell) -> Cell:
    """NaN and infinity are no JSON."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Tick = Callable[[FinishedRepetition], None]


def missing(repetitions: Sequence[Repetition], folder: Path) -> list[Repetition]:
    """Those that are not in the folder yet, each once."""
    done = read_records(folder)
    return list({key: r for r in repetitions if (key := key_of(r)) not in done}.values())


def cost(repetitions: Sequence[Repetition], folder: Path) -> float:
    """Seconds on one core: as those of the same settings took that are in the folder, else as measured once."""
    took: dict[str, list[float]] = {}
    for record in read_records(folder).values():
        took.setdefault(group_of(record.settings), []).append(record.seconds)
    known = {group: sum(seconds) / len(seconds) for group, seconds in took.items()}
    return sum(known.get(group_of(settings_of(r)), r.seconds) for r in repetitions)


def run(
    repetitions: Sequence[Repetition], path: Path, *, jobs: int = 1, tick: Tick | None = None
) -> list[FinishedRepetition]:
    """Measure what is not in the folder of ``path``, append it to ``path``, and give back all, in the order asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    todo = missing(repetitions, path.parent)
    with closing(as_done(measure, todo, jobs)) as batches:
        for _, (record,) in batches:
            append_record(path, record)
            if tick is not None:
                tick(record)
    done = read_records(path.parent)
    return [done[key_of(repetition)] for repetition in repetitions]


def measure(repetition: Repetition) -> FinishedRepetition:
    """One repetition, with the seconds of processor time it took.

    Warnings are about single logs and are not repeated here; a method that broke down has no number, and is counted.
    """
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixopeWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        rows = repetition.measure()
    return FinishedRepetition(key_of(repetition), settings_of(repetition), rows, round(time.process_time() - start, 3))
