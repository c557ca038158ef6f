"""The rows of an experiment in order, each with what came before and after it: written to the disk of this machine.

Order is needed within a unit alone. So a long table is first dealt out by a hash of the unit, and then one part after
the other is brought into order: the memory for it does not grow with the table.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mixope.base.errors import DataError
from mixope.base.files import scratch_folder
from mixope.experiments.absences import WINDOW, Watch, filled
from mixope.experiments.classes import Coded
from mixope.experiments.design import ExperimentDesign
from mixope.logs.sources import literal, quote
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.scratch import Scratch, lying_in
from mixope.logs.sources.stores import Store

BUCKETS = 64
PART = 50_000_000
"""Values (rows times columns) that are brought into order at once."""
NONE = -1
"""What stands for the state before the first period."""
FOLLOWS = "lead(day) OVER w = day + 1"


def names_of(coded: Iterable[str], lags: int) -> tuple[str, ...]:
    """The columns of the state: as they are now, then those of earlier periods."""
    now = tuple(coded)
    return (*now, *(earlier(name, lag) for name in now for lag in range(1, lags + 1)))


def ordered(
    connection: Any, raw: str, coded: Mapping[str, Coded], design: ExperimentDesign, watch: Watch | None
) -> Iterator[str]:
    """Queries that give all rows in order, one part after the other; each must be run before the next is asked for.

    With ``watch``, periods in which a unit that is watched has no row get one.
    """
    shown = _shown(coded, design)
    n_rows = _rows_of(connection, raw) if watch is None else watch.periods
    with _dealt(connection, f"SELECT {_taken(coded, design)} FROM {raw}", n_rows * len(shown)) as parts:
        listed = ", ".join(f"{expression} AS {called}" for called, expression in shown.items())
        for part in parts:
            whole = part if watch is None else filled(part, coded, design, watch)
            yield f"SELECT {listed} FROM {whole} {WINDOW}"


def _rows_of(connection: Any, relation: str) -> int:
    """How many there are."""
    return int(connection.execute(f"SELECT count(*) FROM {relation}").fetchall()[0][0])


def _taken(coded: Mapping[str, Coded], design: ExperimentDesign) -> str:
    """What is taken from every row: unit, day, arm, metrics and the classes of the state."""
    exposed = f"CASE WHEN exposed THEN assigned ELSE {literal(design.control)} END"
    columns = ["unit", "day", "assigned", f"{exposed if design.exposure else 'assigned'} AS action", *_metrics(design)]
    columns += [f"{found.sql} AS {quote(f'state {name}')}" for name, found in coded.items()]
    return ", ".join(columns)


def _metrics(design: ExperimentDesign) -> list[str]:
    return [quote(f"metric {metric}") for metric in design.metrics]


def _shown(coded: Iterable[str], design: ExperimentDesign) -> dict[str, str]:
    """The columns of the panel, as expressions over the rows of a unit."""
    shown = {
        **{name: name for name in ("unit", "day", "assigned", "action", *_metrics(design))},
        "step": "day - first_value(day) OVER w",
        "bucket": f"CAST(hash(CAST(unit AS VARCHAR)) % {BUCKETS} AS SMALLINT)",
        "doubled": "coalesce(day = lag(day) OVER w, false)",
        "usable": f"coalesce({FOLLOWS}, false)",
        "follows": FOLLOWS,
    }
    for name in coded:
        shown |= {quote(called): expression for called, expression in _around(name, design.lags).items()}
    return shown


@contextmanager
def _dealt(connection: Any, rows: str, n_values: int) -> Iterator[list[str]]:
    """Relations that have all rows of a unit each; where there are few values, one with all."""
    parts = -(-n_values // PART)
    if parts <= 1:
        yield [f"({rows})"]
        return
    with lying_in(tempfile.gettempdir()), scratch_folder() as folder:
        dealt = f"SELECT *, hash(CAST(unit AS VARCHAR), 1) % {parts} AS part FROM ({rows})"
        connection.execute(
            f"COPY ({dealt}) TO {literal(str(folder))} (FORMAT parquet, PARTITION_BY (part), OVERWRITE_OR_IGNORE)"
        )
        found = sorted(str(part / "*.parquet") for part in folder.glob("part=*"))
        yield [f"read_parquet({literal(part)}, hive_partitioning = false)" for part in found]


def written(
    connection: Any, queries: Iterable[str], name: str, record: Mapping[str, Any]
) -> tuple[Finds, Finds | None]:
    """The rows on this disk, those with a next state apart from those without."""
    with lying_in(tempfile.gettempdir()):
        kept = Scratch()
    for part, query in enumerate(queries):
        how = f"FORMAT parquet, PARTITION_BY (usable), FILENAME_PATTERN 'part-{part:03d}-{{i}}', OVERWRITE_OR_IGNORE"
        connection.execute(f"COPY ({query}) TO {literal(kept.root)} ({how})")
    parts = [_files(kept, name, usable, record) for usable in ("true", "false")]
    if parts[0] is None:
        raise DataError(
            "No unit has rows in two periods that follow each other",
            where=name,
            expected="units that are watched for several periods, one row for each",
        )
    return parts[0], parts[1]


def _files(kept: Scratch, name: str, usable: str, record: Mapping[str, Any]) -> Finds | None:
    folder = os.path.join(kept.root, f"usable={usable}")
    if not os.path.isdir(folder):
        return None
    store = Store(kept.filesystem, f"{name}/", f"{folder}/", kept)
    files = (Found(f"{name}/{file}", typed=True, format="parquet", store=store) for file in sorted(os.listdir(folder)))
    return Finds(tuple(files), record=record)


def _around(name: str, lags: int) -> dict[str, str]:
    """A column of the state now, in the next period and in those before."""
    now = quote(f"state {name}")
    found = {f"state {name}": now, f"next {name}": f"CASE WHEN {FOLLOWS} THEN lead({now}) OVER w END"}
    for lag in range(1, lags + 1):
        found[f"state {earlier(name, lag)}"] = _back(now, lag)
        found[f"next {earlier(name, lag)}"] = f"CASE WHEN {FOLLOWS} THEN {_back(now, lag - 1)} END"
    return {**found, f"before {name}": _back(now, lags + 1)}


def _back(column: str, periods: int) -> str:
    """What a column was some periods ago, if the unit was there."""
    if periods == 0:
        return column
    there = f"lag(day, {periods}) OVER w = day - {periods}"
    return f"CASE WHEN {there} THEN lag({column}, {periods}) OVER w ELSE {NONE} END"


def earlier(name: str, periods: int) -> str:
    """What a column of the state is called some periods before."""
    return f"{name}, {periods} before" if periods else name
