"""Policies as files and frames of columns: CSV, Parquet, Arrow, data frames, dicts, one (state, action, prob) per row.

Files are opened by the readers of logs (:mod:`mixope.logs.sources`). Whatever the source, it becomes a
:class:`NamedColumns`: names, and NumPy columns on demand. Its columns get their roles
(:mod:`~mixope.policies.table_roles`). Read and checked it is a :class:`Listing`, from which :func:`to_policy` makes the
policy. A pair that is not listed has probability 0; that is only believed of states whose listed probabilities sum to
one. Errors name rows of the source, because that is what the user can open and mend. PyArrow is imported only when a
source needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import DataError, Setting
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.text import DelimitedFiles
from mixope.logs.types import Field
from mixope.policies.keys import SHOWN, KeyIndex, Keys, as_actions, as_array, as_keys, first_rows
from mixope.policies.laws import TOLERANCE, Default, UnknownActions, as_numbers, looks_like_logs
from mixope.policies.table_roles import Roles
from mixope.policies.tabular import TabularPolicy


@dataclass(frozen=True)
class NamedColumns:
    """Named columns of equal length. ``column`` fetches one; ``where`` names the source in errors."""

    names: tuple[str, ...]
    column: Callable[[str], AnyArray]
    where: str


def from_mapping(columns: Mapping[str, Any], where: str = "dict of columns") -> NamedColumns:
    """A dict of columns."""
    arrays = {str(name): np.atleast_1d(as_array(values, f"values of {name!r}")) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            "the columns have different lengths",
            where=where,
            got=", ".join(f"{name}: {length}" for name, length in lengths.items()),
        )
    return NamedColumns(tuple(arrays), arrays.__getitem__, where)


def from_arrow(source: Any, where: str) -> NamedColumns:
    """A PyArrow table, or anything that speaks the Arrow PyCapsule interface (pandas, polars, …)."""
    import pyarrow as pa

    table = source if isinstance(source, pa.Table) else pa.RecordBatchReader.from_stream(source).read_all()
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise DataError("two columns have the same name", where=where, got=", ".join(repeated))
    return NamedColumns(tuple(table.column_names), lambda name: _to_numpy(table.column(name), name, where), where)


def _to_numpy(column: Any, name: str, where: str) -> AnyArray:
    """One Arrow column; strings become objects, decimals floats, dates their text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = pa.types
    if column.null_count:
        rows = pc.indices_nonzero(column.is_null()).to_numpy()
        raise DataError(
            "the column has missing values",
            where=where,
            column=name,
            rows=rows[:SHOWN].tolist(),
            total=len(rows),
            hint="drop these rows or fill them in",
        )
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kinds.is_nested(column.type):
        raise DataError(
            "the column holds lists or structs",
            where=where,
            column=name,
            expected="one integer or string per row",
            got=str(column.type),
            hint="write the parts of a state as several columns observation.x, observation.y, …",
        )
    if kinds.is_decimal(column.type):
        column = column.cast(pa.float64())
    elif kinds.is_temporal(column.type):
        column = column.cast(pa.string())
    array: AnyArray = column.to_numpy()
    return array


def from_file(path: Path, format_: str) -> NamedColumns:
    """A file, opened as logs are: ids that all look like integers are integers, otherwise text, dates included."""
    from mixope.logs.sources.encodings import in_utf8
    from mixope.logs.sources.files import open_files

    where = str(path)
    try:
        (piece,) = open_files(in_utf8(Finds((Found(where, format=format_),)), None, None).files, None)
        if isinstance(piece, DelimitedFiles):
            fields = {
                name: _WORDS if field.kind == "bool" or field.wide else field for name, field in piece.fields.items()
            }
            piece = replace(piece, fields=fields)
        table = piece.table(tuple(piece.fields))
    except DataError as error:
        raise _of_table(error, format_) from None
    return from_arrow(table, where)


_WORDS = Field("string", "text", exact=True, text=True)
"""True and false are names like others, and so are integers of more than 64 bits."""


def _of_table(error: DataError, format_: str) -> DataError:
    """What is wrong with a file, said of a table instead of a log, whose format and encoding cannot be said."""
    problem = error.problem.replace("The log cannot be read", f"the file cannot be read as {format_}")
    error.problem = re.sub(r"Expected Number of Columns: (\d+) Found:", r"Expected \1 columns, found", problem)
    if error.expected == "at least one row":
        error.expected = "one row per state and action"
    if any(isinstance(part, Setting) for part in getattr(error.hint, "parts", ())):
        error.hint = "check that the file is whole, of the format that its name says, and text in UTF-8 if it is text"
    error.args = (error.text(),)
    return error


@dataclass(frozen=True)
class Listing:
    """The columns of a listing, read. ``rows`` are their numbers in the source."""

    states: Keys
    actions: Keys
    probs: FloatArray
    rows: IntArray
    roles: Roles
    where: str

    def part(self, chosen: AnyArray) -> Listing:
        """Some of the rows."""
        return Listing(
            self.states.take(chosen),
            self.actions.take(chosen),
            self.probs[chosen],
            self.rows[chosen],
            self.roles,
            self.where,
        )

    def error(self, problem: str, column: str | None, wrong: BoolArray, **facts: Any) -> DataError:
        """A fault in some rows of one column."""
        rows = self.rows[np.flatnonzero(wrong)[:SHOWN]].tolist()
        return DataError(problem, where=self.where, column=column, rows=rows, total=int(wrong.sum()), **facts)


def read_listing(table: NamedColumns, roles: Roles) -> Listing:
    """Fetch and check the columns of a listing."""
    states = _states(table, roles)
    actions = column_keys(table, roles.action, "actions", floats=True)
    probs = np.ones(len(actions)) if roles.prob is None else _numbers(table, roles.prob)
    if len(probs) == 0:
        raise DataError("the table has no rows", where=table.where, expected="one row per state and action")
    return Listing(states, actions, probs, np.arange(len(probs)), roles, table.where)


def _states(table: NamedColumns, roles: Roles) -> Keys:
    """The states; a dict may hold factors as one ``(n, k)`` array."""
    if roles.factors is None:
        return _keys(table, roles.observation[0], "states")
    return Keys(tuple(column_keys(table, name, "states").columns[0] for name in roles.observation))


def column_keys(table: NamedColumns, name: str, what: str, *, floats: bool = False) -> Keys:
    """One column of ids, or of numbers where ``floats`` may name something."""
    keys = _keys(table, name, what, floats)
    if len(keys.columns) > 1:
        raise DataError(
            "the column has several values per row", where=table.where, column=name, expected="one id per row"
        )
    return keys


def _keys(table: NamedColumns, name: str, what: str, floats: bool = False) -> Keys:
    try:
        return as_keys(table.column(name), what, floats=floats)
    except DataError as error:
        raise placed(error, table.where, name) from None


def _numbers(table: NamedColumns, name: str) -> FloatArray:
    column = table.column(name)
    if column.ndim != 1:
        raise DataError(
            "the column has several values per row", where=table.where, column=name, expected="one number per row"
        )
    try:
        return as_numbers(column, "probabilities")
    except DataError as error:
        wrong = np.array([not _is_number(value) for value in column])
        found = f"{column[wrong][0]!r}" if wrong.any() else None
        raise DataError(
            error.problem,
            where=table.where,
            column=name,
            rows=first_rows(wrong),
            total=int(wrong.sum()),
            expected="numbers in [0, 1], with a decimal point",
            got=found,
        ) from None


def _is_number(value: object) -> bool:
    try:
        if isinstance(value, np.complexfloating):
            return False
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def placed(error: DataError, where: str, column: str | None = None) -> DataError:
    """The same error with the name of the source, and of the column."""
    error.where, error.column = error.where or where, error.column or column
    error.args = (error.text(),)
    return error


def to_policy(
    listing: Listing, default: Default, unknown_actions: UnknownActions, actions: Any = None
) -> TabularPolicy:
    """The table a listing describes. ``actions`` widens the set beyond those listed; a rule never takes any other."""
    if listing.roles.prob is None:
        if KeyIndex(listing.states, "state").repeated().any():
            raise listing.roles.search.missing("prob")
        unknown_actions = "zero" if actions is None else unknown_actions
    _check_probs(listing)
    states, acts = KeyIndex(listing.states, "state"), KeyIndex(listing.actions, "action")
    _check_pairs(listing, states.codes * len(acts) + acts.codes)
    _check_sums(listing, states)
    columns, names = acts.codes, listing.actions.take(acts.first).array()
    if actions is not None:
        columns, names = _columns_among(actions, listing)
    from scipy import sparse

    try:
        return TabularPolicy(
            sparse.csr_array((listing.probs, (states.codes, columns)), shape=(len(states), len(names))),
            listing.states.take(states.first).array(),
            names,
            default=default,
            unknown_actions=unknown_actions,
            factors=listing.roles.factors,
        )
    except DataError as error:
        raise placed(error, listing.where) from None


def _columns_among(actions: Any, listing: Listing) -> tuple[IntArray, AnyArray]:
    """The column of every row of the listing in a table of ``actions``, and their names."""
    keys = as_actions(actions, "actions")
    columns = KeyIndex(keys, "action").find(listing.actions)
    outside = columns < 0
    if outside.any():
        raise listing.error(
            "the table lists an action outside the actions that were given",
            listing.roles.action,
            outside,
            got=listing.actions.show(np.flatnonzero(outside)[:1])[0],
        )
    return columns, keys.array()


def _check_probs(listing: Listing) -> None:
    probs, column = listing.probs, listing.roles.prob
    if np.isnan(probs).any():
        raise listing.error("the probabilities have NaN", column, np.isnan(probs), expected="a number in every row")
    if looks_like_logs(probs):
        raise DataError(
            "the probabilities are log-probabilities",
            where=listing.where,
            column=column,
            expected="numbers in [0, 1]",
            got=f"all ≤ 0, the smallest {probs.min():.6g}",
            hint="write their exponentials (np.exp)",
        )
    for wrong, word in ((probs < 0, "negative"), (probs > 1 + TOLERANCE, "above one")):
        if wrong.any():
            found = ", ".join(f"{value:.6g}" for value in probs[wrong][:SHOWN])
            raise listing.error(f"probabilities are {word}", column, wrong, expected="numbers in [0, 1]", got=found)


def _check_pairs(listing: Listing, pairs: IntArray) -> None:
    """No (state, action) is listed twice."""
    _, inverse, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    repeated: BoolArray = counts[inverse] > 1
    if repeated.any():
        first = np.flatnonzero(repeated)[:1]
        state, action = listing.states.show(first)[0], listing.actions.show(first)[0]
        same = np.flatnonzero(pairs == pairs[first])
        raise listing.error(
            "a pair of state and action is listed twice",
            listing.roles.action,
            repeated,
            expected="one row per pair",
            got=f"state {state}, action {action} in rows {', '.join(str(listing.rows[row]) for row in same[:SHOWN])}",
            hint="keep one row per pair, or add their probabilities",
        )


def _check_sums(listing: Listing, states: KeyIndex) -> None:
    sums = np.bincount(states.codes, weights=listing.probs, minlength=len(states))
    off = np.abs(sums - 1) > TOLERANCE
    if off.any():
        shown = np.array(first_rows(off), dtype=np.int64)
        names = listing.states.show(states.first[shown])
        raise listing.error(
            f"the probabilities of {int(off.sum())} state(s) do not sum to one",
            listing.roles.prob,
            off[states.codes],
            expected="sums of 1 ± 1e-6 over the actions of a state",
            got=", ".join(f"{sums[i]:.8g} at state {name}" for i, name in zip(shown, names, strict=True)),
            hint="list every action that a state can take",
        )
