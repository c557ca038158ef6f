"""From a listing, one (state, action, probability) a row, to a table.

A pair that is not listed has probability 0; that is only believed of states whose listed probabilities sum to one.
Errors name rows of the listing, not of the table, because that is what the user can open and mend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.errors import DataError
from mixope.policies.actions import UnknownActions
from mixope.policies.columns import Roles
from mixope.policies.default import Default
from mixope.policies.index import KeyIndex
from mixope.policies.keys import Keys, as_keys
from mixope.policies.probabilities import TOLERANCE, as_numbers, looks_like_logs
from mixope.policies.rows import SHOWN, first_rows
from mixope.policies.tables import Table
from mixope.policies.tabular import TabularPolicy


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

    def error(self, problem: str, column: str, wrong: BoolArray, **facts: Any) -> DataError:
        """A fault in some rows of one column."""
        rows = self.rows[np.flatnonzero(wrong)[:SHOWN]].tolist()
        return DataError(problem, where=self.where, column=column, rows=rows, total=int(wrong.sum()), **facts)


def read_listing(table: Table, roles: Roles) -> Listing:
    """Fetch and check the columns of a listing."""
    states = _states(table, roles)
    actions = column_keys(table, roles.action, "actions")
    probs = _numbers(table, roles.prob)
    if len(probs) == 0:
        raise DataError("the table has no rows", where=table.where, expected="one row a state and action")
    return Listing(states, actions, probs, np.arange(len(probs)), roles, table.where)


def _states(table: Table, roles: Roles) -> Keys:
    """The states; a dict may hold factors as one ``(n, k)`` array."""
    if roles.factors is None:
        return _keys(table, roles.observation[0], "states")
    return Keys(tuple(column_keys(table, name, "states").columns[0] for name in roles.observation))


def column_keys(table: Table, name: str, what: str) -> Keys:
    """One column of ids."""
    keys = _keys(table, name, what)
    if len(keys.columns) > 1:
        raise DataError("the column has several values a row", where=table.where, column=name, expected="one id a row")
    return keys


def _keys(table: Table, name: str, what: str) -> Keys:
    try:
        return as_keys(table.column(name), what)
    except DataError as error:
        raise _placed(error, table.where, name) from None


def _numbers(table: Table, name: str) -> FloatArray:
    column = table.column(name)
    if column.ndim != 1:
        raise DataError(
            "the column has several values a row", where=table.where, column=name, expected="one number a row"
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
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _placed(error: DataError, where: str, column: str | None) -> DataError:
    """The same error with its place."""
    return DataError(
        error.problem,
        where=error.where or where,
        column=error.column or column,
        rows=error.rows,
        total=error.total,
        expected=error.expected,
        got=error.got,
        hint=error.hint,
    )


def placed(error: DataError, where: str) -> DataError:
    """The same error with the name of the source."""
    return _placed(error, where, None)


def to_policy(
    listing: Listing, default: Default, unknown_actions: UnknownActions, actions: Any = None
) -> TabularPolicy:
    """The table a listing describes. ``actions`` widens the set beyond those listed."""
    _check_probs(listing)
    states, acts = KeyIndex(listing.states, "state"), KeyIndex(listing.actions, "action")
    _check_pairs(listing, states.codes * len(acts) + acts.codes)
    _check_sums(listing, states)
    table = np.zeros((len(states), len(acts)))
    table[states.codes, acts.codes] = listing.probs
    names = listing.actions.take(acts.first).array()
    if actions is not None:
        table, names = _widened(table, names, actions, listing)
    try:
        return TabularPolicy(
            table,
            listing.states.take(states.first).array(),
            names,
            default=default,
            unknown_actions=unknown_actions,
            factors=listing.roles.factors,
        )
    except DataError as error:
        raise placed(error, listing.where) from None


def _widened(table: FloatArray, names: AnyArray, actions: Any, listing: Listing) -> tuple[FloatArray, AnyArray]:
    """The table with a column for each of ``actions``, in their order; those not listed have probability 0."""
    keys = as_keys(actions, "actions")
    columns = KeyIndex(keys, "action").find(Keys((names,)))
    if (columns < 0).any():
        outside = KeyIndex(keys, "action").find(listing.actions) < 0
        raise listing.error(
            "the table lists an action outside actions=[...]",
            listing.roles.action,
            outside,
            got=listing.actions.show(np.flatnonzero(outside)[:1])[0],
        )
    wide = np.zeros((len(table), len(keys)))
    wide[:, columns] = table
    return wide, keys.array()


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
            expected="one row a pair",
            got=f"state {state}, action {action} in rows {', '.join(str(listing.rows[row]) for row in same[:SHOWN])}",
            hint="keep one row a pair, or add their probabilities",
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
