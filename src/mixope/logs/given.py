"""What can be read as logs, as a type: for editors and type checkers, and for whoever wraps :func:`mixope.read`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from mixope.logs.logs import Logs


class Frame(Protocol):
    """A data frame, eager or lazy, or a relation: of pandas, polars, Spark, Dask, Ray, DuckDB."""

    @property
    def columns(self) -> Any:
        """Their names; Ray's is a method."""
        ...


class Tabular(Protocol):
    """A table, a reader of batches or a data set: of Arrow, or of a table format."""

    @property
    def schema(self) -> Any:
        """Names and types of the columns."""
        ...


class Steps(Protocol):
    """An episode, as Minari and d3rlpy have them, or a buffer of steps."""

    @property
    def observations(self) -> Any:
        """One per step, or one more."""
        ...

    @property
    def actions(self) -> Any:
        """One per step."""
        ...

    @property
    def rewards(self) -> Any:
        """One per step."""
        ...


Path: TypeAlias = str | os.PathLike[str]
Episode: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | Steps
LogSource: TypeAlias = (
    Logs | Sequence[Logs] | Path | Sequence[Path] | Mapping[str, Any] | Sequence[Episode] | Steps | Frame | Tabular
)
"""Logs, a path (or glob, folder, address, ``"label=path"``), several, arrays by name, sources by label, episodes, rows
as dicts, or a table."""
