"""The sheet of an estimate, or of a comparison of targets.

    estimates · which to take · differences · risk · against the logs · confounding · checks · weights · coverage ·
    stationarity · backtest · alerts · data · manifest

Of one estimate, terminal and card show what carries it; of a comparison, what tells targets apart. A page has all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mixope.answers.confounding import Confounding
from mixope.answers.estimate import Estimate
from mixope.base.errors import Advice
from mixope.differences import Comparison, Selection
from mixope.inspection import Coverage
from mixope.logs import UNLABELLED
from mixope.report.answer_briefs import brief_of_one, brief_of_several
from mixope.report.backtest_sheet import predictions
from mixope.report.chapters import (
    ON_CARD,
    card_line,
    manifest,
    note_lines,
    notes_chapter,
    provenance_chapter,
    verdict_cell,
)
from mixope.report.contest_sheets import differences_parts, selection_parts
from mixope.report.decision import choice, decision
from mixope.report.difference_words import advantage_words, difference_words
from mixope.report.returns_sheet import risk_chapter
from mixope.report.sheet import (
    EVERYWHERE,
    IN_BRIEF,
    ON_PAGE,
    SHOWN,
    TERMINAL,
    Brief,
    CardLine,
    Chapter,
    ChapterPart,
    ChecksMade,
    FigureNamed,
    Headline,
    Paragraph,
    Sentences,
    Sheet,
    SheetCell,
    SheetFacts,
    SheetTable,
    Signed,
    Subtitle,
    most_urgent,
)
from mixope.report.words import (
    NEXT,
    NO_CONCLUSION,
    SYMBOL,
    bounds_words,
    earned_words,
    judged,
    kind,
    length_words,
    meaning,
    number,
    of_units,
    outcome,
    percent,
    rounded,
    signed,
    span,
    state_words,
    unanswered,
    whole,
    why,
)
from mixope.uncertainty import probability_words

if TYPE_CHECKING:
    from mixope.report.document import Answer, Document

UNSEEN = "whatever was never logged would earn, and counting chance"
ON_TERMINAL = frozenset({TERMINAL})
Parts = Iterator[ChapterPart]


def answer_sheet(shown: Document) -> Sheet:
    """The sheet of all that the document knows."""
    alone, several = isinstance(shown.record, Estimate), len(shown.answers) > 1
    if not shown.answers:
        return Sheet(*_of_several(shown), remarks=_remarks(shown), brief=brief_of_several(shown, None))
    chapters = (
        *((_answer(shown.first),) if alone else (_asked(shown),)),
        _estimates(shown),
        *((_choice(shown), _differences(shown)) if several else ()),
        *risk_chapter(shown.risk, shown.no_risk_because),
        *_details(shown),
        notes_chapter("alerts", "Alerts", shown.alerts, "Nothing about these logs needs mention."),
        *(() if alone else (_not_passed(shown),)),
        notes_chapter("notes", "Notes", [line for _, line in _remarks(shown)], places=ON_CARD),
        _data(shown),
        *provenance_chapter(shown.first.provenance),
        *manifest(shown),
    )
    headline, urgent = _of_one(shown.first) if alone else _of_several(shown)
    return Sheet(
        headline,
        urgent,
        chapters if alone else _brief(chapters),
        _remarks(shown),
        title=shown.title if several else "",
        opening=tuple(_opening(shown)) if several else (),
        headlines=tuple(_explained(shown, answer) for answer in shown.detailed),
        brief=_brief_of(shown),
    )


def _brief_of(shown: Document) -> Brief:
    """The first screen."""
    record = shown.record
    if not isinstance(record, Comparison):
        return brief_of_one(shown)
    return brief_of_several(shown, leader(record, record.selections[0] if record.selections else None))


def _brief(chapters: Iterable[Chapter]) -> tuple[Chapter, ...]:
    """Those of a comparison: what is about one target alone stands on the page."""
    return tuple(replace(each, places=ON_PAGE) if each.name in _OF_ONE else each for each in chapters)


_OF_ONE = ("against", "confounding", "checks", "weights")


def _remarks(shown: Document) -> tuple[tuple[str, str], ...]:
    """What should be known besides: what has no difference and why, what was left out, notes on logs and question."""
    if isinstance(shown.record, Estimate):
        return note_lines([*unanswered(shown.first), *shown.first.remarks])
    left = [Advice(f"{name} was left out: ", reason) for name, reason in shown.skipped]
    return note_lines([*left, *shown.alerts])


def _of_one(found: Estimate) -> tuple[Headline, tuple[CardLine, ...]]:
    return (
        Headline(kind(found), str(found.verdict), decision(found)),
        most_urgent([card_line(check) for check in found.diagnostics]),
    )


def _of_several(shown: Document) -> tuple[Headline, tuple[CardLine, ...]]:
    """The target in the first place speaks; of a single target, its first estimate."""
    record = shown.record
    assert isinstance(record, Comparison)
    chosen = record.selections[0] if record.selections else None
    best, several = leader(record, chosen), len(shown.answers) > 1
    urgent = [
        replace(card_line(check), name=f"{e.target}, {check.name}" if several else check.name)
        for e in record.estimates
        if chosen is None or e.estimator == chosen.estimator
        for check in e.diagnostics
    ]
    said = Headline(
        "bad" if best is None else kind(best),
        "no target can be ranked" if best is None else f"{best.target}: {best.verdict}",
        choice(record) if several or best is None else decision(best),
    )
    return said, most_urgent(urgent)


def leader(record: Comparison, chosen: Selection | None) -> Estimate | None:
    """The estimate of the target in the first place; of a single target, its first one."""
    if chosen is not None and chosen.ranked:
        first = chosen.ranked[0].target
        return next((e for e in record.estimates if (e.target, e.estimator) == (first, chosen.estimator)), None)
    alone = len({e.target for e in record.estimates}) == 1
    return record.estimates[0] if alone else None


def _opening(shown: Document) -> Iterator[str]:
    for said in shown.selections[0].advice if shown.selections else ():
        yield f"{said[0].upper()}{said[1:]}."
    if len(shown.detailed) < len(shown.answers):
        yield (
            f"{whole(len(shown.answers))} targets. The {len(shown.detailed)} that rank highest are shown in detail; the"
            " tables have all of them, and the result as JSON every detail."
        )


def _explained(shown: Document, answer: Answer) -> Headline:
    """What a page says of one target before all details."""
    found = answer.estimate
    by = f"Target “{found.target}”: {shown.scale}, by the estimator {found.estimator}"
    by += f"; interval: {found.interval.method}." if found.interval else "."
    said = [why(found), meaning(found)]
    if answer.better:
        others = ", ".join(f"{e.estimator} ({number(e.value)}, {e.verdict})" for e in answer.better)
        said.append(f"Other estimates from these logs came out better in their checks: {others}.")
    if answer.truth is not None:
        held = ""
        if found.interval:
            inside = found.interval.low <= answer.truth <= found.interval.high
            held = f", and the interval {'holds' if inside else 'misses'} it"
        said.append(
            f"The truth is known here: {number(answer.truth)}. The estimate is off by"
            f" {found.value - answer.truth:+.4g}{held}."
        )
    who = f"{found.target}: " if len(shown.answers) > 1 else ""
    return Headline(kind(found), f"{who}{found.verdict}", decision(found), tuple(said), by)


def _answer(found: Estimate) -> Chapter:
    """The number and what it is of."""
    pairs: list[tuple[str, SheetCell]] = [
        ("verdict", Signed(str(found.verdict), kind(found))),
        ("value", f"{number(found.value)} {found.unit}, {found.estimand}"),
        ("interval", _interval(found)),
        *([("its episodes", f"have {length_words(found)} on average")] if length_words(found) else []),
        *([("outer band", f"{span(*found.band)}, {UNSEEN}")] if found.band else []),
        ("target", found.target),
        ("estimator", found.estimator),
        ("logs", _rows_and_episodes(found)),
        *_against_all(found),
        *[("beside", Advice(f"{e.estimator}: {number(e.value)}, ", _interval(e))) for e in found.beside],
    ]
    return Chapter("answer", "The answer", (SheetFacts(tuple(pairs)),), places=IN_BRIEF)


def _rows_and_episodes(found: Estimate) -> str:
    dropped = f" ({found.n_dropped:,} dropped)" if found.n_dropped else ""
    return f"{found.n_rows:,} rows{dropped}, {found.n_episodes:,} episodes{of_units(found)}"


def _interval(found: Estimate) -> str:
    made = found.interval
    if made is None:
        return Advice("none (", found.no_interval_because or "none was made", ")")
    return f"{span(made.low, made.high)} at {made.level:.4g} ({made.method})"


def _against_all(found: Estimate) -> list[tuple[str, SheetCell]]:
    """What all who wrote the logs earn themselves, under the same estimand, and the target less that."""
    logs = found.against_logs
    if logs.value is None:
        return [("the logs earn", Advice("– (", logs.because, ")"))] if logs.because else []
    at = f" at {logs.interval.level:.4g}" if logs.interval else ""
    lines: list[tuple[str, SheetCell]] = [("the logs earn", f"{earned_words(logs)}{at} themselves, {logs.method}")]
    return [*lines, ("target − logs", advantage_words(logs))] if logs.difference else lines


def _asked(shown: Document) -> Chapter:
    """The question that all targets of a comparison answer."""
    level = next((e.interval.level for e, _ in shown.rows if e.interval), None)
    at = "" if level is None else f", intervals at {level:.4g}"
    words = f"{shown.first.estimand}, {shown.unit}{at}; {_rows_and_episodes(shown.first)}"
    return Chapter("asked", "", (Paragraph(words),), places=ON_TERMINAL)


def _estimates(shown: Document) -> Chapter:
    """Every estimate in one table, how each grew, and what was left out."""
    alone = isinstance(shown.record, Estimate)
    places = EVERYWHERE if not alone else (ON_PAGE | ON_CARD if shown.first.beside else ON_PAGE)
    left = tuple(Advice(f"{name}: ", reason) for name, reason in shown.skipped)
    parts: list[ChapterPart] = [
        FigureNamed("targets"),
        *_each(shown, _forest),
        replace(estimates_table(shown.rows, shown.scale, named=alone), places=places),
        *([Subtitle("Left out, and why", ON_PAGE | ON_CARD)] if left else []),
        Sentences(left, ON_PAGE | ON_CARD),
    ]
    return Chapter("estimates", "Estimates", tuple(parts))


def _forest(answer: Answer, k: int) -> Parts:
    found = answer.estimate
    yield FigureNamed(f"forest-{k}")
    yield FigureNamed(f"growth-{k}")
    if judged(found) and not found.pictures.growth:
        yield Paragraph(
            "No picture of the estimate as the log grows: it takes scores by episode, and at least 15 episodes.",
            "missing",
            ON_PAGE,
        )
    if answer.band is None:
        because = found.no_band_because
        yield Paragraph(
            Advice(
                "No outer band: ",
                because or "everything that the target does was logged, or its states cannot be counted",
                ". A band says what the value could be if actions that were never logged earned the least, or the",
                " most.",
            ),
            "missing",
            ON_PAGE,
        )


def estimates_table(
    found: Iterable[tuple[Estimate, float | None]], scale: str = "", *, named: bool = False
) -> SheetTable:
    """Targets, where there are several or they are ``named``, and estimators; how far off each is, if that is known."""
    found = list(found)
    several, known = named or len({e.target for e, _ in found}) > 1, any(off is not None for _, off in found)
    rows = []
    for e, off in found:
        half = e.interval.width / 2 if e.interval else None
        cells: list[SheetCell] = [e.target] if several else []
        cells += [e.estimator, rounded(e.value, half)]
        cells.append(f"{rounded(e.interval.low, half)} to {rounded(e.interval.high, half)}" if e.interval else "–")
        cells += [*_off(e, off)] if known else []
        worth = e.effective_sample_size or None  # an estimator without weights has none
        cells += [whole(worth), percent(e.uncovered_mass if e.counted else None)] if judged(e) else ["–", "–"]
        rows.append((*cells, verdict_cell(e.verdict)))
    names = ("estimator", "#value", "interval", *(("#off by", "holds it") if known else ()))
    names = (*(("target",) if several else ()), *names, "#effective rows", "#uncovered", "verdict")
    title = f"every estimate: {scale}" if scale else "every estimate"
    return SheetTable(title, names, tuple(rows), wraps=("target", "estimator", "verdict"))


def _off(found: Estimate, off: float | None) -> tuple[SheetCell, SheetCell]:
    if off is None:
        return "–", "–"
    if found.interval is None:
        return signed(off, 4), "–"
    truth = found.value - off
    inside = found.interval.low <= truth <= found.interval.high
    return signed(off, 4), Signed("yes", "good") if inside else Signed("no", "bad")


def _each(shown: Document, parts: Callable[[Answer, int], Parts]) -> Parts:
    """The same of every target that is shown in detail, under its name where there are several."""
    for k, answer in enumerate(shown.detailed):
        if len(shown.answers) > 1:
            yield Subtitle(answer.estimate.target)
        yield from parts(answer, k)


def _choice(shown: Document) -> Chapter:
    """Which of several targets to take."""
    parts: list[ChapterPart] = []
    for k, chosen in enumerate(shown.selections):
        parts.append(Subtitle(f"which to take, by {chosen.estimator}"))
        parts += selection_parts(chosen, f"selection-{k}")
    if not shown.selections:
        parts.append(Paragraph("Nothing to choose from: no estimate here is judged.", "missing", ON_PAGE))
    return Chapter("choice", "Which to take", tuple(parts))


def _differences(shown: Document) -> Chapter:
    """Every target less every other."""
    lead = "The same episodes carry all targets, so a difference is often far more certain than either value."
    parts: list[ChapterPart] = [Paragraph(lead, "lead", ON_PAGE)] if shown.differences else []
    for k, found in enumerate(shown.differences):
        parts += differences_parts(found, f"differences-{k}")
    if not shown.differences:
        none = "No differences: no estimator here has scores by episode for two targets; emp and dr have."
        parts.append(Paragraph(none, "missing", ON_PAGE | ON_TERMINAL))
    return Chapter("differences", "Differences", tuple(parts))


def _details(shown: Document) -> Iterator[Chapter]:
    """What the answer on every target rests on."""
    lead = (
        f"What those who wrote the logs earn themselves, as {shown.scale}, and the target less that. The same episodes"
        " carry both."
    )
    yield Chapter("against", "Against the logs", (Paragraph(lead, "lead", ON_PAGE), *_each(shown, _against)))
    if any(answer.estimate.confounding for answer in shown.answers):
        doubt = (
            "Two rows of one state and action should differ by chance alone. Whoever acted may have seen more than the"
            " logs show, and no log tells. What the value may then be:"
        )
        parts = (Paragraph(doubt, "lead", ON_PAGE), *_each(shown, _confounded))
        yield Chapter("confounding", "if hidden reasons chose the logged actions", parts)
    worst = "The verdict is the worst of these. A failed check means that the logs cannot carry the answer."
    checks = (Paragraph(worst, "lead", ON_PAGE), *_each(shown, _checks), *_replayed(shown))
    yield Chapter("checks", "Checks behind the verdict", checks)
    yield Chapter("weights", "Weights", tuple(_each(shown, _weights)))
    coverage = [*_each(shown, _coverage)]
    if not any(answer.coverage for answer in shown.answers):
        unknown = (
            "Which states and actions are missing was not recorded; an inspection of the logs together with the target"
            " finds them."
        )
        coverage.append(Paragraph(unknown, "missing"))
    yield Chapter("coverage", "Coverage", tuple(coverage), places=ON_PAGE)
    flow = Paragraph(
        "Right weights reproduce the target's own flow: what enters a state, weighted, leaves it again.", "lead"
    )
    yield Chapter("stationarity", "Stationarity", (flow, *_each(shown, _stationarity)), places=ON_PAGE)
    yield _backtest(shown)


def _against(answer: Answer, k: int) -> Parts:
    """What every logger earns itself, and the target less that."""
    found = answer.estimate
    rows = tuple(
        (
            name,
            earned_words(rival),
            difference_words(rival),
            probability_words(gain.probability_better) if gain else "–",
            (gain.conclusion or NO_CONCLUSION) if gain else "–",
        )
        for name, rival in found.rivals
        for gain in [rival.difference]
    )
    labelled = {logger.label for logger in found.loggers} - {UNLABELLED}
    known = any(rival.value is not None for _, rival in found.rivals)
    yield SheetTable(
        f"what loggers earn themselves ({found.unit}, {found.estimand}), and the target less that",
        ("logger", "earns", "target − logger", "#P(> 0)", "so"),
        rows,
        ("logger", "so"),
        most=SHOWN,
        last=1,
        places=EVERYWHERE if labelled and known else ON_PAGE,
    )
    yield Sentences(tuple(unanswered(found)), ON_PAGE)


def _confounded(answer: Answer, k: int) -> Parts:
    found = answer.estimate.confounding
    if found is None:
        return
    yield Sentences(bounds_words(answer.estimate))
    yield FigureNamed(f"confounding-{k}")
    yield _bounds(found)


def _bounds(found: Confounding) -> SheetTable:
    rows = tuple(
        (f"{p.factor:g}", span(p.low, p.high), "–" if p.sure_low is None else span(p.sure_low, p.sure_high))
        for p in found.curve
    )
    return SheetTable(
        "the value by the factor",
        ("#factor on the odds", "value from", "counting chance too"),
        rows,
        explained="by which hidden reasons may have changed the odds of the logged actions",
    )


def _checks(answer: Answer, k: int) -> Parts:
    found = answer.estimate
    yield ChecksMade(found.diagnostics, found.estimator)
    if not found.diagnostics:
        yield Paragraph("There are no checks: a reference line is not an estimate of the target.", "missing", ON_PAGE)
        yield Paragraph("no diagnostics: this is not an estimate of the target", places=ON_TERMINAL)


def _replayed(shown: Document) -> Parts:
    """What the model says of those who wrote the logs, beside what was seen."""
    every = next((a.estimate.pictures.replay for a in shown.answers if a.estimate.pictures.replay), ())
    rows = tuple(
        (
            str(mean.rows),
            f"{mean.predicted:.4g}",
            f"{mean.seen:.4g}",
            f"{(mean.predicted - mean.seen) / mean.standard_error:+.1f}" if mean.standard_error > 0 else "–",
        )
        for mean in every
    )
    yield SheetTable(
        "the logs replayed",
        ("rows", "#predicted", "#seen", "#off by"),
        rows,
        explained="what the counts of all rows say that those who wrote the logs earn per step, beside what was seen;"
        " the last column has the difference in standard errors",
        places=ON_PAGE,
    )


def _weights(answer: Answer, k: int) -> Parts:
    """How much rests on each row, and on each logger."""
    found = answer.estimate
    if answer.weighs:
        heavy = answer.largest_weight
        said = f"; the heaviest row carries {percent(heavy)} of all weight" if heavy is not None else ""
        worth = f"are worth {whole(found.effective_sample_size)} of the target's own{said}."
        yield Paragraph(f"All {whole(found.n_rows)} rows, weighted, {worth}", places=ON_PAGE)
    else:
        needs = "an estimator with importance weights (such as emp or dr) would fill this part."
        yield Paragraph(f"{found.estimator} weighs no rows; {needs}", "missing", ON_PAGE)
    yield FigureNamed(f"weights-{k}")
    total = max(sum(logger.rows for logger in found.loggers), 1)
    rows = tuple(
        (
            *(logger.label, whole(logger.rows), percent(logger.rows / total, 1)),
            *(percent(logger.weight_share, 1), whole(logger.effective_sample_size)),
        )
        for logger in found.loggers
    )
    labelled = {logger.label for logger in found.loggers} - {UNLABELLED}
    names = ("logger", "#rows", "#share of rows", "#share of weight", "#effective rows")
    places = EVERYWHERE if labelled else ON_PAGE | ON_CARD
    yield SheetTable("loggers: rows, and how much rests on each", names, rows, ("logger",), most=SHOWN, places=places)


def _coverage(answer: Answer, k: int) -> Parts:
    """How much of the target was never logged, and where."""
    found, coverage = answer.estimate, answer.coverage
    if judged(found):
        yield SheetFacts(tuple(_uncovered(answer)))
    else:
        yield Paragraph("A reference line has no coverage: it asks nothing about the target.", "missing")
    yield FigureNamed(f"visits-{k}")
    if judged(found) and found.pictures.visits is None:
        takes = "it takes a weight for every row, and states that can be counted."
        yield Paragraph(f"No picture of visits: {takes}", "missing")
    if coverage:
        yield Paragraph(
            f"At the states as they were logged, {percent(coverage.covered_rows)} of the rows lie where every action of"
            f" the target was logged; {percent(coverage.uncovered_mass)} of its actions were never logged there, in"
            f" {whole(coverage.gaps)} gaps."
        )
        yield _covered_by(coverage)
        yield FigureNamed(f"map-{k}")
        yield gaps_table(coverage)


def _uncovered(answer: Answer) -> Iterator[tuple[str, SheetCell]]:
    found = answer.estimate
    if found.counted:
        yield (
            "uncovered",
            f"{percent(found.uncovered_mass)} of the target's steps are actions never logged in their state",
        )
        outside = percent(found.outside_mass)
        yield "outside", f"{outside} of the target may lie outside the part of the logs where it is followed"
    else:
        nobody = "nobody knows which actions were never logged in them"
        yield "uncovered", f"not counted: states are numbers that do not repeat, so that {nobody}"
    if answer.band:
        earned = "the value if what was never logged earned the least, and the most, counting chance"
        yield "outer band", f"{span(*answer.band)}: {earned}"


def _covered_by(coverage: Coverage) -> SheetTable:
    rows = tuple((logger.label, percent(logger.covered), percent(logger.alone)) for logger in coverage.loggers)
    return SheetTable(
        "coverage by logger",
        ("logger", "#covered", "#covered by it alone"),
        rows,
        ("logger",),
        explained="how much of the target's actions each has taken in the same state, and how much only it has",
    )


def gaps_table(coverage: Coverage) -> SheetTable:
    """The actions of a target that nobody logged in a state, the heaviest first."""
    rows = tuple(
        (
            *(state_words(coverage.factors, gap.state), str(gap.action), f"{gap.probability:.4g}"),
            *(whole(gap.state_rows), percent(gap.mass, 4)),
        )
        for gap in coverage.worst
    )
    return SheetTable(
        f"the heaviest of {coverage.gaps:,} gaps",
        ("state", "action", "#probability", "#rows there", "#share of steps"),
        rows,
        ("state", "action"),
        explained="actions of the target that nobody logged in a state",
    )


def _stationarity(answer: Answer, k: int) -> Parts:
    found = answer.estimate
    pairs: list[tuple[str, SheetCell]] = [("solver", found.solver), ("residual", number(found.residual))]
    for check in answer.stationarity:
        pairs.append((check.name, Advice(f"{SYMBOL[kind(check)]} {outcome(check)}: ", check.sentence)))
    yield SheetFacts(tuple(pairs))
    if not answer.held_out:
        solved = "the one above is on the rows it was solved from."
        yield Paragraph(f"No residual on held-out episodes was recorded for {found.estimator}; {solved}", "missing")


def _backtest(shown: Document) -> Chapter:
    found = shown.backtest
    if found is None:
        none = (
            "No backtest was made: with two or more labelled loggers, each one's earnings can be predicted from the"
            " others' rows and held against what it really earned."
        )
        return Chapter("backtest", "Backtest", (Paragraph(none, "missing"),), places=ON_PAGE)
    known = "Each logger's own earnings are known. Left out in turn and predicted from the rows of the others"
    parts = (Paragraph(f"{known}: {found.summary}."), *predictions(found), Sentences(found.notes))
    return Chapter("backtest", "Backtest", parts, places=ON_PAGE)


def _not_passed(shown: Document) -> Chapter:
    """Of all estimates of a comparison, the checks that did not pass."""
    every = [(e, check) for e, _ in shown.rows for check in e.diagnostics]
    bad = sorted((pair for pair in every if pair[1].status != "pass"), key=lambda pair: pair[1].status != "fail")
    rows = tuple(
        (e.target, e.estimator, Signed(outcome(check), kind(check)), check.name, check.sentence, check.remedy or "")
        for e, check in bad
    )
    title = f"checks that did not pass, of {len(every):,}"
    names = ("target", "estimator", "", "check", "in words", NEXT)
    table = SheetTable(title, names, rows, ("target", "check"), ("in words", NEXT))
    return Chapter("not-passed", "Checks that did not pass", (table,), places=ON_CARD)


def _data(shown: Document) -> Chapter:
    found = shown.first
    dropped = f", besides {whole(found.n_dropped)} that could not be used" if found.n_dropped else ""
    pairs: tuple[tuple[str, SheetCell], ...] = (
        ("rows", f"{whole(found.n_rows)}{dropped}"),
        ("episodes", whole(found.n_episodes)),
        ("loggers", str(len(found.loggers))),
        ("rewards", f"{number(found.logged_mean)} per row on average"),
    )
    none = (
        "No picture of the behaviour's probabilities against the actions that were taken: nothing was recorded, given"
        " or fitted that gives probabilities to actions. A behaviour that is counted fits them by construction."
    )
    parts = (SheetFacts(pairs), FigureNamed("returns"), FigureNamed("reliability", none))
    return Chapter("data", "Data", parts, places=ON_PAGE)
