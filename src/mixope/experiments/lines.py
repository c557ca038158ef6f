"""Rows as a CSV file and back: full precision, one form for every number, the same bytes for the same rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from mixope.experiments.experiment import Cell, Row

DIGITS = 7
"""Significant digits of a number in a summary."""


def write_lines(rows: Sequence[Row], path: Path) -> None:
    """A header with the names of all rows, in the order in which they first appear; then a line a row."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _written(value) for name, value in row.items()} for row in rows)


def read_lines(path: Path) -> list[Row]:
    """The rows of such a file: whole numbers, numbers, words; nothing is None."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _parsed(text) for name, text in line.items()} for line in csv.DictReader(file)]


def _written(value: Cell) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def _parsed(text: str) -> Cell:
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
