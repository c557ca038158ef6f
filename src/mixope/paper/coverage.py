"""How often intervals hold the truth: every interval of every estimator on independent logs, where the truth is exact.

How much is measured is decided here; what, in :mod:`~mixope.paper.coverage_logs`; what it means is told in
docs/coverage.md. Of all logs of one kind it is said how often an interval held, and why it did not:

    coverage        share of the intervals that hold the truth, ± √(p (1 − p) / n)
    bias_over_error mean of value − truth, over the root mean square of the stated standard errors
    error_ratio     that root mean square over the standard deviation of the values: below 1, too sure
    error_variation standard deviation of the stated errors over their mean: what is known of the error itself
    error_follows   their correlation with the values: near 1, logs that lack the rare large weight lack its spread too
    warned          share of logs whose verdict is not "trustworthy"; ``missed_warned``, of those that miss
    green_coverage  share of the intervals that hold the truth among the ``green`` logs, those that are trustworthy

Little bias and an error ratio near 1 leave an error that is itself unknown (few clusters, heavy tails) as the reason.

In the picture a line of panels is an environment and how its states are logged, a column a size, a line in a panel an
estimator (and its estimand, where an environment is asked for several), a mark an interval. The grey line is what
intervals promise, the band two points to either side. A share below the axis is an arrow at its edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixope.checks import Verdict
from mixope.paper.coverage_logs import BLOCKS, LEVEL, PAIR, REFITS, SCORES, CoveredLog, Observed, Source
from mixope.paper.experiment import Cell, Exhibit, Row, Size, number
from mixope.paper.style import BLACK, BLUE, GREEN, GREY, LOOKS, NAMES, ORANGE, PURPLE, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INTERVALS = (*SCORES, *REFITS, BLOCKS, PAIR)
CELL = ("environment", "loggers", "observed", "episodes", "horizon", "estimand", "estimator")
NUMBERS = ("low", "truth", "high", "value", "error")
MARKS = dict(
    zip(
        INTERVALS,
        ((BLUE, "o"), (VERMILION, "s"), (ORANGE, "^"), (PURPLE, "D"), (SKY, "v"), (GREEN, "P"), (BLACK, "x")),
        strict=True,
    )
)
LEAST = 0.6
"""Where the axis begins."""
BAND = 0.02
LINE = 0.42
"""Inches for a line of a panel."""


ORDER = ("emp", "dr", "bch-pooled", "wis-step", "is-step")


@dataclass(frozen=True)
class CoverageLogs:
    """So many logs of an environment at every size (in episodes), and what their intervals are made from."""

    environment: str
    loggers: int
    horizon: int | None
    sizes: tuple[int, ...]
    estimators: str
    logs: int
    source: Source = "scores"
    observed: Observed = "id"
    estimand: str = "average"


@dataclass(frozen=True)
class CoverageSettings:
    """All logs, and how many refits a bootstrap has."""

    batches: tuple[CoverageLogs, ...]
    replicates: int = 200


RATIOS, WEIGHTS = "emp,bch-pooled", "wis-step,is-step"
REFITTED = f"{RATIOS},wis-step"


def _small(
    name: str, loggers: int, horizon: int, sizes: tuple[int, ...], logs: tuple[int, int, int]
) -> tuple[CoverageLogs, ...]:
    """What a small environment is asked, with so many logs for scores, blocks and refits."""
    asked = f"{RATIOS},dr,wis-step" if name == "gridworld-slip" else f"{RATIOS},{WEIGHTS}"
    scores, blocks, refits = logs
    observed: Observed = "id" if name == "singlepath" else "factors"
    found = (
        CoverageLogs(name, loggers, horizon, sizes, asked, scores, observed=observed),
        CoverageLogs(name, loggers, horizon, sizes, RATIOS, blocks, "blocks", observed),
        CoverageLogs(name, loggers, horizon, sizes, REFITTED, refits, "refits", observed),
    )
    return tuple(batch for batch in found if batch.logs)


ENDING: tuple[tuple[str, Observed, str, tuple[str, ...]], ...] = (
    ("sessions", "id", "emp,wis-step", ("discounted 0.95", "horizon 10", "episode")),
    ("sessions", "factors", "emp,dr", ("discounted 0.95", "episode")),
    ("survival", "factors", "emp,dr,wis-step", ("discounted 0.99", "horizon 10", "episode")),
    ("queue", "factors", "emp,dr", ("discounted 0.95", "horizon 20", "episode")),
    ("queue", "vector", "emp,dr", ("discounted 0.95", "episode")),
    ("frozenlake", "id", "emp,wis-step", ("discounted 0.99", "horizon 20", "episode")),
    ("blackjack", "factors", "emp,dr,wis-step", ("discounted 0.95", "horizon 3", "episode")),
    ("cartpole", "vector", "emp,dr", ("episode 0.99",)),
)
"""Worlds whose episodes end, how their states are logged, and what is asked of them, four loggers each.

CartPole is asked for its total with a discount, which is its discounted value on another scale; without one the total
is the length of an episode, for which no time limit must stand that is not part of the state. Its logs are truncated
after 200 steps, the others run to the end.
"""
CUT, TIMES = {"cartpole": 200}, {"blackjack": 10}
"""A game of Blackjack has one or two steps, and there are 280 hands: it needs ten times as many."""


def _ending(sizes: tuple[int, ...], logs: int, logs_of_vectors: int) -> tuple[CoverageLogs, ...]:
    """So many logs of every world whose episodes end."""
    return tuple(
        CoverageLogs(
            name,
            4,
            CUT.get(name),
            tuple(TIMES.get(name, 1) * size for size in sizes),
            estimators,
            logs_of_vectors if observed == "vector" else logs,
            observed=observed,
            estimand=estimand,
        )
        for name, observed, estimators, estimands in ENDING
        for estimand in estimands
        if observed != "vector" or logs_of_vectors
    )


SIZES: dict[Size, CoverageSettings] = {
    "smoke": CoverageSettings(
        (
            CoverageLogs("singlepath", 2, 20, (30,), "emp", 20),
            CoverageLogs("sessions", 4, None, (40,), "emp", 5, observed="factors", estimand="episode"),
        )
    ),
    "quick": CoverageSettings(
        (
            *_small("singlepath", 2, 20, (10, 100), (60, 60, 20)),
            *_small("gridworld-slip", 4, 50, (12, 200), (60, 60, 20)),
            *_ending((100,), 20, 3),
        ),
        50,
    ),
    "full": CoverageSettings(
        (
            *_small("singlepath", 2, 20, (10, 100), (1000, 500, 200)),
            *_small("walk", 2, 30, (10, 100), (1000, 0, 200)),
            *_small("gridworld-slip", 4, 50, (12, 200), (1000, 500, 100)),
            CoverageLogs("taxi", 1, 200, (50, 200), f"{RATIOS},dr", 60, observed="factors"),
            CoverageLogs("taxi", 4, 200, (50, 200), f"{RATIOS},dr", 60, observed="factors"),
            *_ending((100, 400), 400, 40),
        )
    ),
}
"""Walk has true ends, so no long episode to be cut into blocks."""


def plan(settings: CoverageSettings, seed: int) -> list[CoveredLog]:
    """By the share of a batch that is done, so that a run cut short has some of everything."""
    found = [
        (
            k / batch.logs,
            CoveredLog(
                batch.environment,
                batch.loggers,
                episodes,
                batch.horizon,
                batch.estimators,
                batch.source,
                settings.replicates if batch.source == "refits" else 0,
                seed,
                k,
                batch.observed,
                batch.estimand,
            ),
        )
        for batch in settings.batches
        for episodes in batch.sizes
        for k in range(batch.logs)
    ]
    return [log for _, log in sorted(found, key=lambda item: item[0])]


def summarise(settings: object, rows: Sequence[Row]) -> list[Row]:
    """One line per environment, size, estimator and interval, in an order that does not depend on the run's."""

    def place(row: Row) -> tuple[object, ...]:
        whole = row["horizon"] is None
        cell = (whole if whole and name == "horizon" else row[name] for name in CELL)
        return (*cell, INTERVALS.index(str(row["interval"])), row["repetition"])

    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=place):
        groups.setdefault(tuple(row[name] for name in (*CELL, "interval")), []).append(row)
    return [{**{name: mine[0][name] for name in (*CELL, "interval")}, **_line(mine)} for mine in groups.values()]


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
    green = [good for said, good in zip(warned, held, strict=True) if not said]
    uncovered = [number(row["uncovered"]) for row in rows if row["uncovered"] is not None]
    return {
        "uncovered": float(np.mean(uncovered)) if uncovered else math.nan,
        "warned": float(np.mean(warned)),
        "missed": len(of_missed),
        "missed_warned": float(np.mean(of_missed)) if of_missed else math.nan,
        "green": len(green),
        "green_coverage": float(np.mean(green)) if green else math.nan,
    }


def cells(rows: Sequence[Row]) -> dict[tuple[Cell, ...], dict[str, Row]]:
    """Lines by cell and interval."""
    found: dict[tuple[Cell, ...], dict[str, Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in CELL), {})[str(row["interval"])] = row
    return found


def show(rows: Sequence[Row]) -> list[Row]:
    """The table beneath the picture: a column per interval; logs / those with refits; what comes last is of t."""
    present = [kind for kind in INTERVALS if any(row["interval"] == kind for row in rows)]
    found = [_shown(dict(zip(CELL, key, strict=True)), by_kind, present) for key, by_kind in cells(rows).items()]
    order = ("environment", "loggers", "states", "estimand", "estimator")
    return sorted(found, key=lambda row: [str(row[name]) for name in order])


def _shown(cell: Row, by_kind: dict[str, Row], present: Sequence[str]) -> Row:
    return {
        "environment": NAMES.get(str(cell["environment"]), cell["environment"]),
        "loggers": cell["loggers"],
        "states": cell["observed"],
        "estimand": cell["estimand"],
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


def draw(rows: Sequence[Row]) -> Figure:
    """Few episodes on the left, many on the right."""
    from matplotlib.figure import Figure

    worlds: dict[str, dict[str, dict[str, dict[str, Row]]]] = {}
    for cell, by_kind in cells(rows).items():
        title, size, line = _place(dict(zip(CELL, cell, strict=True)))
        worlds.setdefault(title, {}).setdefault(size, {})[line] = by_kind
    names = {title: _names(by_size) for title, by_size in worlds.items()}
    columns, heights = max(map(len, worlds.values())), [LINE * len(mine) + 0.4 for mine in names.values()]
    figure = Figure(figsize=(2.8 + 4.2 * columns, 1.2 + sum(heights)), layout="constrained")
    grid = figure.subplots(len(worlds), columns, squeeze=False, sharex=True, height_ratios=heights)
    for line, (title, by_size) in zip(grid, worlds.items(), strict=True):
        for axes, (size, found) in zip(line, by_size.items(), strict=False):
            _panel(axes, found, names[title], labelled=axes is line[0])
            axes.set_title(f"{title}, {size}", fontsize=9, loc="left")
        for axes in line[len(by_size) :]:
            axes.set_axis_off()
    figure.supxlabel("share of 95 % intervals that hold the truth (± binomial error)", fontsize=9)
    handles = {label: h for axes in grid.flat for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    ordered = [kind for kind in INTERVALS if kind in handles]
    figure.legend([handles[kind] for kind in ordered], ordered, loc="outside upper center", ncols=len(ordered))
    return figure


def _place(cell: Row) -> tuple[str, str, str]:
    """The title and the size of a panel, and the line in it."""
    loggers, estimand = cell["loggers"], str(cell["estimand"])
    title = f"{NAMES.get(str(cell['environment']), cell['environment'])}, {loggers} logger{'' if loggers == 1 else 's'}"
    several = cell["horizon"] is None or estimand.startswith(("discounted", "episode"))
    steps = "episodes" if cell["horizon"] is None else f"× {cell['horizon']} steps"
    line = f"{cell['estimator']}, {estimand}" if several else str(cell["estimator"])
    return f"{title}, {cell['observed']}" if several else title, f"{cell['episodes']} {steps}", line


def _names(by_size: dict[str, dict[str, dict[str, Row]]]) -> list[str]:
    """All lines of an environment, by estimand and then by estimator, in one order for all."""
    found = {name for by_estimator in by_size.values() for name in by_estimator}

    def place(line: str) -> tuple[str, int]:
        name, _, estimand = line.partition(", ")
        return estimand, ORDER.index(name) if name in ORDER else len(ORDER)

    return sorted(found, key=place)


def _panel(axes: Axes, found: dict[str, dict[str, Row]], names: Sequence[str], *, labelled: bool) -> None:
    axes.axvline(LEVEL, color=GREY, linewidth=1)
    axes.axvspan(LEVEL - BAND, LEVEL + BAND, color="#eef1f3", zorder=0)
    for y, name in enumerate(names):
        for kind, row in found.get(name, {}).items():
            _mark(axes, row, y + 0.12 * (INTERVALS.index(kind) - (len(INTERVALS) - 1) / 2), kind)
    for y in range(1, len(names)):
        axes.axhline(y - 0.5, color="#e3e7ea", linewidth=0.6)
    labels = [_label(name) for name in names] if labelled else [""] * len(names)
    axes.set_yticks(range(len(names)), labels)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(LEAST, 1.01)
    axes.grid(axis="y", visible=False)


def _label(line: str) -> str:
    name, comma, estimand = line.partition(", ")
    return (LOOKS[name].label if name in LOOKS else name.upper()) + comma + estimand


def _mark(axes: Axes, row: Row, y: float, kind: str) -> None:
    share, error = row.get("coverage"), row.get("coverage_error")
    if not isinstance(share, (int, float)) or not isinstance(error, (int, float)):
        return
    colour, marker = MARKS[kind]
    if share < LEAST:
        axes.plot(LEAST + 0.005, y, color=colour, marker="<", markersize=3, linestyle="none")
        beside = LEAST + 0.012 + 0.028 * (INTERVALS.index(kind) % 3)
        axes.text(beside, y, f"{share:.0%}", color=colour, fontsize=6, va="center")
        return
    axes.errorbar(
        share, y, xerr=error, color=colour, marker=marker, markersize=3.4, linestyle="none", elinewidth=0.7, label=kind
    )


EXPERIMENT = Exhibit(
    name="coverage",
    title="Coverage: how often 95 % intervals hold the truth",
    caption="Independent logs of environments whose truth is known; each estimator with every interval, behaviour "
    "unknown, states logged as ids, factors or vectors. The band is 93 to 97 %; an arrow at the left edge is a share "
    "below the picture. An interval cannot cover what bias has moved: 'bias ÷ se' is the mean error in standard "
    "errors, 'se ÷ spread' the standard error that was stated over the spread of the values of all logs, 'warned' the "
    "share of logs whose verdict is not 'trustworthy'. These and the width are of the t interval.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw,
    show=show,
)
