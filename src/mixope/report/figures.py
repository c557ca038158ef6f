"""Which figures a document has: values with their ranges here, the others in :mod:`mixope.report.sights`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.axes import Axes

from mixope.backtesting import Backtest
from mixope.differences import Differences, Selection
from mixope.distributions import Returns
from mixope.experiments.records import Experiment
from mixope.report import plots
from mixope.report.document import Answer, Document
from mixope.report.drawings import Drawing, Figures, sized, twice
from mixope.report.returns_sheet import amount_words
from mixope.report.risk_graph import HEIGHT, MOST_NAMED, risk_and_return
from mixope.report.sights import of_logs, of_target
from mixope.report.trial_sights import of_experiment
from mixope.report.words import level_words, rounded, standing

MOST_LOGGERS = 12
MOST_PAIRS = 15
MOST_RANKED = 30


def figures(shown: Document, prefix: str = "") -> Figures:
    """All that the document has data for, by name; a target's have its number (``forest-0``)."""
    made: Figures = {}
    if isinstance(shown.record, Experiment):
        return of_experiment(shown.record, prefix)
    if shown.backtest:
        made["backtest"] = _backtest(shown.backtest, shown.backtest.unit, prefix)
    if len(shown.answers) > 1:
        made["targets"] = _targets(shown, prefix)
    for k, chosen in enumerate(shown.selections):
        if len(chosen.ranks) > 1 and chosen.regret:
            made[f"selection-{k}"] = _selection(shown, chosen, f"{prefix}selection-{k}")
    for k, found in enumerate(shown.differences):
        made[f"differences-{k}"] = _differences(shown, found, f"{prefix}differences-{k}")
    if shown.risk is not None:
        made["risk"] = _risk(shown.risk, f"{prefix}risk")
    if shown.answers:
        made |= of_logs(shown.first, prefix)
    for k, answer in enumerate(shown.detailed):
        made[f"forest-{k}"] = _forest(shown, answer, f"{prefix}forest-{k}")
        made |= of_target(shown, answer, k, prefix)
    return made


def _targets(shown: Document, prefix: str) -> Drawing:
    marks = [plots.mark_of(a.estimate, a.estimate.target) for a in shown.detailed]
    marks += plots.own_marks([("the logs themselves", shown.first.against_logs)])
    some = f"The best {len(shown.detailed)} of {len(shown.answers):,} targets, each"
    which = "Every target" if len(shown.detailed) == len(shown.answers) else some
    return _draw_marks(marks, shown, f"{prefix}targets", f"{which} by the estimate that answers for it.")


def _forest(shown: Document, answer: Answer, name: str) -> Drawing:
    marks = [plots.mark_of(e, e.estimator) for e in (answer.estimate, *answer.beside)]
    said = ["Every estimate with its interval; the first answers."]
    rivals = answer.estimate.rivals
    listed = rivals if len(rivals) <= MOST_LOGGERS else (*rivals[: MOST_LOGGERS - 1], rivals[-1])
    own = plots.own_marks([(f"{name}, itself", found) for name, found in listed])
    if answer.band:
        band = plots.band_mark(answer.estimate.value, answer.band, [*marks, *own])
        marks.append(band)
        where = "is far wider than this axis and stands in words" if band.far else "is the shade"
        said.append(f"The outer band {where}: what was never logged earns the least, or the most.")
    if answer.truth is not None:
        marks.append(plots.Mark("truth", answer.truth, None, None, "truth"))
        said.append("The star and solid line are the truth.")
    marks += own
    if own:
        said.append("Diamonds and dotted lines are what those who wrote the logs earn themselves, likewise.")
    if len(rivals) > len(listed):
        said.append(f"{len(listed)} of {len(rivals)} are shown; the table below has all.")
    said.append("● trustworthy, ▲ caution, ✖ not supported, ○ reference; an arrow points beyond the figure.")
    return _draw_marks(marks, shown, name, " ".join(said))


def _draw_marks(marks: list[plots.Mark], shown: Document, name: str, caption: str) -> Drawing:
    says = "Forest plot. " + "; ".join(f"{mark.label}: {mark.words}" for mark in marks)
    plot: Callable[[Axes], None] = partial(plots.forest, marks=marks, unit=shown.scale)
    return twice(plot, len(marks), name, caption, says)


def _selection(shown: Document, chosen: Selection, name: str) -> Drawing:
    listed, level = chosen.ranks[:MOST_RANKED], level_words(chosen.level)
    kinds = [shown.kind_of(chosen.estimator, rank.target) for rank in listed]
    said = [
        f"Targets by {chosen.estimator}, the highest value first. Thick lines are intervals of each target alone, thin"
        f" lines hold for all of them together, both at {level}. The targets that are shaded cannot be told apart from"
        f" the best: at {level} it is one of them.",
        "● trustworthy, ▲ caution, ✖ not supported and so not ranked; an arrow points beyond the figure.",
    ]
    if len(chosen.ranks) > len(listed):
        said.append(f"The first {len(listed)} of {len(chosen.ranks):,}; the table has all.")
    says = "Selection plot. " + "; ".join(f"{rank.target}: {rounded(rank.value)}, {standing(rank)}" for rank in listed)
    plot = partial(plots.selection, ranks=listed, kinds=kinds, unit=shown.scale)
    return twice(plot, len(listed), name, " ".join(said), says)


def _differences(shown: Document, found: Differences, name: str) -> Drawing:
    listed = found.pairs[:MOST_PAIRS]
    marks = [
        plots.Mark(f"{p.first} − {p.second}", p.value, p.decisive.low, p.decisive.high, shown.pair_kind(found, p))
        for p in listed
    ]
    level = level_words(found.level)
    said = [f"Differences between targets by {found.estimator}; the intervals hold together at {level}."]
    said.append("An interval that does not touch the line at 0 tells the two apart.")
    if len(found.pairs) > len(listed):
        said.append(f"The first {len(listed)} of {len(found.pairs)} pairs; the table has all.")
    says = "Forest plot of differences. " + "; ".join(f"{mark.label}: {mark.words}" for mark in marks)
    plot = partial(plots.differences, marks=marks, unit=f"difference in {shown.scale}")
    return twice(plot, len(marks), name, " ".join(said), says)


def _risk(found: Returns, name: str) -> Drawing:
    said = [
        f"One point per target: its mean return to the right, the mean of its worst {found.alpha:.3g} of episodes"
        " upwards. What is right and up is better on both counts. Lines are intervals of each number alone at"
        f" {level_words(found.level)}.",
        "● trustworthy, ▲ caution, ✖ not supported; an arrow points beyond the figure.",
    ]
    if len(found.targets) > MOST_NAMED:
        said.append(f"{MOST_NAMED} of {len(found.targets):,} are named; the table has all.")
    says = "Risk against return. " + "; ".join(
        f"{each.target}: mean {amount_words(each.mean)}, worst {amount_words(each.tail)}" for each in found.targets
    )
    plot = partial(risk_and_return, found=found)
    return sized(plot, HEIGHT[False], HEIGHT[True], name, " ".join(said), says)


def _backtest(shown: Backtest, unit: str, prefix: str) -> Drawing:
    listed = shown.rows[: 2 * MOST_LOGGERS]
    caption = (
        "Each logger as predicted from the others' rows (● agrees, ▲ does not, perhaps by chance, ✖ does not, ○ cannot"
        " be predicted), and below it what it really earned (◇), each with its interval; z is the distance in standard"
        " errors of both."
    )
    more = f" The first {len(listed)} of {len(shown.rows)}." if len(shown.rows) > len(listed) else ""
    says = "Backtest. " + "; ".join(
        f"{row.label}: predicted {rounded(row.predicted)}, earned {rounded(row.earned)}" for row in listed
    )
    plot = partial(plots.backtest, rows=listed, unit=unit)
    return twice(plot, len(listed), f"{prefix}backtest", caption + more, says)
