"""Behaviours of rows: b(a|s) where states are vectors, so that nothing can be counted and b is a model.

``fit`` sees a sample of the logs once; the fitted behaviour answers log b(a|s) for batches of any rows. A misspecified
model is bad even after calibration, so models are chosen by what they say of rows that they have not seen:

    held out = Σ c log b̂₋ₖ(a|s) / Σ c,      b̂₋ₖ fitted without the part k that holds the row,

in nats a row. Given the states, actions are independent draws, so parts are of rows, not of episodes, and the standard
error of a difference between two models is that of a mean. :mod:`mixope.behaviours.protocol` is the tabular case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

import numpy as np

from mixope.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.errors import DataError
from mixope.policies.rows import first_rows
from mixope.statistics.rows import Rows

#: Fits on the first rows, answers log b for the second ones.
Trial = Callable[[IntArray, IntArray], FloatArray]


@runtime_checkable
class FittedBehaviour(Protocol):
    """A behaviour that is ready."""

    def log_prob(self, rows: Rows) -> FloatArray:
        """log b(a|s), one a row: finite, or a :class:`~mixope.errors.DataError`."""
        ...


@runtime_checkable
class RowBehaviour(Protocol):
    """A behaviour to be fitted. Configuration in the constructor, data in the call."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def fit(self, sample: Rows, weight: FloatArray, seed: int = 0) -> FittedBehaviour:
        """Fit on some rows of the logs with row weights c."""
        ...


def held_out(trial: Trial, n: int, seed: int, folds: int = 3) -> FloatArray:
    """log b̂₋ₖ(a|s) for every row, each left out of the fit once. The same seed makes the same parts."""
    part = np.random.default_rng([seed, 23]).permutation(n) % folds
    result = np.empty(n)
    for k in range(folds):
        out = np.flatnonzero(part == k)
        result[out] = trial(np.flatnonzero(part != k), out)
    return result


def first_best(scores: Iterable[FloatArray], weight: FloatArray) -> tuple[int, float]:
    """Which of several models is the best held out, and its mean log b: ``scores`` in order of simplicity.

    A later model must gain more than the standard error of its gain: with x the difference in held-out log b of a row,
    Σ c x / Σ c > √(Σ c² (x − x̄)²) / Σ c. After two in a row that do not, the rest of ``scores`` is not asked for.
    """
    models = iter(scores)
    best, leader = 0, next(models)
    for k, score in enumerate(models, start=1):
        gain = np.average(score - leader, weights=weight)
        error = np.sqrt(np.sum((weight * (score - leader - gain)) ** 2)) / weight.sum()
        if gain > error:
            best, leader = k, score
        elif k - best >= 2:
            break
    return best, float(np.average(leader, weights=weight))


def check_weight(weight: FloatArray, n: int) -> FloatArray:
    """Row weights: one a row, finite, none below 0, not all 0."""
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.sum() > 0:
        raise DataError(
            "the row weights cannot be used",
            expected=f"shape ({n},), finite, not negative, some above 0",
            got=f"shape {weight.shape}",
        )
    return weight


def check_possible(log_prob: FloatArray, what: str) -> FloatArray:
    """A logged action must have been possible."""
    wrong = ~np.isfinite(log_prob)
    if wrong.any():
        raise DataError(
            f"{int(wrong.sum())} logged rows have an action that {what} never takes",
            rows=first_rows(wrong),
            total=int(wrong.sum()),
            expected="a positive, finite probability for every logged action",
            got=f"log b = {log_prob[wrong][0]}",
            hint="check that the policies belong to these labels, or choose an estimator that estimates the behaviour",
        )
    return log_prob


def vectors(values: AnyArray, what: str, hint: str | None = None) -> FloatArray:
    """States or actions as finite floats (n, d)."""
    if values.ndim != 2 or values.shape[1] == 0 or values.dtype.kind not in "fiub":
        raise DataError(
            f"the {what} are not vectors",
            expected="numbers of shape (n, d)",
            got=f"{values.dtype} of shape {values.shape}",
            hint=hint,
        )
    result = values.astype(np.float64, copy=False)
    wrong: BoolArray = np.any(~np.isfinite(result), axis=1)
    if wrong.any():
        raise DataError(
            f"the {what} have NaN or infinite values",
            rows=first_rows(wrong),
            total=int(wrong.sum()),
            expected="finite numbers",
            hint="drop or mend these rows",
        )
    return result
