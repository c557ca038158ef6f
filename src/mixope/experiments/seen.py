"""What was seen in the test itself: the plain difference between arms, over all periods and by period since entry.

A unit has several rows, which are not independent: the ratio of sums Σy/Σn of each arm has its error from sums by unit.

    z_u = (y_uB − m_B n_uB)/N_B − (y_uA − m_A n_uA)/N_A,        se² = U/(U − 1) Σ_u z_u²
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.experiments.panel import Panel
from mixope.logs.sources import literal, quote
from mixope.uncertainty import Difference


def naive(panel: Panel, metric: str, treatment: str, control: str, level: float) -> Difference:
    """The difference of the means per unit and period, as assigned or exposed."""
    value = quote(f"metric {metric}")
    by_unit = (
        "SELECT "
        + ", ".join(
            f"{what} FILTER (action = {literal(arm)}) AS {name}_{side}"
            for side, arm in (("b", treatment), ("a", control))
            for what, name in ((f"fsum({value})", "y"), ("count(*)", "n"))
        )
        + " FROM {rows} GROUP BY unit"
    )
    names = ("y_b", "n_b", "y_a", "n_a")
    filled = ", ".join(f"coalesce({name}, 0) AS {name}" for name in names)
    squares = ", ".join(f"fsum({i} * {j})" for k, i in enumerate(names) for j in names[k:])
    sums = ", ".join(f"fsum({name})" for name in names)
    with panel.open() as (connection, rows):
        inner = f"SELECT {filled} FROM ({by_unit.format(rows=rows)})"
        ((units, *found),) = connection.execute(
            f"SELECT count(*) FILTER (n_a + n_b > 0), {sums}, {squares} FROM ({inner})"
        ).fetchall()
    y_b, n_b, y_a, n_a = found[:4]
    cross = np.zeros((4, 4))
    cross[np.triu_indices(4)] = found[4:]
    cross = np.triu(cross) + np.triu(cross, 1).T
    mean_b, mean_a = y_b / n_b, y_a / n_a
    weight = np.array([1 / n_b, -mean_b / n_b, -1 / n_a, mean_a / n_a])
    error = float(np.sqrt(max(weight @ cross @ weight, 0.0) * units / max(units - 1, 1)))
    return Difference.of(mean_b - mean_a, error, max(units - 1, 1), level, "sums by unit, t")


@dataclass(frozen=True)
class SeenDays:
    """By period since entry: the difference, its standard error, and the units behind it."""

    difference: FloatArray
    error: FloatArray
    units: FloatArray


def by_day(panel: Panel, metric: str, treatment: str, control: str) -> SeenDays:
    """Each unit has at most one row in a period, so that a plain variance will do."""
    value = quote(f"metric {metric}")
    longest = panel.facts.longest
    with panel.open() as (connection, rows):
        found = connection.execute(
            f"SELECT step, action, count(*), favg({value}), coalesce(var_samp({value}), 0) FROM {rows} "
            f"WHERE action IN ({literal(treatment)}, {literal(control)}) GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    n, mean, spread = (np.full((longest, 2), np.nan) for _ in range(3))
    for step, action, rows_, average, variance in found:
        side = 0 if action == treatment else 1
        n[step, side], mean[step, side], spread[step, side] = rows_, average, variance
    with np.errstate(invalid="ignore"):
        error = np.sqrt((spread / n).sum(axis=1))
    return SeenDays(mean[:, 0] - mean[:, 1], error, np.nansum(n, axis=1))
