"""Some of the episodes of a log, whole: those for which a condition holds, or a share of them by chance.

    rows of the files → the episode of each → which episodes are kept → the rows of these, in the order of the files

The rows that are kept are held in memory, with all columns of the file, so that they can be chosen from again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.base.arrays import IntArray
from mixope.base.errors import DataError, UnknownName, UsageError
from mixope.logs import view
from mixope.logs.conditions import fitting
from mixope.logs.schema import EPISODE_KEYS, UNIT
from mixope.logs.sources import Piece, reading
from mixope.logs.sources.arrow import ArrowTable

if TYPE_CHECKING:
    from mixope.logs.logs import Logs

FITS = ("all", "any")
"""Which rows of an episode must fit."""
EPISODE = "episode"


def where(logs: Logs, condition: str, rows: str) -> Logs:
    """The episodes all of whose rows fit, or any."""
    if rows not in FITS:
        raise UnknownName("choice of rows", rows, FITS)
    places, episodes = _numbered(logs, EPISODE_KEYS)
    fits = np.concatenate([fitting(condition, piece) for source in logs.sources for piece in source.pieces])[places]
    counts, total = np.bincount(episodes, weights=fits), np.bincount(episodes)
    kept = counts == total if rows == "all" else counts > 0
    if not kept.any():
        raise DataError(
            "No episode fits the condition",
            where=logs.name,
            expected=f"an episode with {rows} of its rows where {condition}",
            got=f"{int(fits.sum()):,} rows that fit, in none of {len(kept):,} episodes as a whole",
            hint="rows='any' takes an episode if any of its rows fits" if rows == "all" and fits.any() else None,
        )
    return _of_rows(logs, places[kept[episodes]])


def split(logs: Logs, share: float, by: str | None, seed: int) -> tuple[Logs, Logs]:
    """Two logs: a share of the episodes, or of the units, and the others."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise UsageError(f"split() takes the share of the first part, between 0 and 1, such as 0.5; got {share!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed is a whole number from 0 on; got {seed!r}")
    chosen = by or (UNIT if logs.schema.has_unit else EPISODE)
    if chosen not in (UNIT, EPISODE):
        logs = logs.with_unit(chosen)
    elif chosen == UNIT and not logs.schema.has_unit:
        raise UsageError("by='unit' needs to know to whom an episode belongs: name the column, such as by='user_id'")
    places, groups = _numbered(logs, EPISODE_KEYS if chosen == EPISODE else (UNIT,))
    count = int(groups.max()) + 1
    first = math.floor(share * count + 0.5)
    if not 0 < first < count:
        what = "episodes" if chosen == EPISODE else "units"
        raise UsageError(f"a share of {share} of {count:,} {what} leaves one part empty")
    drawn = np.zeros(count, dtype=bool)
    drawn[np.random.default_rng(seed).permutation(count)[:first]] = True
    return _of_rows(logs, places[drawn[groups]]), _of_rows(logs, places[~drawn[groups]])


def _numbered(logs: Logs, keys: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Of every row of the files: its place, in their order, and the number of its episode or unit, in sorted order."""
    shown = ", ".join(keys)
    with logs.connect() as connection, logs.scanning(), reading(logs.name):
        selects = " UNION ALL ".join(
            f"SELECT {plan.index} AS source, * EXCLUDE source FROM ({_rows(logs, plan, connection)})"
            for plan in logs.plans
        )
        query = (
            f"SELECT source, {view.ROW} AS place, dense_rank() OVER (ORDER BY {shown}) - 1 AS number FROM ({selects})"
        )
        found = connection.execute(f"SELECT * FROM ({query}) ORDER BY source, place").fetchnumpy()
    return _places(logs, found), np.asarray(found["number"], dtype=np.int64)


def _rows(logs: Logs, plan: Any, connection: Any) -> str:
    return view.rows((plan,), logs.schema, connection, 0, numbered=True, keep_all=True)


def _places(logs: Logs, found: Mapping[str, Any]) -> IntArray:
    """From (source, piece · 2⁴⁰ + row) to the place among all rows."""
    starts: dict[tuple[int, int], int] = {}
    before = 0
    for plan, own in zip(logs.plans, logs.sources, strict=True):
        for position, piece in enumerate(own.pieces):
            starts[plan.index, position] = before
            before += sum(piece.counts())
    source, place = np.asarray(found["source"]), np.asarray(found["place"], dtype=np.int64)
    numbers = place >> view.PIECE_SHIFT
    moved = place - (numbers << view.PIECE_SHIFT)
    for (index, position), start in starts.items():
        moved[(source == index) & (numbers == position)] += start
    return moved


def _of_rows(logs: Logs, places: IntArray) -> Logs:
    """The same logs with these rows of the files only."""
    wanted, before, sources = np.sort(places), 0, []
    for source in logs.sources:
        pieces: list[Piece] = []
        for piece in source.pieces:
            size = sum(piece.counts())
            low, high = np.searchsorted(wanted, [before, before + size])
            if high > low:
                pieces.append(_taken(piece, wanted[low:high] - before))
            before += size
        if pieces:
            sources.append(replace(source, pieces=tuple(pieces), stamps=(), held=(), home=None))
    found = logs.of_sources(sources)
    found.__dict__.update(step_base=logs.step_base)
    return found


def _taken(piece: Piece, rows: IntArray) -> ArrowTable:
    import pyarrow as pa

    held = piece.table(tuple(piece.fields)).take(pa.array(rows))
    return ArrowTable(held, (piece.files[0],), piece.constants, known=piece.fields)
