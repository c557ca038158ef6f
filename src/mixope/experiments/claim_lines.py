"""From repetitions to lines of the claims table: a number, its standard error, and what that says of the claim.

    ratio    Σ e² of one method ÷ Σ e² of another on the same logs; the standard error is that of
             ratio · (e²/MSE − e′²/MSE′), so that what the logs have in common cancels
    slope    of log10 MSE over log10 x, least squares; the standard error from those of the log10 MSE

A claim has a side: its number is to be above (or below) a border. It *holds* where the number is on that side by more
than three standard errors, *does not* on the other side, and is *not decided* in between. Exact numbers have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from mixope.arrays import FloatArray
from mixope.experiments.experiment import Cell, Row

Side = Literal["above", "below", ""]
ROUNDING = 1e-6
SURE = 3
"""Standard errors."""


def line(
    claim: str, where: Row, quantity: str, number: float, error: float | None, side: Side = "", border: float = 1.0
) -> Row:
    """One line; ``where`` holds environment, loggers, trajectories and horizon as far as they have a meaning."""
    place = {name: where.get(name) for name in ("environment", "loggers", "trajectories", "horizon")}
    says = judge(number, error, side, border)
    return {"claim": claim, **place, "quantity": quantity, "value": number, "error": error, "says": says}


def judge(number: float, error: float | None, side: Side, border: float) -> str | None:
    """What a number says of a claim about its side of a border."""
    if not side or not np.isfinite(number):
        return None
    margin = (number - border) * (1 if side == "above" else -1)
    slack = ROUNDING * border if error is None else SURE * error
    if margin > slack:
        return "holds"
    if margin < -slack:
        return "does not"
    return "not decided" if error else "the same"


def errors(rows: Iterable[Row], method: str, **fixed: Cell) -> FloatArray:
    """The errors of a method over repetitions, where other fields are as given; NaN where it refused."""
    mine = [row for row in rows if row.get("method") == method and all(row.get(k) == v for k, v in fixed.items())]
    mine.sort(key=lambda row: int(str(row["repetition"])))
    return np.array([np.nan if row["error"] is None else float(str(row["error"])) for row in mine])


def ratio(above: FloatArray, below: FloatArray) -> tuple[float, float]:
    """Σ e²/Σ e′² over the logs on which both answered, with its standard error."""
    both = np.isfinite(above) & np.isfinite(below)
    x, y = above[both] ** 2, below[both] ** 2
    if np.allclose(above[both], below[both], rtol=ROUNDING, atol=0):
        return 1.0, 0.0
    if len(x) < 2 or y.mean() == 0:
        return float("nan"), float("nan")
    found = float(x.mean() / y.mean())
    spread = x / x.mean() - y / y.mean() if x.mean() > 0 else np.zeros_like(x)
    return found, float(found * spread.std(ddof=1) / np.sqrt(len(x)))


def slope(places: Sequence[float], samples: Sequence[FloatArray]) -> tuple[float, float]:
    """d log10 MSE / d log10 x with its standard error."""
    x = np.log10(np.asarray(places, dtype=np.float64))
    squares = [sample[np.isfinite(sample)] ** 2 for sample in samples]
    y = np.log10([s.mean() for s in squares])
    noise = np.array([s.std(ddof=1) / np.sqrt(len(s)) / (s.mean() * np.log(10)) for s in squares])
    centred = x - x.mean()
    weight = centred / (centred @ centred)
    return float(weight @ y), float(np.sqrt((weight**2) @ (noise**2)))
