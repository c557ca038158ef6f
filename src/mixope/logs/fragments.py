"""Rows in parts that any process can open by itself: some row groups of a file, a file, or a slice of a table.

Where every canonical column is read from its own row, a source falls apart as finely as its format allows. Where
something is derived from other rows of the episode (steps, next observations), a fragment must see those rows. Parts
that share no episode are known by the folder that names their logger, or by the range of their episode ids in the
footers. Where such ranges rise from part to part, a fragment owns one part and looks into the neighbours that hold the
rest of its episodes. Where nothing is known, or episodes are cut by the order of rows, the source is one fragment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from typing import Any

from mixope.base.errors import UnknownName
from mixope.logs import view
from mixope.logs.plan import ReadingPlan
from mixope.logs.schema import Schema
from mixope.logs.sources import Piece, field_in, reading, total_of, unique
from mixope.logs.sources.parquet import ParquetFiles
from mixope.logs.sources.stamps import refuse_changed
from mixope.logs.table import rows_of

ROWS = 1_000_000
"""Rows of a fragment, as far as the format allows."""

LOOK_AROUND = 3
"""How often a row may be read, on average, so that a fragment sees its episodes whole."""

Span = tuple[Any, Any]
Place = tuple[object, Span | None]
"""What is known of the episodes in a part: their logger, and the range of their ids."""


@dataclass(frozen=True, eq=False)
class Fragment:
    """Some of the canonical rows of logs: small, picklable, and complete in itself.

    ``key`` names the source, file and row groups, and no other fragment of the logs. ``rows`` are those of the input,
    before any is dropped; None where only reading tells. ``keeps_all``: it is known that no row will be dropped, so
    the table has exactly ``rows`` rows.
    """

    key: str
    rows: int | None
    keeps_all: bool
    columns: tuple[str, ...] = field(repr=False)
    plan: ReadingPlan = field(repr=False)
    step_base: int = field(repr=False)
    own: tuple[int, int] | None = field(default=None, repr=False)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, the rows are read; what is wrong with a file, or has changed in it, is an error about it."""
        refuse_changed(self.plan.source.stamps)
        with reading(self.plan.source.pieces[0].files[0]):
            yield
        refuse_changed(self.plan.source.stamps)

    def relation(self, connection: Any, schema: Schema) -> str:
        """The canonical rows for DuckDB, as what stands after FROM; where they lie, unless other rows are needed."""
        if self.own is None:
            return f"({view.rows([self.plan], schema, connection, self.step_base)})"
        name = unique("fragment")
        connection.register(name, self.table())
        return name

    def table(self, columns: Sequence[str] | None = None) -> Any:
        """The canonical rows, or some of their columns, as a ``pyarrow.Table``: those of ``Logs.table``, in order."""
        wanted = known_columns(columns, self.columns)
        with self.watching():
            return rows_of(self.plan, self.step_base, wanted, self.own)


def known_columns(columns: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The canonical columns asked for (None: all); an unknown name is an error."""
    wanted = list(known if columns is None else columns)
    for name in wanted:
        if name not in known:
            raise UnknownName("canonical column", name, known)
    return wanted


def fragments_of(
    plan: ReadingPlan, schema: Schema, step_base: int, rows: int = ROWS, *, whole_episodes: bool = False
) -> Iterator[Fragment]:
    """The fragments of one source, in row order; ``whole_episodes``: each has all rows of its episodes."""
    parts = [part for piece in plan.source.pieces for part in piece.split(rows)]
    sizes = [piece.known_rows() for _, piece in parts]
    stamps = {name: stamp for stamp in plan.source.stamps for name in (stamp.name, stamp.path)}
    for number, (mine, seen) in enumerate(_readings(plan, [piece for _, piece in parts], sizes, whole_episodes)):
        pieces = tuple(parts[position][1] for position in seen)
        read = {stamps[name].path: stamps[name] for piece in pieces for name in piece.files if name in stamps}
        source = replace(plan.source, pieces=pieces, stamps=tuple(read.values()))
        names = [parts[position][0] for position in mine]
        key = f"{plan.index}.{number}:{names[0] if len(names) == 1 else f'{names[0]} … {names[-1]}'}"
        known = total_of(sizes[position] for position in mine)
        before = total_of(sizes[position] for position in range(seen.start, mine.start)) or 0
        own = None if mine == seen else (before, before + (known or 0))
        small = replace(plan, source=source)
        yield Fragment(key, known, small.keeps_all, schema.columns, small, step_base, own)


def plans_apart(plan: ReadingPlan, rows: int) -> list[ReadingPlan]:
    """The same plan for runs of its files of about ``rows`` rows or more, no two of which share an episode.

    The plan itself where that is not known from the footers of Parquet files.
    """
    whole = [piece for piece in plan.source.pieces if isinstance(piece, ParquetFiles) and piece.chosen is None]
    if "episode_id" in plan.derived or len(whole) < len(plan.source.pieces):
        return [plan]
    files = [
        (piece, replace(piece, files=(name,), groups=(sizes,)))
        for piece in whole
        for name, sizes in zip(piece.files, piece.groups, strict=True)
    ]
    found: list[list[tuple[ParquetFiles, ParquetFiles]]] = [[]]
    for run in apart(_spans(plan, [file for _, file in files])):
        if sum(sum(file.counts()) for _, file in found[-1]) >= rows:
            found.append([])
        found[-1] += files[run.start : run.stop]
    return [replace(plan, source=replace(plan.source, pieces=_joined(run))) for run in found]


def _joined(files: Sequence[tuple[ParquetFiles, ParquetFiles]]) -> tuple[Piece, ...]:
    """Neighbouring files of a piece as one piece again."""
    by_piece = groupby(files, key=lambda pair: id(pair[0]))
    runs = [[file for _, file in run] for _, run in by_piece]
    return tuple(
        replace(run[0], files=tuple(file.files[0] for file in run), groups=tuple(file.groups[0] for file in run))
        for run in runs
    )


def _readings(
    plan: ReadingPlan, pieces: Sequence[Piece], sizes: Sequence[int | None], whole_episodes: bool
) -> Iterable[tuple[range, range]]:
    """The pieces that each fragment owns, and those that it has to read for them."""
    every = range(len(pieces))
    if "episode_id" in plan.derived:
        return [(every, every)]
    if whole_episodes:
        return [(run, run) for run in apart(_spans(plan, pieces))]
    if plan.derived:
        return windows(_spans(plan, pieces), sizes)
    return ((range(position, position + 1),) * 2 for position in every)


def windows(spans: Sequence[Place], sizes: Sequence[int | None]) -> Iterator[tuple[range, range]]:
    """Parts that share no episode are apart; in a run of parts that do, each looks into its neighbours if it can."""
    for run in apart(spans):
        found = _neighbours(spans[run.start : run.stop], sizes[run.start : run.stop])
        if found is None:
            yield run, run
        else:
            for position, seen in zip(run, found, strict=True):
                yield range(position, position + 1), range(run.start + seen.start, run.start + seen.stop)


def _neighbours(spans: Sequence[Place], sizes: Sequence[int | None]) -> list[range] | None:
    """For each part the parts that share an episode with it; None if ranges do not rise, or they would be too many."""
    known = [span for _, span in spans if span is not None]
    lows, highs = [low for low, _ in known], [high for _, high in known]
    one_logger = len({logger for logger, _ in spans}) == 1
    if not one_logger or len(known) < len(spans) or lows != sorted(lows) or highs != sorted(highs):
        return None
    found = [range(bisect_left(highs, low), bisect_right(lows, high)) for low, high in known]
    before = list(accumulate((size or 0 for size in sizes), initial=0))
    reads = sum(before[seen.stop] - before[seen.start] for seen in found)
    return found if None not in sizes and reads <= LOOK_AROUND * before[-1] else None


def _spans(plan: ReadingPlan, pieces: Sequence[Piece]) -> list[Place]:
    """For each piece: its logger, if all pieces have it from their folders, and the range of its episode ids."""
    logger = plan.columns["policy_id"].raw
    named = logger is not None and all(logger in piece.constants for piece in pieces)
    return [(piece.constants[logger] if named and logger else None, _episodes(plan, piece)) for piece in pieces]


def _episodes(plan: ReadingPlan, piece: Piece) -> Span | None:
    """The least and greatest episode id of a piece; None where it is not known, or a cast could change the order."""
    raw = plan.columns["episode_id"].raw
    if raw is None:
        return None
    if raw in piece.constants:
        return piece.constants[raw], piece.constants[raw]
    found = field_in(piece, raw)
    orderly = found is not None and found.kind in {"int", "string"} and not found.wide and not found.decimal
    return piece.bounds(raw) if orderly else None


def apart(spans: Sequence[Place]) -> list[range]:
    """Runs of neighbours such that no range of episodes of one run meets one of another run with the same logger."""
    last = list(range(len(spans)))
    for logger in dict.fromkeys(name for name, _ in spans):
        mine = [position for position, (name, _) in enumerate(spans) if name == logger]
        for together in _overlapping({position: spans[position][1] for position in mine}):
            last[min(together)] = max(together)
    found, low, high = [], 0, -1
    for position, reach in enumerate(last):
        if position > high and position > low:
            found.append(range(low, position))
            low = position
        high = max(high, reach)
    return [*found, range(low, len(spans))]


def _overlapping(spans: dict[int, Span | None]) -> Iterator[list[int]]:
    """Positions whose ranges are linked by overlaps; one of unknown range is linked with all."""
    ordered = sorted((span[0], span[1], position) for position, span in spans.items() if span is not None)
    if len(ordered) < len(spans):
        yield list(spans)
        return
    together: list[int] = []
    reach: Any = None
    for low, high, position in ordered:
        if together and low > reach:
            yield together
            together = []
        reach = high if not together else max(reach, high)
        together.append(position)
    yield together
