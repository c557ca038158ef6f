"""The registry of estimators on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from mixope.cli.views import parts
from mixope.estimators import Entry


def registry_view(registry: Mapping[str, Entry]) -> Table:
    """One estimator a line."""
    table = parts.table("name", "family", "needs", "when to use it", folded=("needs", "when to use it"))
    for name, entry in registry.items():
        table.add_row(name, entry.family, entry.needs or "–", entry.when)
    return table
