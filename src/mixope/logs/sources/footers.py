"""What the footers of Parquet files say of their columns: nulls, and the least and the greatest value of a row group.

DuckDB reads them. Arrow would, too, but where the statistics of a damaged footer contradict its schema, it ends the
process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mixope.logs.database import connect
from mixope.logs.sources import file_list, literal, reading

Span = tuple[Any, Any]
CHUNKS = """SELECT file_name, row_group_id, path_in_schema AS name, type = 'BOOLEAN' AS flag, stats_null_count AS nulls,
    coalesce(stats_min_value, stats_min) AS least, coalesce(stats_max_value, stats_max) AS most
    FROM parquet_metadata({files})"""


@dataclass(frozen=True)
class Footers:
    """The footers of some files; those of a column are read when they are first asked for, all at once."""

    files: tuple[str, ...]
    _spans: dict[str, dict[tuple[str, int], Span]] = field(default_factory=dict, repr=False, compare=False)

    def facts(self) -> tuple[frozenset[str], frozenset[str]]:
        """Columns without a null, and flags that are false throughout, as far as the footers tell."""
        found = self._ask(
            "SELECT name, bool_and(coalesce(nulls = 0, false)), bool_and(coalesce(flag AND most = 'false', false))"
            " FROM ({chunks}) GROUP BY name"
        )
        full = frozenset(name for name, no_null, _ in found if no_null)
        return full, frozenset(name for name, _, no_true in found if no_true)

    def bounds(self, column: str, file: str, groups: Sequence[int], *, whole: bool) -> Span | None:
        """The least and the greatest value of a column in some row groups, ``whole`` numbers or text.

        None where a footer does not say, or has counted nulls.
        """
        if column not in self._spans:
            to = "BIGINT" if whole else "VARCHAR"
            rows = self._ask(
                f"SELECT file_name, row_group_id, TRY_CAST(least AS {to}), TRY_CAST(most AS {to}) FROM ({{chunks}})"
                f" WHERE name = {literal(column)} AND nulls = 0 AND least IS NOT NULL AND most IS NOT NULL"
            )
            self._spans[column] = {(os.path.abspath(name), group): (low, high) for name, group, low, high in rows}
        spans = [self._spans[column].get((os.path.abspath(file), group)) for group in groups]
        return join([span if span and None not in span else None for span in spans])

    def _ask(self, query: str) -> list[Any]:
        with reading(self.files[0]), connect() as connection:
            chunks = CHUNKS.format(files=file_list(self.files))
            found: list[Any] = connection.execute(query.format(chunks=chunks)).fetchall()
        return found


def join(found: Sequence[Span | None]) -> Span | None:
    """The bounds of several parts together; None if those of one are not known."""
    known = [pair for pair in found if pair is not None]
    if len(known) < len(found) or not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)
