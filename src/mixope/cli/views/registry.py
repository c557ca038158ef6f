"""The registry of estimators on a terminal."""

from __future__ import annotations

from collections.abc import Container, Mapping

from rich.table import Table

from mixope.cli.views import parts
from mixope.estimators import Entry


def registry_view(registry: Mapping[str, Entry], vectors: Container[str]) -> Table:
    """One estimator a line; ``vectors`` are those that take vector states and actions."""
    table = parts.table("name", "family", "vectors", "needs", "when to use it", folded=("needs", "when to use it"))
    for name, entry in registry.items():
        table.add_row(name, entry.family, "yes" if name in vectors else "no", entry.needs or "–", entry.when)
    return table
