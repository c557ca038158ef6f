"""The whole inspection: its JSON and its plain text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mixope.errors import DataError
from mixope.inspection.records import Columns, Component, Contents, Coverage, Remark, Space, Vectors, Words


@dataclass(frozen=True)
class Inspection:
    """What logs hold; ``contents`` is None where the rows cannot be used (then ``error`` says why)."""

    name: str
    engine: str
    total_rows: int
    observation_kind: str
    observation: tuple[str, ...]
    action_kind: str
    has_propensity: bool
    columns: tuple[Columns, ...]
    drop_reason: str
    contents: Contents | None
    space: Space | None
    coverage: Coverage | None
    notes: tuple[str, ...]
    remarks: tuple[Remark, ...]
    checked: bool
    error: DataError | None = None
    vectors: Vectors | None = None

    @property
    def dropped(self) -> int:
        """Rows of the inputs that could not be used."""
        return self.total_rows - self.contents.rows if self.contents else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        record = {key: value for key, value in asdict(self).items() if key != "error"}
        record["dropped_rows"] = self.dropped
        record["drop_reason"] = self.drop_reason if self.dropped else None
        record["usable"] = self.error is None
        found: dict[str, Any] = plain(record)
        return found

    def to_json(self, indent: int | None = 2) -> str:
        """The record as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __str__(self) -> str:
        return "\n".join(lines(self))


def lines(found: Inspection) -> list[str]:
    """The inspection as plain text, one fact a line."""
    shown = [f"{found.name}: {found.total_rows:,} rows"]
    for group in found.columns:
        shown += [f"  {notion} <- {words(column)}" for notion, column in group.mapping.items()]
    if found.dropped:
        shown.append(f"  {found.dropped:,} rows dropped: {found.drop_reason}")
    if found.contents:
        inside, lengths = found.contents, found.contents.lengths
        shown.append(
            f"  {inside.episodes:,} episodes of {lengths.shortest} to {lengths.longest} rows "
            f"(median {lengths.median:g}), {inside.terminated:,} terminated, {inside.truncated:,} truncated"
        )
        shown += [
            f"  logger {j.label}: {j.rows:,} rows, {j.episodes:,} episodes, {j.logged_mean:.6g} a step"
            for j in inside.loggers
        ]
    if found.space:
        shown.append(
            f"  {found.space.states:,} states, {len(found.space.actions):,} actions, {found.space.pairs:,} pairs"
        )
    if found.vectors:
        shown += [f"  {component_words(c)}" for c in (*found.vectors.observations, *found.vectors.actions)]
        shown += [f"  action {action}: {rows:,} rows" for action, rows in found.vectors.action_rows]
    if found.coverage:
        shown.append(
            f"  target: {found.coverage.covered_rows:.2%} of the rows in states where all its actions were logged,"
            f" {found.coverage.uncovered_mass:.2%} of its mass uncovered"
        )
    shown += [f"  note {note}" for note in found.notes]
    return shown + [f"  {remark.status} {remark.sentence}" for remark in found.remarks]


def component_words(found: Component) -> str:
    """A column of floats in one line."""
    bad = f", {found.not_finite:,} not finite" if found.not_finite else ""
    span = f"{found.lowest:.6g} to {found.highest:.6g}"
    return f"{found.name}: mean {found.mean:.6g}, sd {found.sd:.6g}, {span}{bad}"


def words(column: Words) -> str:
    """A column, or the columns of the factors."""
    return column if isinstance(column, str) else ", ".join(column)


def plain(value: Any) -> Any:
    """Finite numbers to twelve digits, so that engines that add in another order print the same."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else None
    return value
