"""Tables and data sets that are named, not found by their files.

delta:/lake/logs@12   iceberg:catalog.namespace.table   logs.duckdb::visits   minari:ID
"""

from __future__ import annotations

import os
import re

from mixope.base.errors import DataError
from mixope.logs.sources import formats
from mixope.logs.sources.found import Finds
from mixope.logs.sources.marks import LOG, is_database, is_delta, whole_minari
from mixope.logs.sources.stores import Store, is_address, local_path, open_store, reaching

DELTA, ICEBERG, MINARI, TABLE = "delta:", "iceberg:", "minari:", "::"
_VERSION = re.compile(r"(.+)@(\d+)")


def find_table(path: str) -> Finds | None:
    """The rows of a table that is named as such; None for other paths. What is there under that very name is a path."""
    if os.path.exists(path):
        return None
    if path.startswith(DELTA):
        return _delta(*_versioned(path.removeprefix(DELTA)))
    if path.startswith(ICEBERG):
        place, snapshot = _versioned(path.removeprefix(ICEBERG))
        return formats.find("iceberg", *_located(place), snapshot)
    place, _, table = path.rpartition(TABLE)
    local = os.path.expanduser(local_path(place) or place)
    return _database(local, table) if place and os.path.isfile(local) else None


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
    return formats.find("delta", folder, store, version)


def _database(path: str, table: str) -> Finds:
    if not is_database(path):
        raise DataError("The file is neither a DuckDB nor an SQLite database", where=path, got=f"{path}::{table}")
    return formats.find("database", path, None, table)


def resolve_minari(text: str) -> str:
    """The folder behind ``minari:ID`` or ``minari:/path``."""
    name = os.path.expanduser(text.removeprefix(MINARI))
    if not os.path.isabs(name) and not os.path.exists(name):
        kept = os.environ.get("MINARI_DATASETS_PATH") or os.path.join(os.path.expanduser("~"), ".minari", "datasets")
        name = os.path.join(kept, name)
    if whole_minari(name) is None:
        raise DataError(
            "There is no such Minari data set here",
            where=name,
            got=text,
            hint=f"download it: minari download {text.removeprefix(MINARI)}; or set MINARI_DATASETS_PATH to the folder"
            " that holds it",
        )
    return name
