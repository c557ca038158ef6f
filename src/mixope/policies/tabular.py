"""Policies as tables: π(a|s) from an array with one row per state and one column per action, or from one law for all.

States are ids or factors (``keys.py``). A state outside the table is an error, or takes the ``default`` law, which is
kept as one more row at the end of the table. A table of which most pairs are 0, as it is read from a file that lists
five of ten thousand actions per state, keeps the others only: what is asked for is looked up, and full rows are made
for the states asked for.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray
from mixope.base.errors import Advice, DataError, Setting, UsageError
from mixope.policies.fingerprints import array_bytes, digest
from mixope.policies.keys import SHOWN, KeyIndex, Keys, as_actions, as_keys, first_rows, listed
from mixope.policies.laws import (
    ActionSet,
    Default,
    UnknownActions,
    as_numbers,
    check_fits,
    check_listed,
    check_same_length,
    default_law,
    log,
    numbered,
)
from mixope.policies.protocol import DiscretePolicy


@final
class _Laws:
    """The entries of a table: ``codes`` are row · width + column, ascending; without codes, every pair has a value."""

    def __init__(self, values: FloatArray, codes: IntArray | None, width: int) -> None:
        self.values, self.codes, self.width = values, codes, width

    def at(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """π of single pairs."""
        wanted = rows * self.width + columns
        if self.codes is None:
            return np.asarray(self.values[wanted])
        place = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
        return np.where(self.codes[place] == wanted, self.values[place], 0.0)

    def full(self, rows: IntArray) -> FloatArray:
        """π(·|s) of some rows, ``(n, width)``."""
        check_fits(len(rows), self.width)
        if self.codes is None:
            return self.values.reshape(-1, self.width)[rows]
        begin, end = (np.searchsorted(self.codes, edge * self.width) for edge in (rows, rows + 1))
        length = end - begin
        row = np.repeat(np.arange(len(rows)), length)
        place = np.arange(len(row)) + np.repeat(begin - np.cumsum(length) + length, length)
        laws = np.zeros((len(rows), self.width))
        laws[row, self.codes[place] % self.width] = self.values[place]
        return laws

    def entries(self) -> tuple[IntArray, FloatArray]:
        """Codes and values of all pairs that are not 0."""
        kept = np.flatnonzero(self.values)
        return kept if self.codes is None else self.codes[kept], self.values[kept]


@final
class TabularPolicy:
    """π(a|s) from an array.

    :param probabilities: ``(S, A)``, an array or a ``scipy.sparse`` one; rows sum to one within 1e-6 and are divided
        by their sums.
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
        _check_shape(table.shape, *named)
        self._index = KeyIndex(self._states, "state")
        _check_distinct(self._states, self._index)
        self._laws = self._checked(table, default)
        self._defaults = default is not None
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
        from scipy import sparse

        chosen = as_actions(choices, "choices")
        if len(chosen.columns) > 1:
            got = f"{len(chosen.columns)} columns"
            raise DataError("the choices have the wrong shape", expected="one action per state (S,)", got=got)
        known = ActionSet(np.unique(chosen.array()) if actions is None else actions)
        columns = known.columns(choices)
        entries = np.ones(len(columns)), (np.arange(len(columns)), columns)
        table = sparse.csr_array(entries, shape=(len(columns), len(known)))
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
        """The whole table ``(S, A)``, read-only."""
        table = self._laws.full(np.arange(len(self._states)))
        table.setflags(write=False)
        return table

    def probs(self, observations: AnyArray) -> FloatArray:
        """π(·|s) for every row: ``(n, A)``."""
        return self._laws.full(self._rows(observations))

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for every row; −inf where the table has 0."""
        rows, columns = self._rows(observations), self._actions.columns(actions)
        check_same_length(len(rows), len(columns))
        return log(np.where(columns >= 0, self._laws.at(rows, np.maximum(columns, 0)), 0.0))

    def greedy(self) -> TabularPolicy:
        """The likeliest action of every state, always; the first of equals, in the order of ``actions``."""
        codes, values = self._laws.entries()
        width = len(self._actions)
        order = np.lexsort((codes % width, -values, codes // width))
        best = codes[order][np.unique(codes[order] // width, return_index=True)[1]]
        made = copy.copy(self)
        made._laws = _Laws(np.ones(len(best)), best, width)
        return made

    def in_factor_order(self, names: Sequence[str]) -> TabularPolicy:
        """The same policy for observations whose factors come in the order of ``names``."""
        if self._factors is None or sorted(names) != sorted(self._factors):
            raise DataError(
                "the policy and the logs have different state factors",
                expected=listed(self._factors or ()) or "a policy with named factors",
                got=listed(names),
                hint="give the policy table the same observation.* columns as the logs",
            )
        made = copy.copy(self)
        made._states = Keys(tuple(self._states.columns[self._factors.index(name)] for name in names))
        made._index, made._factors = KeyIndex(made._states, "state"), tuple(names)
        return made

    def fingerprint(self) -> str:
        """Hash of states, actions, probabilities and default, whatever the order of rows and columns."""
        codes, values = self._laws.entries()
        width, row_order, column_order = len(self._actions), self._index.first, self._actions.order
        row_rank, column_rank = np.append(np.argsort(row_order), len(row_order)), np.argsort(column_order)
        ranked = row_rank[codes // width] * width + column_rank[codes % width]
        sort = np.argsort(ranked)
        names = (*self._states.take(row_order).columns, self.actions[column_order])
        return digest(b"table", *(array_bytes(part) for part in (*names, ranked[sort], values[sort])))

    def __repr__(self) -> str:
        default = ", with a default" if self._defaults else ""
        return (
            f"TabularPolicy({len(self._states)} states × {len(self._actions)} actions{default}, {self.fingerprint()})"
        )

    def _checked(self, table: Any, default: Default) -> _Laws:
        """The entries of a table in which every row is a law, with the default's row at the end."""

        def describe(rows: AnyArray) -> list[str]:
            return [f"state {state}" for state in self._states.show(rows)]

        count, width = table.shape
        last = default_law(default, self._actions)
        if isinstance(table, np.ndarray):
            laws = self._actions.laws(table, "probabilities", describe).ravel()
            return _Laws(laws if last is None else np.concatenate([laws, last]), None, width)
        row = np.repeat(np.arange(count), np.diff(table.indptr))
        codes, values = row * width + table.indices, np.asarray(table.data)
        # Sums run over sorted actions, as in a full table: permuting them must not touch the last bit.
        sort = np.argsort(row * width + np.argsort(self._actions.order)[table.indices])
        values[sort] = check_listed(values[sort], row[sort], table.shape, describe)
        if last is not None:
            (there,) = np.nonzero(last)
            codes, values = np.append(codes, count * width + there), np.append(values, last[there])
        return _Laws(values, codes, width)

    def _rows(self, observations: AnyArray) -> IntArray:
        """Row of the table for every observation; unknown states have the default's, which is the last."""
        keys = as_keys(observations, "observations asked for")
        rows = self._index.find(keys)
        missing = rows < 0
        if not self._defaults and missing.any():
            raise self._unknown_states(keys, missing)
        return np.where(missing, len(self._states), rows)

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
            hint=Advice(Setting("default"), " says what the policy does there"),
        )


def _as_table(probabilities: Any) -> Any:
    """A full array, or a ``scipy.sparse.csr_array`` of its own where the table is sparse and has zeros."""
    if hasattr(probabilities, "tocsr"):
        from scipy import sparse

        table: Any = sparse.csr_array(probabilities, dtype=np.float64, copy=True)
        table.sum_duplicates()
        table = table.toarray() if table.nnz == np.prod(table.shape) else table
    else:
        table = as_numbers(probabilities, "probabilities")
    if table.ndim != 2:
        raise DataError(
            f"the probabilities have {table.ndim} dimension(s)",
            expected="an array (states, actions)",
            got=f"shape {table.shape}",
            hint="TabularPolicy.deterministic(choices) takes one action per state" if table.ndim == 1 else None,
        )
    if 0 in table.shape:
        raise DataError("the policy is empty", expected="at least one state and one action", got=f"shape {table.shape}")
    return table


def _check_shape(shape: tuple[int, int], states: int | None, actions: int | None) -> None:
    """One state per row, one action per column; None where there are no labels to fit."""
    rows, columns = shape
    wrong = [] if states in (None, rows) else [f"{states} states for {rows} rows"]
    wrong += [] if actions in (None, columns) else [f"{actions} actions for {columns} columns"]
    if wrong:
        fits_transposed = states in (None, columns) and actions in (None, rows)
        raise DataError(
            "the probabilities do not fit their labels: " + " and ".join(wrong),
            expected="an array (states, actions)",
            got=f"shape {shape}",
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
            expected="one row per state",
            got=", ".join(states.show(np.array(rows))),
            hint="keep one row for each state",
        )


def _check_factors(factors: Sequence[str] | None, states: Keys) -> tuple[str, ...] | None:
    if factors is not None and (len(factors) != len(states.columns) or len(set(factors)) != len(factors)):
        raise UsageError(f"factors needs {len(states.columns)} distinct names, got {listed(factors)}")
    return None if factors is None else tuple(factors)


@final
class Constant:
    """π(a|s) = p(a), for every observation of any kind, vectors included."""

    def __init__(self, probabilities: Any, actions: Any = None, *, unknown_actions: UnknownActions = "error") -> None:
        law = as_numbers(probabilities, "probabilities")
        if law.ndim != 1 or len(law) == 0:
            raise DataError("a constant policy is one action law", expected="(A,)", got=f"shape {law.shape}")
        self._actions = ActionSet(numbered(len(law)) if actions is None else actions, unknown_actions)
        if len(self._actions) != len(law):
            raise DataError(
                "the probabilities do not fit their labels",
                expected=f"{len(law)} actions",
                got=f"{len(self._actions)} actions",
            )
        self._law = self._actions.laws(law[None], "probabilities")[0]

    @property
    def actions(self) -> AnyArray:
        """``(A,)``, in the order of the columns."""
        return self._actions.values

    def probs(self, observations: AnyArray) -> FloatArray:
        """The law, once for every observation."""
        check_fits(len(observations), len(self._law))
        return np.tile(self._law, (len(observations), 1))

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log p(a) for every row."""
        law = np.broadcast_to(self._law, (len(observations), len(self._law)))
        return self._actions.log_picked(law, actions)

    def fingerprint(self) -> str:
        """Hash of the law, whatever the order of the actions."""
        order = self._actions.order
        return digest(b"constant", array_bytes(self.actions[order]), array_bytes(self._law[order]))

    def __repr__(self) -> str:
        return f"Constant({len(self._actions)} actions, {self.fingerprint()})"


def uniform(actions: Any, states: Any = None) -> DiscretePolicy:
    """All ``actions`` equally likely: in every state there may be, or only in ``states`` where these are given."""
    count = len(as_actions(actions, "actions of the policy"))
    if count == 0:
        raise DataError("a uniform policy needs actions", expected="at least one", got="none")
    if states is None:
        return Constant(np.full(count, 1 / count), actions)
    rows = len(as_keys(states, "states of the policy"))
    check_fits(rows, count)
    return TabularPolicy(np.full((rows, count), 1 / count), states, actions)
