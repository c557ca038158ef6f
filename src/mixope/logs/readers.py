"""``read``: any way of holding a log → ``Logs``. One function per kind of argument, tried in order."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixope.base.errors import DataError, MixopeWarning, UsageError
from mixope.logs.given import LogSource
from mixope.logs.logs import Logs
from mixope.logs.names import Columns, assign, check_columns, check_done, check_ends, meaning_of
from mixope.logs.roles import check_missing, check_roles
from mixope.logs.sources import Source, quote, reading
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.arrow import ArrowDataset, ArrowTable
from mixope.logs.sources.copies import refuse_named_twice
from mixope.logs.sources.dialects import dialect_of
from mixope.logs.sources.encodings import check_encoding, in_utf8
from mixope.logs.sources.files import find, open_files, split_label
from mixope.logs.sources.formats import BufferTable, steps_held_by
from mixope.logs.sources.found import Finds
from mixope.logs.sources.frames import frame_of, refuse_splits
from mixope.logs.sources.layouts import refuse_parts
from mixope.logs.sources.marks import format_of_object
from mixope.logs.sources.scratch import lying_in
from mixope.logs.sources.stamps import Stamp, refuse_changed, stamped, stamped_stored
from mixope.logs.sources.streams import find_stream, is_stream, stream_name
from mixope.logs.sources.trajectories import is_episode, is_list_of_steps, table_of_steps

SAID = (
    "expected a path or address, a list of these, an Arrow table, a data frame, a dict of arrays, a list of episodes or"
    " of dicts, a data set of Minari, a buffer of d3rlpy or Stable-Baselines3, a file, or Logs"
)


def read(
    *sources: LogSource,
    columns: Columns | None = None,
    done: str | None = None,
    ends: str | None = None,
    label: str | Sequence[str] | None = None,
    format: str | None = None,
    encoding: str | None = None,
    roles: Mapping[str, str] | None = None,
    missing: str | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> Logs:
    """Logs from files or tables.

    :param sources: paths, globs, folders, addresses (``"s3://bucket/logs/**/*.parquet"``), ``"label=path"``,
        ``"minari:ID"``, ``"logs.duckdb::table"``, lists of paths, Arrow tables and datasets, data frames (anything with
        ``__arrow_c_stream__``), lazy frames of polars, Spark, Dask and Ray, DuckDB relations, dicts of arrays,
        lists of episodes (each a dict of arrays, a list of steps or an object with such attributes) or of dicts, data
        sets of Minari, buffers of d3rlpy and Stable-Baselines3, open binary files (``sys.stdin.buffer``),
        ``{label: source}``, ``Logs`` or a list of them. A folder may also be a data set of Minari, LeRobot or Hugging
        Face, a Delta table or an Iceberg table; files may be those of D4RL, d3rlpy, RLlib, Vowpal Wabbit or Open
        Bandit.
    :param columns: canonical name → the column (or columns: factors) that holds it, None to ignore it.
    :param done: what a lone done column means, ``"terminated"`` or ``"truncated"``.
    :param ends: where no column marks how episodes end, what their last rows are: ``"terminated"`` (each ended its
        episode) or ``"truncated"`` (the recorder stopped; what came after them is not known).
    :param label: the logger, one for all sources or one per source.
    :param format: where the name of a file does not say it.
    :param encoding: of text that is not UTF-8, such as ``"latin-1"``; UTF-16 with its mark needs no word.
    :param roles: column of the observation → ``"id"``, ``"category"`` or ``"number"``, where the guess is wrong.
    :param missing: ``"keep"`` takes missing values of the observation as they are: in a category a class of its own, in
        a number the mean with a column that says so. Otherwise they are refused.
    :param scratch: the folder or address where rows are written once that only another library can read (lazy frames,
        tables of a database); otherwise that of ``MIXOPE_SCRATCH``, or the temporary files of this machine.
    :returns: the rows as one table, read when they are needed; ``notes`` says what was assumed.

    >>> logs = mixope.read("logs/*.parquet")
    >>> logs.total_rows(), logs.schema.observation_kind, logs.schema.action_kind
    (2000, 'id', 'discrete')
    """
    if not sources:
        raise UsageError(f"read() needs at least one source: {SAID}.")
    state = {"roles": check_roles(roles), "missing": check_missing(missing)}
    said = Said(check_columns(columns), check_done(done), check_ends(ends), format, check_encoding(encoding), state)
    labels = _labels(label, len(sources))
    with lying_in(scratch):
        opened = [o for s, name in zip(sources, labels, strict=True) for o in _open(s, name, said)]
    logs = Logs(opened)
    for note in logs.assumed:
        warnings.warn(note, MixopeWarning, stacklevel=2)
    return logs


def open_sources(*given: Any, format: str | None = None, encoding: str | None = None) -> list[Source]:
    """The tables behind some sources with the columns that they have, whatever these mean."""
    said = Said({}, None, None, format, check_encoding(encoding), {"roles": {}, "missing": None})
    return [source for each in given for source in _open(each, None, said)]


def read_found(found: Finds, **said: Any) -> Logs:
    """Logs from rows that were written once; ``said`` as for :func:`read`."""
    return read(found, **said)  # type: ignore[arg-type]


def _labels(label: Any, count: int) -> list[str | None]:
    """One label per source."""
    labels = list(label) if isinstance(label, list | tuple) else [label] * count
    if not all(each is None or isinstance(each, str) for each in labels):
        raise UsageError(f"label is the name of a logger, one for all sources or one per source; got {label!r}")
    if len(labels) != count:
        raise UsageError(f"label has {len(labels)} entries for {count} sources; give one per source, or one for all.")
    return labels


class Said:
    """What the user said of all sources."""

    def __init__(
        self,
        columns: Mapping[str, Any],
        done: str | None,
        ends: str | None,
        format: str | None,
        encoding: str | None,
        state: Mapping[str, Any],
    ) -> None:
        self.columns, self.done, self.ends, self.state = columns, done, ends, state
        self.format, self.encoding = format, encoding

    def source(
        self,
        name: str,
        pieces: Sequence[Any],
        label: str | None,
        notes: Sequence[str] = (),
        stamps: Sequence[Stamp] = (),
    ) -> list[Source]:
        """A source with these words attached."""
        known = dialect_of(name, pieces, self.columns)
        if known.constants:
            pieces = [replace(each, constants={**known.constants, **each.constants}) for each in pieces]
        said = {**known.columns, **self.columns}, self.done, self.ends, (*notes, *known.notes)
        return [Source(name, tuple(pieces), label, *said, stamps=tuple(stamps), **self.state)]

    def again(self, source: Source, label: str | None) -> Source:
        """A source that was opened before, with what is said now."""
        state = {name: word for name, word in self.state.items() if word}
        return replace(source, label=source.label or label, ends=self.ends or source.ends, **state)

    def files(self, name: str, found: Finds, label: str | None) -> list[Source]:
        """A source of files, each of which is still what it was before it was opened."""
        found = in_utf8(found, self.format, self.encoding)
        stamps = [stamp for file in found.files if file.store is None for stamp in stamped(file.files)]
        stamps += stamped_stored([(file.store, file.path, file.state) for file in found.files if file.store])
        pieces = open_files(found.files, self.format)
        refuse_changed(stamps, thorough=True)
        read_again = {file for piece in pieces if not isinstance(piece, ArrowTable) for file in piece.files}
        named = any("policy_id" in piece.fields for piece in pieces)
        sources = self.source(
            name,
            pieces,
            label if named else label or found.label,
            (*found.notes, *(note for piece in pieces if isinstance(piece, ArrowTable) for note in piece.notes)),
            [stamp for stamp in stamps if stamp.name in read_again],
        )
        more: dict[str, Any] = {"recorded": found.roles, "record": found.record, "home": found.home}
        more["held"] = tuple(file.store.held for file in found.files if file.store is not None)
        return [replace(source, **more) for source in sources]


def _open(given: Any, label: str | None, said: Said) -> list[Source]:
    if isinstance(given, Logs):
        return [said.again(source, label) for source in given.sources]
    if isinstance(given, Finds):
        return said.files(given.files[0].path, given, label)
    if isinstance(given, str | os.PathLike):
        return _open_path(given, label, said)
    refuse_splits(given)
    if isinstance(given, Mapping):
        return _open_mapping(given, label, said)
    if isinstance(given, list | tuple) and given and all(isinstance(each, Logs) for each in given):
        return [source for each in given for source in _open(each, label, said)]
    if isinstance(given, list | tuple) and given and all(isinstance(path, str | os.PathLike) for path in given):
        return _open_paths(given, label, said)
    held = steps_held_by(given)
    if held is not None:
        return _open_object(held, label, said)
    if is_list_of_steps(given) or is_episode(given):
        return _open_steps(given if isinstance(given, list | tuple) else [given], label, said)
    frame = frame_of(given)
    if frame is not None:
        return said.files(frame.name, frame.find(), label)
    if is_stream(given):
        return said.files(stream_name(given), find_stream(given), label)
    return _open_table(given, label, said)


def _open_path(given: Any, label: str | None, said: Said) -> list[Source]:
    path = os.fspath(given)
    if isinstance(given, str):
        own, path = split_label(given)
        label = own or label
    return said.files(path, find(path), label)


def _open_paths(given: Sequence[Any], label: str | None, said: Said) -> list[Source]:
    """One source, unless there are data sets among them whose episodes have the same numbers."""
    finds = [(os.fspath(path), find(os.fspath(path))) for path in given]
    if any(found.alone or found.record for _, found in finds):
        return [source for path, found in finds for source in said.files(path, found, label)]
    files = [file for _, found in finds for file in found.files]
    refuse_named_twice([file.path for file in files])
    name = files[0].path if len(files) == 1 else f"{files[0].path} … {files[-1].path}"
    notes = [note for _, found in finds for note in found.notes]
    return said.files(name, Finds(tuple(files), tuple(notes)), label)


def _open_mapping(given: Mapping[Any, Any], label: str | None, said: Said) -> list[Source]:
    """A dict is arrays if its keys name what a log has; otherwise {label: source}."""
    mapped = {n for v in said.columns.values() if v for n in ((v,) if isinstance(v, str) else v)}
    meanings = {meaning_of(str(key)) for key in given} | {k for k, v in said.columns.items() if v}
    sources = all(isinstance(key, str) and _source_like(value) for key, value in given.items())
    if {"action", "reward"} <= meanings or mapped & set(given) or (not sources and meanings - {None}):
        return said.source("arrays", [ArrowTable(table_of_arrays(given), ("arrays",))], label)
    if not given or not sources:
        raise DataError(
            "A dict is neither arrays nor labelled sources",
            expected="keys observation, action, reward, … with arrays; or labels with paths or tables",
            got=f"keys {', '.join(map(str, given))}",
        )
    return [source for key, value in given.items() for source in _open(value, key, said)]


def _open_steps(given: Sequence[Any], label: str | None, said: Said) -> list[Source]:
    """Episodes or rows that are held one by one."""
    table = table_of_steps(given, said.columns)
    return said.source("list", [ArrowTable(table, ("list",))], label)


def _open_object(held: BufferTable, label: str | None, said: Said) -> list[Source]:
    """Steps that an object of another library holds."""
    named = label if "policy_id" in held.table.column_names else label or held.label
    sources = said.source(held.name, [ArrowTable(held.table, (held.name,))], named, held.notes)
    return [replace(source, recorded=held.roles) for source in sources]


def _source_like(value: Any) -> bool:
    paths = isinstance(value, list | tuple) and all(isinstance(path, str | os.PathLike) for path in value)
    named = (
        paths
        or isinstance(value, str | os.PathLike | Mapping | Logs)
        or is_list_of_steps(value)
        or format_of_object(value)
    )
    return bool(named) or frame_of(value) is not None or is_stream(value) or _is_table(value)


def _is_table(value: Any) -> bool:
    named = hasattr(value, "columns") or hasattr(value, "schema")
    return named and (
        hasattr(value, "__arrow_c_stream__") or hasattr(value, "to_table") or hasattr(value, "to_batches")
    )


def _open_table(given: Any, label: str | None, said: Said) -> list[Source]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(given, ds.Dataset):
        refuse_parts(_local_files(given))
        files = tuple(getattr(given, "files", ())) or ("dataset",)
        piece = ArrowDataset(given, files)
        return _refuse_empty(said.source("dataset", [piece], label, stamps=piece.stamps()))
    if type(given).__name__ == "DuckDBPyRelation":
        return _refuse_empty(said.source("relation", [ArrowTable(_relation(given, said), ("relation",))], label))
    with reading("table"):
        if isinstance(given, pa.RecordBatch):
            given = pa.Table.from_batches([given])
        elif isinstance(given, pa.RecordBatchReader):
            given = given.read_all()
        elif not isinstance(given, pa.Table) and hasattr(given, "__arrow_c_stream__"):
            given = _as_table(given)
    if not isinstance(given, pa.Table):
        raise UsageError(f"read() cannot read a {type(given).__name__}: {SAID}.")
    return _refuse_empty(said.source("table", [ArrowTable(given, ("table",))], label))


def _local_files(dataset: Any) -> list[str]:
    """The files of a pyarrow dataset that lie here; where a table's own library made it, they have another place."""
    from pyarrow import fs

    if isinstance(getattr(dataset, "filesystem", None), fs.LocalFileSystem):
        return list(dataset.files)
    return [file for child in getattr(dataset, "children", ()) for file in _local_files(child)]


def _as_table(given: Any) -> Any:
    """A data frame as an Arrow table; names of columns that are no text become text."""
    import pyarrow as pa

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The DataFrame has column names of mixed type", UserWarning)
        try:
            return pa.table(given)
        except pa.ArrowException:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                "The data frame cannot be turned into columns",
                where="table",
                expected="columns of numbers or text, each of one type",
                got=" ".join(str(error).split()),
            ) from error


def _relation(given: Any, said: Said) -> Any:
    """A DuckDB relation as a table, only the columns that mean something: a relation belongs to its connection."""
    found, _ = assign(list(given.columns), "relation", said.columns, said.done)
    names = dict.fromkeys(column for assignment in found.values() for column in assignment.columns.values())
    with reading("relation"):
        return given.project(", ".join(map(quote, names))).to_arrow_table()


def _refuse_empty(sources: list[Source]) -> list[Source]:
    for source in sources:
        if sum(source.counts()) == 0:
            raise DataError("The table has no rows", where=source.name, expected="at least one row")
    return sources
