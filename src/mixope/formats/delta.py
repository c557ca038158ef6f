"""Delta tables: the files that the log of the table says are live, and the columns that it keeps for them.

The log is a run of commits, ``_delta_log/00000000000000000007.json``, one action per line; a checkpoint in Parquet
sums up all commits until its own. The last version is read, or one that is asked for, and only where this is exact: a
table that needs something that is not understood here (deletion vectors, renamed columns, unknown features) is read by
deltalake where that is installed, and written once (:mod:`mixope.logs.sources.scratch`); else it is refused.

All files are opened through the gate (:mod:`mixope.logs.sources.gate`). That library has no gate, and may follow
another file of the log than we do: a checkpoint where we read commits. So before it is asked, every name in every file
of the log has to be one that leads nowhere else.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from mixope.base.errors import DataError, MixopeError
from mixope.logs.sources import reading
from mixope.logs.sources.checksums import VERIFIED
from mixope.logs.sources.formats import Format
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.gate import ByteBudget, Gate, without_repeats
from mixope.logs.sources.marks import LOG, is_delta
from mixope.logs.sources.scratch import found_once
from mixope.logs.sources.stores import Store, endpoint_of, is_address

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
ACTIONS = ("add", "remove", "metaData", "protocol")
PATH, VECTOR = "path", "pathOrInlineDv"
"""The keys of all actions under which the log names files, and files of deletion vectors."""
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
"""The digits to base 85 of Delta tables, and those of Python."""
FEATURES = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"})
"""What a table may be able to do: whether it has done so is looked at where it matters."""
WHOLE = ("byte", "short", "integer", "long")
LONGEST = 300
"""Characters of what another library says."""
BATCH = 256
"""Rows of a checkpoint that are held at once."""
HINT = "pip install 'mixope[delta]', so that deltalake reads it; or export the rows to plain Parquet files"


def find_delta(folder: str, store: Store | None = None, version: int | None = None) -> Finds:
    """The live files of the last version, or of another, sorted by name."""
    state, place = DeltaState(folder, store), folder
    try:
        for where, action in _actions(state.gate, version):
            place = where
            state.take(action)
        place = _join(folder, LOG)
        return Finds(tuple(state.files()), record={"table": folder, "version": state.version})
    except NotPlain as refused:
        try:
            _admit_log(state.gate)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise _damaged(_join(folder, LOG), f"what is not understood ({error})") from error
        return _by_deltalake(state.gate, version, refused)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise _damaged(place, f"what is not understood ({type(error).__name__}: {error})") from error


@dataclass
class DeltaState:
    """The table after some actions of its log. A file is one entry for every deletion vector that it has had."""

    folder: str
    store: Store | None = None
    version: int = -1
    live: dict[tuple[str, str | None], Mapping[str, Any]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)

    def take(self, action: Mapping[str, Any]) -> None:
        """Carry out one action."""
        for name, said in action.items():
            if name == "version":
                self.version = said
            elif name == "add":
                self.live[said["path"], _vector(said)] = said
            elif name == "remove":
                self.live.pop((said["path"], _vector(said)), None)
            elif name == "metaData":
                self.metadata = said
            elif name == "protocol":
                self.protocol = said

    def files(self) -> Iterator[Found]:
        """The live files with the values of the columns that are kept in the log."""
        self._refuse_unknown()
        if not self.live:
            raise DataError("The Delta table has no rows", where=self.folder, expected="at least one live file")
        types = self._types()
        for (path, _), add in sorted(self.live.items(), key=lambda each: each[0][0]):
            name = self._place(path)
            yield Found(name, self._constants(add, types), typed=True, format="parquet", store=self.store)

    @property
    def gate(self) -> Gate:
        """Round the folder."""
        return Gate(self.folder, self.store, "Delta table")

    def _refuse_unknown(self) -> None:
        """What cannot be read exactly."""
        reader = self.protocol.get("minReaderVersion")
        features = set(self.protocol.get("readerFeatures") or ())
        mapping = dict(self.metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none")
        paths = [path for path, _ in self.live]
        if reader not in (1, 2, 3):
            raise _refused(self.folder, f"protocol {reader!r}")
        if features - FEATURES:
            raise _refused(self.folder, f"the feature {min(features - FEATURES)!r}")
        if mapping != "none":
            raise _refused(self.folder, "columns that have other names in the files than in the table")
        if any(vector for _, vector in self.live) or len(set(paths)) < len(paths):
            raise _refused(self.folder, "deletion vectors: rows that are deleted and still in the files")

    def _types(self) -> dict[str, Any]:
        """Column → type, as the table's schema says it."""
        schema = json.loads(self.metadata["schemaString"])
        return {column["name"]: column["type"] for column in schema["fields"]}

    def _place(self, path: str) -> str:
        name = unquote(path)
        if "://" in name or os.path.isabs(name) or ".." in name.split("/"):
            raise _refused(self.folder, f"files that lie elsewhere ({name})", DataError)
        if self.store is not None:
            return self.gate.admit(name)
        found = os.path.join(self.folder, *name.split("/"))
        self.gate.file(name)
        if not os.path.isfile(found):
            raise DataError(
                "A live file of the Delta table is missing",
                where=found,
                expected="all files that the log of the table names",
                hint="copy the whole folder, or restore the file",
            )
        return found

    def _constants(self, add: Mapping[str, Any], types: Mapping[str, Any]) -> tuple[tuple[str, str | int], ...]:
        values = dict(add.get("partitionValues") or {})
        known = {key: text for key, text in values.items() if text not in (None, "")}
        return tuple((key, int(text) if types.get(key) in WHOLE else str(text)) for key, text in known.items())


def _vector(said: Mapping[str, Any]) -> str | None:
    """What tells the deletion vectors of a file apart; None where it has none."""
    vector = said.get("deletionVector")
    return json.dumps([vector.get(key) for key in ("storageType", "pathOrInlineDv", "offset")]) if vector else None


def _actions(gate: Gate, version: int | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All actions until a version (None: the last), in order, each with the file that holds it."""
    folder, log = gate.folder, _join(gate.folder, LOG)
    names = _logged(gate)
    commits = {int(match[1]): match[0] for name in names if (match := _COMMIT.fullmatch(name))}
    last = max(commits, default=-1) if version is None else version
    first, parts = _start(log, [name for name in names if version is None or _number(name) <= version], commits)
    if version is not None and version not in commits and version != first - 1:
        known = f"versions {min(commits, default=first - 1)} to {max(commits, default=first - 1)}"
        raise DataError("The Delta table has no such version", where=folder, expected=known, got=version)
    for name in parts:
        yield from _summed_up(gate, name)
    for number in range(first, last + 1):
        if number not in commits:
            raise _damaged(log, f"no commit {number}, though there are later ones")
        yield from _committed(gate, commits[number])
    yield log, {"version": max(last, first - 1)}


def _logged(gate: Gate) -> list[str]:
    """The names of the files in the log."""
    log = _join(gate.folder, LOG)
    with reading(log):
        return sorted(os.listdir(log) if gate.store is None else gate.store.names(log))


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if is_address(folder) else os.path.join(folder, name)


def _number(name: str) -> int:
    """The version in the name of a file of the log; 0 for other files, which are left alone."""
    return int(name[:20]) if name[:20].isdecimal() else 0


def _start(log: str, names: Iterable[str], commits: Iterable[int]) -> tuple[int, list[str]]:
    """The first commit to be read, and the checkpoint that stands for those before; none if all commits are there."""
    if 0 in commits:
        return 0, []
    checkpoints: dict[int, list[re.Match[str]]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            checkpoints.setdefault(int(match[1]), []).append(match)
    for version in sorted(checkpoints, reverse=True):
        single = [match[0] for match in checkpoints[version] if match[2] is None]
        several = [match[0] for match in checkpoints[version] if match[2] is not None]
        wanted = max((int(match[3]) for match in checkpoints[version] if match[3]), default=0)
        if single or len(several) == wanted:
            return version + 1, single or several
    raise _damaged(log, "neither the first commit nor a whole checkpoint")


def _committed(gate: Gate, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    path = _join(gate.folder, f"{LOG}/{name}")
    for action in _lines(gate, name):
        yield path, {key: said for key, said in action.items() if key in ACTIONS}


def _lines(gate: Gate, name: str) -> Iterator[Mapping[str, Any]]:
    """The objects in a commit."""
    path = _join(gate.folder, f"{LOG}/{name}")
    with reading(path):
        lines = gate.read(f"{LOG}/{name}").decode("utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            action = json.loads(line, object_pairs_hook=without_repeats)
        except ValueError as error:
            raise _damaged(path, f"line {number} is not JSON ({error})") from error
        if not isinstance(action, dict):
            raise _damaged(path, f"line {number} is no action")
        yield action


def _summed_up(gate: Gate, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    path = _join(gate.folder, f"{LOG}/{name}")
    for row in _rows(gate, name, ACTIONS):
        action = {key: _as_json(said) for key, said in row.items() if said is not None and key != "remove"}
        if action:
            yield path, action


def _rows(gate: Gate, name: str, columns: Iterable[str] | None = None) -> Iterator[Mapping[str, Any]]:
    """The rows of a checkpoint, of which a few are held at once."""
    import pyarrow.parquet as pq

    path = _join(gate.folder, f"{LOG}/{name}")
    with reading(path):
        filesystem, place = gate.open_place(f"{LOG}/{name}")
        with filesystem.open_input_file(place) as stored, pq.ParquetFile(stored, **VERIFIED) as file:
            room = ByteBudget(path, stored.size())
            wanted = file.schema_arrow.names if columns is None else columns
            present = [column for column in wanted if column in file.schema_arrow.names]
            for batch in file.iter_batches(BATCH, columns=present):
                room.take(batch.nbytes + batch.num_rows * len(present))
                yield from batch.to_pylist()


def _as_json(said: Any) -> Any:
    """Maps are lists of pairs in Arrow."""
    maps = ("partitionValues", "configuration")
    return {key: dict(value) if key in maps and value else value for key, value in said.items()}


def _admit_log(gate: Gate) -> None:
    """No file of the log, and no name in any of them, leads out of the folder, however it is read."""
    for name in _logged(gate):
        gate.file(f"{LOG}/{name}")
        said: Iterator[Any] = iter(())
        if name.endswith((".json", ".json.tmp", ".crc")) or name.startswith("_last_checkpoint"):
            said = _lines(gate, name)
        elif name.endswith(".parquet"):
            said = _rows(gate, name)
        elif gate.store is None and os.path.isdir(inner := _join(gate.folder, f"{LOG}/{name}")) and os.listdir(inner):
            raise _refused(gate.folder, f"a folder in its log ({name})", DataError)
        for path in (path for each in said for path in _named(each)):
            gate.admit_strictly(path)


def _named(said: Any) -> Iterator[str]:
    """The names of files in an action, wherever they stand."""
    for key, value in said.items() if isinstance(said, Mapping) else ():
        if key == PATH and isinstance(value, str):
            yield value
        elif key == VECTOR and isinstance(value, str) and said.get("storageType") != "i":
            yield value if said.get("storageType") == "p" else _vector_file(value)
        yield from _named(value)


def _vector_file(said: str) -> str:
    """The file of a deletion vector that goes by a number, in 20 digits after the folder that it lies in."""
    folder, digits = said[:-20], said[-20:]
    if len(digits) < 20 or not digits.isascii():
        raise ValueError(f"deletion vectors with such a name: {said[:80]!r}")
    number = base64.b85decode(digits.translate(str.maketrans(Z85, B85)))
    return f"{folder}{folder and '/'}deletion_vector_{UUID(bytes=number)}.bin"


class NotPlain(DataError):
    """The table is whole, but only its own library can read it exactly."""


def _by_deltalake(gate: Gate, version: int | None, refused: DataError) -> Finds:
    """The rows as the table's own library reads them, written once; where it is not installed, the error stands."""
    folder = gate.folder if gate.store is not None else os.path.realpath(gate.folder)
    try:
        import deltalake
    except ImportError:
        raise refused from None
    if not hasattr(deltalake.DeltaTable, "scan"):
        raise refused
    import pyarrow as pa

    try:
        table = deltalake.DeltaTable(folder, version=version, storage_options=_options(folder))
        for name in table.file_uris():
            _refuse_damaged(gate, name)
        read = pa.RecordBatchReader.from_stream(table.scan())
        record = {"table": gate.folder, "version": table.version()}
        return found_once(read, f"delta:{gate.folder}@{table.version()}", record)
    except MixopeError:
        raise
    except Exception as error:  # the library has no base class for what goes wrong
        raise DataError(
            f"{refused.problem}, and deltalake cannot read it either",
            where=gate.folder,
            expected=refused.expected,
            got=f"{refused.got}; deltalake says: {' '.join(str(error).split())[:LONGEST]}",
            hint="upgrade deltalake, or export the rows to plain Parquet files",
        ) from error


def _refuse_damaged(gate: Gate, name: str) -> None:
    """An error where a data file lies elsewhere, or its columns make no sense: deltalake would end the process."""
    import pyarrow.parquet as pq

    with reading(name):
        filesystem, path = gate.open_place(name)
        with filesystem.open_input_file(path) as stored, pq.ParquetFile(stored) as file:
            file.schema_arrow  # noqa: B018


def _options(folder: str) -> dict[str, str] | None:
    """An endpoint without encryption has to be allowed."""
    endpoint = endpoint_of() if is_address(folder) else None
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"} if endpoint else None


def _refused(folder: str, what: str, kind: type[DataError] = NotPlain) -> DataError:
    return kind(
        "The Delta table cannot be read exactly from its files",
        where=folder,
        expected="a table of plain live files",
        got=what,
        hint=HINT,
    )


def _damaged(place: str, what: str) -> DataError:
    return DataError(
        "The log of the Delta table cannot be read",
        where=place,
        got=what,
        hint="copy the whole table anew; or " + HINT,
    )


FORMAT = Format("delta", marks=is_delta, find=find_delta, title="a Delta table")
