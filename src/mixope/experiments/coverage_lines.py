"""What is said of all logs of one kind: how often an interval held, and why it did not.

    coverage        share of the intervals that hold the truth, ± √(p (1 − p) / n)
    bias_over_error mean of value − truth, over the root mean square of the stated standard errors
    error_ratio     that root mean square over the standard deviation of the values: below 1, too sure
    error_variation standard deviation of the stated errors over their mean: what is known of the error itself
    error_follows   their correlation with the values: near 1, logs that lack the rare large weight lack its spread too
    warned          share of logs whose verdict is not "trustworthy"; ``missed_warned``, of those that miss

Little bias and an error ratio near 1 leave an error that is itself unknown (few clusters, heavy tails) as the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mixope.diagnostics import Verdict
from mixope.experiments.coverage_logs import BLOCKS, PAIR, REFITS, SCORES
from mixope.experiments.experiment import Cell, Row
from mixope.experiments.panels import NAMES

INTERVALS = (*SCORES, *REFITS, BLOCKS, PAIR)
CELL = ("environment", "loggers", "episodes", "horizon", "estimator")
NUMBERS = ("low", "truth", "high", "value", "error")


def summarise(settings: object, rows: Sequence[Row]) -> list[Row]:
    """One line an environment, size, estimator and interval, in an order that does not depend on the run's."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=_place):
        groups.setdefault(tuple(row[name] for name in (*CELL, "interval")), []).append(row)
    return [{**{name: mine[0][name] for name in (*CELL, "interval")}, **_line(mine)} for mine in groups.values()]


def _place(row: Row) -> tuple[object, ...]:
    return (*(row[name] for name in CELL), INTERVALS.index(str(row["interval"])), row["repetition"])


def _line(rows: Sequence[Row]) -> Row:
    made = [row for row in rows if row["low"] is not None]
    if not made:
        return {"logs": 0, "without": len(rows)}
    low, true, high, value, error = (
        np.array([math.nan if row[name] is None else row[name] for row in made], dtype=np.float64) for name in NUMBERS
    )
    n, held = len(made), (low <= true) & (true <= high)
    share, off, spread = float(held.mean()), float(np.mean(value - true)), float(np.std(value))
    stated = float(np.sqrt(np.mean(error**2)))
    return {
        "logs": n,
        "without": len(rows) - n,
        "coverage": share,
        "coverage_error": math.sqrt(max(share * (1 - share), 0.25 / n) / n),
        "width": float(np.mean(high - low)),
        "bias": off,
        "bias_over_error": off / stated if stated > 0 else math.nan,
        "error_ratio": stated / spread if spread > 0 else math.nan,
        "error_variation": float(np.std(error) / np.mean(error)) if stated > 0 else math.nan,
        "error_follows": float(np.corrcoef(value, error)[0, 1]) if spread > 0 and np.std(error) > 0 else math.nan,
        **_warnings(made, held.tolist()),
    }


def _warnings(rows: Sequence[Row], held: Sequence[bool]) -> Row:
    """What the verdict said, where there was one."""
    if rows[0]["verdict"] is None:
        return {}
    warned = [row["verdict"] != Verdict.TRUSTWORTHY.value for row in rows]
    of_missed = [said for said, good in zip(warned, held, strict=True) if not good]
    return {
        "uncovered": float(np.mean([row["uncovered"] for row in rows if row["uncovered"] is not None])),
        "warned": float(np.mean(warned)),
        "missed": len(of_missed),
        "missed_warned": float(np.mean(of_missed)) if of_missed else math.nan,
    }


def cells(rows: Sequence[Row]) -> dict[tuple[Cell, ...], dict[str, Row]]:
    """Lines by cell and interval."""
    found: dict[tuple[Cell, ...], dict[str, Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in CELL), {})[str(row["interval"])] = row
    return found


def show(rows: Sequence[Row]) -> list[Row]:
    """The table beneath the picture: a column an interval; logs / those with refits; what comes last is of t."""
    present = [kind for kind in INTERVALS if any(row["interval"] == kind for row in rows)]
    found = [_shown(dict(zip(CELL, key, strict=True)), by_kind, present) for key, by_kind in cells(rows).items()]
    return sorted(found, key=lambda row: [str(row["environment"]), str(row["loggers"]), str(row["estimator"])])


def _shown(cell: Row, by_kind: dict[str, Row], present: Sequence[str]) -> Row:
    return {
        "environment": NAMES.get(str(cell["environment"]), cell["environment"]),
        "loggers": cell["loggers"],
        "estimator": cell["estimator"],
        "episodes": cell["episodes"],
        "logs": "/".join(str(by_kind[kind]["logs"]) for kind in (SCORES[0], REFITS[0]) if kind in by_kind),
        **{kind: _share(by_kind.get(kind)) for kind in present},
        "width": _of(by_kind, "width", ".3g"),
        "bias ÷ se": _of(by_kind, "bias_over_error", "+.2f"),
        "se ÷ spread": _of(by_kind, "error_ratio", ".2f"),
        "warned": _of(by_kind, "warned", ".0%"),
    }


def _share(row: Row | None) -> str:
    """As 94.2±1.0, in one piece."""
    share, error = (None, None) if row is None else (row.get("coverage"), row.get("coverage_error"))
    if row is None or not isinstance(share, (int, float)) or not isinstance(error, (int, float)):
        return "–"
    return f"{100 * share:.1f}±{100 * error:.1f}"


def _of(by_kind: dict[str, Row], name: str, form: str) -> str:
    value = by_kind.get(SCORES[0], {}).get(name)
    return format(value, form) if isinstance(value, (int, float)) else "–"
