"""The first scan of logs whose states and actions can be counted, and their rows in order where that is needed.

Counts of transitions are all that most estimators look at (:mod:`mixope.statistics.transitions`). The steps of an
episode in their order, each with the number of its transition, are wanted where dependence matters: importance
weights of whole episodes, and blocks of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.arrays import FloatArray, IntArray
from mixope.engines import Engine, choose, in_order
from mixope.errors import DataError
from mixope.logs import Logs, read
from mixope.logs.validation import explain_rows
from mixope.statistics.grouping import GroupSums, Lookup
from mixope.statistics.ordered_rows import OrderedRows
from mixope.statistics.trajectories import COLUMNS, Trajectories, merge_all, trajectories_of
from mixope.statistics.transitions import Transitions, encode, transition_grouping, transition_keys

TRANSITION = "transition"
"""The column that holds the number of a row's transition."""


@dataclass(frozen=True)
class Counted:
    """Logs after the first scan."""

    logs: Logs
    engine: Engine
    groups: GroupSums
    transitions: Transitions

    @property
    def dropped(self) -> int:
        """Rows of the inputs that could not be used."""
        return max(0, self.logs.total_rows() - int(self.transitions.n_rows))

    @property
    def automatic(self) -> tuple[str, ...]:
        """The default estimator, and what is shown beside it."""
        return ("dr", "emp") if self.transitions.factors else ("emp",)


def count(logs: Any, engine: str | Engine | None = None) -> Counted:
    """The first scan: transition counts, checked and encoded."""
    logs = logs if isinstance(logs, Logs) else read(logs)
    schema = logs.schema
    if schema.observation_kind == "vector" or schema.action_kind == "continuous":
        what = "observation" if schema.observation_kind == "vector" else "action"
        raise DataError(
            f"the {what} is a vector of floats and cannot be counted",
            column=what,
            expected="integer or string ids, or factors of these",
            hint="use mixope.evaluate, which takes vectors too, or discretise it into factor columns",
        )
    chosen = choose(engine, logs)
    groups = chosen.group_sums(logs, transition_grouping(schema))
    _refuse_bad_rows(logs, groups)
    return Counted(logs, chosen, groups, encode(groups, schema))


def _refuse_bad_rows(logs: Logs, groups: GroupSums) -> None:
    """A null key, a sum that is not a number, or nothing at all: find the rows and say so."""
    table = groups.table
    if table is None or table.num_rows == 0:
        raise explain_rows(logs) or DataError(
            "no row can be used",
            where=logs.name,
            expected="rows with a next observation, or a terminated end",
            hint=f"all rows were dropped: {logs.drop_reason}",
        )
    keys = (*logs.schema.observation, *logs.schema.action)
    suspicious = any(table.column(key).null_count for key in keys)
    for name in ("reward", "inverse"):
        suspicious |= name in table.column_names and not np.all(np.isfinite(groups.column(name)))
    error = explain_rows(logs) if suspicious else None
    if error:
        raise error


def number_transitions(counted: Counted) -> Lookup:
    """Every transition's number, keyed by its raw values."""
    import pyarrow as pa

    keys = transition_keys(counted.logs.schema)
    assert counted.groups.table is not None
    table = counted.groups.table.select(list(keys))
    return Lookup(table.append_column(TRANSITION, pa.array(np.arange(table.num_rows))), keys)


def order_rows(counted: Counted) -> OrderedRows:
    """One pass over whole episodes."""

    def keep(table: Any) -> tuple[Trajectories, IntArray, FloatArray]:
        group = np.asarray(table.column(TRANSITION).to_numpy(), dtype=np.int64)
        propensity = np.asarray(table.column("propensity").to_numpy(), dtype=np.float64)
        return trajectories_of(table, np.zeros(table.num_rows)), group, propensity

    lookup = number_transitions(counted)
    pieces = counted.engine.map_fragments(counted.logs, keep, COLUMNS, lookup=lookup, by_episode=True)
    parts, groups, propensities = zip(*in_order(pieces), strict=True)
    merged = merge_all(list(parts), int(counted.transitions.n_rows))
    return OrderedRows(merged, np.concatenate(groups), np.concatenate(propensities))
