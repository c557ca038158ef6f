"""Iceberg tables, by pyiceberg: the rows of one snapshot, without those that are deleted.

    iceberg:/lake/logs   iceberg:/lake/logs@snapshot   iceberg:/lake/….metadata.json   iceberg:catalog.namespace.table

Where no row is deleted and no column was ever renamed, the data files hold exactly the rows, and are read as they are.
Otherwise pyiceberg reads them, and they are written once (:mod:`mixope.logs.sources.scratch`). Which catalog has the
last word on a folder is not known, so of a folder the newest metadata file is taken.

What a table says of itself is not trusted. Files are opened by us, and only below the folder of the table
(:mod:`mixope.logs.sources.gate`); of its properties, which could name classes and servers, only those in :data:`KEPT`
are looked at. A catalog is trusted as far as the user's own settings name it; its tables are not.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from mixope.base.errors import DataError, MissingExtra, MixopeError
from mixope.logs.sources.formats import Format
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.gate import MOST_RECORD, Gate
from mixope.logs.sources.marks import METADATA, is_iceberg, is_version
from mixope.logs.sources.scratch import found_once
from mixope.logs.sources.stores import Store, is_address, local_path, open_store, reaching

WHAT = "Iceberg table"
GZIP = b"\x1f\x8b"
SETTINGS = ".pyiceberg.yaml"
KEPT = frozenset({"schema.name-mapping.default"})
"""Properties of a table that change how its files are read, and can do nothing else."""
VENDED = frozenset(
    {"s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.region", "client.region", "gcs.oauth2.token"}
)
"""What a catalog may hand over for its tables: the right to read them, and where."""


_NAME = re.compile(r"\w[\w-]*(\.\w[\w-]*){2,}")
"""catalog.namespace.table"""


def find(place: str, store: Store | None = None, snapshot: int | None = None) -> Finds:
    """The rows of a snapshot (None: the last) of a table: its folder, one of its metadata files, or its name."""
    if store is None and _NAME.fullmatch(place) and not os.path.exists(place) and not place.endswith(".json"):
        return find_in_catalog(place, snapshot)
    if re.search(r"\.metadata\.json(\.gz)?$|\.gz\.metadata\.json$", place):
        return find_iceberg_file(place, snapshot)
    if store is None and not is_iceberg(place):
        raise DataError(
            "There is no Iceberg table",
            where=place,
            expected="a folder with metadata/….metadata.json in it, such a file, or catalog.namespace.table",
        )
    return find_iceberg(place, store, snapshot)


def find_iceberg(folder: str, store: Store | None = None, snapshot: int | None = None) -> Finds:
    """The rows of a snapshot (None: the last) of the table in a folder."""
    gate, names = Gate(folder, store, WHAT), _names(f"{folder}/{METADATA}", store)
    return _rows(lambda: _from_metadata(f"{METADATA}/{_newest(folder, names)}", gate), gate, folder, snapshot)


def find_iceberg_file(path: str, snapshot: int | None = None) -> Finds:
    """The same of the table that a metadata file describes; its folder is the one that holds ``metadata/``."""
    gate = _gate_of(path)
    name = "/".join(path.split("/")[-2:]) if is_address(path) else os.path.abspath(path.removeprefix("file:"))
    return _rows(lambda: _from_metadata(name, gate), gate, path, snapshot)


def find_in_catalog(name: str, snapshot: int | None = None) -> Finds:
    """The same of ``catalog.namespace.table``; where catalogs are is said in pyiceberg's own settings."""
    catalog, _, table = name.partition(".")

    def load() -> Any:
        _refuse_settings_of_this_folder()
        from pyiceberg.catalog import load_catalog
        from pyiceberg.io import load_file_io

        known = load_catalog(catalog)

        def own_io(properties: Mapping[str, str] | None = None, location: str | None = None) -> Any:
            vended = {key: value for key, value in (properties or {}).items() if key in VENDED}
            return load_file_io({**vended, **known.properties}, location)

        known._load_file_io = own_io  # the catalog's own would also follow the properties of the table
        return known.load_table(table)

    return _rows(load, None, f"iceberg:{name}", snapshot)


def _refuse_settings_of_this_folder() -> None:
    """An error where pyiceberg would take its settings, which name classes and servers, from the current folder."""
    places = [os.environ.get("PYICEBERG_HOME"), os.path.expanduser("~"), os.getcwd()]
    first = next((place for place in places if place and os.path.lexists(os.path.join(place, SETTINGS))), None)
    if first is not None and first == places[-1] and first not in places[:-1]:
        raise DataError(
            "The settings of catalogs lie in the current folder, and are not followed: they can name code to be run",
            where=os.path.join(first, SETTINGS),
            expected=f"{SETTINGS} in your home folder, or in the one that PYICEBERG_HOME names",
            hint="if the settings are yours, move them there, or set PYICEBERG_HOME to this folder",
        )


def _gate_of(path: str) -> Gate:
    """Round the table whose metadata file this is."""
    local = local_path(path) if is_address(path) else path.removeprefix("file:")
    store = None if local is not None else open_store(path)[0]
    named = path if local is None else os.path.abspath(local)
    return Gate(os.path.dirname(os.path.dirname(named)), store, WHAT)


def _names(folder: str, store: Store | None) -> list[str]:
    if store is None:
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    with reaching(folder):
        return sorted(store.names(folder))


def _newest(folder: str, names: Iterable[str]) -> str:
    """The metadata file with the highest number."""
    numbered: dict[int, list[str]] = {}
    for name in names:
        number = re.match(r"v?(\d+)", name)
        if number and is_version(name):
            numbered.setdefault(int(number[1]), []).append(name)
    if not numbered:
        raise DataError(
            "The folder is no Iceberg table",
            where=folder,
            expected="metadata/00000-….metadata.json or metadata/v1.metadata.json in it",
        )
    newest = numbered[max(numbered)]
    if len(newest) > 1:
        raise DataError(
            "Two metadata files claim to be the last version of the Iceberg table",
            where=folder,
            got=" and ".join(newest),
            hint=f"name the right one: iceberg:{folder}/{METADATA}/{newest[0]}",
        )
    return newest[0]


def _from_metadata(path: str, gate: Gate) -> Any:
    """The table that a metadata file describes, whose files are opened through the gate."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.table import StaticTable
    from pyiceberg.table.metadata import TableMetadataUtil

    io = _gated(gate, {})
    metadata = TableMetadataUtil.parse_raw(_unpacked(gate.read(path), path))
    kept = {key: value for key, value in metadata.properties.items() if key in KEPT}
    return StaticTable(
        identifier=("static-table", path),
        metadata=metadata.model_copy(update={"properties": kept}),
        metadata_location=path,
        io=io,
        catalog=NoopCatalog("static-table"),
    )


def _unpacked(content: bytes, path: str) -> str:
    """The text of a metadata file, which may be packed."""
    if content.startswith(GZIP):
        unpacking = zlib.decompressobj(wbits=31)
        content = unpacking.decompress(content, MOST_RECORD)
        if not unpacking.eof:
            expected = f"one whole record of at most {MOST_RECORD >> 20} MB"
            raise DataError("The metadata are cut short, or unpack to far too much", where=path, expected=expected)
    return content.decode("utf-8")


def _gated(gate: Gate, properties: Mapping[str, str]) -> Any:
    """What pyiceberg opens files with, for those that the gate admits."""
    from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

    class GatedFiles(PyArrowFileIO):  # type: ignore[misc]
        """Reads only."""

        def new_input(self, location: str) -> Any:
            filesystem, path = gate.open_place(location)
            return PyArrowFile(location=location, path=path, fs=filesystem)

        def new_output(self, location: str) -> Any:
            raise _read_only(location)

        def delete(self, location: Any) -> None:
            raise _read_only(str(location))

        def _initialize_fs(self, scheme: str, netloc: str | None = None) -> Any:
            raise _read_only(f"{scheme}://{netloc or ''}")

    return GatedFiles(dict(properties))


def _read_only(location: str) -> DataError:
    return DataError("An Iceberg table is only read here, through its own folder", got=location)


def _rows(load: Any, gate: Gate | None, where: str, snapshot: int | None) -> Finds:
    """The rows of a snapshot; without a gate, the table is one of a catalog, and gets one round its own folder."""
    try:
        import pyiceberg  # noqa: F401
    except ImportError:
        raise MissingExtra("iceberg", f"{where} is an Iceberg table, and reading it") from None
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what pyiceberg says of itself and of libraries that it could use
            table = load()
            return _read(table, gate or _in_catalog(table), where, snapshot)
    except MixopeError:
        raise
    except Exception as error:  # of pyiceberg, or of what lies below it
        said = " ".join(str(error).split()) or type(error).__name__
        hint = "check that its metadata and data files are all there, and the name of the table"
        raise DataError(f"The Iceberg table cannot be read: {said}", where=where, hint=hint) from error


def _in_catalog(table: Any) -> Gate:
    """Round the folder of a catalog's table: files are opened with the catalog's rights, and only below it."""
    gate = _gate_of(table.metadata_location)
    opener = table.io.new_input

    def new_input(location: str) -> Any:
        gate.admit(location)
        return opener(location)

    table.io.new_input = new_input
    return gate


def _read(table: Any, gate: Gate, where: str, snapshot: int | None) -> Finds:
    chosen = table.current_snapshot() if snapshot is None else table.snapshot_by_id(snapshot)
    if chosen is None:
        known = ", ".join(str(each.snapshot_id) for each in table.snapshots()) or "none"
        if snapshot is None:
            raise DataError("The Iceberg table has no rows", where=where, expected="at least one snapshot")
        raise DataError("The Iceberg table has no such snapshot", where=where, expected=known, got=snapshot)
    scan = table.scan(snapshot_id=snapshot)  # named, a snapshot has the columns of its own time
    tasks = list(scan.plan_files())
    record = {"table": where, "snapshot": chosen.snapshot_id}
    if not tasks:
        raise DataError("The Iceberg table has no rows", where=where, expected="at least one data file")
    if _plain(table, tasks):
        files = sorted(gate.admit(task.file.file_path) for task in tasks)
        return Finds(
            tuple(Found(file, typed=True, format="parquet", store=gate.store) for file in files), record=record
        )
    return found_once(scan.to_arrow_batch_reader(), f"{where}@{chosen.snapshot_id}", record)


def _plain(table: Any, tasks: Iterable[Any]) -> bool:
    """Whether the data files hold exactly the rows: no deletes, only Parquet, and every column as it always was."""
    names: dict[int, set[tuple[str, str]]] = {}
    for schema in table.schemas().values():
        for column in schema.fields:
            names.setdefault(column.field_id, set()).add((column.name, str(column.field_type)))
    current = {column.field_id for column in table.schema().fields}
    kept = [found for number, found in names.items() if number in current]
    gone = {name for number, found in names.items() if number not in current for name, _ in found}
    once = all(len(found) == 1 for found in kept) and not gone
    return once and all(not task.delete_files and task.file.file_format.value == "PARQUET" for task in tasks)


FORMAT = Format("iceberg", marks=is_iceberg, find=find, title="an Iceberg table")
