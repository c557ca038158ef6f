"""Which values the categories of mixed states have: all of them, of states and of next states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mixope.logs import CODED, Schema, Value, coded, merge_values
from mixope.requests.request import Batch


@dataclass(frozen=True)
class Values:
    """For every category, in order, the value behind each code."""

    names: tuple[str, ...]
    found: tuple[Mapping[float, Value], ...]

    def merge(self, other: Values) -> Values:
        """Of both."""
        parts = zip(self.names, self.found, other.found, strict=True)
        return Values(self.names, tuple(merge_values(mine, theirs, name) for name, mine, theirs in parts))


@dataclass(frozen=True)
class CategoryValues:
    """The request for them."""

    whole_episodes = False
    sees_unfollowed = True

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """The categories of states and of next states."""
        return tuple(each for name in _categories(schema) for each in (name, f"next_{name}"))

    def of(self, batch: Batch) -> Values:
        """Those of some rows."""
        names = _categories(batch.schema)
        found = []
        for name in names:
            columns = (batch.table.column(each) for each in (name, f"next_{name}"))
            each = {value for column in columns for value in column.unique().to_pylist() if value is not None}
            found.append(coded(sorted(each), name))
        return Values(names, tuple(found))


def _categories(schema: Schema) -> tuple[str, ...]:
    """Those of mixed states; what is counted needs no codes."""
    if schema.observation_kind != "mixed":
        return ()
    return tuple(name for name, role in zip(schema.observation, schema.roles, strict=True) if role in CODED)
