"""An inspection on a terminal: everything that was found, in the order in which questions come up."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mixope.base.errors import Phrase, Setting, clean
from mixope.inspection import Columns, Component, Contents, Coverage, Inspection, Vectors
from mixope.logs import CANONICAL
from mixope.report.layout import SHOWN, Cell, Pieces, facts, grid, heading, notes, remarks, table
from mixope.report.words import number, percent, span, state_words, whole

BAR_WIDTH = 30
HARMLESS = ("ends-unsaid", "dropped-rows", "look-alikes")
"""Remarks that say nothing against the rows that can be used."""
SHOWN_SOURCES = 3
SHOWN_ACTIONS = 12
SHOWN_COMPONENTS = 40
ATOM = 0.01
"""From this share of the rows on, values exactly at an extreme are worth a word."""


def inspection_view(found: Inspection, phrase: Phrase) -> Group:
    """Everything that was found, in the order in which questions come up."""
    pieces: Pieces = [_summary(found)]
    for group in found.columns:
        pieces += [heading(_sources(found, group)), _mapping(group)]
    if found.contents:
        earned = [(j.label, whole(j.rows), whole(j.episodes), number(j.logged_mean)) for j in found.contents.loggers]
        pieces.append(table(("logger", "#rows", "#episodes", "#earned per step"), earned, ("logger",), most=SHOWN))
        pieces += [Text("episode lengths", style="bold"), *_lengths(found.contents)]
    if found.state:
        pieces += [heading("columns of the state"), *_state(found)]
    if found.vectors and (found.vectors.observations or found.vectors.actions):
        pieces += [heading("columns of numbers"), *_vectors(found.vectors, phrase)]
    if found.coverage:
        pieces += [heading("coverage of the target"), *_coverage(found.coverage)]
    lines = notes(found.notes)
    lines += [(remark.status, remark.sentence) for remark in found.remarks if remark.name != "bad-rows"]
    if found.error is not None:
        lines.append(("error", "these logs cannot be used as they are; the error says why"))
    elif found.checked and not any(remark.name not in HARMLESS for remark in found.remarks):
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
    units = "" if inside.units is None else f" of {inside.units:,} units"
    return f"{inside.episodes:,}{units}: " + ", ".join(said)


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


def _state(found: Inspection) -> Pieces:
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
        lines.append((name, column.role, clean(holds), percent(column.missing / max(all_rows, 1))))
    shares = table(("column", "role", "values", "#missing"), lines, folded=("column", "values"), most=SHOWN)
    if found.contents or rows >= found.total_rows:
        return [shares]
    could = f"the {rows:,} of {found.total_rows:,} rows that the scan could use"
    return [shares, Text(f"  values are those of {could}; what is missing is counted in all")]


def _rows_looked_at(found: Inspection) -> int:
    """Those that shares of values are of; rows that lead nowhere are not among them."""
    if found.contents:
        return found.contents.rows
    return max(found.vectors.rows if found.vectors else found.total_rows, 1)


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


def _coverage(coverage: Coverage) -> Pieces:
    said: Pieces = [
        Text(f"  {coverage.covered_rows:.2%} of the rows lie in states where every action of the target was logged"),
        Text(f"  {coverage.uncovered_mass:.2%} of the target's actions at the logged states were never logged there"),
    ]
    if not coverage.worst:
        return said
    gaps = [
        (
            *(state_words(coverage.factors, g.state), str(g.action), f"{g.probability:.4g}"),
            *(whole(g.state_rows), percent(g.mass, 4)),
        )
        for g in coverage.worst
    ]
    names = ("state", "action", "#probability", "#rows there", "#share of steps")
    return [*said, Text(f"  the heaviest of {coverage.gaps:,} gaps:"), table(names, gaps, folded=("state",))]
