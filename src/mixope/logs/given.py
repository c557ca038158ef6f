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


Path: TypeAlias = str | os.PathLike[str]
LogSource: TypeAlias = Logs | Path | Sequence[Path] | Mapping[str, Any] | Frame | Tabular
"""Logs, a path (or glob, folder, address, ``"label=path"``), several, arrays by name, sources by label, or a table."""
