"""What records share: they can be printed, shown in a notebook, plotted, and written as JSON, Arrow and data frames.

Records lie below what renders them: :mod:`mixope.report` imports the records, never the other way round. So the
methods here find the report by its address when they are called, and the inspection of logs in the same way. This is
the one late binding of the package.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from numbers import Integral
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Self

from mixope.base.errors import DataError, MissingExtra, UnknownName
from mixope.base.restoring import parsed, restore

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIGITS = 12
FORMAT = 1
"""The version of the JSON of all records; a reader knows this one."""
Rows = Sequence[Mapping[str, Any]]
"""A table: one mapping from columns to values per row."""


class Flat(dict[str, Any]):
    """Fields by name, which print as lines: a name, and its value to six digits."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name.ljust(width)}  {_short(value)}" for name, value in self.items())


class Record(ABC):
    """A result: printed, shown in a notebook, plotted, written as JSON and as tables."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; numbers that do not exist are None."""

    @abstractmethod
    def tables(self) -> Mapping[str, Rows]:
        """What the record holds as tables, by name; the main one first."""

    def to_json(self, indent: int | None = 2) -> str:
        """The record as one JSON object; numbers to twelve digits, so that the same command gives the same bytes."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The record that :meth:`to_json` wrote; written again, it gives the same JSON.

        What is not written does not come back: scores by episode, from which differences between targets are made,
        and of the estimates beside an answer all but their summaries. Evaluate or compare anew for these.
        """
        return cls.from_dict(parsed(text))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The record of which :meth:`to_dict` gave these plain values."""
        _check_format(cls, record)
        found: Self = restore(cls, record, _name(cls))
        return found

    def _written(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a record as JSON knows them, under a line that says what they are."""
        found: dict[str, Any] = plain({"format": f"mixope/{_name(type(self))}/{FORMAT}", **record})
        return found

    def to_arrow(self, table: str | None = None) -> Any:
        """One of :meth:`tables` as a ``pyarrow.Table``; without a name, the main one."""
        import pyarrow as pa

        known = self.tables()
        if table is not None and table not in known:
            raise UnknownName("table", table, known)
        return pa.Table.from_pylist([dict(row) for row in known[next(iter(known)) if table is None else table]])

    def to_frame(self, table: str | None = None) -> Any:
        """The same as a data frame: of pandas where it is installed, else of polars."""
        return as_frame(self.to_arrow(table))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the record on these axes, or on a new figure of the right size, and return the axes.

        The new figure is not one of pyplot's: ``record.plot().figure`` shows it in a notebook, and ``.savefig`` saves
        it. To lay out several, draw on axes of ``plt.subplots(…, layout="constrained")``.
        """
        drawn: Axes = render("plot", self, ax)
        return drawn

    def full(self) -> str:
        """Everything that a terminal shows, where ``print`` shows the first screen: every check, table and note."""
        return str(render("full", self))

    def __str__(self) -> str:
        return str(render("text", self))

    def _repr_html_(self) -> str:
        return str(render("card", self))


class ReportedRecord(Record):
    """A record that also has a page."""

    def report(self, path: str | Path, **extras: Any) -> Path:
        """Write a self-contained HTML page; ``extras`` are those of :func:`mixope.report.write_html`."""
        written: Path = render("write_html", self, path, **extras)
        return written


def render(function: str, shown: object, *arguments: Any, **options: Any) -> Any:
    """What a function of :mod:`mixope.report` makes of something."""
    return resolve_name(f"mixope.report:{function}")(shown, *arguments, **options)


def inspected(logs: object) -> Any:
    """What :func:`mixope.inspect` finds in some logs."""
    return resolve_name("mixope.inspection:inspect")(logs)


def as_frame(table: Any) -> Any:
    """An Arrow table as a data frame: of pandas where it is installed, else of polars."""
    if find_spec("pandas") is not None:
        return table.to_pandas()
    if find_spec("polars") is not None:
        return import_module("polars").from_arrow(table)
    raise MissingExtra("pandas", "A data frame")


def _short(value: Any) -> str:
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _name(kind: type) -> str:
    return kind.__name__.lower()


def _check_format(kind: type, record: Mapping[str, Any]) -> None:
    """A record of this kind, in a version that is known."""
    said = record.get("format")
    parts = said.split("/") if isinstance(said, str) else []
    if len(parts) != 3 or parts[0] != "mixope":
        raise DataError(
            "this JSON does not say that it is a result of mixope",
            expected=f'"format": "mixope/{_name(kind)}/{FORMAT}"',
            got=f"format {said!r}",
            hint="results of an earlier version have no format: evaluate again",
        )
    if parts[1] != _name(kind):
        other = next((each.__name__ for each in _kinds(Record) if _name(each) == parts[1]), None)
        raise DataError(
            f"this JSON holds a record of kind {parts[1]!r}",
            expected=f"a record of kind {_name(kind)!r}",
            hint=f"read it with {other}.from_json" if other else None,
        )
    if parts[2] != str(FORMAT):
        raise DataError(
            f"this JSON has version {parts[2]} of the format, which is not known here",
            expected=f"version {FORMAT}",
            hint="it was written by another version of mixope: read it there, or evaluate again",
        )


def _kinds(kind: type[Any]) -> list[type[Any]]:
    """All that derive from a class."""
    return [each for one in kind.__subclasses__() for each in (one, *_kinds(one))]


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
