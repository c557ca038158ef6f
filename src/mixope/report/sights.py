"""Figures of what lies behind a number: weights, the log as it grows, behaviour, visits, coverage, returns.

Each is there only where its data is; :mod:`mixope.answers.pictures` makes it with the estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mixope.answers.confounding import THRESHOLD, Confounding
from mixope.answers.estimate import Estimate
from mixope.answers.pictures import Reliability, Visits
from mixope.inspection import Grid
from mixope.report import graphs, plots
from mixope.report.document import Answer, Document
from mixope.report.drawings import Drawing, Figures, sized, twice
from mixope.report.words import bounds_words, rounded, state_words
from mixope.requests.weights import WeightBin


def of_logs(found: Estimate, prefix: str) -> Figures:
    """What episodes earned, and whether the probabilities of actions are those of the rows."""
    made: Figures = {}
    if found.pictures.returns:
        made["returns"] = _returns(found, f"{prefix}returns")
    if found.pictures.reliability is not None:
        made["reliability"] = _reliability(found.pictures.reliability, f"{prefix}reliability")
    return made


def of_target(shown: Document, answer: Answer, number: int, prefix: str) -> Figures:
    """Weights, growth, visits, the map and the bounds of one target, each with its number."""
    found, made = answer.estimate, Figures()
    if answer.bins:
        made[f"weights-{number}"] = _weights(answer, f"{prefix}weights-{number}")
    if found.pictures.growth:
        made[f"growth-{number}"] = _growth(shown, found, f"{prefix}growth-{number}")
    if found.pictures.visits is not None:
        made[f"visits-{number}"] = _visits(found.pictures.visits, f"{prefix}visits-{number}")
    if answer.coverage is not None and answer.coverage.grid is not None:
        made[f"map-{number}"] = _map(answer.coverage.grid, f"{prefix}map-{number}")
    if found.confounding is not None and len(found.confounding.curve) > 1:
        made[f"confounding-{number}"] = _confounding(
            shown, found.confounding, bounds_words(found), f"{prefix}confounding-{number}"
        )
    return made


def _graph(plot: Callable[..., None], name: str, caption: str, says: str) -> Drawing:
    return sized(plot, graphs.HEIGHT[False], graphs.HEIGHT[True], name, caption, says)


def _weights(answer: Answer, name: str) -> Drawing:
    found = answer.estimate
    caption = (
        "How the weights are spread, on a logarithmic scale: the share of the rows with such a weight (outline), and"
        " how much of all weight they carry (filled)."
    )
    if found.effective_sample_size > 0:
        each = found.n_rows / found.effective_sample_size
        caption += (
            f" The line is where all weight would rest if {found.effective_sample_size:,.0f} rows carried it alike,"
            f" each {each:.3g} times the mean: the farther right, the fewer rows decide."
        )
    said = "; ".join(
        f"{_multiple(b)}: {b.weight_share:.1%} of the weight in {b.rows_share:.1%} of the rows" for b in answer.bins
    )
    plot = partial(graphs.weights, bins=answer.bins, effective=found.effective_sample_size, rows=found.n_rows)
    return _graph(plot, name, caption, f"Histogram of weights. {said}")


def _multiple(found: WeightBin) -> str:
    """The bounds of a bin, as multiples of the mean weight."""
    if found.low is None:
        return "0 or less"
    return f"{found.low:g} × or more" if found.high is None else f"{found.low:g} to {found.high:g} ×"


def _growth(shown: Document, found: Estimate, name: str) -> Drawing:
    points, ran = found.pictures.growth, found.against_logs.value
    caption = (
        f"The estimate as the log grows: the value after the first episodes, from {points[0].episodes:,} to all"
        f" {points[-1].episodes:,}, with its interval. Episodes come in the order of their names, loggers in turn. It"
        " is made of the scores by episode, to first order: nothing is fitted again."
    )
    said = "; ".join(
        f"{p.episodes:,} episodes: {rounded(p.value, (p.high - p.low) / 2)}" for p in (points[0], points[-1])
    )
    plot = partial(graphs.growth, points=points, ran=ran, unit=shown.scale)
    return _graph(plot, name, caption, f"Line chart of the estimate as the log grows. {said}")


def _confounding(shown: Document, found: Confounding, says: tuple[str, ...], name: str) -> Drawing:
    caption = (
        "The shade is what the value may be if hidden reasons changed the odds of the logged actions by up to that"
        " factor at every step; the dashed lines count chance too."
    )
    if found.threshold is not None:
        caption += f" The dotted line is {found.against}."
    plot = partial(
        graphs.bounds,
        points=found.curve,
        unit=shown.scale,
        factor="factor on the odds of the logged actions",
        line=found.threshold,
        words="" if found.threshold is None else "threshold" if found.against == THRESHOLD else "what ran",
    )
    return _graph(plot, name, caption, " ".join(says))


def _returns(found: Estimate, name: str) -> Drawing:
    bars = found.pictures.returns
    total = max(sum(bar.episodes for bar in bars), 1)
    mean = found.logged_mean * found.n_rows / max(found.n_episodes, 1)
    marks = [] if found.n_dropped else [(mean, f"mean {rounded(mean)}", "truth")]
    caption = (
        f"What the {total:,} logged episodes earned, each in all its rows that can be used, without a discount."
        " The bars count episodes."
    )
    said = "; ".join(f"{rounded(bar.low)} to {rounded(bar.high)}: {bar.episodes:,}" for bar in bars)
    plot = partial(graphs.returns, bars=bars, marks=marks)
    return _graph(plot, name, caption, f"Histogram of the returns of episodes. {said}")


def _reliability(found: Reliability, name: str) -> Drawing:
    fitted = " These are the rows that it was fitted to." if found.of == "the fitted behaviour" else ""
    caption = (
        f"Reliability: actions by the probability that {found.of} gave them, and how often they were taken; lines"
        f" reach two standard errors of chance. On the dotted line both are the same.{fitted}"
    )
    said = "; ".join(f"{b.predicted:.1%} predicted, {b.observed:.1%} taken" for b in found.bins)
    plot = partial(graphs.reliability, found=found)
    return _graph(plot, name, caption, f"Reliability diagram. {said}")


def _visits(found: Visits, name: str) -> Drawing:
    listed = [(state_words(found.factors, v.state), v.logged, v.target) for v in found.states]
    more = found.n_states - len(listed)
    if more > 0:
        listed.append((f"{more:,} other states", found.others.logged, found.others.target))
    caption = (
        "Visits: the share of its steps that the target spends in a state (filled), by the weights, and the share of"
        " the logged rows there (outline). The states that either visits most."
    )
    said = "; ".join(f"{state}: target {target:.1%}, logs {logged:.1%}" for state, logged, target in listed)
    return twice(partial(plots.visits, found=listed), len(listed), name, caption, f"Bar chart of visits. {said}")


def _map(grid: Grid, name: str) -> Drawing:
    some = [cell for cell in grid.cells if cell.uncovered > 0]
    caption = (
        f"Coverage by {grid.names[0]} (down) and {grid.names[1]} (across): green cells are covered; the redder a cell,"
        " the more of the target's actions there were never logged; dots are states that nobody visited."
    )
    worst = sorted(some, key=lambda cell: -cell.uncovered)[:5]
    said = "; ".join(
        f"{grid.names[0]} {grid.down[cell.down]}, {grid.names[1]} {grid.across[cell.across]}: {cell.uncovered:.0%}"
        for cell in worst
    )
    high = graphs.map_height(grid)
    counts = f"Map of coverage. {len(grid.cells) - len(some):,} of {len(grid.cells):,} cells are covered"
    says = f"{counts}; never logged: {said}" if said else counts
    return sized(partial(graphs.coverage, grid=grid), high, high, name, caption, says)
