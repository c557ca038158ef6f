"""When does estimating the behaviour help? Logger softness × size of the log → MSE of BCH and of ``dr`` ÷ that of EMP.

How much is measured is decided here; what, in :mod:`~mixope.paper.phase_logs`; how it is drawn, in
:mod:`~mixope.paper.phase_pictures`. A line of the summary is a method in a cell:

    ratio     Σ e² of the method ÷ Σ e² of EMP on the same logs
    error     standard error of log(ratio): sd(e²/MSE − e′²/MSE′)/√R
    says      of the method against EMP: better or worse where log(ratio) is beyond SURE errors, else not decided

Lines without ``episodes`` are the limit of endless logs, exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.paper.experiment import Exhibit, Repetition, Row, Size, number
from mixope.paper.phase_logs import EMP, METHODS, PhaseLimit, PhaseLog
from mixope.paper.phase_pictures import BETTER, SAME, UNDECIDED, WORSE, draw_phases, show_phases

SURE = 2.0
ROUNDING = 1e-6
HORIZON = 100
LOGGERS = (1, 4)


@dataclass(frozen=True)
class PhaseSettings:
    """All worlds (with their repetitions) × loggers × softness × episodes."""

    worlds: tuple[tuple[str, int], ...]
    softness: tuple[float, ...]
    episodes: tuple[int, ...]
    loggers: tuple[int, ...] = LOGGERS
    horizon: int = HORIZON


SIZES: dict[Size, PhaseSettings] = {
    "smoke": PhaseSettings((("singlepath", 4), ("garnet", 4)), (0.1, 1.0), (12, 48)),
    "quick": PhaseSettings(
        (("singlepath", 5), ("gridworld-slip", 5), ("garnet", 5), ("taxi", 2)), (0.03, 0.3, 1.0), (12, 96)
    ),
    "full": PhaseSettings(
        (("singlepath", 50), ("gridworld-slip", 50), ("garnet", 50), ("taxi", 20)),
        (0.01, 0.03, 0.1, 0.3, 1.0),
        (12, 24, 48, 96, 192, 384),
    ),
}


def plan(settings: PhaseSettings, seed: int) -> list[Repetition]:
    """Limits first, then logs by number of the repetition, so that a run cut short has some of everything."""
    kinds = [
        (name, n, softness, repetitions)
        for name, repetitions in settings.worlds
        for n in settings.loggers
        for softness in settings.softness
    ]
    limits = [PhaseLimit(name, n, softness, settings.horizon) for name, n, softness, _ in kinds]
    logs = [
        PhaseLog(name, n, softness, m, settings.horizon, seed, k)
        for k in range(max(repetitions for _, repetitions in settings.worlds))
        for name, n, softness, repetitions in kinds
        for m in settings.episodes
        if k < repetitions
    ]
    return [*limits, *logs]


def summarise(settings: PhaseSettings, rows: Sequence[Row]) -> list[Row]:
    """By world, loggers, softness: the limit, then every size with a line per method."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["environment"], row["loggers"], row["softness"], row.get("episodes")), []).append(row)
    found: list[Row] = []
    for (name, n, softness, episodes), mine in sorted(cells.items(), key=lambda cell: _place(settings, cell[0])):
        place: Row = {"environment": name, "loggers": n, "softness": softness, "episodes": episodes}
        found += _limit(place, mine) if episodes is None else _lines(place, mine)
    return found


def _place(settings: PhaseSettings, cell: tuple[Any, ...]) -> tuple[float, ...]:
    name, n, softness, episodes = cell
    return [world for world, _ in settings.worlds].index(name), n, softness, number(episodes, math.inf)


def _limit(place: Row, rows: Sequence[Row]) -> list[Row]:
    return [
        {
            **place,
            "favourite": row["favourite"],
            "method": row["method"],
            "ratio": row["limit"],
            "says": says(number(row["limit"]), 0.0),
        }
        for row in rows
    ]


def _lines(place: Row, rows: Sequence[Row]) -> list[Row]:
    errors = {method: _errors(rows, method) for method in METHODS}
    missed = float(np.mean([number(row["uncovered"]) for row in rows]))
    return [{**place, "uncovered": missed, **_line(method, errors)} for method in METHODS]


def _errors(rows: Sequence[Row], method: str) -> FloatArray:
    mine = sorted((row for row in rows if row["method"] == method), key=lambda row: number(row["repetition"]))
    return np.array([number(row["error"]) for row in mine])


def _line(method: str, errors: Mapping[str, FloatArray]) -> Row:
    mine = errors[method][np.isfinite(errors[method])]
    found, spread = log_ratio(errors[method], errors[EMP])
    return {
        "method": method,
        "repetitions": len(mine),
        "refused": len(errors[method]) - len(mine),
        "bias": float(mine.mean()) if len(mine) else None,
        "mse": float(np.mean(mine**2)) if len(mine) else None,
        "ratio": math.exp(found),
        "error": spread,
        "says": None if method == EMP else says(math.exp(found), spread),
    }


def log_ratio(above: FloatArray, below: FloatArray) -> tuple[float, float]:
    """log(Σ e²/Σ e′²) over the logs on which both answered, with its standard error; NaN where there is none."""
    both = np.isfinite(above) & np.isfinite(below)
    x, y = above[both] ** 2, below[both] ** 2
    if np.allclose(above[both], below[both], rtol=ROUNDING, atol=0):
        return 0.0, 0.0
    if len(x) < 2 or not x.any() or not y.any():
        return math.nan, math.nan
    spread = x / x.mean() - y / y.mean()
    return float(np.log(x.mean() / y.mean())), float(spread.std(ddof=1) / np.sqrt(len(x)))


def says(ratio: float, error: float) -> str | None:
    """Which of the two methods has the smaller error, as far as noise lets tell."""
    if not math.isfinite(ratio):
        return None
    if abs(math.log(ratio)) < ROUNDING:
        return SAME
    if abs(math.log(ratio)) <= SURE * error:
        return UNDECIDED
    return BETTER if ratio < 1 else WORSE


EXPERIMENT = Exhibit(
    name="phases",
    title="When does estimating the behaviour help?",
    caption="Each cell is a mean squared error over that of EMP on the same logs, by how softly the loggers act (1 is "
    "the paper's logger; .01 takes its favourite action in 99 of 100 steps) and by episodes of 100 steps. Blue, above "
    "1: EMP, which estimates the behaviour, is better. Orange, below 1: BCH, which is told it, or dr, which fills in "
    "what was never logged, is better. Hatched: not told apart by two standard errors. ∞ is the exact limit. The lines "
    "are the share of the target's mass that was never logged.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw_phases,
    show=show_phases,
)
