"""What has been measured so far: one JSON line a repetition, only ever appended to.

The key of a repetition is a hash of its record, so a line stays good as long as its settings are asked for. A line
that an interruption cut short is not JSON and is left out; the next line starts afresh after it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mixope.experiments.experiment import Cell, Repetition, Row


@dataclass(frozen=True)
class Record:
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


def read_records(folder: Path) -> dict[str, Record]:
    """All records of a folder by key, whichever experiment wrote them."""
    found: dict[str, Record] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            record = _parsed(line)
            if record is not None:
                found[record.key] = record
    return found


def _parsed(line: str) -> Record | None:
    try:
        return Record(**json.loads(line))
    except (ValueError, TypeError):
        return None


def append_record(path: Path, record: Record) -> None:
    """One line, on a line of its own even where the last one was cut short."""
    rows = [{name: _plain(value) for name, value in row.items()} for row in record.rows]
    line = json.dumps({**asdict(record), "rows": rows}, allow_nan=False)
    with path.open("a+b") as file:
        file.seek(0, 2)
        torn = file.tell() > 0 and _last_byte(path) != b"\n"
        file.write((b"\n" if torn else b"") + line.encode() + b"\n")


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1)


def _plain(value: Cell) -> Cell:
    """NaN and infinity are no JSON."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
