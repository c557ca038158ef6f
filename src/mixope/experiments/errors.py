"""Repetitions summed up: the mean squared error of every method at every point, on the paper's scale.

    log10 MSE,    standard error by the delta method:  sd(e²) / √R / (MSE ln 10)

with e = value − truth over R repetitions. Points belong to a sweep: over trajectories at the fixed horizon, or over
horizons at the fixed number of trajectories; the point where they cross belongs to both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mixope.experiments.evaluated import Evaluated
from mixope.experiments.experiment import Row
from mixope.experiments.methods import Form
from mixope.experiments.worlds import PENDULUM, TRAINED

TRAJECTORIES, HORIZON = "trajectories", "horizon"
FORMS: tuple[Form, ...] = ("general", "paper")


@dataclass(frozen=True)
class Sweep:
    """One environment: the fixed point, what is swept, and how many repetitions each form gets."""

    environment: str
    trajectories: tuple[int, ...]
    horizons: tuple[int, ...]
    fixed_trajectories: int
    fixed_horizon: int
    repetitions: int
    paper_repetitions: int
    bumps: int = 0

    def points(self) -> list[tuple[int, int]]:
        """All (trajectories, horizon), each once."""
        over = [(m, self.fixed_horizon) for m in self.trajectories]
        return list(dict.fromkeys([*over, *((self.fixed_trajectories, h) for h in self.horizons)]))

    def sweeps_of(self, episodes: int, horizon: int) -> Iterator[tuple[str, int]]:
        """The sweeps a point belongs to, with its place there."""
        if horizon == self.fixed_horizon and episodes in self.trajectories:
            yield TRAJECTORIES, episodes
        if episodes == self.fixed_trajectories and horizon in self.horizons:
            yield HORIZON, horizon


@dataclass(frozen=True)
class Settings:
    """Of an error figure."""

    loggers: int
    sweeps: tuple[Sweep, ...]


def plan(settings: Settings, seed: int) -> list[Evaluated]:
    """All repetitions, by number, so that a run cut short has some of everything."""
    most = max(max(sweep.repetitions, sweep.paper_repetitions) for sweep in settings.sweeps)
    return [
        Evaluated(sweep.environment, settings.loggers, m, horizon, form, sweep.bumps, seed, repetition)
        for repetition in range(most)
        for sweep in settings.sweeps
        for m, horizon in sweep.points()
        for form in FORMS
        if repetition < _repetitions(sweep, form)
    ]


def _repetitions(sweep: Sweep, form: Form) -> int:
    if form == "general":
        return sweep.repetitions
    return 0 if sweep.environment in (PENDULUM, TRAINED) else sweep.paper_repetitions


def summarise(settings: Settings, rows: Sequence[Row]) -> list[Row]:
    """One line an environment, form, sweep, place and method."""
    sweeps = {sweep.environment: sweep for sweep in settings.sweeps}
    groups: dict[tuple[str, str, str, int, str], list[Row]] = {}
    for row in rows:
        sweep = sweeps[str(row["environment"])]
        for name, x in sweep.sweeps_of(_whole(row["episodes"]), _whole(row["horizon"])):
            key = (sweep.environment, str(row["form"]), name, x, str(row["method"]))
            groups.setdefault(key, []).append(row)
    order = {name: k for k, name in enumerate(sweeps)}
    swept = {TRAJECTORIES: 0, HORIZON: 1}
    ranked = sorted(groups, key=lambda k: (order[k[0]], k[1], swept[k[2]], k[3], list(groups).index(k)))
    names = ("environment", "form", "sweep", "x", "method")
    return [{**dict(zip(names, key, strict=True)), **_line(groups[key])} for key in ranked]


def _line(rows: Sequence[Row]) -> Row:
    """Of one method at one point."""
    first = rows[0]
    values = [float(value) for row in rows if isinstance(value := row["value"], (int, float))]
    truth, n = float(_number(first["truth"])), len(values)
    line: Row = {"episodes": first["episodes"], "horizon": first["horizon"], "truth": truth, "bound": first["bound"]}
    line |= {"repetitions": n, "refused": len(rows) - n}
    if not n:
        return {**line, "bias": None, "mse": None, "log10_mse": None, "log10_mse_error": None}
    error = np.array(values) - truth
    mse = float(np.mean(error**2))
    spread = float(np.std(error**2, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    log10 = float(np.log10(mse)) if mse > 0 else float("nan")
    return {
        **line,
        "bias": float(error.mean()),
        "mse": mse,
        "log10_mse": log10,
        "log10_mse_error": spread / (mse * float(np.log(10))) if mse > 0 else float("nan"),
    }


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


def _number(value: object) -> float:
    assert isinstance(value, (int, float))
    return float(value)
