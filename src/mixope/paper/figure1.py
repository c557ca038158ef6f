"""Figure 1: the stationary law that BCH and EMP learn on Taxi, state by state, and its distance from the exact one.

    d̂(s) = ω(s) n(s) / Σ ω n,        distance in total variation  ½ Σ |d̂ − d|

n(s) being the visits and ω the learned ratio; a state that was never visited has d̂ = 0. An estimator hands on Σ ωρ of
every kind of transition, from which ω(s) = Σ_s ωρ / Σ_s ρ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.estimators import make as make_estimator
from mixope.paper.cases import log_seed, world
from mixope.paper.error_figures import FORM_NAMES, SWEEP_NAMES
from mixope.paper.experiment import Exhibit, Row, Size, number
from mixope.paper.mean_squared_errors import FORMS, HORIZON, TRAJECTORIES, Form, Sweep, make
from mixope.paper.style import GREY, LOOKS, draw_method, mark_places, share_legend
from mixope.worlds import truth

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mixope.estimators.counts.solution import CountedSolution
    from mixope.requests.problem import Problem

METHODS = ("bch", "emp")
SMALLEST = 1e-6
"""States of less mass, learned or exact, are drawn on the edge."""

SIZES: dict[Size, Sweep] = {
    "smoke": Sweep("taxi", (10, 40), (20, 40), 10, 40, 1, 1),
    "quick": Sweep("taxi", (25, 50, 100), (50, 100, 200), 50, 100, 2, 2),
    "full": Sweep("taxi", (50, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 20),
}
"""The scatter is at the fixed point; distances are swept around it, with as many repetitions of both forms."""


@dataclass(frozen=True)
class Stationary:
    """``scatter`` says whether the whole law is kept, or only its distance."""

    environment: str
    episodes: int
    horizon: int
    form: Form
    scatter: bool
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-16, one core."""
        return (0.5 if self.form == "paper" else 0.25) * float(np.sqrt(self.episodes * self.horizon / 40_000))

    def measure(self) -> list[Row]:
        """The distance of every method; where wanted, a row per state besides."""
        from mixope.base.estimand import Estimand
        from mixope.estimators.counts.solution import without_scores
        from mixope.requests.problem import Problem
        from mixope.session.session import count

        here = world(self.environment, 1)
        seed = log_seed(self.seed, self.repetition, self.environment, self.episodes, self.horizon)
        counted = count(here.simulate(self.episodes, self.horizon, seed))
        estimand = Estimand("average")
        problem = Problem.of_logged(counted.transitions, here.target, estimand, here.loggers, reader=weight_of_states)
        exact = truth.stationary(here.known, here.target.probabilities)
        found: list[Row] = []
        for method in METHODS:
            solution = without_scores(partial(make_estimator(make(method, self.form)).solve, problem))
            law = learned_law(problem, solution.readings, method, len(exact))
            found.append({"method": method, "tv": float(0.5 * np.abs(law - exact).sum())})
            if self.scatter:
                found += [
                    {"method": method, "state": s, "estimated": float(law[s]), "exact": float(exact[s])}
                    for s in np.flatnonzero(exact + law > 0).tolist()
                ]
        return found


def weight_of_states(problem: Problem, found: CountedSolution) -> FloatArray:
    """Σ w over the rows of every state."""
    rows = problem.logged
    return np.zeros(rows.n_states) if found.weights is None else sum_by(rows.state, found.weights.total, rows.n_states)


def learned_law(problem: Problem, weighted: FloatArray, method: str, n_states: int) -> FloatArray:
    """d̂ on the states of the environment, in its own numbering, from the weight of every state."""
    rows = problem.transitions
    visits = sum_by(rows.state, rows.rows, rows.n_states)
    ratio = sum_by(rows.state, _ratios(problem, method), rows.n_states)
    omega = np.divide(weighted, ratio, out=np.zeros(rows.n_states), where=ratio > 0)
    law = np.zeros(n_states)
    law[rows.observations.astype(np.int64)] = omega * visits
    return np.asarray(law / law.sum())


def _ratios(problem: Problem, method: str) -> FloatArray:
    """Σ ρ of every group: with logged propensities, or with the counted share of the action in its state."""
    rows, target = problem.transitions, problem.pair_target
    if method == "bch":
        assert rows.inverse is not None
        return np.asarray(target[rows.pair] * rows.inverse)
    of_pair, of_state = sum_by(rows.pair, rows.rows), sum_by(rows.state, rows.rows, rows.n_states)
    return np.asarray(target[rows.pair] * rows.rows * of_state[rows.state] / of_pair[rows.pair])


def plan(settings: Sweep, seed: int) -> list[Stationary]:
    """Both forms at every point; the first repetition of the fixed point keeps the whole law."""
    fixed = settings.fixed_trajectories, settings.fixed_horizon
    return [
        Stationary(settings.environment, *point, form, point == fixed and repetition == 0, seed, repetition)
        for repetition in range(settings.repetitions)
        for point in settings.points()
        for form in FORMS
    ]


def summarise(settings: Sweep, rows: Sequence[Row]) -> list[Row]:
    """Mean distance and its standard error by form, sweep, place and method; then the scatter, a line per state."""
    found: list[Row] = []
    for form in FORMS:
        for sweep, fixed, places in (
            (TRAJECTORIES, ("horizon", settings.fixed_horizon), settings.trajectories),
            (HORIZON, ("episodes", settings.fixed_trajectories), settings.horizons),
        ):
            swept = "episodes" if sweep == TRAJECTORIES else "horizon"
            for x in places:
                here = [r for r in rows if r["form"] == form and r[fixed[0]] == fixed[1] and r[swept] == x]
                found += [_distance(form, sweep, x, method, here) for method in METHODS]
    return [*found, *_scatter(rows)]


def _distance(form: str, sweep: str, x: int, method: str, rows: Sequence[Row]) -> Row:
    distances = [d for r in rows if r["method"] == method and isinstance(d := r.get("tv"), float)]
    error = float(np.std(distances, ddof=1) / np.sqrt(len(distances))) if len(distances) > 1 else math.nan
    mean = float(np.mean(distances))
    line: Row = {"part": "distance", "form": form, "sweep": sweep, "x": x, "method": method}
    return {**line, "tv": mean, "tv_error": error, "repetitions": len(distances)}


def _scatter(rows: Sequence[Row]) -> list[Row]:
    lines: dict[int, Row] = {}
    for row in rows:
        if isinstance(state := row.get("state"), int):
            line = lines.setdefault(state, {"part": "scatter", "state": state, "exact": _rounded(row["exact"])})
            line[f"{row['method']} {row['form']}"] = _rounded(row["estimated"])
    names = [f"{method} {form}" for form in FORMS for method in METHODS]
    return [{**lines[s], **{name: lines[s].get(name, 0.0) for name in names}} for s in sorted(lines)]


def _rounded(value: object) -> float:
    """Four digits are more than a picture shows, and keep the file small."""
    assert isinstance(value, (int, float))
    return float(f"{value:.4g}")


def draw(rows: Sequence[Row]) -> Figure:
    """A row per form: the scatter, the distance over trajectories, the distance over the horizon."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    grid = figure.subplots(2, 3, width_ratios=(1.15, 1, 1))
    for line, form in zip(grid, FORMS, strict=True):
        _points(line[0], [row for row in rows if row["part"] == "scatter"], form)
        line[1].sharey(line[2])
        for axes, sweep in zip(line[1:], (TRAJECTORIES, HORIZON), strict=True):
            _distances(axes, [r for r in rows if r["form"] == form and r["sweep"] == sweep])
            axes.set_xlabel(SWEEP_NAMES[sweep])
        line[0].set_title(f"Taxi, {FORM_NAMES[form]}", fontsize=9)
    share_legend(figure, [grid[0][1]])
    return figure


def _points(axes: Axes, rows: Sequence[Row], form: str) -> None:
    axes.plot([SMALLEST, 1], [SMALLEST, 1], color=GREY, linewidth=0.8, zorder=1)
    most = SMALLEST
    for method in METHODS:
        look = LOOKS[method]
        exact = np.array([row["exact"] for row in rows], dtype=np.float64)
        learned = np.array([row[f"{method} {form}"] for row in rows], dtype=np.float64)
        most = max(most, exact.max(initial=0.0), learned.max(initial=0.0))
        axes.plot(
            np.maximum(exact, SMALLEST),
            np.maximum(learned, SMALLEST),
            linestyle="none",
            marker=look.marker,
            markersize=2.6,
            markerfacecolor="none" if look.aware else look.colour,
            markeredgecolor=look.colour,
            markeredgewidth=0.5,
            alpha=0.55,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(SMALLEST * 0.8, most * 1.5)
    axes.set_ylim(SMALLEST * 0.8, most * 1.5)
    axes.set_xlabel("exact mass of a state")
    axes.set_ylabel("learned mass (0 on the edge)")


def _distances(axes: Axes, rows: Sequence[Row]) -> None:
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        x, y, error = ([number(row[name], 0.0) for row in mine] for name in ("x", "tv", "tv_error"))
        draw_method(axes, method, x, y, error)
    mark_places(axes, (row["x"] for row in rows))
    axes.set_ylabel("total variation distance")


def show(rows: Sequence[Row]) -> list[Row]:
    """The distances; the scatter is in the CSV."""
    return [
        {
            "form": row["form"],
            "over": row["sweep"],
            "at": row["x"],
            "method": LOOKS[str(row["method"])].label,
            "total variation distance": row["tv"],
            "± se": row["tv_error"],
            "repetitions": row["repetitions"],
        }
        for row in rows
        if row["part"] == "distance"
    ]


EXPERIMENT = Exhibit(
    name="figure1",
    title="Figure 1: the learned stationary law",
    caption="The share of its time that the target spends in every state of Taxi: learned from the log of one policy "
    "by BCH, which knows that policy, and by EMP, which estimates it, against the exact share; and the distance in "
    "total variation over the size of the log. Above the general form of the equations, below the paper's.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw,
    show=show,
)
