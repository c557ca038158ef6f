"""The error figures' measurements: simulated logs, what every method makes of them, and mean squared errors.

    log10 MSE,    standard error by the delta method:  sd(e²) / √R / (MSE ln 10)

with e = value − truth over R repetitions. Points belong to a sweep: over trajectories at the fixed horizon, or over
horizons at the fixed number of trajectories; the point where they cross belongs to both.

Errors are against the long-run average of the target, also those of trajectory weights, which see only the first
``horizon`` steps: that is what the paper compares. ``form`` is that of the equations: the general one (``bch`` is then
calibrated), or the paper's quadratic program, which exists for countable states only. Trajectory weights have no such
form and stand beside both. On vectors there are also ``others``: the ratio in the paper's kernel form and as a network,
on logs that are small enough for the kernel, which compares every row with every other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from mixope.base.errors import MixopeError
from mixope.base.estimand import Estimand
from mixope.base.threads import one_thread
from mixope.estimators import REGISTRY
from mixope.estimators import make as make_estimator
from mixope.estimators.asking import together
from mixope.features import NormalisedBumps
from mixope.paper.cases import PENDULUM, TRAINED, PaperCase, log_seed, world
from mixope.paper.experiment import Row, number
from mixope.session.questions import ask
from mixope.session.session import Session, look

Form = Literal["general", "paper", "others"]
TRAJECTORIES, HORIZON = "trajectories", "horizon"
FORMS: tuple[Form, ...] = ("general", "paper")
OTHERS: tuple[str, ...] = ("kernel", "emp-neural")
SINGLE: dict[Form, tuple[str, ...]] = {
    "general": ("bch", "emp", "sadl", "is-step", "wis-step"),
    "paper": ("bch", "emp"),
    "others": OTHERS,
}
SEVERAL: dict[Form, tuple[str, ...]] = {
    "general": ("emp-single", "emp", "kl-emp", "bch", "bch-pooled", "bch-kl-pooled", "mis", "mis-step"),
    "paper": ("emp-single", "emp", "kl-emp", "bch", "bch-pooled", "bch-kl-pooled"),
    "others": OTHERS,
}


def make(name: str, form: Form) -> Any:
    """An estimator in a form; general forms by name, so that vectors can have them too."""
    return REGISTRY[name].make(form="paper") if form == "paper" else name


@dataclass(frozen=True)
class Evaluated:
    """``episodes`` trajectories in all of ``horizon`` steps; ``bumps`` features for vectors (0: the default)."""

    environment: str
    loggers: int
    episodes: int
    horizon: int
    form: Form
    bumps: int
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-16, one core: proportional to rows, with a start."""
        rows, several = self.episodes * self.horizon, self.loggers > 1
        if self.form == "others":
            return 20.0
        if self.environment in (PENDULUM, TRAINED):
            base = 16.0 * math.pow(rows / 5000, 1.1) if several else 2.8 * math.pow(rows / 5000, 1.55)
            return base if self.bumps == 0 else min(base, 0.5 + rows / 5000)
        if self.form == "paper" and self.environment == "taxi":
            return (1.5 if several else 0.6) * math.sqrt(rows / 40_000)
        return (0.03 + rows / 300_000) * (1.6 if several else 1.0)

    def simulation_seed(self) -> int:
        """Of everything but the form, so that both forms see the same log."""
        return log_seed(self.seed, self.repetition, self.environment, self.loggers, self.episodes, self.horizon)

    def measure(self) -> list[Row]:
        """One row per method: its value, or why it gave none."""
        here = world(self.environment, self.loggers)
        logs = here.simulate(self.episodes, self.horizon, self.simulation_seed())
        session = look(logs, features=NormalisedBumps(self.bumps) if self.bumps else None)
        methods = (SEVERAL if self.loggers > 1 else SINGLE)[self.form]
        bound, rows = here.bound(self.horizon), self.episodes * self.horizon
        known = {"truth": here.truth, "bound": None if bound is None else bound / rows}
        found = self._solved(session, here, methods)
        return [{"method": name, **_told(outcome), **known} for name, outcome in zip(methods, found, strict=True)]

    def _solved(self, session: Session, here: PaperCase, methods: Sequence[str]) -> list[Any]:
        """Solutions or refusals, of all methods in common scans, without intervals and checks, which cost the most."""
        (question,) = ask(
            session.logs,
            session.labels,
            {"target": here.target},
            estimand=Estimand("average"),
            loggers=here.loggers,
            columns=session.columns,
        )
        problem = session.problem(question)
        starts = [partial(make_estimator(make(name, self.form)).solve, problem) for name in methods]
        with one_thread():
            return session.rounds(question.device).run(together(starts))


def _told(outcome: Any) -> Row:
    refused = isinstance(outcome, MixopeError)
    return {"value": None if refused else outcome.value, "refusal": outcome.reason if refused else None}


@dataclass(frozen=True)
class Sweep:
    """One environment: the fixed point, what is swept, and how many repetitions each form gets.

    ``other_points`` are those at which kernel and network are tried besides, on vectors.
    """

    environment: str
    trajectories: tuple[int, ...]
    horizons: tuple[int, ...]
    fixed_trajectories: int
    fixed_horizon: int
    repetitions: int
    paper_repetitions: int
    bumps: int = 0
    other_points: tuple[tuple[int, int], ...] = ()

    def points(self) -> list[tuple[int, int]]:
        """All (trajectories, horizon), each once."""
        over = [(m, self.fixed_horizon) for m in self.trajectories]
        return list(dict.fromkeys([*over, *((self.fixed_trajectories, h) for h in self.horizons)]))

    def repetitions_of(self, form: Form, point: tuple[int, int]) -> int:
        """How often a point is measured; the paper's program is not for vectors."""
        if form == "others":
            return self.repetitions if point in self.other_points else 0
        if form == "paper":
            return 0 if self.environment in (PENDULUM, TRAINED) else self.paper_repetitions
        return self.repetitions

    def sweeps_of(self, episodes: int, horizon: int) -> Iterator[tuple[str, int]]:
        """The sweeps a point belongs to, with its place there."""
        if horizon == self.fixed_horizon and episodes in self.trajectories:
            yield TRAJECTORIES, episodes
        if episodes == self.fixed_trajectories and horizon in self.horizons:
            yield HORIZON, horizon


@dataclass(frozen=True)
class ErrorSettings:
    """Of an error figure."""

    loggers: int
    sweeps: tuple[Sweep, ...]


def plan(settings: ErrorSettings, seed: int) -> list[Evaluated]:
    """All repetitions, by number, so that a run cut short has some of everything."""
    most = max(max(sweep.repetitions, sweep.paper_repetitions) for sweep in settings.sweeps)
    return [
        Evaluated(sweep.environment, settings.loggers, *point, form, sweep.bumps, seed, repetition)
        for repetition in range(most)
        for sweep in settings.sweeps
        for point in sweep.points()
        for form in get_args(Form)
        if repetition < sweep.repetitions_of(form, point)
    ]


def summarise(settings: ErrorSettings, rows: Sequence[Row]) -> list[Row]:
    """One line per environment, form, sweep, place and method."""
    sweeps = {sweep.environment: sweep for sweep in settings.sweeps}
    groups: dict[tuple[str, str, str, int, str], list[Row]] = {}
    for row in rows:
        sweep = sweeps[str(row["environment"])]
        for name, x in sweep.sweeps_of(int(number(row["episodes"])), int(number(row["horizon"]))):
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
    truth, n = number(first["truth"]), len(values)
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
