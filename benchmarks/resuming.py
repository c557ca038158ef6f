"""Results that are appended as they are made, so that a run that was stopped goes on where it stopped."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Results:
    """A file of benchmarks/results with these columns, one line per estimate."""

    name: str
    fields: Sequence[str]

    @property
    def path(self) -> Path:
        return Path(__file__).parent / "results" / self.name

    def read(self) -> list[dict[str, str]]:
        if not self.path.exists():
            return []
        with self.path.open() as file:
            return list(csv.DictReader(file))

    def known(self, *names: str) -> set[tuple[str, ...]]:
        """The values of some columns that are there already."""
        return {tuple(row[name] for name in names) for row in self.read()}

    def append(self, rows: Sequence[Mapping[str, object]]) -> None:
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.fields)
            if new:
                writer.writeheader()
            writer.writerows(rows)


def holds(row: Mapping[str, str]) -> bool:
    """Whether the interval of a line holds its truth."""
    return float(row["low"]) <= float(row["truth"]) <= float(row["high"])
