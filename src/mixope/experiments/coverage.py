"""How often intervals hold the truth: every interval of every estimator on independent logs, where the truth is exact.

    coverage = share of 95 % intervals that hold it, with its binomial error;  bias ÷ se, what bias does to it

Trajectory weights estimate the mean of the first steps, and are held against that. The published table, with paired
differences and one long episode besides, comes from benchmarks/coverage.py; this is the same question through the
public interface alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixope.environments import truth
from mixope.estimand import Estimand
from mixope.estimators import REGISTRY
from mixope.evaluation import answer, look
from mixope.experiments.experiment import Experiment, Row, Size
from mixope.experiments.methods import LOOKS
from mixope.experiments.panels import NAMES
from mixope.experiments.style import BLUE, GREY, ORANGE, PURPLE, SKY, VERMILION
from mixope.experiments.worlds import World, world
from mixope.intervals import IntervalChoice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVEL = 0.95
SCORES, REFITS = ("t", "normal", "likelihood"), ("bca", "percentile")
MARKS = {
    "t": (BLUE, "o"),
    "normal": (VERMILION, "s"),
    "likelihood": (ORANGE, "^"),
    "bca": (PURPLE, "D"),
    "percentile": (SKY, "v"),
}


@dataclass(frozen=True)
class Covered:
    """One log; ``estimators`` are names with commas between; ``replicates`` refits, or 0 for intervals from scores."""

    environment: str
    loggers: int
    episodes: int
    horizon: int
    estimators: str
    replicates: int
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-15, one core."""
        each = len(self.estimators.split(",")) * (0.02 + self.episodes * self.horizon / 400_000)
        return each * (len(SCORES) + 0.3 * self.replicates) + (5.0 if "dr" in self.estimators.split(",") else 0.0)

    def measure(self) -> list[Row]:
        """One row an estimator and interval."""
        here = world(self.environment, self.loggers)
        name = zlib.crc32(f"{self.environment} {self.loggers} {self.episodes} {self.horizon}".encode())
        seed = np.random.SeedSequence([self.seed, name, self.repetition, self.replicates]).generate_state(1)
        seen = look(here.simulate(self.episodes, self.horizon, int(seed[0])))
        kinds = REFITS if self.replicates else SCORES
        return [
            row
            for estimator in self.estimators.split(",")
            for kind in kinds
            for row in self._interval(here, seen, estimator, kind)
        ]

    def _interval(self, here: World, seen: object, estimator: str, kind: str) -> Iterator[Row]:
        estimand = Estimand("average")
        if REGISTRY[estimator].family == "trajectory weights":
            estimand = Estimand("horizon", horizon=self.horizon)
        asked = IntervalChoice(kind, self.replicates or 2, jobs=1, progress=False)
        options = {"estimand": estimand, "level": LEVEL, "loggers": here.loggers, "interval": asked, "skipped": []}
        for found in answer(seen, {"target": here.target}, [estimator], **options):  # type: ignore[arg-type]
            interval = found.interval
            yield {
                "estimator": estimator,
                "interval": kind,
                "truth": exact(here, estimand),
                "value": found.value,
                "low": interval.low if interval else None,
                "high": interval.high if interval else None,
            }


def exact(here: World, estimand: Estimand) -> float:
    """The long run, or the mean of the first steps."""
    if estimand.kind == "average":
        return here.truth
    assert here.model is not None
    assert estimand.horizon is not None
    return truth.horizon(here.model, here.target.probabilities, estimand.horizon)


@dataclass(frozen=True)
class Cell:
    """An environment and how it is logged; ``bootstraps`` logs get refits."""

    environment: str
    loggers: int
    horizon: int
    sizes: tuple[int, ...]
    estimators: str
    repetitions: int
    bootstraps: int = 0


@dataclass(frozen=True)
class Settings:
    """All cells, and how many refits a bootstrap has."""

    cells: tuple[Cell, ...]
    replicates: int


_TABULAR = "emp,bch-pooled,wis-step"
SIZES: dict[Size, Settings] = {
    "smoke": Settings((Cell("singlepath", 2, 20, (30,), "emp", 20),), 0),
    "quick": Settings(
        (
            Cell("singlepath", 2, 20, (10, 100), _TABULAR, 60, 3),
            Cell("gridworld-slip", 4, 50, (12, 100), _TABULAR, 40),
        ),
        50,
    ),
    "full": Settings(
        (
            Cell("singlepath", 2, 20, (10, 100), _TABULAR, 500, 50),
            Cell("walk", 2, 30, (10, 100), _TABULAR, 500, 50),
            Cell("gridworld-slip", 4, 50, (12, 200), _TABULAR, 500, 30),
            Cell("taxi", 4, 200, (52, 200), "emp,bch-pooled", 100),
        ),
        200,
    ),
}


def plan(settings: Settings, seed: int) -> list[Covered]:
    """By repetition, so that a run cut short has some of everything."""
    return [
        Covered(cell.environment, cell.loggers, size, cell.horizon, cell.estimators, replicates, seed, repetition)
        for repetition in range(max(cell.repetitions for cell in settings.cells))
        for cell in settings.cells
        for size in cell.sizes
        for replicates, wanted in ((0, cell.repetitions), (settings.replicates, cell.bootstraps))
        if repetition < wanted
    ]


def summarise(settings: Settings, rows: Sequence[Row]) -> list[Row]:
    """One line an environment, size, estimator and interval."""
    names = ("environment", "loggers", "episodes", "horizon", "estimator", "interval")
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return [{**{name: mine[0][name] for name in names}, **_line(mine)} for mine in groups.values()]


def _line(rows: Sequence[Row]) -> Row:
    made = np.array([(r["low"], r["truth"], r["high"], r["value"]) for r in rows if r["low"] is not None], dtype=float)
    low, true, high, value = made.reshape(-1, 4).T
    n = len(made)
    if not n:
        return {"logs": 0, "without": len(rows), "coverage": None, "coverage_error": None, "width": None, "bias": None}
    share = float(np.mean((low <= true) & (true <= high)))
    error = math.sqrt(max(share * (1 - share), 0.25 / n) / n)
    width, bias = float(np.mean(high - low)), float(np.mean(value - true))
    return {
        "logs": n,
        "without": len(rows) - n,
        "coverage": share,
        "coverage_error": error,
        "width": width,
        "bias": bias,
        "bias_over_spread": bias / float(np.std(value)) if np.std(value) > 0 else math.nan,
    }


def draw(rows: Sequence[Row]) -> Figure:
    """A panel an environment: a row an estimator and size, a mark an interval; the line is what they promise."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(str(row["environment"]) for row in rows))
    groups = {name: _groups([row for row in rows if row["environment"] == name]) for name in names}
    heights = [len(found) + 1 for found in groups.values()]
    figure = Figure(figsize=(8, 1.2 + 0.32 * sum(heights)), layout="constrained")
    grid = figure.subplots(len(names), 1, squeeze=False, sharex=True, height_ratios=heights)
    for axes, name in zip(grid[:, 0], names, strict=True):
        _panel(axes, groups[name])
        axes.set_title(NAMES.get(name, name), fontsize=9, loc="left")
    grid[-1, 0].set_xlabel("share of 95 % intervals that hold the truth (± binomial error)")
    handles = {label: h for axes in grid.flat for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles))
    return figure


def _groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        label = LOOKS[str(row["estimator"])].label
        found.setdefault(f"{label}, {row['episodes']} × {row['horizon']}", []).append(row)
    return found


def _panel(axes: Axes, groups: dict[str, list[Row]]) -> None:
    axes.axvline(LEVEL, color=GREY, linewidth=1)
    axes.axvspan(LEVEL - 0.02, LEVEL + 0.02, color="#eef1f3", zorder=0)
    for y, mine in enumerate(groups.values()):
        for row in mine:
            if isinstance(share := row["coverage"], (int, float)) and isinstance(row["coverage_error"], float):
                colour, marker = MARKS[str(row["interval"])]
                offset = 0.14 * (list(MARKS).index(str(row["interval"])) - 2)
                axes.errorbar(
                    share,
                    y + offset,
                    xerr=row["coverage_error"],
                    color=colour,
                    marker=marker,
                    linestyle="none",
                    elinewidth=0.8,
                    label=str(row["interval"]),
                )
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlim(right=1.02)
    axes.grid(axis="y", visible=False)


EXPERIMENT = Experiment(
    name="coverage",
    title="Coverage: how often 95 % intervals hold the truth",
    caption="Independent logs of environments whose truth is exact; each estimator with every interval. The band is 93 "
    "to 97 %. An interval cannot cover what bias has moved: see bias and its size in standard deviations in the table.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw,
)
