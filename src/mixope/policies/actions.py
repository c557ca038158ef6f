"""The finite set of actions of a policy, in the order of its columns."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np

from mixope.arrays import AnyArray, FloatArray, IntArray
from mixope.errors import DataError, UnknownName
from mixope.policies.index import KeyIndex
from mixope.policies.keys import as_keys
from mixope.policies.probabilities import Describe, check_laws, describe_rows
from mixope.policies.rows import first_rows, listed

UnknownActions = Literal["error", "zero"]


@final
class ActionSet:
    """Distinct actions; finds logged ones among them.

    ``unknown`` says what a logged action outside the set means: an ``"error"``, or a ``"zero"`` probability.
    """

    def __init__(self, values: Any, unknown: str = "error") -> None:
        if unknown not in ("error", "zero"):
            raise UnknownName("value of unknown_actions", unknown, ("error", "zero"))
        keys = as_keys(values, "actions of the policy")
        if len(keys.columns) > 1:
            raise DataError("the actions of the policy have the wrong shape", expected="(A,) ids", got=np.shape(values))
        self.unknown = unknown
        self.values = keys.columns[0].copy()
        self.values.setflags(write=False)
        self.index = KeyIndex(keys, "action")
        self._check_distinct()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def order(self) -> IntArray:
        """Columns in the sorted order of the actions, which no permutation of them changes."""
        return self.index.first

    def _check_distinct(self) -> None:
        repeated = self.index.repeated()
        if repeated.any():
            raise DataError(
                "the policy lists an action twice",
                expected="one column an action",
                got=f"{listed(np.unique(self.values[repeated]))} at columns {listed(first_rows(repeated))}",
                hint="add up the columns that belong to the same action",
            )

    def laws(self, values: FloatArray, what: str, describe: Describe = describe_rows) -> FloatArray:
        """Checked action laws ``(n, A)``. Sums run over sorted actions: permuting them must not touch the last bit."""
        laws = np.empty_like(values)
        laws[:, self.order] = check_laws(np.ascontiguousarray(values[:, self.order]), what, describe)
        return laws

    def columns(self, actions: Any) -> IntArray:
        """Column of every logged action; −1 where the policy does not have it and unknown ones count as zero."""
        keys = as_keys(actions, "actions asked for")
        columns = self.index.find(keys)
        missing = columns < 0
        if self.unknown == "error" and missing.any():
            names = np.unique(keys.array()[missing])
            raise DataError(
                f"the policy does not know {len(names)} of the actions asked for: {listed(names)}",
                rows=first_rows(missing),
                total=int(missing.sum()),
                expected=f"one of {listed(self.values)}",
                hint='unknown_actions="zero" if the policy never takes them',
            )
        return columns

    def log_picked(self, laws: FloatArray, actions: Any) -> FloatArray:
        """log laws[i, column of actions[i]] for every row; −inf where the probability is 0."""
        columns = self.columns(actions)
        check_same_length(len(laws), len(columns))
        return log(np.where(columns >= 0, laws[np.arange(len(laws)), columns], 0.0))


def check_same_length(observations: int, actions: int) -> None:
    """One action an observation."""
    if observations != actions:
        raise DataError(
            "observations and actions have different lengths", expected=f"{observations} actions", got=actions
        )


def log(probabilities: FloatArray) -> FloatArray:
    """The logarithm, with log 0 = −inf and no warning: a policy may well never act so."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def numbered(count: int) -> AnyArray:
    """Actions or states that have no names: 0 … count − 1."""
    return np.arange(count, dtype=np.int64)
