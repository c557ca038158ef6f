"""Columns of floats, one pass: mean, spread, extremes, rows that lie exactly on them, values that are no numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mixope.arrays import FloatArray
from mixope.engines import Engine
from mixope.engines.protocol import in_order
from mixope.errors import MixopeError
from mixope.inspection.records import Component, Vectors
from mixope.logs import Logs
from mixope.statistics.grouping import Aggregate, Grouping


def measure_vectors(logs: Logs, engine: Engine, *, sound: bool) -> Vectors | None:
    """One pass over the columns of floats; where rows are bad it shows what can be shown, or nothing."""
    states = logs.schema.observation if logs.schema.observation_kind == "vector" else ()
    moves = logs.schema.action if logs.schema.action_kind == "continuous" else ()
    names = (*states, *moves)

    def measure(fragment: Any) -> list[_Measured]:
        return [_measured(np.asarray(fragment.column(name).to_numpy(), dtype=np.float64)) for name in names]

    try:
        total = [_NOTHING] * len(names)
        for part in in_order(engine.map_fragments(logs, measure, names)):
            total = [_merged(a, b) for a, b in zip(total, part, strict=True)]
        listed = () if moves else _action_rows(logs, engine)
    except MixopeError:
        if sound:
            raise
        return None
    found = tuple(_component(name, measured) for name, measured in zip(names, total, strict=True))
    return Vectors(total[0].rows, found[: len(states)], found[len(states) :], listed)


class _Measured(NamedTuple):
    """Some values of a column: rows, the finite ones, their mean and squared deviations, extremes and rows on them."""

    rows: int
    finite: int
    mean: float
    squares: float
    lowest: float
    at_lowest: int
    highest: float
    at_highest: int


_NOTHING = _Measured(0, 0, 0.0, 0.0, math.inf, 0, -math.inf, 0)


def _measured(values: FloatArray) -> _Measured:
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return _NOTHING._replace(rows=len(values))
    mean, low, high = float(finite.mean()), float(finite.min()), float(finite.max())
    squares = float(((finite - mean) ** 2).sum())
    ends = int((finite == low).sum()), int((finite == high).sum())
    return _Measured(len(values), len(finite), mean, squares, low, ends[0], high, ends[1])


def _merged(a: _Measured, b: _Measured) -> _Measured:
    """Both together; the squares of deviations are moved to the common mean."""
    finite = a.finite + b.finite
    if finite == 0:
        return a._replace(rows=a.rows + b.rows)
    step = b.mean - a.mean
    low, high = min(a.lowest, b.lowest), max(a.highest, b.highest)
    return _Measured(
        rows=a.rows + b.rows,
        finite=finite,
        mean=a.mean + step * b.finite / finite,
        squares=a.squares + b.squares + step * step * a.finite * b.finite / finite,
        lowest=low,
        at_lowest=sum(x.at_lowest for x in (a, b) if x.lowest == low),
        highest=high,
        at_highest=sum(x.at_highest for x in (a, b) if x.highest == high),
    )


def _component(name: str, found: _Measured) -> Component:
    known = found.finite > 0
    return Component(
        name=name,
        mean=found.mean if known else math.nan,
        sd=math.sqrt(found.squares / found.finite) if known else math.nan,
        lowest=found.lowest if known else math.nan,
        highest=found.highest if known else math.nan,
        at_lowest=found.at_lowest,
        at_highest=found.at_highest,
        not_finite=found.rows - found.finite,
    )


def _action_rows(logs: Logs, engine: Engine) -> tuple[tuple[int | str, int], ...]:
    sums = engine.group_sums(logs, Grouping(logs.schema.action, (Aggregate("rows", "count"),)))
    assert sums.table is not None
    actions = np.asarray(sums.table.column(logs.schema.action[0]).to_numpy())
    rows = sums.column("rows").astype(np.int64)
    order = np.argsort(actions, kind="stable")
    return tuple(zip(actions[order].tolist(), rows[order].tolist(), strict=True))
