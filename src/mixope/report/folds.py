"""The details of a card, folded under their titles: tables and notes, made of words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mixope.answers.estimate import Estimate, Provenance
from mixope.checks import Diagnostic
from mixope.differences import Differences, Selection
from mixope.distributions import Returns
from mixope.inspection import Contents, Inspection
from mixope.logs import CANONICAL
from mixope.report.difference_words import difference_words
from mixope.report.returned import amount_words
from mixope.report.words import (
    NEXT,
    NO_CONCLUSION,
    by_urgency,
    demand,
    earned_words,
    number,
    outcome,
    percent,
    span,
    standing,
    state_words,
    whole,
)
from mixope.uncertainty import probability_words

MOST_LISTED = 100
"""Rows of a table; the JSON has all."""


@dataclass(frozen=True)
class Fold:
    """Details under a title: a table (columns that start with # hold numbers), lines, or text in columns."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    text: str = ""


def present(*folds: Fold | None) -> tuple[Fold, ...]:
    """Those that hold something."""
    return tuple(fold for fold in folds if fold is not None and (fold.rows or fold.lines or fold.text))


def title(words: str, n: int) -> str:
    """A title that says how many there are, and how many of them are shown."""
    return f"{words} ({n:,}{f', the first {MOST_LISTED}' if n > MOST_LISTED else ''})"


def checks(found: Sequence[Diagnostic]) -> Fold:
    """All checks of an estimate."""
    rows = tuple((outcome(d), d.name, d.sentence, d.remedy or "", demand(d)) for d in by_urgency(found))
    return Fold(title("Checks", len(found)), ("", "check", "in words", NEXT, "value and threshold"), rows)


def checks_of_all(estimates: Sequence[Estimate]) -> Fold:
    """Of several estimates, the checks that did not pass."""
    rows = [
        (e.target, e.estimator, outcome(d), d.name, d.sentence, d.remedy or "")
        for e in estimates
        for d in e.diagnostics
    ]
    unsound = sorted((row for row in rows if row[2] != "ok"), key=lambda row: row[2] != "failed")
    said = title(f"Checks that did not pass, of {len(rows):,}", len(unsound))
    return Fold(said, ("target", "estimator", "", "check", "in words", NEXT), tuple(unsound[:MOST_LISTED]))


def estimates(words: str, found: Sequence[Estimate]) -> Fold:
    """One row per estimate."""
    rows = tuple((e.target, e.estimator, number(e.value), span(*_ends(e)), str(e.verdict)) for e in found[:MOST_LISTED])
    return Fold(title(words, len(found)), ("target", "estimator", "#value", "interval", "verdict"), rows)


def _ends(found: Estimate) -> tuple[float | None, float | None]:
    return (found.interval.low, found.interval.high) if found.interval else (None, None)


def loggers(record: Estimate) -> Fold:
    """One row per logger: its rows, its weight, what it earns itself."""
    rows = tuple(
        (
            *(each.label, whole(each.rows), percent(each.weight_share, 1), whole(each.effective_sample_size)),
            *(earned_words(each.earned), difference_words(each.earned)),
        )
        for each in record.loggers[:MOST_LISTED]
    )
    names = ("logger", "#rows", "#weight", "#effective rows", "earns itself", "target less that")
    return Fold(title("Loggers", len(record.loggers)), names, rows)


def pairs(found: Differences) -> Fold:
    """One row per pair of targets, and per target and logger."""
    every = (*found.pairs, *found.loggers)
    rows = tuple(
        (
            *(p.first, p.second, number(p.value), span(p.decisive.low, p.decisive.high)),
            *(probability_words(p.probability_better), p.conclusion or NO_CONCLUSION),
        )
        for p in every[:MOST_LISTED]
    )
    names = ("first", "second", "#difference", "joint interval", "#P(first is better)", "conclusion")
    return Fold(title(f"Differences by {found.estimator}", len(every)), names, rows)


def places(chosen: Selection) -> Fold:
    """One row per target."""
    rows = tuple((r.target, r.span, number(r.value), standing(r)) for r in chosen.ranks[:MOST_LISTED])
    return Fold(title("Places", len(chosen.ranks)), ("target", "places", "#value", "standing"), rows)


def logger_rows(inside: Contents) -> Fold:
    """One row per logger: what it wrote and earned."""
    rows = tuple((j.label, whole(j.rows), whole(j.episodes), number(j.logged_mean)) for j in inside.loggers)
    names = ("logger", "#rows", "#episodes", "#earned per step")
    return Fold(title("Loggers", len(rows)), names, rows[:MOST_LISTED])


def risk(found: Returns | None) -> Fold | None:
    """One row per target: the mean return of an episode, and that of the worst ones."""
    if found is None:
        return None
    rows = tuple((t.target, amount_words(t.mean), amount_words(t.tail), str(t.verdict)) for t in found.targets)
    return Fold(title("Risk and return", len(rows)), ("target", "mean", found.main.tail.name, "verdict"), rows)


def mapping(sources: str, known: Mapping[str, str | tuple[str, ...]]) -> Fold:
    """Which column every notion came from."""
    rows = tuple((notion, _column(known[notion])) for notion in CANONICAL if notion in known)
    return Fold(f"Columns of {sources}" if sources else "Columns", ("notion", "column"), rows)


def _column(found: str | tuple[str, ...]) -> str:
    return found if isinstance(found, str) else ", ".join(found)


def gaps(record: Inspection) -> Fold | None:
    """What of the target was never logged, where one was given."""
    if record.coverage is None:
        return None
    names_of = record.coverage.factors
    rows = tuple(
        (
            *(state_words(names_of, g.state), str(g.action)),
            *(f"{g.probability:.4g}", whole(g.state_rows), percent(g.mass, 4)),
        )
        for g in record.coverage.worst
    )
    names = ("state", "action", "#probability", "#rows there", "#share of steps")
    return Fold(f"The heaviest of {record.coverage.gaps:,} gaps", names, rows)


def listed(words: str, column: str, names: Sequence[str]) -> Fold:
    """One row per name."""
    return Fold(title(words, len(names)), (column,), tuple((name,) for name in names[:MOST_LISTED]))


def notes(lines: Iterable[str], words: str = "Notes") -> Fold:
    """One line per note."""
    every = tuple(lines)
    return Fold(title(words, len(every)), lines=every)


def provenance(known: Provenance | None) -> Fold | None:
    """Version, seed, engine and fingerprints."""
    if known is None:
        return None
    facts = [("mixope", known.version), ("seed", str(known.seed)), ("engine", known.engine)]
    facts += [("logs", known.logs_fingerprint), ("target", known.target_fingerprint)]
    return Fold("Where it comes from", ("what", "which"), tuple((name, found) for name, found in facts if found))
