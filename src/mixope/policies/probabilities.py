"""The one border where numbers become probabilities.

A row is an action law: no NaN, in [0, 1], summing to one within 1e-6 (then divided by its sum). What people hand over
instead, log-probabilities, logits, counts, percentages, a transposed array, is recognised and said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mixope.arrays import AnyArray, BoolArray, FloatArray
from mixope.errors import DataError
from mixope.policies.rows import first_rows

TOLERANCE = 1e-6

Describe = Callable[[AnyArray], list[str]]
"""Row numbers in, what to call these rows out."""


def describe_rows(rows: AnyArray) -> list[str]:
    """Rows by number, where they have no better name."""
    return [f"row {row}" for row in rows]


def as_numbers(values: Any, what: str) -> FloatArray:
    """A fresh float64 array, or an error for anything that is not numbers."""
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


def looks_like_logs(values: FloatArray) -> bool:
    """All ≤ 0 with something below: no law has that, and every set of log-probabilities does."""
    return bool(values.size) and bool((values <= 0).all()) and bool((values < 0).any())


def _looks_like_logits(values: FloatArray) -> bool:
    """Both signs, beyond ±1, and most rows far from one: scores. Otherwise a lone negative is a slip of its own."""
    off = np.abs(values.sum(axis=1) - 1) > TOLERANCE
    return bool((values < 0).any() and (np.abs(values) > 1).any() and off.mean() > 0.5)


def _scale(values: FloatArray) -> str | None:
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
    """Rows divided by their sums, which must be one within the tolerance.

    Rows that are off by rounding only are left as they are, so that normalising twice is normalising once.
    """
    sums = values.sum(axis=1)
    off = np.abs(sums - 1) > TOLERANCE
    if off.any():
        raise _unbalanced(values, sums, off, what, describe)
    rounded = np.abs(sums - 1) <= values.shape[1] * np.finfo(np.float64).eps
    return values / np.where(rounded, 1.0, sums)[:, None]


def _unbalanced(values: FloatArray, sums: FloatArray, off: BoolArray, what: str, describe: Describe) -> DataError:
    shown = np.array(first_rows(off), dtype=np.int64)
    found = [f"{sums[row]:.8g} at {name}" for row, name in zip(shown, describe(shown), strict=True)]
    transposed = bool(np.allclose(values.sum(axis=0), 1, atol=TOLERANCE))
    return DataError(
        f"the {what} of {int(off.sum())} row(s) do not sum to one",
        rows=shown.tolist(),
        total=int(off.sum()),
        expected="sums of 1 ± 1e-6, one row a state and one column an action",
        got=", ".join(found),
        hint="the columns sum to one: transpose the array (.T)"
        if transposed
        else "divide every row by its sum if these are weights; otherwise an action is missing",
    )
