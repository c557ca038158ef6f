"""Iceberg tables, by pyiceberg: the rows of one snapshot, without those that are deleted.

    iceberg:/lake/logs   iceberg:/lake/logs@snapshot   iceberg:/lake/….metadata.json   iceberg:catalog.namespace.table

Where no row is deleted and no column was ever renamed, the data files hold exactly the rows, and are read as they are.
Otherwise pyiceberg reads them, and they are written once (:mod:`mixope.logs.sources.scratch`). Which catalog has the
last word on a folder is not known, so of a folder the newest metadata file is taken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from mixope.errors import DataError, MissingExtra, MixopeError
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.lakes import METADATA, is_version
from mixope.logs.sources.scratch import found_once
from mixope.logs.sources.stores import Store, endpoint_of, is_address, local_path, open_store, reaching


def find_iceberg(folder: str, store: Store | None = None, snapshot: int | None = None) -> Finds:
    """The rows of a snapshot (None: the last) of the table in a folder."""
    names = _names(f"{folder}/{METADATA}", store)
    return _rows(lambda: _from_metadata(f"{folder}/{METADATA}/{_newest(folder, names)}"), folder, snapshot)


def find_iceberg_file(path: str, snapshot: int | None = None) -> Finds:
    """The same of the table that a metadata file describes."""
    return _rows(lambda: _from_metadata(path), path, snapshot)


def find_in_catalog(name: str, snapshot: int | None = None) -> Finds:
    """The same of ``catalog.namespace.table``; where catalogs are is said in pyiceberg's own settings."""
    catalog, _, table = name.partition(".")

    def load() -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog(catalog).load_table(table)

    return _rows(load, f"iceberg:{name}", snapshot)


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


def _from_metadata(path: str) -> Any:
    from pyiceberg.table import StaticTable

    endpoint, region = endpoint_of(), os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    said = {"s3.endpoint": endpoint, "s3.region": region or ("us-east-1" if endpoint else None)}
    return StaticTable.from_metadata(path, {key: value for key, value in said.items() if value})


def _rows(load: Any, where: str, snapshot: int | None) -> Finds:
    try:
        import pyiceberg  # noqa: F401
    except ImportError:
        raise MissingExtra("iceberg", f"{where} is an Iceberg table, and reading it") from None
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what pyiceberg says of itself and of libraries that it could use
            return _read(load(), where, snapshot)
    except MixopeError:
        raise
    except Exception as error:  # of pyiceberg, or of what lies below it
        said = " ".join(str(error).split()) or type(error).__name__
        hint = "check that its metadata and data files are all there, and the name of the table"
        raise DataError(f"The Iceberg table cannot be read: {said}", where=where, hint=hint) from error


def _read(table: Any, where: str, snapshot: int | None) -> Finds:
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
        return Finds(tuple(_files(sorted(task.file.file_path for task in tasks))), record=record)
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


def _files(paths: Iterable[str]) -> Iterable[Found]:
    stores: dict[str, Store] = {}
    for path in paths:
        local = local_path(path) if is_address(path) else path.removeprefix("file:")
        if local is not None:
            yield Found(local, typed=True, format="parquet")
            continue
        place = "/".join(path.split("/")[:3])
        if place not in stores:
            stores[place] = open_store(place)[0]
        yield Found(path, typed=True, format="parquet", store=stores[place])
