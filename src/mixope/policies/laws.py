"""The one border where numbers become probabilities, and the finite set of actions that they belong to.

A row is an action law: no NaN, in [0, 1], summing to one within 1e-6 (then divided by its sum). What people hand over
instead, log-probabilities, logits, counts, percentages, a transposed array, is recognised and said. A table of laws
that does not fit in memory is refused before it is made (:func:`check_fits`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, final

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, DataError, Setting, UnknownName, must_fit
from mixope.policies.keys import SHOWN, KeyIndex, as_actions, first_rows, listed, plain

TOLERANCE = 1e-6

Describe = Callable[[AnyArray], list[str]]
"""Row numbers in, what to call these rows out."""

UnknownActions = Literal["error", "zero"]
Default: TypeAlias = str | int | Sequence[float] | FloatArray | None
"""What a table answers for a state that it does not list: nothing (an error), ``"uniform"``, an action, a law."""


def describe_rows(rows: AnyArray) -> list[str]:
    """Rows by number, where they have no better name."""
    return [f"row {row}" for row in rows]


def detached(values: Any) -> Any:
    """A tensor without its gradient and on the CPU, also within a list; anything else as it is."""
    if isinstance(values, list | tuple) and any(hasattr(value, "detach") for value in values):
        return [detached(value) for value in values]
    if not (hasattr(values, "detach") and hasattr(values, "cpu")):
        return values
    tensor = values.detach().cpu()
    return tensor.float() if str(getattr(tensor, "dtype", "")).endswith("bfloat16") else tensor


def as_numbers(values: Any, what: str) -> FloatArray:
    """A fresh float64 array, or an error for anything that is not numbers; what an array masks is none."""
    values = detached(values)
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        found = f"{int(np.ma.getmaskarray(values).sum()):,} masked"
        raise DataError(f"the {what} have masked values", expected="a number for every entry", got=found)
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"the {what} have rows of different lengths", expected="a full array") from None
    try:
        if array.dtype.kind in "fiubO":
            return np.array(array, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        pass
    raise DataError(f"the {what} are not numbers", expected="floats", got=f"an array of type {array.dtype}")


def check_laws(values: FloatArray, what: str = "probabilities", describe: Describe = describe_rows) -> FloatArray:
    """Action laws ``(n, A)``, each row made to sum to one exactly; a :class:`DataError` for anything else."""
    check_range(values, what, describe)
    return normalise(values, what, describe)


def check_range(values: FloatArray, what: str, describe: Describe = describe_rows) -> None:
    """Every entry of ``(n, A)`` is a probability."""
    _refuse(np.isnan(values), values, f"the {what} have NaN", describe, expected="a number for every action")
    if looks_like_logs(values):
        raise DataError(
            f"the {what} are log-probabilities",
            expected="numbers in [0, 1]",
            got=f"all ≤ 0, the smallest {values.min():.6g}",
            hint="np.exp(...) turns them into probabilities",
        )
    _refuse(np.isinf(values), values, f"the {what} have infinite values", describe, expected="numbers in [0, 1]")
    if _looks_like_logits(values):
        raise DataError(
            f"the {what} are logits (scores), not probabilities",
            expected="numbers in [0, 1]",
            got=f"values from {values.min():.6g} to {values.max():.6g}",
            hint="a softmax over actions turns scores into probabilities",
        )
    _refuse(values < 0, values, f"the {what} have negative values", describe, expected="numbers in [0, 1]")
    above = values > 1 + TOLERANCE
    _refuse(
        above, values, f"the {what} have values above one", describe, expected="numbers in [0, 1]", hint=_scale(values)
    )


def check_totals(totals: FloatArray, who: str) -> None:
    """The probabilities of some actions, summed in every state, are at most one; so are those of a whole law."""
    above = totals > 1 + TOLERANCE
    if above.any():
        raise DataError(
            f"{who} gives the logged actions of a state more than the whole probability",
            expected="probabilities that sum to at most one over the logged actions",
            got=f"a sum of {totals[above][0]:.6g}, or another one above 1, in {int(above.sum()):,} of {len(totals):,}",
            hint="a function must answer 0 for actions that it does not know, and name those it does: "
            "CallablePolicy(function, actions=[…])",
        )


def looks_like_logs(values: FloatArray) -> bool:
    """All ≤ 0 with something below: no law has that, and every set of log-probabilities does."""
    return bool(values.size) and bool((values <= 0).all()) and bool((values < 0).any())


def _looks_like_logits(values: FloatArray) -> bool:
    """Both signs, beyond ±1, and most rows far from one: scores. Otherwise a lone negative is a slip of its own."""
    with np.errstate(over="ignore"):
        off = np.abs(values.sum(axis=1) - 1) > TOLERANCE
    return bool((values < 0).any() and (np.abs(values) > 1).any() and off.mean() > 0.5)


def _scale(values: FloatArray) -> str | None:
    with np.errstate(over="ignore"):
        sums = values.sum(axis=1)
    if np.allclose(sums, 100, atol=0.01):
        return "these are percentages: divide by 100"
    if (values == np.floor(values)).all() and (sums > 0).all():
        return "these are counts: divide every row by its sum"
    return None


def _refuse(
    wrong: BoolArray, values: FloatArray, problem: str, describe: Describe, expected: str, hint: str | None = None
) -> None:
    if not wrong.any():
        return
    rows: BoolArray = np.asarray(wrong.any(axis=1))
    shown = np.array(first_rows(rows), dtype=np.int64)
    found = [f"{values[row][wrong[row]][0]:.6g} at {name}" for row, name in zip(shown, describe(shown), strict=True)]
    raise DataError(
        problem, rows=shown.tolist(), total=int(rows.sum()), expected=expected, got=", ".join(found), hint=hint
    )


def normalise(values: FloatArray, what: str, describe: Describe = describe_rows) -> FloatArray:
    """Rows divided by their sums, which must be one within the tolerance."""
    divisors = _divisors(values.sum(axis=1), values.shape[1], what, describe, values)
    return np.asarray(values / divisors[:, None], dtype=np.float64)


def check_listed(values: FloatArray, rows: IntArray, shape: tuple[int, int], describe: Describe) -> FloatArray:
    """The entries of laws that are 0 elsewhere, ``values[i]`` in row ``rows[i]``; each row made to sum to one."""
    wrong: BoolArray = ~((values >= 0) & (values <= 1 + TOLERANCE))
    if wrong.any():
        shown = np.unique(rows[wrong])
        raise DataError(
            "the probabilities have values outside [0, 1]",
            rows=shown[:SHOWN].tolist(),
            total=len(shown),
            expected="numbers in [0, 1]",
            got=f"{values[wrong][0]:.6g} at {describe(rows[wrong][:1])[0]}",
        )
    sums = sum_by(rows, values, shape[0])
    return np.asarray(values / _divisors(sums, shape[1], "probabilities", describe)[rows], dtype=np.float64)


def _divisors(
    sums: FloatArray, width: int, what: str, describe: Describe, values: FloatArray | None = None
) -> FloatArray:
    """What each of the rows is divided by to sum to one; an error where it is not one within the tolerance.

    Rows that are off by rounding only are left as they are, so that normalising twice is normalising once.
    """
    off = np.abs(sums - 1) > TOLERANCE
    if off.any():
        shown = np.array(first_rows(off), dtype=np.int64)
        found = [f"{sums[row]:.8g} at {name}" for row, name in zip(shown, describe(shown), strict=True)]
        transposed = values is not None and bool(np.allclose(values.sum(axis=0), 1, atol=TOLERANCE))
        raise DataError(
            f"the {what} of {int(off.sum())} row(s) do not sum to one",
            rows=shown.tolist(),
            total=int(off.sum()),
            expected="sums of 1 ± 1e-6, one row per state and one column per action",
            got=", ".join(found),
            hint="the columns sum to one: transpose the array (.T)"
            if transposed
            else "divide every row by its sum if these are weights; otherwise an action is missing",
        )
    rounded = np.abs(sums - 1) <= width * np.finfo(np.float64).eps
    return np.where(rounded, 1.0, sums)


def check_fits(rows: int, columns: int) -> None:
    """Refuse a full table of action laws that would not fit in memory."""
    instead = "Ask for fewer states at a time, or for single actions: log_prob(observations, actions) needs no table"
    must_fit("the probabilities of all actions in these states", (rows, columns), instead)


@final
class ActionSet:
    """Distinct actions; finds logged ones among them.

    ``unknown`` says what a logged action outside the set means: an ``"error"``, or a ``"zero"`` probability.
    """

    def __init__(self, values: Any, unknown: str = "error") -> None:
        if unknown not in ("error", "zero"):
            raise UnknownName("value of unknown_actions", unknown, ("error", "zero"))
        keys = as_actions(values, "actions of the policy")
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
                expected="one column per action",
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
        keys = as_actions(actions, "actions asked for")
        columns = self.index.find(keys)
        missing = columns < 0
        if self.unknown == "error" and missing.any():
            names = np.unique(keys.array()[missing])
            raise DataError(
                f"the policy does not know {len(names)} of the actions asked for: {listed(names)}",
                rows=first_rows(missing),
                total=int(missing.sum()),
                expected=f"one of {listed(self.values)}",
                hint=Advice(Setting("unknown_actions", "zero"), " if the policy never takes them"),
            )
        return columns

    def log_picked(self, laws: FloatArray, actions: Any) -> FloatArray:
        """log laws[i, column of actions[i]] for every row; −inf where the probability is 0."""
        columns = self.columns(actions)
        check_same_length(len(laws), len(columns))
        return log(np.where(columns >= 0, laws[np.arange(len(laws)), columns], 0.0))


def check_same_length(observations: int, actions: int) -> None:
    """One action per observation."""
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


def default_law(default: Default, actions: ActionSet) -> FloatArray | None:
    """The law of states that are not in the table (None where they are an error)."""
    if default is None:
        return None
    if isinstance(default, str) and default == "uniform":
        return np.full(len(actions), 1 / len(actions))
    if isinstance(default, str | int | np.integer):
        return _certain(default, actions)
    law = as_numbers(default, "default probabilities")
    if law.shape != (len(actions),):
        raise DataError(
            "the default has the wrong shape",
            expected=f"{len(actions)} probabilities, one per action",
            got=f"shape {law.shape}",
        )
    checked: FloatArray = actions.laws(law[None], "default probabilities")[0]
    return checked


def _certain(action: str | int, actions: ActionSet) -> FloatArray:
    known = actions.values.tolist()
    if action not in known:
        raise UnknownName("default action", action, ["uniform", *(plain(name).strip("'") for name in known)])
    law = np.zeros(len(known))
    law[known.index(action)] = 1.0
    return law
