"""Records on a terminal: one rendering of each, which ``print`` and the command line share.

:func:`view` gives something that a ``rich`` console prints in colours and at its own width; :func:`text` is the same in
plain characters. Text goes in as ``rich`` text, never as markup, so that a logger named ``[red]`` keeps its name.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from mixope.answers.confounding import Confounding
from mixope.answers.estimate import Estimate
from mixope.backtesting import Backtest, BacktestRow
from mixope.base.errors import Phrase, clean, in_python, phrased
from mixope.differences import Comparison, Differences, Selection
from mixope.distributions import Returns
from mixope.estimators import Entry
from mixope.experiments.records import Experiment
from mixope.inspection import Inspection
from mixope.logs import UNLABELLED
from mixope.planning import Plan
from mixope.report.difference_words import advantage_words, difference_words
from mixope.report.layout import (
    SHOWN,
    STYLE,
    Cell,
    Pieces,
    advice,
    bullets,
    facts,
    heading,
    notes,
    remarks,
    status,
    table,
)
from mixope.report.plans import plan_view
from mixope.report.returned import returns_view, risk_pieces
from mixope.report.terminal_inspection import inspection_view
from mixope.report.terminal_trials import experiment_view
from mixope.report.words import (
    NO_CONCLUSION,
    earned_words,
    judged,
    kind,
    length_words,
    number,
    of_units,
    outcome,
    percent,
    remedies,
    rounded,
    signed,
    span,
    standing,
    times,
    unanswered,
    whole,
)
from mixope.uncertainty import Difference, probability_words

UNSEEN = "whatever was never logged would earn, and counting chance"
WIDTH = 110
"""Columns where there is no terminal to ask."""


def text(record: Any) -> str:
    """The record as plain characters, on lines of a fixed width."""
    page = io.StringIO()
    plain = Console(file=page, width=WIDTH, color_system=None, force_jupyter=False, force_terminal=False)
    plain.print(view(record))
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")


@singledispatch
def view(record: Any, *, phrase: Phrase = in_python, **options: Any) -> Group:
    """A record as something to print; ``phrase`` has the words for what the reader could set."""
    raise TypeError(f"{type(record).__name__} cannot be shown")


@view.register
def _(estimate: Estimate, *, phrase: Phrase = in_python, target: str | None = None) -> Group:
    """The verdict and the number first, then what they rest on; ``target`` is what the user calls the policy."""
    dropped = f" ({estimate.n_dropped:,} dropped)" if estimate.n_dropped else ""
    lines: list[tuple[str, Cell]] = [
        ("verdict", _verdict(estimate)),
        ("value", Text.assemble((number(estimate.value), "bold"), f" {estimate.unit}, {estimate.estimand}")),
        ("interval", _interval(estimate, phrase)),
        *([("its episodes", f"have {length_words(estimate)} on average")] if length_words(estimate) else []),
        *([("outer band", f"{span(*estimate.band)}, {UNSEEN}")] if estimate.band else []),
        ("target", target or estimate.target),
        ("estimator", estimate.estimator),
        ("logs", f"{estimate.n_rows:,} rows{dropped}, {estimate.n_episodes:,} episodes{of_units(estimate)}"),
        *_against_all(estimate, phrase),
    ]
    for other in estimate.beside:
        lines.append(("beside", f"{other.estimator}: {number(other.value)}, {_interval(other, phrase)}"))
    pieces: Pieces = [facts(lines)]
    if estimate.diagnostics:
        rows = [(status(d.status), d.name, phrased(d.sentence, phrase)) for d in estimate.diagnostics]
        pieces.append(table(("", "check", "in words"), rows, folded=("in words",)))
        pieces += advice(remedies(estimate.diagnostics), phrase)
    else:
        pieces.append(Text("\nno diagnostics: this is not an estimate of the target", style="dim"))
    if {logger.label for logger in estimate.loggers} - {UNLABELLED}:
        pieces += [*_against_each(estimate), _shares(estimate)]
    if estimate.confounding is not None:
        pieces += _confounding(estimate.confounding)
    return Group(*pieces, *remarks(notes([*unanswered(estimate), *estimate.remarks]), phrase))


def _interval(estimate: Estimate, phrase: Phrase) -> str:
    found = estimate.interval
    if found is None:
        return f"none ({phrased(estimate.no_interval_because or 'none was made', phrase)})"
    return f"{span(found.low, found.high)} at {found.level:.4g} ({found.method})"


def _against_all(estimate: Estimate, phrase: Phrase) -> list[tuple[str, Cell]]:
    """What all who wrote the logs earn themselves, under the same estimand, and the target less that."""
    logs = estimate.against_logs
    if logs.value is None:
        return [("the logs earn", f"– ({phrased(logs.because, phrase)})")] if logs.because else []
    at = f" at {logs.interval.level:.4g}" if logs.interval else ""
    lines: list[tuple[str, Cell]] = [("the logs earn", f"{earned_words(logs)}{at} themselves, {logs.method}")]
    return [*lines, ("target − logs", advantage_words(logs))] if logs.difference else lines


def _against_each(estimate: Estimate) -> Pieces:
    """What every logger earns itself, and the target less that."""
    if all(found.value is None for _, found in estimate.rivals):
        return []
    rows = [
        (
            name,
            earned_words(found),
            difference_words(found),
            probability,
            "–" if gain is None else gain.conclusion or NO_CONCLUSION,
        )
        for name, found in estimate.rivals
        for gain in [found.difference]
        for probability in ["–" if gain is None else probability_words(gain.probability_better)]
    ]
    head = heading(f"what loggers earn themselves ({estimate.unit}, {estimate.estimand}), and the target less that")
    names = ("logger", "earns", "target − logger", "#P(better)", "so")
    return [head, table(names, rows, folded=("logger", "so"), most=SHOWN, last=1)]


def _confounding(found: Confounding) -> Pieces:
    """What the value may be if hidden reasons chose the logged actions."""
    rows = [
        (f"{p.factor:g}", span(p.low, p.high), "–" if p.sure_low is None else span(p.sure_low, p.sure_high))
        for p in found.curve
    ]
    names = ("#factor on the odds", "value from", "counting chance too")
    return [heading("if hidden reasons chose the logged actions"), bullets(found.sentences), table(names, rows)]


def _shares(estimate: Estimate) -> Table:
    """Who wrote how much, and how much of the answer rests on it."""
    rows = [
        (j.label, whole(j.rows), percent(j.weight_share, 1), whole(j.effective_sample_size)) for j in estimate.loggers
    ]
    return table(("logger", "#rows", "#share of weight", "#effective rows"), rows, ("logger",), most=SHOWN)


@view.register
def _(comparison: Comparison, *, phrase: Phrase = in_python) -> Group:
    """The table, which targets to take, their differences, then what was skipped and what should be known."""
    first = comparison.estimates[0]
    level = next((e.interval.level for e in comparison if e.interval), None)
    at = "" if level is None else f", intervals at {level:.4g}"
    head = Text(f"{first.estimand}, {first.unit}{at}; {first.n_rows:,} rows, {first.n_episodes:,} episodes")
    pieces: Pieces = [head, comparison_table(comparison)]
    several = len({e.target for e in comparison}) > 1
    for chosen in comparison.selections if several else ():
        pieces += [Text(), *_selection(chosen, phrase)]
        for found in comparison.differences:
            pieces += [Text(), *_differences(found, phrase)] if found.selection is chosen else []
    if several and not comparison.differences:
        pieces.append(Text("no differences: no estimator here has scores by episode for two targets", style="dim"))
    pieces += risk_pieces(comparison.risk, comparison.no_risk_because, phrase)
    skipped = [("note", f"{name} was left out: {phrased(why, phrase)}") for name, why in comparison.skipped]
    alerts = notes(dict.fromkeys(alert for e in comparison for alert in e.remarks))
    return Group(*pieces, *remarks([*skipped, *alerts], phrase))


def comparison_table(comparison: Comparison, truth: float | None = None) -> Table:
    """Targets and estimators, the targets named only where there are several; with the truth, how far off each is."""
    several = len({e.target for e in comparison}) > 1
    middle = ["#ess", "#uncovered"] if truth is None else ["#off by", "holds it"]
    names = [*(["target"] if several else []), "estimator", "#value", "interval", *middle, "verdict"]
    rows: list[list[Cell]] = []
    for e in comparison:
        found = e.interval
        values: list[Cell] = [_short(e.value), f"{_short(found.low)} to {_short(found.high)}" if found else "–"]
        if truth is not None:
            values += [signed(e.value - truth, 4), _yes(found.low <= truth <= found.high) if found else "–"]
        else:
            worth = whole(e.effective_sample_size or None)  # an estimator without weights has none
            values += [worth, percent(e.uncovered_mass if e.counted else None)] if judged(e) else ["–", "–"]
        start = [e.target, e.estimator] if several else [e.estimator]
        rows.append([*start, *values, _verdict(e, short=True)])
    return table(names, rows, folded=("target", "verdict"))


def _short(value: float) -> str:
    """Four digits, zeros kept so that columns line up."""
    return f"{value:#.4g}".removesuffix(".")


@view.register
def _(found: Differences, *, phrase: Phrase = in_python) -> Group:
    """The question, and what the comparison says of it."""
    head = Text(f"{found.estimand}, {found.n_episodes:,} episodes")
    return Group(head, Text(), *_selection(found.selection, phrase), Text(), *_differences(found, phrase))


@view.register
def _(chosen: Selection, *, phrase: Phrase = in_python) -> Group:
    """Which targets to take."""
    return Group(*_selection(chosen, phrase))


def _selection(chosen: Selection, phrase: Phrase) -> Pieces:
    """Who is best, what to take, and of more than two targets the place of each and what is lost."""
    said = [chosen.summary, *chosen.advice]
    pieces: Pieces = [Text(f"which to take, by {chosen.estimator}", style="bold"), bullets(said)]
    if len(chosen.ranks) > 2 and chosen.regret:
        rows = [
            ("–" if r.place is None else str(r.place), r.target, number(r.value), chance, r.span, standing(r))
            for r in chosen.ranks
            for chance in ["–" if r.probability_best is None else probability_words(r.probability_best)]
        ]
        names = ("#by value", "target", "#value", "#P(best)", "#places", "so")
        pieces.append(table(names, rows, folded=("target", "so"), most=SHOWN))
        losses = [(str(r.k), f"{r.expected:.3g}", f"{r.bound:.3g}") for r in chosen.losses]
        at = f"#lost at most, at {chosen.level:.4g}"
        pieces += [table(("#take the first", "#lost on average", at), losses)] if losses else []
    return [*pieces, *remarks(notes(chosen.alerts), phrase)]


def _differences(found: Differences, phrase: Phrase) -> Pieces:
    """The pairs, and how much narrower they are than from separate logs."""
    held = "intervals that hold together" if len(found.pairs) > 1 else "interval"
    pieces: Pieces = [
        Text(f"differences{_with_whom(found)} by {found.estimator}, {held} at {found.level:.4g}", style="bold"),
        _pairs(found.pairs),
    ]
    if found.loggers:
        pieces += [heading("against what loggers earn themselves"), _pairs(found.loggers)]
    return [*pieces, *remarks(notes(found.alerts), phrase)]


def _with_whom(found: Differences) -> str:
    return "" if found.compared == "all pairs" else " between the best and each of the others"


def _pairs(pairs: Sequence[Difference]) -> Table:
    rows = []
    for pair in pairs:
        half, chance = pair.decisive.width / 2, probability_words(pair.probability_better)
        around = f"{rounded(pair.decisive.low, half)} to {rounded(pair.decisive.high, half)}"
        value = rounded(pair.value, half)
        rows.append(
            (pair.first, pair.second, value, around, times(pair.narrower), chance, pair.conclusion or NO_CONCLUSION)
        )
    names = ("A", "B", "#A − B", "interval", "#narrower", "#P(A > B)", "so")
    return table(names, rows, folded=("A", "B", "so"), most=SHOWN)


@view.register
def _(backtest: Backtest, *, phrase: Phrase = in_python) -> Group:
    """One entry per logger, then the summary and the reasons where there is no prediction to use."""
    names = ("logger", "predicted\ninterval", "earned\ninterval", "#z", "#uncovered", "agrees\nverdict")
    rows = [(row.label, *_prediction(row)) for row in backtest.rows]
    reasons = notes(f"{row.label}: {row.note}" for row in backtest.rows if not row.supported and row.note)
    pieces: Pieces = [
        Text(clean(f"what each logger earns: {backtest.subject}")),
        table(names, rows, folded=("logger", "agrees\nverdict"), most=SHOWN),
        Text(clean(backtest.summary), style="bold"),
    ]
    return Group(*pieces, *remarks([*reasons, *notes(backtest.notes)], phrase))


def _prediction(row: BacktestRow) -> tuple[Cell, ...]:
    """Numbers with their intervals below them, rounded alike; and the verdict below the answer."""
    spans = ((row.low, row.high), (row.earned_low, row.earned_high))
    wide = max((high - low for low, high in spans if low is not None and high is not None), default=None)
    spread = None if wide is None else wide / 2
    predicted, earned = (
        rounded(value, spread) + ("" if low is None else f"\n{rounded(low, spread)} to {rounded(high, spread)}")
        for value, (low, high) in zip((row.predicted, row.earned), spans, strict=True)
    )
    said = Text.assemble((outcome(row), STYLE[kind(row)]), f"\n{row.verdict}")
    return predicted, earned, signed(row.z, 1), percent(row.uncovered_mass), said


@view.register
def _(found: Inspection, *, phrase: Phrase = in_python) -> Group:
    """What logs hold."""
    return inspection_view(found, phrase)


@view.register
def _(found: Experiment, *, phrase: Phrase = in_python) -> Group:
    """The long run of an experiment."""
    return experiment_view(found, phrase)


@view.register
def _(found: Plan, *, phrase: Phrase = in_python) -> Group:
    """How much data it takes."""
    return plan_view(found, phrase)


@view.register
def _(found: Returns, *, phrase: Phrase = in_python) -> Group:
    """How returns are spread."""
    return returns_view(found, phrase)


KNOWN = "needs to know the loggers?"


def registry_view(registry: Mapping[str, Entry]) -> Table:
    """One estimator per line."""
    rows = [
        (name, entry.family, "yes" if "features" in entry.takes else "no", entry.needs or "no", entry.when)
        for name, entry in registry.items()
    ]
    return table(("name", "family", "vectors", KNOWN, "when to use it"), rows, folded=(KNOWN, "when to use it"))


def _yes(answer: bool) -> Text:
    return Text("yes", style="green") if answer else Text("no", style="red")


def _verdict(estimate: Estimate, short: bool = False) -> Text:
    """A verdict in its colour."""
    words = str(estimate.verdict)
    if short:
        words = words.removesuffix(" by these logs").removesuffix(" only")
    return Text(words, style=STYLE[kind(estimate)])
