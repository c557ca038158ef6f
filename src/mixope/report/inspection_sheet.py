"""The sheets of logs: of an inspection, everything that was found; of logs as they were opened, what is known of them.

rows, episodes, rewards · columns · loggers · episode lengths · columns of the state or of numbers · coverage
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from mixope.base.errors import Advice, Setting
from mixope.inspection import Component, Contents, Coverage, Inspection, Vectors
from mixope.logs import CANONICAL, Logs
from mixope.report.answer_sheets import gaps_table
from mixope.report.chapters import NOTES, ON_CARD, notes_chapter
from mixope.report.sheet import (
    IN_BRIEF,
    SHOWN,
    Brief,
    CardLine,
    Chapter,
    ChapterPart,
    Headline,
    Paragraph,
    Sentences,
    Sheet,
    SheetCell,
    SheetFacts,
    SheetTable,
    most_urgent,
)
from mixope.report.words import number, percent, span, whole

BAR_WIDTH = 30
HARMLESS = ("ends-unsaid", "dropped-rows", "look-alikes")
"""Remarks that say nothing against the rows that can be used."""
SHOWN_SOURCES = 3
SHOWN_ACTIONS = 12
SHOWN_COMPONENTS = 40
ATOM = 0.01
"""From this share of the rows on, values exactly at an extreme are worth a word."""
_REMARKS = {"error": "bad", "warning": "caution", "note": "reference"}


def inspection_sheet(found: Inspection) -> Sheet:
    """Everything that was found, in the order in which questions come up."""
    lines = [CardLine(_REMARKS[each.status], each.name, each.sentence) for each in found.remarks]
    usable, inside = found.error is None, found.contents
    warned = any(line.kind != "reference" for line in lines)
    word = ("usable, with warnings" if warned else "usable") if usable else "cannot be used as they are"
    headline = Headline(
        "bad" if not usable else "caution" if warned else "good" if found.checked else "reference",
        word if found.checked or not usable else "not checked",
        f"{whole(found.total_rows)} rows" + (f" in {whole(inside.episodes)} episodes" if inside else ""),
    )
    chapters = (
        Chapter("rows", "Rows", (SheetFacts(tuple(_summary(found))),)),
        *_columns(found),
        *((_loggers(inside), _lengths(inside)) if inside else ()),
        *((Chapter("state", "Columns of the state", tuple(_state(found))),) if found.state else ()),
        *_numbers(found.vectors),
        *((Chapter("coverage", "Coverage of the target", tuple(_coverage(found.coverage))),) if found.coverage else ()),
        notes_chapter("notes", "Notes", found.notes, places=ON_CARD),
    )
    facts = [(name, value) for name, value in _summary(found) if name not in ("logs", "rows")]
    facts += [("loggers", _labels(inside))] if inside else []
    if found.coverage:
        gaps = percent(found.coverage.uncovered_mass)
        facts.append(("coverage", f"{gaps} of the target's actions at the logged states were never logged there"))
    brief = Brief(
        headline.kind,
        headline.word,
        headline.words + (f", {found.dropped:,} rows dropped: {found.drop_reason}" if found.dropped else ""),
        ("", ""),
        tuple(facts),
        "What was found",
        most_urgent([line for line in lines if line.kind != "reference"], len(lines)),
        (*found.notes, *(line.sentence for line in lines if line.kind == "reference")),
        found.name,
        besides=NOTES,
    )
    return Sheet(headline, most_urgent(lines), chapters, tuple(_remarks(found)), brief=brief)


def _labels(inside: Contents) -> str:
    """How many loggers, and the first of them by name."""
    labels = [logger.label for logger in inside.loggers]
    return f"{len(labels):,}: {_first(labels)}"


def _remarks(found: Inspection) -> Iterator[tuple[str, str]]:
    """Notes, what was found in the rows, and whether they can be used."""
    yield from (("note", note) for note in found.notes)
    yield from ((remark.status, remark.sentence) for remark in found.remarks if remark.name != "bad-rows")
    if found.error is not None:
        yield "error", "these logs cannot be used as they are; the error says why"
    elif found.checked and not any(remark.name not in HARMLESS for remark in found.remarks):
        usable = "every row can be used, and the" if not found.dropped else "the other"
        yield "pass", f"{usable} rows of every episode follow one another"


def _summary(found: Inspection) -> Iterator[tuple[str, SheetCell]]:
    inside = found.contents
    dropped = f", of which {found.dropped:,} dropped: {found.drop_reason}" if found.dropped else ""
    yield "logs", found.name
    yield "rows", f"{found.total_rows:,}{dropped}"
    if inside:
        yield "episodes", _episodes(inside)
        mean = f"{number(inside.logged_mean)} per step on average"
        yield "rewards", f"{span(inside.lowest_reward, inside.highest_reward)}, {mean}"
        yield "propensities", _propensities(found, inside)
    yield "states", _states(found)
    yield "actions", _actions(found)


def _episodes(inside: Contents) -> str:
    open_ended = inside.episodes - inside.terminated - inside.truncated
    said = [f"{inside.terminated:,} terminated", f"{inside.truncated:,} truncated"]
    said += [f"{open_ended:,} without a mark at their end"] if open_ended > 0 else []
    late = inside.episodes - inside.known_starts
    said += [f"{late:,} whose start is not in the logs"] if late else []
    units = "" if inside.units is None else f" of {inside.units:,} units"
    return f"{inside.episodes:,}{units}: " + ", ".join(said)


def _propensities(found: Inspection, inside: Contents) -> str:
    if not found.has_propensity:
        return "none recorded: the behaviour will be estimated"
    missing = inside.rows_without_propensity
    return f"missing on {missing:,} of {inside.rows:,} rows" if missing else "recorded on every row"


def _states(found: Inspection) -> str:
    kinds = {
        "id": "opaque ids",
        "factors": f"factors {', '.join(name.partition('.')[2] for name in found.observation)}",
        "vector": f"vectors of {len(found.observation)} floats",
        "mixed": f"mixed: {_count(found, ('id', 'category'))} categories and {_count(found, ('number',))} numbers",
    }
    known = f"{found.space.states:,} seen, " if found.space else ""
    return known + kinds[found.observation_kind]


def _count(found: Inspection, roles: Container[str]) -> int:
    return sum(column.role in roles for column in found.state)


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


def _columns(found: Inspection) -> Iterator[Chapter]:
    """Which column every notion came from, by files that have the same columns."""
    for k, group in enumerate(found.columns):
        title = "columns"
        if len(found.columns) > 1:
            rest = len(group.sources) - SHOWN_SOURCES
            more = f" and {rest} more" if rest > 0 else ""
            title = f"columns of {', '.join(group.sources[:SHOWN_SOURCES])}{more}"
        yield Chapter(f"columns-{k}", title, (mapping_facts(group.mapping),))


def mapping_facts(mapping: Mapping[str, str | tuple[str, ...]]) -> SheetFacts:
    """The column of every notion, in the order of the format."""
    return SheetFacts(tuple((notion, f"← {_column(mapping[notion])}") for notion in CANONICAL if notion in mapping))


def _column(found: str | tuple[str, ...]) -> str:
    return found if isinstance(found, str) else ", ".join(found)


def _loggers(inside: Contents) -> Chapter:
    rows = tuple((j.label, whole(j.rows), whole(j.episodes), number(j.logged_mean)) for j in inside.loggers)
    names = ("logger", "#rows", "#episodes", "#earned per step")
    table = SheetTable(f"loggers ({len(rows):,})", names, rows, ("logger",), most=SHOWN)
    return Chapter("loggers", "Loggers", (table,))


def _lengths(inside: Contents) -> Chapter:
    """How many episodes are how long, with a bar for each length."""
    lengths = inside.lengths
    if lengths.shortest == lengths.longest:
        return Chapter("lengths", "episode lengths", (Paragraph(f"all {lengths.longest:,} rows"),))
    reach = f"{lengths.shortest:,} to {lengths.longest:,} rows"
    head = Paragraph(f"{reach}, median {lengths.median:,g}, mean {lengths.mean:,.1f}")
    most = max(bar.episodes for bar in lengths.histogram)
    rows = tuple(
        (
            f"{bar.low:,}" if bar.low == bar.high else f"{bar.low:,}–{bar.high:,}",
            f"{bar.episodes:,}",
            "█" * max(round(BAR_WIDTH * bar.episodes / most), 1 if bar.episodes else 0),
        )
        for bar in lengths.histogram
    )
    return Chapter("lengths", "episode lengths", (head, SheetTable("", ("#rows", "#episodes", ""), rows)))


def _state(found: Inspection) -> Iterator[ChapterPart]:
    """The role of every column, what it holds, and how often it is missing."""
    rows = _rows_looked_at(found)
    all_rows = rows if found.contents else found.total_rows
    lines = []
    for column in found.state:
        holds = span(column.lowest, column.highest)
        if column.values is not None:
            most = ", ".join(f"{value} ({percent(n / rows)})" for value, n in column.most)
            holds = f"{column.values:,}: {most}" + (", …" if column.values > len(column.most) else "")
        name = column.name.partition(".")[2] or column.name
        lines.append((name, column.role, holds, percent(column.missing / max(all_rows, 1))))
    names = ("column", "role", "values", "#missing")
    yield SheetTable("columns of the state", names, tuple(lines), ("column", "values"), most=SHOWN)
    if not found.contents and rows < found.total_rows:
        could = f"the {rows:,} of {found.total_rows:,} rows that the scan could use"
        yield Paragraph(f"values are those of {could}; what is missing is counted in all")


def _rows_looked_at(found: Inspection) -> int:
    """Those that shares of values are of; rows that lead nowhere are not among them."""
    if found.contents:
        return found.contents.rows
    return max(found.vectors.rows if found.vectors else found.total_rows, 1)


def _numbers(vectors: Vectors | None) -> tuple[Chapter, ...]:
    """The columns of numbers, in states and in actions."""
    if vectors is None or not (vectors.observations or vectors.actions):
        return ()
    shown = (*vectors.observations[:SHOWN_COMPONENTS], *vectors.actions[:SHOWN_COMPONENTS])
    rows = tuple((c.name, *map(number, (c.mean, c.sd, c.lowest, c.highest)), whole(c.not_finite)) for c in shown)
    names = ("column", "#mean", "#sd", "#lowest", "#highest", "#not finite")
    hidden = sum(max(len(part) - SHOWN_COMPONENTS, 0) for part in (vectors.observations, vectors.actions))
    more: list[str] = [Advice(f"and {hidden:,} more; ", Setting("json"), " has all of them")] if hidden else []
    more += [line for c in vectors.actions for line in _atoms(c, vectors.rows)]
    parts = (SheetTable("columns of numbers", names, rows, ("column",)), Sentences(tuple(more)))
    return (Chapter("numbers", "Columns of numbers", parts),)


def _atoms(found: Component, rows: int) -> list[str]:
    """Where many rows lie exactly at an extreme."""
    ends = (("lowest", found.lowest, found.at_lowest), ("highest", found.highest, found.at_highest))
    return [
        f"{found.name}: {count / rows:.2%} of the rows are exactly the {name}, {number(value)}; perhaps it was clipped"
        for name, value, count in ends
        if count > 1 and count >= ATOM * rows and found.lowest < found.highest
    ]


def _coverage(coverage: Coverage) -> Iterator[ChapterPart]:
    yield Sentences(
        (
            f"{coverage.covered_rows:.2%} of the rows lie in states where every action of the target was logged",
            f"{coverage.uncovered_mass:.2%} of the target's actions at the logged states were never logged there",
        )
    )
    yield gaps_table(coverage)


def logs_sheet(found: Logs) -> Sheet:
    """Nothing is read for it: what is not known yet is not said."""
    schema = found.schema
    pieces = [piece for source in found.sources for piece in source.pieces]
    known = [piece.known_rows() for piece in pieces]
    files = [name for piece in pieces for name in piece.files]
    sure = [rows for rows in known if rows is not None]
    rows = f"{whole(sum(sure))} rows" if len(sure) == len(known) else "rows not counted yet"
    wide = f" ({len(schema.observation)} columns)" if len(schema.observation) > 1 else ""
    propensities = "propensities recorded" if schema.has_propensity else "no propensities"
    listed = SheetTable("", ("file",), tuple((name,) for name in files), ("file",), most=SHOWN)
    return Sheet(
        Headline(
            "caution" if found.assumed else "reference",
            "logs, with assumptions" if found.assumed else "logs",
            rows + (f" in {whole(len(files))} files" if len(files) > 1 else ""),
        ),
        tuple(CardLine("caution", "assumed", note) for note in found.assumed[:3]),
        (
            Chapter("columns", "Columns", (mapping_facts(schema.mapping),)),
            notes_chapter("notes", "Notes", found.notes, places=IN_BRIEF),
            Chapter("files", f"Files ({len(files):,})", (listed,)),
        ),
        under=(found.name, f"states: {schema.observation_kind}{wide}; actions: {schema.action_kind}; {propensities}"),
    )
