"""Folders that ``save_to_disk`` of Hugging Face datasets wrote, read without that library.

    state.json          names the Arrow files that hold the rows, in order
    dataset_info.json   what the columns are; not needed here
    dataset_dict.json   instead of both: the folder holds several data sets, its splits

Files that ``state.json`` does not name are left from another time and are not read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.sources import reading
from mixope.logs.sources.formats import Format
from mixope.logs.sources.found import Finds, Found, several
from mixope.logs.sources.gate import Gate
from mixope.logs.sources.marks import SPLITS, STATE, is_hugging
from mixope.logs.sources.stores import Store

WHAT = "data set"
AGAIN = "write it anew: dataset.flatten_indices().save_to_disk(…)"


def find_hugging(folder: str, store: Store | None = None, part: Any = None) -> Finds:
    """The files of the data set; of several data sets an error that names them."""
    splits = os.path.join(folder, SPLITS)
    if os.path.isfile(splits):
        said = record_of(folder, SPLITS)
        raise several(folder, said.get("splits"), f"give one of them: {os.path.join(folder, '…')}")
    where = os.path.join(folder, STATE)
    said = record_of(folder, STATE)
    files = said.get("_data_files")
    if said.get("_indices_data_files") or said.get("_indices_files"):
        raise DataError("The data set keeps its rows and their order apart", where=where, hint=AGAIN)
    if not isinstance(files, list) or not files:
        raise DataError("The data set names no files", where=where, expected="a list, _data_files", hint=AGAIN)
    return Finds(tuple(Found(_place(folder, file, where), format="arrow") for file in files))


def _place(folder: str, file: Any, where: str) -> str:
    name = file.get("filename") if isinstance(file, dict) else None
    if not isinstance(name, str) or "\0" in name or os.path.basename(name) != name:
        raise DataError("A file of the data set has no name", where=where, got=repr(file)[:80], hint=AGAIN)
    found = os.path.join(folder, name)
    if not os.path.isfile(found):
        raise DataError("A file of the data set is missing", where=found, hint="copy the whole folder anew")
    Gate(folder, None, WHAT).file(name)
    return found


def record_of(folder: str, name: str, what: str = WHAT) -> Mapping[str, Any]:
    """The JSON object in a file of a data set."""
    where = os.path.join(folder, name)
    try:
        with reading(where):
            said = json.loads(Gate(folder, None, what).read(name))
    except (ValueError, RecursionError) as error:
        raise DataError(f"The record of the data set is not JSON: {error}", where=where) from error
    if not isinstance(said, dict):
        raise DataError("The record of the data set is no JSON object", where=where)
    return said


FORMAT = Format("huggingface", marks=is_hugging, find=find_hugging, title="a data set of Hugging Face")
