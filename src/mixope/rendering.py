"""What records share: they can be printed, shown in a notebook, saved as a page and written as JSON.

Records lie below what renders them: :mod:`mixope.report` imports the records, never the other way round. So the
methods here find the report by its address when they are called. This is the one late binding of the package.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

DIGITS = 12


class Record(ABC):
    """A result that can be printed and written as JSON."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; numbers that do not exist are None."""

    def to_json(self, indent: int | None = 2) -> str:
        """The record as one JSON object; numbers to twelve digits, so that the same command gives the same bytes."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __str__(self) -> str:
        return str(_render("text", self))


class ReportedRecord(Record):
    """A record that also has a page."""

    def report(self, path: str | Path, **extras: Any) -> Path:
        """Write a self-contained HTML page; ``extras`` are those of :func:`mixope.report.write_html`."""
        written: Path = _render("write_html", self, path, **extras)
        return written

    def _repr_html_(self) -> str:
        return str(_render("html_fragment", self))


def _render(function: str, record: Record, *arguments: Any, **options: Any) -> Any:
    return resolve_name(f"mixope.report:{function}")(record, *arguments, **options)


def plain(value: Any) -> Any:
    """Values as JSON knows them: numbers to twelve digits, None for those that are not finite; tuples as lists."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    number = float(value)
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None
