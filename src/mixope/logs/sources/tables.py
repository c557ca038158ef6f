"""Tables that are named, not found by their files: ``delta:/lake/logs@12``, ``iceberg:…``, ``logs.duckdb::visits``."""

from __future__ import annotations

import os
import re

from mixope.base.errors import DataError
from mixope.logs.sources.databases import find_database
from mixope.logs.sources.delta import LOG, find_delta, is_delta
from mixope.logs.sources.found import Finds
from mixope.logs.sources.iceberg import find_iceberg, find_iceberg_file, find_in_catalog
from mixope.logs.sources.lakes import is_iceberg
from mixope.logs.sources.stores import Store, is_address, local_path, open_store, reaching

DELTA, ICEBERG, TABLE = "delta:", "iceberg:", "::"
_VERSION = re.compile(r"(.+)@(\d+)")
_NAME = re.compile(r"\w[\w-]*(\.\w[\w-]*){2,}")


def find_table(path: str) -> Finds | None:
    """The rows of a table that is named as such; None for other paths. What is there under that very name is a path."""
    if os.path.exists(path):
        return None
    if path.startswith(DELTA):
        return _delta(*_versioned(path.removeprefix(DELTA)))
    if path.startswith(ICEBERG):
        return _iceberg(*_versioned(path.removeprefix(ICEBERG)))
    place, _, table = path.rpartition(TABLE)
    local = os.path.expanduser(local_path(place) or place)
    return find_database(local, table) if place and os.path.isfile(local) else None


def _versioned(place: str) -> tuple[str, int | None]:
    """A place, and the version after its last @."""
    found = _VERSION.fullmatch(place)
    return (place.rstrip("/"), None) if found is None else (found[1].rstrip("/"), int(found[2]))


def _located(place: str) -> tuple[str, Store | None]:
    local = local_path(place) if is_address(place) else place
    if local is not None:
        return os.path.expanduser(local), None
    store, name = open_store(place)
    return name, store


def _delta(place: str, version: int | None) -> Finds:
    folder, store = _located(place)
    with reaching(folder):
        there = is_delta(folder) if store is None else bool(store.names(f"{folder}/{LOG}"))
    if not there:
        raise DataError("There is no Delta table", where=folder, expected=f"a folder with {LOG} in it")
    return find_delta(folder, store, version)


def _iceberg(place: str, snapshot: int | None) -> Finds:
    if _NAME.fullmatch(place) and not os.path.exists(place) and not place.endswith(".json"):
        return find_in_catalog(place, snapshot)
    folder, store = _located(place)
    if re.search(r"\.metadata\.json(\.gz)?$|\.gz\.metadata\.json$", folder):
        return find_iceberg_file(folder, snapshot)
    if store is None and not is_iceberg(folder):
        raise DataError(
            "There is no Iceberg table",
            where=folder,
            expected="a folder with metadata/….metadata.json in it, such a file, or catalog.namespace.table",
        )
    return find_iceberg(folder, store, snapshot)
