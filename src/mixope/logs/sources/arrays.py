"""NumPy arrays as raw columns: (n,) is one; (n, k) is k of them, ``name.0 …``; a dict is its columns ``name.key``.

What a masked array masks is missing: a null, which is refused where a value is needed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mixope.base.arrays import DAMAGED, check_claims
from mixope.base.errors import DataError
from mixope.logs.names import WITH_FACTORS, meaning_of
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, outside
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.stores import Store, here

MATRIX = 2


def table_of_arrays(arrays: Mapping[str, Any], where: str = "arrays") -> Any:
    """An Arrow table; every argument must have the length of the first. None is left out."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    lengths: dict[str, int] = {}
    for name, given in _named(arrays, where).items():
        if given is None:
            continue
        for column, array in _columns(name, given, where):
            columns[column] = _arrow(array, column, where)
            lengths[column] = len(array)
    first = next(iter(lengths), None)
    for name, length in lengths.items():
        if first is not None and length != lengths[first]:
            raise DataError(
                f"{name!r} and {first!r} have different lengths",
                where=where,
                column=name,
                expected=f"{lengths[first]} rows, as {first!r}",
                got=f"{length} rows",
            )
    if not lengths or lengths[str(first)] == 0:
        raise DataError("The arrays have no rows", where=where, expected="at least one row")
    return pa.table(columns)


def _named(arrays: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Columns by names that are text: what a data frame calls 3 is "3" here."""
    named = {str(name): given for name, given in arrays.items()}
    if len(named) < len(arrays):
        raise DataError("Two columns have the same name", where=where, hint="rename or drop one of them")
    strange = next((name for name in named if not _is_text(name)), None)
    if strange is not None:
        raise DataError("The name of a column is not Unicode text", where=where, got=ascii(strange))
    return named


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _columns(name: str, given: Any, where: str) -> list[tuple[str, Any]]:
    if isinstance(given, Mapping):
        if meaning_of(name) not in WITH_FACTORS:
            raise DataError(f"{name!r} cannot be a dict of columns", where=where, column=name, expected="one array")
        named = _named({f"{name}.{key}": value for key, value in given.items()}, where)
        return [(column, _flat(value, column, where)) for column, value in named.items()]
    array = _array(given, name, where)
    if array.ndim == MATRIX and (meaning_of(name) in WITH_FACTORS or array.shape[1] == 1):
        whole = array.shape[1] == 1 and array.dtype.kind != "f"
        return [(name, array[:, 0])] if whole else [(f"{name}.{i}", array[:, i]) for i in range(array.shape[1])]
    return [(name, _flat(array, name, where))]


def _array(given: Any, name: str, where: str) -> Any:
    try:
        return np.ma.asarray(given) if np.ma.isMaskedArray(given) else np.asarray(given)
    except ValueError as error:
        raise DataError("The argument is not an array", where=where, column=name, got=str(error)) from error


def _flat(given: Any, name: str, where: str) -> Any:
    array = _array(given, name, where)
    if array.ndim != 1:
        shape = "one value per row (n,)" if array.ndim else "an array, not a single value"
        raise DataError(f"{name!r} has the wrong shape", where=where, column=name, expected=shape, got=str(array.shape))
    return array


def _arrow(array: Any, name: str, where: str) -> Any:
    import pyarrow as pa

    if array.dtype.kind in "SV":
        raise DataError(
            f"unknown dtype {array.dtype}", where=where, column=name, expected="integers, strings or floats"
        )
    unknown_allowed = meaning_of(name) in {"action_prob", "action_logp", "policy_id", "unit"} or array.dtype.kind == "O"
    mask = np.ma.getmaskarray(array) if np.ma.isMaskedArray(array) else None
    try:
        return pa.array(np.ascontiguousarray(np.ma.getdata(array)), mask=mask, from_pandas=unknown_allowed)
    except UnicodeError as error:
        raise DataError(f"{name!r} holds text that is not Unicode", where=where, column=name, got=str(error)) from None
    except OverflowError:
        expected = "integers of 64 bits; store longer ids as strings"
        raise DataError(
            f"{name!r} holds integers that are too large", where=where, column=name, expected=expected
        ) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"{name!r} mixes types",
            where=where,
            column=name,
            expected="values of one type",
            got=str(error).split("\n")[0],
        ) from error


def table_of_npz(place: str, path: str) -> Any:
    """The recognised arrays of an .npz file at a ``place``; arrays of Python objects are refused, not unpickled."""
    if not zipfile.is_zipfile(place):
        raise DataError("The log cannot be read: not a zip of arrays", where=path, expected="an .npz file")
    try:
        check_claims(place)
        with np.load(place, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except DAMAGED as error:
        if "pickle" not in str(error):
            raise DataError(f"The log cannot be read: {error}", where=path, expected="an .npz file") from error
        raise DataError(
            "The file holds Python objects",
            where=path,
            expected="an .npz file of numbers and strings",
            hint="store plain arrays; object arrays would have to be unpickled",
        ) from error
    rows = {len(array) for name, array in arrays.items() if meaning_of(name) and array.ndim}
    wanted = {name: a for name, a in arrays.items() if a.ndim and (meaning_of(name) or len(a) in rows)}
    return table_of_arrays(wanted, path)


def open_npz(paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None) -> Iterator[Piece]:
    """One table per file; an array in the file wins over a column in its path."""
    for path in paths:
        place = here(path, store)
        table = table_of_npz(place, path)
        yield ArrowTable(table, (path,), outside(constants, table.column_names), hash_file(place))
