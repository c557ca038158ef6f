"""The forest plot of the README: every estimator with 95 % intervals beside the exact truth, on a simulated Taxi log.

    python docs/images/make_forest.py

writes ``forest.svg`` and ``forest.png`` beside this file and prints the numbers that are drawn. The seed is that of
``mixope demo``, 2026.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

import mixope
from mixope import worlds
from mixope.estimators import REGISTRY

SEED = 2026
"""The year of the release, as in ``mixope demo``: settled before the picture was seen."""
REFUSED = "not supported by these logs"
LOGGERS, EPISODES, HORIZON = 4, 200, 200
SHOWN = (-0.9, 0.5)
"""Intervals that reach further end in an arrow, and values beyond are written there."""
BESIDE = {
    side: {"textcoords": "offset points", "va": "center", "ha": where, "fontsize": 8}
    for side, where in ((-1, "left"), (1, "right"))
}
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"  # Okabe and Ito: told apart by all kinds of colour vision


def estimates() -> tuple[mixope.Comparison, float, float]:
    """The comparison, the exact long-run average, and the exact mean of the first HORIZON steps."""
    model = worlds.make("taxi")
    loggers, target = worlds.stages(model, LOGGERS, seed=SEED), worlds.target(model, seed=SEED)
    columns = worlds.simulate(model, loggers, EPISODES, HORIZON, seed=SEED, observed="factors")
    names = list(model.factors)
    states = np.stack([model.factors[name] for name in names], axis=1)

    def policy(probabilities: np.ndarray) -> mixope.TabularPolicy:
        return mixope.TabularPolicy(probabilities, states, factors=names)

    known = {f"logger-{j}": policy(logger) for j, logger in enumerate(loggers)}
    counted = [name for name, entry in REGISTRY.items() if "counts" in entry.takes]
    table = mixope.compare(columns, {"new": policy(target)}, counted, loggers=known)
    truth = worlds.truth
    return table, truth.average(model, target), truth.horizon(model, target, HORIZON)


def draw(table: mixope.Comparison, average: float, early: float) -> plt.Figure:
    """One row per estimator that takes counts, in the order of the registry; the truths as vertical lines."""
    figure, axes = plt.subplots(figsize=(8.0, 6.2), layout="constrained")
    places = np.arange(len(table))[::-1]
    for place, estimate in zip(places, table, strict=True):
        reference = estimate.estimator == "logged-mean"
        colour = GREY if reference else BLUE
        half = estimate.interval.width / 2 if estimate.interval else None
        filled = "white" if str(estimate.verdict) == REFUSED else colour
        style = {"color": colour, "capsize": 3, "markersize": 6, "linewidth": 1.8, "markerfacecolor": filled}
        axes.errorbar(estimate.value, place, xerr=half, fmt="s" if reference else "o", **style)
        for side, edge, arrow in ((-1, SHOWN[0], "<"), (1, SHOWN[1], ">")):
            if half is not None and side * (estimate.value + side * half) > side * edge:  # goes on beyond the picture
                axes.plot(edge, place, arrow, color=colour, markersize=7, clip_on=False)
            if side * estimate.value > side * edge:
                axes.annotate(f"{estimate.value:.2f}", (edge, place), (-side * 8, 8), **BESIDE[side])
    axes.plot([], [], "o", color=BLUE, markerfacecolor="white", label=f"verdict: {REFUSED}")
    axes.plot([], [], "s", color=GREY, label="what the loggers earned")
    axes.axvline(average, color=ORANGE, linewidth=1.8, zorder=0, label=f"exact long-run average, {average:.3f}")
    early_label = f"exact mean of the first {HORIZON} steps, {early:.3f}"
    axes.axvline(early, color=ORANGE, linewidth=1.4, linestyle=":", zorder=0, label=early_label)
    axes.set_xlim(*SHOWN)
    axes.set_yticks(places, [estimate.estimator for estimate in table])
    axes.set_xlabel("reward per step, with 95 % intervals")
    axes.set_title(f"Taxi, {LOGGERS} loggers, {EPISODES} episodes of {HORIZON} steps", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def main() -> None:
    """Compute, print, draw, save."""
    table, average, early = estimates()
    print(table)
    print(f"exact long-run average {average:.6f}, exact mean of the first {HORIZON} steps {early:.6f}")
    here = Path(__file__).parent
    mpl.rcParams["svg.hashsalt"] = "mixope"
    figure = draw(table, average, early)
    figure.savefig(here / "forest.svg", metadata={"Date": None})
    figure.savefig(here / "forest.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
