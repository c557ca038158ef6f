"""``Logs``: some inputs seen as one table of canonical rows, lazily and without changing them.

Two ways in, for everything above: ``view`` (SQL, larger than memory) and ``table`` (Arrow, in memory). They give the
same rows by independent code.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

from mixope.errors import DataError, UnknownName
from mixope.logs import derive, sql
from mixope.logs.arrays import table_of_arrays
from mixope.logs.draft import Plan
from mixope.logs.failures import reading
from mixope.logs.fingerprint import describe
from mixope.logs.pieces import ArrowTable
from mixope.logs.plan import make_plans
from mixope.logs.schema import Schema
from mixope.logs.sources import Source, unique


@final
class Logs:
    """Canonical rows of one or more sources. Made by ``read`` or ``Logs.from_arrays``; never changes.

    ``schema`` says what the rows hold and which column of the file each notion came from; ``notes`` what was assumed.
    """

    sources: tuple[Source, ...]
    plans: tuple[Plan, ...]
    schema: Schema
    notes: tuple[str, ...]

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise DataError("No logs were given", expected="at least one file or table")
        plans, schema, notes = make_plans(sources)
        self.__dict__.update(sources=tuple(sources), plans=plans, schema=schema, notes=notes)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Logs never change; read them again to set {name!r}")

    @classmethod
    def from_arrays(
        cls,
        *,
        observation: Any,
        action: Any,
        reward: Any,
        next_observation: Any = None,
        episode_id: Any = None,
        step: Any = None,
        terminated: Any = None,
        truncated: Any = None,
        policy_id: Any = None,
        action_prob: Any = None,
        action_logp: Any = None,
    ) -> Logs:
        """Logs from arrays with one entry a row.

        ``observation``: (n,) ids; an (n, k) integer array or a dict of columns: factors; (n, k) floats: a vector.
        ``action``: (n,) ids or floats, or an (n, k) float array. What is None is derived as for files, see ``notes``.
        """
        given = {
            "observation": observation,
            "action": action,
            "reward": reward,
            "next_observation": next_observation,
            "episode_id": episode_id,
            "step": step,
            "terminated": terminated,
            "truncated": truncated,
            "policy_id": policy_id,
            "action_prob": action_prob,
            "action_logp": action_logp,
        }
        return cls([Source("arrays", (ArrowTable(table_of_arrays(given), ("arrays",)),))])

    @property
    def in_memory(self) -> bool:
        """Whether all rows are held in memory already."""
        return all(source.in_memory for source in self.sources)

    @cached_property
    def step_base(self) -> int:
        """The smallest step of the whole log: episodes that begin there have a known start."""
        if self.in_memory:
            return self._base_in_memory()
        import duckdb

        with duckdb.connect() as connection:
            return self._base(connection)

    def view(self, connection: Any) -> str:
        """Create a temporary view of the canonical rows on a DuckDB connection; returns its name."""
        name = unique("rows")
        base = self._base(connection)
        with reading(self.name):
            connection.execute(f"CREATE TEMP VIEW {name} AS {sql.rows(self.plans, self.schema, connection, base)}")
        return name

    def table(self, columns: Sequence[str] | None = None) -> Any:
        """The canonical rows, or some of their columns, as a ``pyarrow.Table``."""
        wanted = list(self.schema.columns if columns is None else columns)
        for name in wanted:
            if name not in self.schema.columns:
                raise UnknownName("canonical column", name, self.schema.columns)
        with reading(self.name):
            return derive.table(self.plans, self.schema, self.step_base if "start" in wanted else 0, wanted)

    @property
    def name(self) -> str:
        """The sources in a few words, for messages."""
        first, *rest = (source.name for source in self.sources)
        return f"{first} and {len(rest)} more" if rest else first

    def total_rows(self, connection: Any = None) -> int:
        """Rows before any is dropped; from metadata where the format has it."""
        del connection
        return self._total

    @cached_property
    def _total(self) -> int:
        return sum(sum(source.counts()) for source in self.sources)

    @property
    def drop_reason(self) -> str:
        """Why a row of the inputs may be missing from the canonical rows."""
        derived = ["next_observation" in plan.derived for plan in self.plans]
        last = "the last row of an episode that did not terminate has no next observation"
        null = "next_observation is null on a row that is not terminated"
        return f"{last}, or {null}" if any(derived) and not all(derived) else (last if all(derived) else null)

    def inputs(self) -> list[dict[str, Any]]:
        """One record per file or table: path, rows, sha256. For provenance."""
        return [record for source in self.sources for record in describe(source)]

    def fingerprint(self) -> str:
        """A short hash of the content and of how it is read: equal logs, equal fingerprint."""
        parts = [(os.path.basename(r["path"]), r["sha256"]) for r in self.inputs()]
        said = [(s.label, sorted(s.columns.items()), s.done) for s in self.sources]
        return hashlib.sha256(repr((parts, said)).encode()).hexdigest()[:16]

    def _base_in_memory(self) -> int:
        """The same without a connection."""
        import pyarrow.compute as pc

        least = pc.min(self.table(["step"]).column("step")).as_py()
        counted = any("step" in plan.derived for plan in self.plans)
        return min(least or 0, 0) if counted else int(least or 0)

    def _base(self, connection: Any) -> int:
        if "step_base" in self.__dict__:
            return self.step_base
        query = sql.steps(self.plans, connection)
        if not query:
            return 0
        with reading(self.name):
            found = connection.execute(f"SELECT min(step) FROM ({query})").fetchall()[0][0]
        base = 0 if found is None else int(found)
        counted = any("step" in plan.derived for plan in self.plans)
        self.__dict__["step_base"] = min(base, 0) if counted else base
        return int(self.__dict__["step_base"])

    def __repr__(self) -> str:
        schema = self.schema
        return f"Logs({self.name}: observation {schema.observation_kind}, action {schema.action_kind})"
