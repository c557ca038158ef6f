"""Which figures a document has: each drawn twice, for wide and for narrow pages, with a caption and a description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes

from mixope.report import plots
from mixope.report.answer import Answer, Bin, Logger
from mixope.report.contest import Contest
from mixope.report.document import AnyDocument, Document
from mixope.report.predictions import Predictions
from mixope.report.svg import draw
from mixope.report.words import rounded

WIDE, NARROW = 760, 344
MOST_LOGGERS = 12
MOST_PAIRS = 15


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: SVG for wide and for narrow pages, and the line under it."""

    wide: str
    narrow: str
    caption: str


Figures = dict[str, Drawing]


def figures(shown: AnyDocument, prefix: str = "") -> Figures:
    """All that the document has data for, by name; a target's have its number (``forest-0``)."""
    made = _result_figures(shown, prefix) if isinstance(shown, Document) else {}
    if shown.backtest:
        made["backtest"] = _backtest(shown.backtest, shown.unit, prefix)
    return made


def _result_figures(shown: Document, prefix: str) -> Figures:
    made: Figures = {}
    if len(shown.answers) > 1:
        made["targets"] = _targets(shown, prefix)
    for k, contest in enumerate(shown.contests):
        made[f"differences-{k}"] = _differences(shown, contest, f"{prefix}differences-{k}")
    for k, answer in enumerate(shown.answers):
        made[f"forest-{k}"] = _forest(shown, answer, f"{prefix}forest-{k}")
        weighed = [logger for logger in answer.loggers if logger.weight_share is not None]
        if weighed:
            made[f"weights-{k}"] = _bars(plots.shares, weighed, f"{prefix}weights-{k}", _WEIGHTS)
        sized = [logger for logger in answer.loggers if logger.effective_sample_size is not None]
        if sized:
            made[f"sizes-{k}"] = _bars(plots.sizes, sized, f"{prefix}sizes-{k}", _SIZES)
        if answer.weights:
            made[f"bins-{k}"] = _bins(answer.weights, f"{prefix}bins-{k}")
    return made


_WEIGHTS = "How much of the estimate rests on each logger (filled), beside its share of the rows (outline)."
_SIZES = "How many rows of the target's own each logger's weighted rows are worth (filled), of its rows (outline)."


_BINS = (
    "How the weights are spread: rows by the multiple of the mean weight that they have (outline), and how much of all"
    " weight they carry (filled)."
)


def _twice(plot: Callable[..., None], rows: int, name: str, caption: str, says: str) -> Drawing:
    wide, narrow = (
        draw(partial(plot, narrow=slim), width, plots.height(rows, slim), name=f"{name}-{size}", says=says)
        for slim, width, size in ((False, WIDE, "wide"), (True, NARROW, "narrow"))
    )
    return Drawing(wide, narrow, caption)


def _targets(shown: Document, prefix: str) -> Drawing:
    marks = [plots.Mark(a.row.target, a.row.value, a.row.low, a.row.high, a.row.kind) for a in shown.answers]
    marks.append(plots.Mark("logs, on average", shown.logged_mean, None, None, "logger"))
    return _draw_marks(marks, shown, f"{prefix}targets", "Every target by the estimate that answers for it.")


def _forest(shown: Document, answer: Answer, name: str) -> Drawing:
    marks = [plots.Mark(r.estimator, r.value, r.low, r.high, r.kind) for r in (answer.row, *answer.beside)]
    said = ["Every estimate with its interval; the first answers."]
    if answer.band:
        marks.append(plots.Mark("outer band", answer.row.value, answer.band.low, answer.band.high, "band"))
        said.append("The shade is the outer band: what was never logged earns the least, or the most.")
    if answer.truth is not None:
        marks.append(plots.Mark("truth", answer.truth, None, None, "truth"))
        said.append("The star and solid line are the truth.")
    listed = answer.loggers[:MOST_LOGGERS]
    marks += [plots.Mark(f"{logger.label} earned", logger.logged_mean, None, None, "logger") for logger in listed]
    said.append("Diamonds and dotted lines are what the loggers earned.")
    if len(answer.loggers) > len(listed):
        said.append(f"{len(listed)} of {len(answer.loggers)} loggers are shown; the table below has all.")
    said.append("● trustworthy, ▲ caution, ✖ not supported, ○ reference; an arrow points beyond the figure.")
    return _draw_marks(marks, shown, name, " ".join(said))


def _draw_marks(marks: list[plots.Mark], shown: Document, name: str, caption: str) -> Drawing:
    says = "Forest plot. " + "; ".join(f"{mark.label}: {mark.words}" for mark in marks)
    unit = f"{shown.unit}, {shown.estimand}"
    plot: Callable[[Axes], None] = partial(plots.forest, marks=marks, unit=unit)
    return _twice(plot, len(marks), name, caption, says)


def _bars(plot: Callable[..., None], loggers: list[Logger], name: str, caption: str) -> Drawing:
    listed = loggers[:MOST_LOGGERS]
    more = f" The first {len(listed)} of {len(loggers)} loggers." if len(loggers) > len(listed) else ""
    says = f"Bar chart. {caption}{more} The table holds the numbers."
    return _twice(partial(plot, loggers=listed), len(listed), name, caption + more, says)


def _bins(weights: tuple[Bin, ...], name: str) -> Drawing:
    said = "; ".join(
        f"{b.label}: {b.weight_share:.1%} of the weight in {b.rows_share:.1%} of the rows" for b in weights
    )
    return _twice(partial(plots.bins, weights=weights), len(weights), name, _BINS, f"Bar chart. {said}")


def _differences(shown: Document, contest: Contest, name: str) -> Drawing:
    listed = contest.pairs[:MOST_PAIRS]
    marks = [plots.Mark(p.label, p.value, p.low, p.high, p.kind) for p in listed]
    said = [f"Differences between targets by {contest.estimator}; the intervals hold together at {contest.level}."]
    said.append("An interval that does not touch the line at 0 tells the two apart.")
    if len(contest.pairs) > len(listed):
        said.append(f"The first {len(listed)} of {len(contest.pairs)} pairs; the table has all.")
    says = "Forest plot of differences. " + "; ".join(f"{mark.label}: {mark.words}" for mark in marks)
    plot = partial(plots.differences, marks=marks, unit=f"difference in {shown.unit}, {shown.estimand}")
    return _twice(plot, len(marks), name, " ".join(said), says)


def _backtest(shown: Predictions, unit: str, prefix: str) -> Drawing:
    listed = shown.predictions[: 2 * MOST_LOGGERS]
    caption = (
        "Each logger as predicted from the others' rows (● agrees, ✖ does not, ○ cannot be predicted), and below it"
        " what it really earned (◇), each with its interval; z is the distance in standard errors of both."
    )
    more = f" The first {len(listed)} of {len(shown.predictions)}." if len(shown.predictions) > len(listed) else ""
    says = "Backtest. " + "; ".join(
        f"{p.label}: predicted {rounded(p.predicted)}, earned {rounded(p.earned)}" for p in listed
    )
    plot = partial(plots.backtest, predictions=listed, unit=unit)
    return _twice(plot, len(listed), f"{prefix}backtest", caption + more, says)
