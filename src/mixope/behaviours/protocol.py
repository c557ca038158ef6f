"""A behaviour is what stands in the denominator of ρ = π(a|s)/b(a|s), for ids, factors and vectors alike.

``fit`` sees rows (a sample, or the groups of a counted log: a group is a row that happened n times) and row weights c;
the fitted behaviour answers log b(a|s) for any rows, and Σ 1/b, Σ r/b and Σ 1/b² over the rows of every group. Most
behaviours give one number per group; recorded propensities may differ from row to row. A misspecified model is bad even
after calibration, so models are chosen by what they say of rows that they have not seen:

    held out = Σ c log b̂₋ₖ(a|s) / Σ c,      b̂₋ₖ fitted without the part k that holds the row,

in nats per row. Given the states, actions are independent draws, so parts are of rows, not of episodes, and the
standard error of a difference between two models is that of a mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import Advice, DataError, Setting, UsageError
from mixope.policies.keys import first_rows
from mixope.policies.own_code import asking
from mixope.policies.protocol import Policy
from mixope.requests.rows import Rows

#: Fits on the first rows, answers log b for the second ones.
Trial = Callable[[IntArray, IntArray], FloatArray]


class Behaviour(ABC):
    """A behaviour to be fitted. Subclasses are frozen dataclasses: options in the constructor, data in the call."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call it."""

    @property
    def fitted(self) -> bool:
        """Whether b is learnt from the rows: that changes the score (the efficient influence function)."""
        return True

    @property
    def counted(self) -> bool:
        """Whether b is the frequency of actions in each state, which fits the rows by construction."""
        return False

    def knowing(self, loggers: Mapping[str, Policy]) -> Behaviour:
        """The same behaviour with the loggers' policies, where it can use them and was given none."""
        return self

    @abstractmethod
    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedBehaviour:
        """Fit, or read, b on rows with row weights c (rows of a group share theirs)."""


class FittedBehaviour(ABC):
    """A behaviour that is ready. Subclasses are frozen dataclasses, picklable and small: they hold no rows."""

    @property
    def counted(self) -> bool:
        """Whether b is the frequency of actions in each state, which fits the rows by construction."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about this fit, such as a solver that did not converge."""
        return ()

    @abstractmethod
    def log_prob(self, rows: Rows) -> FloatArray:
        """log b(a|s) of the logged actions, one per row: finite, or a :class:`~mixope.base.errors.DataError`."""

    def invert(self, rows: Rows) -> Inverse:
        """Sums of 1/b over the rows of every group."""
        return Inverse.of(np.exp(self.log_prob(rows)), rows)


@dataclass(frozen=True)
class Inverse:
    """Σ 1/b, Σ r/b and Σ 1/b² over the rows of every group; ``by_row`` where 1/b is not a function of the group."""

    inverse: FloatArray
    reward: FloatArray
    squared: FloatArray
    by_row: bool = False

    @classmethod
    def of(cls, behaviour: FloatArray, rows: Rows) -> Inverse:
        """From one b(a|s) per row or group."""
        return cls(rows.times / behaviour, rows.earned / behaviour, rows.times / behaviour**2)


def held_out(trial: Trial, n: int, seed: int, folds: int = 3) -> FloatArray:
    """log b̂₋ₖ(a|s) for every row, each left out of the fit once. The same seed makes the same parts."""
    part = np.random.default_rng([seed, 23]).permutation(n) % folds
    result = np.empty(n)
    for k in range(folds):
        out = np.flatnonzero(part == k)
        result[out] = trial(np.flatnonzero(part != k), out)
    return result


def first_best(scores: Iterable[FloatArray], weight: FloatArray, patience: int = 2) -> tuple[int, float]:
    """Which of several models is the best held out, and its mean log b: ``scores`` in order of simplicity.

    A later model must gain more than the standard error of its gain: with x the difference in held-out log b of a row,
    Σ c x / Σ c > √(Σ c² (x − x̄)²) / Σ c. After ``patience`` of them in a row that do not, the rest of
    ``scores`` is not asked for.
    """
    models = iter(scores)
    best, leader = 0, next(models)
    for k, score in enumerate(models, start=1):
        gain = np.average(score - leader, weights=weight)
        error = np.sqrt(np.sum((weight * (score - leader - gain)) ** 2)) / weight.sum()
        if gain > error:
            best, leader = k, score
        elif k - best >= patience:
            break
    return best, float(np.average(leader, weights=weight))


def usable_rows(rows: Rows, weight: FloatArray) -> tuple[Rows, FloatArray]:
    """The rows of positive weight and what each counts, c n: weights must be finite, not negative and not all 0."""
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (len(rows),) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.sum() > 0:
        raise DataError(
            "the row weights cannot be used",
            expected=f"shape ({len(rows)},), finite, not negative, some above 0",
            got=f"shape {weight.shape}",
        )
    weight = weight * rows.times
    used = np.flatnonzero(weight > 0)
    return (rows, weight) if len(used) == len(rows) else (rows.take(used), weight[used])


def check_possible(log_prob: FloatArray, rows: Rows, who: str) -> FloatArray:
    """A logged action must have been possible."""
    wrong = ~np.isfinite(log_prob)
    if wrong.any():
        total = int(rows.times[wrong].sum())
        raise DataError(
            f"{total} logged rows have an action that {who} never takes",
            rows=first_rows(wrong) if rows.count is None else (),
            total=total,
            expected="a finite, positive probability for every logged action",
            got=f"log b = {log_prob[wrong][0]}",
            hint="check that the policies belong to these labels, or choose an estimator that estimates the behaviour",
        )
    return log_prob


def known_policy(loggers: Mapping[str, Policy], label: str) -> Policy:
    """A logger's policy, or an error that says how to give it."""
    if label not in loggers:
        raise UsageError(
            Advice(
                f"the policy of logger {label!r} is not known. Give it with ",
                Setting("loggers", label),
                ", or choose an estimator that does not need it, such as 'emp'",
            )
        )
    return loggers[label]


def distinct(number: IntArray | None, n: int) -> tuple[IntArray, IntArray]:
    """The first of n rows with each number, and which of these stands for every row; all rows where there are none."""
    if number is None:
        return np.arange(n), np.arange(n)
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.astype(np.int64)


def numbered(number: IntArray | None) -> IntArray:
    """The numbers of rows, which what was counted on numbered states needs."""
    if number is None:
        raise UsageError("this behaviour was fitted to numbered states and is asked about rows without numbers")
    return number


def ask(policy: Policy, rows: Rows, who: str) -> FloatArray:
    """log π(a|s) of every row; where pairs are numbered, each distinct pair is asked for once."""
    first, back = distinct(rows.pair, len(rows))
    with asking(policy):
        values = np.asarray(policy.log_prob(rows.observation[first], rows.action[first]), dtype=np.float64)
    if values.shape != (len(first),):
        raise DataError(
            f"{who} did not give one log-probability for each of {len(first)} (state, action) pairs",
            expected=f"shape ({len(first)},), finite or −inf",
            got=f"shape {values.shape}",
        )
    return np.asarray(values[back])


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
            hint="drop or fix these rows",
        )
    return result
