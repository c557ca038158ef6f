"""An inspection on a terminal: columns, rows, loggers, episodes, coverage, remarks."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mixope.cli.views import parts
from mixope.inspection import Columns, Component, Contents, Coverage, Inspection, Vectors, words
from mixope.logs import CANONICAL
from mixope.report.text import number

BAR_WIDTH = 30
SHOWN_SOURCES = 3
SHOWN_ACTIONS = 12
SHOWN_COMPONENTS = 40
ATOM = 0.01
"""From this share of the rows on, values exactly at an extreme are worth a word."""


def inspection_view(found: Inspection) -> Group:
    """Everything that was found, in the order in which questions come up."""
    pieces: list[RenderableType] = [_summary(found)]
    for group in found.columns:
        pieces += [parts.heading(_sources(found, group)), _mapping(group)]
    if found.contents:
        pieces += [_loggers(found.contents), Text("episode lengths", style="bold")]
        pieces += [_lengths(found.contents)]
    if found.vectors:
        pieces += [parts.heading("columns of numbers"), *_vectors(found.vectors)]
    if found.coverage:
        pieces += [parts.heading("coverage of the target"), *_coverage(found, found.coverage)]
    lines = [("note", note) for note in found.notes]
    lines += [(remark.status, remark.sentence) for remark in found.remarks if remark.name != "bad-rows"]
    if found.error is not None:
        lines.append(("error", "these logs cannot be used as they are; the error says why"))
    elif found.checked and not found.remarks:
        lines.append(("pass", "every row can be used, and the rows of every episode follow one another"))
    said = parts.remarks(lines)
    if said:
        pieces += [Text(), said]
    return Group(*pieces)


def _summary(found: Inspection) -> Table:
    lines: list[tuple[str, str | Text]] = [("logs", Text(found.name, style="bold"))]
    rows = f"{found.total_rows:,}"
    if found.dropped:
        rows += f", of which {found.dropped:,} dropped: {found.drop_reason}"
    lines.append(("rows", rows))
    if found.contents:
        lines += [("episodes", _episodes(found.contents)), ("rewards", _rewards(found.contents))]
        lines.append(("propensities", _propensities(found, found.contents)))
    lines.append(("states", _states(found)))
    lines.append(("actions", _actions(found)))
    return parts.facts(*lines)


def _episodes(inside: Contents) -> str:
    open_ended = inside.episodes - inside.terminated - inside.truncated
    said = [f"{inside.terminated:,} terminated", f"{inside.truncated:,} truncated"]
    said += [f"{open_ended:,} without a mark at their end"] if open_ended > 0 else []
    late = inside.episodes - inside.known_starts
    said += [f"{late:,} whose start is not in the logs"] if late else []
    return f"{inside.episodes:,}: " + ", ".join(said)


def _rewards(inside: Contents) -> str:
    span = f"{number(inside.lowest_reward)} to {number(inside.highest_reward)}"
    return f"{span}, {number(inside.logged_mean)} a step on average"


def _propensities(found: Inspection, inside: Contents) -> str:
    if not found.has_propensity:
        return "none recorded: the behaviour will be estimated"
    missing = inside.rows_without_propensity
    return f"missing on {missing:,} of {inside.rows:,} rows" if missing else "recorded on every row"


def _states(found: Inspection) -> str:
    names = ", ".join(name.partition(".")[2] for name in found.observation)
    kind = {"id": "opaque ids", "factors": f"factors {names}", "vector": f"vectors of {len(found.observation)} floats"}
    known = f"{found.space.states:,} seen, " if found.space else ""
    return known + kind[found.observation_kind]


def _actions(found: Inspection) -> str:
    if found.vectors and found.vectors.actions:
        spans = [f"{number(c.lowest)} to {number(c.highest)}" for c in found.vectors.actions]
        return f"continuous, {len(spans)} component{'s' if len(spans) > 1 else ''}: {'; '.join(spans[:SHOWN_ACTIONS])}"
    if found.vectors and found.vectors.action_rows:
        listed = [f"{action} ({rows:,} rows)" for action, rows in found.vectors.action_rows]
        return f"{len(listed):,} seen: {', '.join(listed[:SHOWN_ACTIONS])}" + (", …" * (len(listed) > SHOWN_ACTIONS))
    if not found.space:
        return found.action_kind
    values = [str(action) for action in found.space.actions]
    more = ", …" if len(values) > SHOWN_ACTIONS else ""
    shown = ", ".join(values[:SHOWN_ACTIONS]) + more
    return f"{len(values):,} seen ({shown}), in {found.space.pairs:,} state-action pairs"


def _sources(found: Inspection, group: Columns) -> str:
    if len(found.columns) == 1:
        return "columns"
    more = f" and {len(group.sources) - SHOWN_SOURCES} more" if len(group.sources) > SHOWN_SOURCES else ""
    return f"columns of {', '.join(group.sources[:SHOWN_SOURCES])}{more}"


def _mapping(group: Columns) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for notion in CANONICAL:
        if notion in group.mapping:
            column = group.mapping[notion]
            derived = isinstance(column, str) and column.startswith(("derived:", "absent:", "label:"))
            grid.add_row(f"  {notion}", "←", Text(words(column), style="dim" if derived else ""))
    return grid


def _loggers(inside: Contents) -> Table:
    numbers = ("rows", "episodes", "earned a step")
    table = parts.table("logger", *numbers, right=numbers)
    for logger in inside.loggers:
        table.add_row(logger.label, f"{logger.rows:,}", f"{logger.episodes:,}", number(logger.logged_mean))
    return table


def _lengths(inside: Contents) -> RenderableType:
    lengths = inside.lengths
    if lengths.shortest == lengths.longest:
        return Text(f"  all {lengths.longest:,} rows")
    head = f"  {lengths.shortest:,} to {lengths.longest:,} rows, median {lengths.median:,g}, mean {lengths.mean:,.1f}"
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right")
    grid.add_column(justify="right")
    grid.add_column()
    most = max(bar.episodes for bar in lengths.histogram)
    for bar in lengths.histogram:
        span = f"{bar.low:,}" if bar.low == bar.high else f"{bar.low:,}–{bar.high:,}"
        length = max(round(BAR_WIDTH * bar.episodes / most), 1 if bar.episodes else 0)
        grid.add_row(f"  {span}", f"{bar.episodes:,}", Text("█" * length, style="blue"))
    return Group(Text(head), grid)


def _vectors(vectors: Vectors) -> list[RenderableType]:
    numbers = ("mean", "sd", "lowest", "highest", "not finite")
    table = parts.table("column", *numbers, right=numbers, folded=("column",))
    for c in (*vectors.observations[:SHOWN_COMPONENTS], *vectors.actions[:SHOWN_COMPONENTS]):
        table.add_row(c.name, *(number(v) for v in (c.mean, c.sd, c.lowest, c.highest)), f"{c.not_finite:,}")
    hidden = sum(max(len(kind) - SHOWN_COMPONENTS, 0) for kind in (vectors.observations, vectors.actions))
    more = [Text(f"  and {hidden:,} more; --json has all of them")] if hidden else []
    return [table, *more, *(Text(f"  {line}") for c in vectors.actions for line in _atoms(c, vectors.rows))]


def _atoms(found: Component, rows: int) -> list[str]:
    """Where many rows lie exactly at an extreme."""
    ends = (("lowest", found.lowest, found.at_lowest), ("highest", found.highest, found.at_highest))
    return [
        f"{found.name}: {count / rows:.2%} of the rows are exactly the {name}, {number(value)}; perhaps it was clipped"
        for name, value, count in ends
        if count > 1 and count >= ATOM * rows and found.lowest < found.highest
    ]


def _coverage(found: Inspection, coverage: Coverage) -> list[RenderableType]:
    said: list[RenderableType] = [
        Text(f"  {coverage.covered_rows:.2%} of the rows lie in states where every action of the target was logged"),
        Text(f"  {coverage.uncovered_mass:.2%} of the target's actions at the logged states were never logged there"),
    ]
    if not coverage.worst:
        return said
    numbers = ("probability", "rows there", "share of steps")
    table = parts.table("state", "action", *numbers, right=numbers, folded=("state",))
    for gap in coverage.worst:
        state = ",".join(map(str, gap.state))
        table.add_row(state, str(gap.action), f"{gap.probability:.4g}", f"{gap.state_rows:,}", f"{gap.mass:.4%}")
    names = ", ".join(name.partition(".")[2] for name in found.observation)
    by = f" (state: {names})" if found.observation_kind == "factors" else ""
    said += [Text(f"  the heaviest of {coverage.gaps:,} gaps{by}:"), table]
    return said
