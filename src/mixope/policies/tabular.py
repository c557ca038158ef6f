"""A policy as a table: one row a state, one column an action, the entry π(a|s).

States are ids or factors (``keys.py``), found by binary search (``index.py``). A state outside the table is an
error, or takes the ``default`` law (``default.py``), which is kept as one more row at the end of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from mixope.arrays import AnyArray, FloatArray, IntArray
from mixope.errors import DataError, UsageError
from mixope.policies.actions import ActionSet, UnknownActions, check_same_length, log, numbered
from mixope.policies.default import Default, default_law
from mixope.policies.fingerprints import array_bytes, digest
from mixope.policies.index import KeyIndex
from mixope.policies.keys import Keys, as_keys
from mixope.policies.probabilities import as_numbers
from mixope.policies.rows import SHOWN, first_rows, listed


@final
class TabularPolicy:
    """π(a|s) from an array.

    :param probabilities: ``(S, A)``; rows sum to one within 1e-6 and are divided by their sums.
    :param states: ``(S,)`` integers or strings, or ``(S, k)`` factors (objects where they mix); 0 … S−1 if absent.
    :param actions: ``(A,)`` integers or strings; 0 … A−1 if absent.
    :param default: the law in states that are not in the table: ``None`` (an error), ``"uniform"``, one action, or a
        vector of A probabilities.
    :param unknown_actions: a logged action that is not in ``actions`` is an ``"error"`` or has probability ``"zero"``.
    :param factors: names of the k factors, so that :meth:`in_factor_order` can match them to the logs'.
    """

    def __init__(
        self,
        probabilities: Any,
        states: Any = None,
        actions: Any = None,
        *,
        default: Default = None,
        unknown_actions: UnknownActions = "error",
        factors: Sequence[str] | None = None,
    ) -> None:
        table = _as_table(probabilities)
        rows, columns = table.shape
        self._actions = ActionSet(numbered(columns) if actions is None else actions, unknown_actions)
        self._states = as_keys(numbered(rows) if states is None else states, "states of the policy")
        named = None if states is None else len(self._states), None if actions is None else len(self._actions)
        _check_shape(table, *named)
        self._index = KeyIndex(self._states, "state")
        _check_distinct(self._states, self._index)
        laws = self._check_laws(table)
        self._default = default_law(default, self._actions)
        self._laws = laws if self._default is None else np.concatenate([laws, self._default[None]])
        self._laws.setflags(write=False)
        self._factors = _check_factors(factors, self._states)

    @classmethod
    def deterministic(
        cls,
        choices: Any,
        states: Any = None,
        actions: Any = None,
        *,
        default: Default = None,
        unknown_actions: UnknownActions = "error",
    ) -> TabularPolicy:
        """The policy that takes ``choices[i]`` in state i; ``actions`` defaults to those chosen, sorted."""
        known = ActionSet(np.unique(as_keys(choices, "choices").array()) if actions is None else actions)
        table = np.eye(len(known))[known.columns(choices)]
        return cls(table, states, known.values, default=default, unknown_actions=unknown_actions)

    @property
    def actions(self) -> AnyArray:
        """``(A,)``, in the order of the columns."""
        return self._actions.values

    @property
    def states(self) -> AnyArray:
        """``(S,)`` ids or ``(S, k)`` factors, in the order of the rows."""
        return self._states.array()

    @property
    def factors(self) -> tuple[str, ...] | None:
        """Names of the state factors, where they were given."""
        return self._factors

    @property
    def probabilities(self) -> FloatArray:
        """The table ``(S, A)``, read-only."""
        return self._laws[: len(self._states)]

    def probs(self, observations: AnyArray) -> FloatArray:
        """π(·|s) for every row: ``(n, A)``."""
        return self._laws[self._rows(observations)]

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for every row; −inf where the table has 0."""
        rows, columns = self._rows(observations), self._actions.columns(actions)
        check_same_length(len(rows), len(columns))
        return log(np.where(columns >= 0, self._laws[rows, columns], 0.0))

    def greedy(self) -> TabularPolicy:
        """The likeliest action of every state, always; the first of equals, in the order of ``actions``."""
        best = np.eye(len(self._actions))[self._laws.argmax(axis=1)]
        return self._with_laws(best)

    def in_factor_order(self, names: Sequence[str]) -> TabularPolicy:
        """The same policy for observations whose factors come in the order of ``names``."""
        if self._factors is None or sorted(names) != sorted(self._factors):
            raise DataError(
                "the policy and the logs have different state factors",
                expected=listed(self._factors or ()) or "a policy with named factors",
                got=listed(names),
                hint="give the policy table the same observation.* columns as the logs",
            )
        columns = tuple(self._states.columns[self._factors.index(name)] for name in names)
        return self._with_laws(self._laws, Keys(columns), tuple(names))

    def fingerprint(self) -> str:
        """Hash of states, actions, probabilities and default, whatever the order of rows and columns."""
        order, columns = self._index.first, self._actions.order
        ordered = self._states.take(order).columns
        default = b"" if self._default is None else array_bytes(self._default[columns])
        return digest(
            b"table",
            *(array_bytes(column) for column in (*ordered, self.actions[columns])),
            array_bytes(self.probabilities[order][:, columns] + 0.0),
            default,
        )

    def __repr__(self) -> str:
        default = "" if self._default is None else ", with a default"
        return (
            f"TabularPolicy({len(self._states)} states × {len(self._actions)} actions{default}, {self.fingerprint()})"
        )

    def _with_laws(
        self, laws: FloatArray, states: Keys | None = None, factors: tuple[str, ...] | None = None
    ) -> TabularPolicy:
        count = len(self._states)
        return TabularPolicy(
            laws[:count],
            (states or self._states).array(),
            self.actions,
            default=None if self._default is None else laws[count],
            unknown_actions="zero" if self._actions.unknown == "zero" else "error",
            factors=factors or self._factors,
        )

    def _check_laws(self, table: FloatArray) -> FloatArray:
        """Every row a law that sums to one."""

        def describe(rows: AnyArray) -> list[str]:
            return [f"state {state}" for state in self._states.show(rows)]

        return self._actions.laws(table, "probabilities", describe)

    def _rows(self, observations: AnyArray) -> IntArray:
        """Row of the table for every observation; −1, the last row, is the default's."""
        keys = as_keys(observations, "observations asked for")
        rows = self._index.find(keys)
        if self._default is None and (rows < 0).any():
            raise self._unknown_states(keys, rows < 0)
        return rows

    def _unknown_states(self, keys: Keys, missing: AnyArray) -> DataError:
        unknown = keys.take(np.flatnonzero(missing))
        distinct = KeyIndex(unknown, "state").first
        more = ", …" if len(distinct) > SHOWN else ""
        return DataError(
            f"the policy does not know {len(distinct)} of the states asked for: "
            + ", ".join(unknown.show(np.sort(distinct)[:SHOWN]))
            + more,
            rows=first_rows(missing),
            total=int(missing.sum()),
            expected=f"one of {len(self._states)} states, such as " + ", ".join(self._states.show(np.arange(1))),
            hint='default="uniform", an action, or a probability vector says what the policy does there',
        )


def _as_table(probabilities: Any) -> FloatArray:
    table = as_numbers(probabilities, "probabilities")
    if table.ndim != 2:
        raise DataError(
            f"the probabilities have {table.ndim} dimension(s)",
            expected="an array (states, actions)",
            got=f"shape {table.shape}",
            hint="TabularPolicy.deterministic(choices) takes one action a state" if table.ndim == 1 else None,
        )
    if table.size == 0:
        raise DataError("the policy is empty", expected="at least one state and one action", got=f"shape {table.shape}")
    return table


def _check_shape(table: FloatArray, states: int | None, actions: int | None) -> None:
    """One state a row, one action a column; None where there are no labels to fit."""
    rows, columns = table.shape
    wrong = [] if states in (None, rows) else [f"{states} states for {rows} rows"]
    wrong += [] if actions in (None, columns) else [f"{actions} actions for {columns} columns"]
    if wrong:
        fits_transposed = states in (None, columns) and actions in (None, rows)
        raise DataError(
            "the probabilities do not fit their labels: " + " and ".join(wrong),
            expected="an array (states, actions)",
            got=f"shape {table.shape}",
            hint="the array is (actions, states): transpose it (.T)" if fits_transposed else None,
        )


def _check_distinct(states: Keys, index: KeyIndex) -> None:
    repeated = index.repeated()
    if repeated.any():
        rows = first_rows(repeated)
        raise DataError(
            "the policy lists a state twice",
            rows=rows,
            total=int(repeated.sum()),
            expected="one row a state",
            got=", ".join(states.show(np.array(rows))),
            hint="keep one row for each state",
        )


def _check_factors(factors: Sequence[str] | None, states: Keys) -> tuple[str, ...] | None:
    if factors is not None and (len(factors) != len(states.columns) or len(set(factors)) != len(factors)):
        raise UsageError(f"factors needs {len(states.columns)} distinct names, got {listed(factors)}")
    return None if factors is None else tuple(factors)
