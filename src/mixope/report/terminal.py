"""Records on a terminal: one rendering of each, which ``print`` and the command line share.

:func:`view` gives something that a ``rich`` console prints in colours and at its own width; :func:`text` is the same in
plain characters. Text goes in as ``rich`` text, never as markup, so that a logger named ``[red]`` keeps its name.
"""

from __future__ import annotations

import io
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mixope.backtesting import Backtest, BacktestRow
from mixope.differences import Comparison, Difference, Differences, Selection
from mixope.differences.records import probability_words
from mixope.errors import Phrase, Setting, clean, in_python, phrased
from mixope.estimate import Estimate
from mixope.estimators import Entry
from mixope.inspection import Columns, Component, Contents, Coverage, Inspection, Vectors
from mixope.logs import CANONICAL, UNLABELLED
from mixope.report.words import (
    advantage_words,
    difference_words,
    earned_words,
    judged,
    kind,
    length_words,
    number,
    outcome,
    percent,
    rounded,
    signed,
    span,
    standing,
    times,
    unanswered,
    whole,
)

WIDTH = 110
"""Columns where there is no terminal to ask."""
STYLE = {"good": "bold green", "caution": "bold yellow", "bad": "bold red", "reference": "dim"}
STATUS = {
    "pass": ("ok", "green"),
    "warn": ("warn", "yellow"),
    "fail": ("FAIL", "bold red"),
    "error": ("error", "bold red"),
    "warning": ("warn", "yellow"),
    "note": ("note", "cyan"),
}
BAR_WIDTH = 30
OF_ENDS = ("ends-unsaid", "dropped-rows")
"""Remarks that say nothing against the rows that can be used."""
SHOWN_SOURCES = 3
SHOWN_ACTIONS = 12
SHOWN_COMPONENTS = 40
ATOM = 0.01
"""From this share of the rows on, values exactly at an extreme are worth a word."""
Cell = str | Text
Pieces = list[RenderableType]


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
        *([("outer band", f"{span(*estimate.band)}, whatever was never logged would earn")] if estimate.band else []),
        ("target", target or estimate.target),
        ("estimator", estimate.estimator),
        ("logs", f"{estimate.n_rows:,} rows{dropped}, {estimate.n_episodes:,} episodes"),
        *_against_all(estimate, phrase),
    ]
    for other in estimate.beside:
        lines.append(("beside", f"{other.estimator}: {number(other.value)}, {_interval(other, phrase)}"))
    pieces: Pieces = [facts(lines)]
    if estimate.diagnostics:
        rows = [(status(d.status), d.name, phrased(d.sentence, phrase)) for d in estimate.diagnostics]
        pieces.append(table(("", "check", "in words"), rows, folded=("in words",)))
    else:
        pieces.append(Text("\nno diagnostics: this is not an estimate of the target", style="dim"))
    if {logger.label for logger in estimate.loggers} - {UNLABELLED}:
        pieces += [*_against_each(estimate), _shares(estimate)]
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
        (name, earned_words(found), difference_words(found), probability, "–" if gain is None else gain.conclusion)
        for name, found in estimate.rivals
        for gain in [found.difference]
        for probability in ["–" if gain is None else probability_words(gain.probability_better)]
    ]
    head = heading(f"what loggers earn themselves ({estimate.unit}, {estimate.estimand}), and the target less that")
    names = ("logger", "earns", "target − logger", "#P(better)", "so")
    return [head, table(names, rows, folded=("logger", "so"))]


def _shares(estimate: Estimate) -> Table:
    """Who wrote how much, and how much of the answer rests on it."""
    rows = [
        (j.label, whole(j.rows), percent(j.weight_share, 1), whole(j.effective_sample_size)) for j in estimate.loggers
    ]
    return table(("logger", "#rows", "#share of weight", "#effective rows"), rows)


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
        pieces.append(table(names, rows, folded=("target", "so")))
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
        half, chance = pair.joint.width / 2, probability_words(pair.probability_first_is_better)
        around = f"{rounded(pair.joint.low, half)} to {rounded(pair.joint.high, half)}"
        value = rounded(pair.value, half)
        rows.append((pair.first, pair.second, value, around, times(pair.narrower), chance, pair.conclusion))
    names = ("A", "B", "#A − B", "interval", "#narrower", "#P(A > B)", "so")
    return table(names, rows, folded=("A", "B", "so"))


@view.register
def _(backtest: Backtest, *, phrase: Phrase = in_python) -> Group:
    """One entry per logger, then the summary and the reasons where there is no prediction to use."""
    names = ("logger", "predicted\ninterval", "earned\ninterval", "#z", "#uncovered", "agrees\nverdict")
    rows = [(row.label, *_prediction(row)) for row in backtest.rows]
    reasons = notes(f"{row.label}: {row.note}" for row in backtest.rows if not row.supported and row.note)
    pieces: Pieces = [
        table(names, rows, folded=("logger", "agrees\nverdict")),
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
    """Everything that was found, in the order in which questions come up."""
    pieces: Pieces = [_summary(found)]
    for group in found.columns:
        pieces += [heading(_sources(found, group)), _mapping(group)]
    if found.contents:
        earned = [(j.label, whole(j.rows), whole(j.episodes), number(j.logged_mean)) for j in found.contents.loggers]
        pieces.append(table(("logger", "#rows", "#episodes", "#earned per step"), earned))
        pieces += [Text("episode lengths", style="bold"), *_lengths(found.contents)]
    if found.state:
        pieces += [heading("columns of the state"), _state(found)]
    if found.vectors and (found.vectors.observations or found.vectors.actions):
        pieces += [heading("columns of numbers"), *_vectors(found.vectors, phrase)]
    if found.coverage:
        pieces += [heading("coverage of the target"), *_coverage(found, found.coverage)]
    lines = notes(found.notes)
    lines += [(remark.status, remark.sentence) for remark in found.remarks if remark.name != "bad-rows"]
    if found.error is not None:
        lines.append(("error", "these logs cannot be used as they are; the error says why"))
    elif found.checked and not any(remark.name not in OF_ENDS for remark in found.remarks):
        usable = "every row can be used, and the" if not found.dropped else "the other"
        lines.append(("pass", f"{usable} rows of every episode follow one another"))
    return Group(*pieces, *([Text()] if lines else []), *remarks(lines, phrase))


def _summary(found: Inspection) -> Table:
    inside = found.contents
    dropped = f", of which {found.dropped:,} dropped: {found.drop_reason}" if found.dropped else ""
    lines: list[tuple[str, Cell]] = [
        ("logs", Text(clean(found.name), style="bold")),
        ("rows", f"{found.total_rows:,}{dropped}"),
    ]
    if inside:
        rewards = (
            f"{span(inside.lowest_reward, inside.highest_reward)}, {number(inside.logged_mean)} per step on average"
        )
        lines += [("episodes", _episodes(inside)), ("rewards", rewards)]
        lines.append(("propensities", _propensities(found, inside)))
    return facts([*lines, ("states", _states(found)), ("actions", _actions(found))])


def _episodes(inside: Contents) -> str:
    open_ended = inside.episodes - inside.terminated - inside.truncated
    said = [f"{inside.terminated:,} terminated", f"{inside.truncated:,} truncated"]
    said += [f"{open_ended:,} without a mark at their end"] if open_ended > 0 else []
    late = inside.episodes - inside.known_starts
    said += [f"{late:,} whose start is not in the logs"] if late else []
    return f"{inside.episodes:,}: " + ", ".join(said)


def _propensities(found: Inspection, inside: Contents) -> str:
    if not found.has_propensity:
        return "none recorded: the behaviour will be estimated"
    missing = inside.rows_without_propensity
    return f"missing on {missing:,} of {inside.rows:,} rows" if missing else "recorded on every row"


def _factors(found: Inspection) -> str:
    return ", ".join(name.partition(".")[2] for name in found.observation)


def _states(found: Inspection) -> str:
    kinds = {
        "id": "opaque ids",
        "factors": f"factors {_factors(found)}",
        "vector": f"vectors of {len(found.observation)} floats",
        "mixed": f"mixed: {_count(found, ('id', 'category'))} categories and {_count(found, ('number',))} numbers",
    }
    known = f"{found.space.states:,} seen, " if found.space else ""
    return known + kinds[found.observation_kind]


def _count(found: Inspection, roles: Container[str]) -> int:
    return sum(column.role in roles for column in found.state)


def _state(found: Inspection) -> Table:
    """The role of every column, what it holds, and how often it is missing."""
    rows = found.contents.rows if found.contents else found.total_rows
    lines = []
    for column in found.state:
        holds = span(column.lowest, column.highest)
        if column.values is not None:
            most = ", ".join(f"{value} ({percent(n / rows)})" for value, n in column.most)
            holds = f"{column.values:,}: {most}" + (", …" if column.values > len(column.most) else "")
        name = column.name.partition(".")[2] or column.name
        lines.append((name, column.role, clean(holds), percent(column.missing / rows)))
    return table(("column", "role", "values", "#missing"), lines, folded=("column", "values"))


def _actions(found: Inspection) -> str:
    if found.vectors and found.vectors.actions:
        spans = [span(c.lowest, c.highest) for c in found.vectors.actions]
        return f"continuous, {len(spans)} component{'s' if len(spans) > 1 else ''}: {'; '.join(spans[:SHOWN_ACTIONS])}"
    if found.vectors and found.vectors.action_rows:
        listed = [f"{action} ({rows:,} rows)" for action, rows in found.vectors.action_rows]
        return f"{len(listed):,} seen: {_first(listed)}"
    if not found.space:
        return found.action_kind
    values = [str(action) for action in found.space.actions]
    return f"{len(values):,} seen ({_first(values)}), in {found.space.pairs:,} state-action pairs"


def _first(values: Sequence[str]) -> str:
    return ", ".join([*values[:SHOWN_ACTIONS], *(["…"] if len(values) > SHOWN_ACTIONS else [])])


def _sources(found: Inspection, group: Columns) -> str:
    if len(found.columns) == 1:
        return "columns"
    more = f" and {len(group.sources) - SHOWN_SOURCES} more" if len(group.sources) > SHOWN_SOURCES else ""
    return f"columns of {', '.join(group.sources[:SHOWN_SOURCES])}{more}"


def _mapping(group: Columns) -> Table:
    lines = []
    for notion in CANONICAL:
        if notion in group.mapping:
            column = group.mapping[notion]
            derived = isinstance(column, str) and column.startswith(("derived:", "absent:", "label:"))
            words = clean(column if isinstance(column, str) else ", ".join(column))
            lines.append((f"  {notion}", Text("←", style="dim"), Text(words, style="dim" if derived else "")))
    return grid(lines)


def _lengths(inside: Contents) -> Pieces:
    lengths = inside.lengths
    if lengths.shortest == lengths.longest:
        return [Text(f"  all {lengths.longest:,} rows")]
    head = f"  {lengths.shortest:,} to {lengths.longest:,} rows, median {lengths.median:,g}, mean {lengths.mean:,.1f}"
    most = max(bar.episodes for bar in lengths.histogram)
    lines = []
    for bar in lengths.histogram:
        range_ = f"{bar.low:,}" if bar.low == bar.high else f"{bar.low:,}–{bar.high:,}"
        length = max(round(BAR_WIDTH * bar.episodes / most), 1 if bar.episodes else 0)
        lines.append((f"  {range_}", f"{bar.episodes:,}", Text("█" * length, style="blue")))
    return [Text(head), grid(lines, right=2)]


def _vectors(vectors: Vectors, phrase: Phrase) -> Pieces:
    shown = (*vectors.observations[:SHOWN_COMPONENTS], *vectors.actions[:SHOWN_COMPONENTS])
    rows = [(c.name, *map(number, (c.mean, c.sd, c.lowest, c.highest)), whole(c.not_finite)) for c in shown]
    columns = table(("column", "#mean", "#sd", "#lowest", "#highest", "#not finite"), rows, folded=("column",))
    hidden = sum(max(len(part) - SHOWN_COMPONENTS, 0) for part in (vectors.observations, vectors.actions))
    more = [f"and {hidden:,} more; {phrase(Setting('json'))} has all of them"] if hidden else []
    more += [line for c in vectors.actions for line in _atoms(c, vectors.rows)]
    return [columns, *(Text(f"  {clean(line)}") for line in more)]


def _atoms(found: Component, rows: int) -> list[str]:
    """Where many rows lie exactly at an extreme."""
    ends = (("lowest", found.lowest, found.at_lowest), ("highest", found.highest, found.at_highest))
    return [
        f"{found.name}: {count / rows:.2%} of the rows are exactly the {name}, {number(value)}; perhaps it was clipped"
        for name, value, count in ends
        if count > 1 and count >= ATOM * rows and found.lowest < found.highest
    ]


def _coverage(found: Inspection, coverage: Coverage) -> Pieces:
    said: Pieces = [
        Text(f"  {coverage.covered_rows:.2%} of the rows lie in states where every action of the target was logged"),
        Text(f"  {coverage.uncovered_mass:.2%} of the target's actions at the logged states were never logged there"),
    ]
    if not coverage.worst:
        return said
    gaps = [
        (",".join(map(str, g.state)), str(g.action), f"{g.probability:.4g}", whole(g.state_rows), percent(g.mass, 4))
        for g in coverage.worst
    ]
    names = ("state", "action", "#probability", "#rows there", "#share of steps")
    by = f" (state: {_factors(found)})" if found.observation_kind == "factors" else ""
    return [*said, Text(f"  the heaviest of {coverage.gaps:,} gaps{by}:"), table(names, gaps, folded=("state",))]


KNOWN = "needs to know the loggers?"


def registry_view(registry: Mapping[str, Entry]) -> Table:
    """One estimator per line."""
    rows = [
        (name, entry.family, "yes" if "features" in entry.takes else "no", entry.needs or "no", entry.when)
        for name, entry in registry.items()
    ]
    return table(("name", "family", "vectors", KNOWN, "when to use it"), rows, folded=(KNOWN, "when to use it"))


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], folded: Container[str] = ()) -> Table:
    """A table with a rule under its head; columns whose names start with # hold numbers, ``folded`` ones may wrap."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in columns:
        made.add_column(
            name.lstrip("#"),
            justify="right" if name.startswith("#") else "left",
            no_wrap=name not in folded,
            overflow="fold",
            min_width=11 if name == "verdict" else None,
        )
    for row in rows:
        made.add_row(*map(_cell, row))
    return made


def facts(pairs: Iterable[tuple[str, Cell]]) -> Table:
    """Names and what they are, in two columns."""
    return grid(((Text(name, style="dim"), value) for name, value in pairs), gap=2)


def bullets(lines: Iterable[str]) -> Table:
    """Sentences, one per item, indented under their dash."""
    return grid(("-", line) for line in lines)


def remarks(lines: Sequence[tuple[str, str]], phrase: Phrase = in_python) -> Pieces:
    """(status, sentence), one per line; nothing where there are none."""
    return [grid(((status(name), phrased(line, phrase)) for name, line in lines), gap=2)] if lines else []


def notes(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Sentences as remarks."""
    return [("note", line) for line in lines]


def grid(lines: Iterable[Sequence[Cell]], gap: int = 1, right: int = 0) -> Table:
    """Columns without a head: the last may wrap, the first ``right`` hold numbers."""
    listed = [[_cell(cell) for cell in line] for line in lines]
    made = Table.grid(padding=(0, gap))
    for k in range(len(listed[0]) if listed else 0):
        last = k == len(listed[0]) - 1
        made.add_column(no_wrap=not last, overflow="fold", justify="right" if k < right else "left")
    for line in listed:
        made.add_row(*line)
    return made


def heading(words: str) -> Text:
    """The head of a section, after an empty line."""
    return Text(f"\n{clean(words)}", style="bold")


def _cell(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(clean(cell))


def status(name: str) -> Text:
    """How a check came out, in its colour."""
    words, style = STATUS[name]
    return Text(words, style=style)


def _yes(answer: bool) -> Text:
    return Text("yes", style="green") if answer else Text("no", style="red")


def _verdict(estimate: Estimate, short: bool = False) -> Text:
    """A verdict in its colour."""
    words = str(estimate.verdict)
    if short:
        words = words.removesuffix(" by these logs").removesuffix(" only")
    return Text(words, style=STYLE[kind(estimate)])
