"""A target that only the log knows: a column with the probability that it gives to every logged action.

Policy services that cannot be called again leave ``target_prob`` (or ``target_logp``) beside each action. That is
π(a|s) where the log has (s, a) and nothing elsewhere, so it serves estimators that ask for logged pairs only:
trajectory weights anywhere, and state ratios such as ``emp`` where states can be counted. One that asks what else the
target might do is refused in words. The rows are read by the log's own reader, with the column in place of the logger's
propensity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, TupleIndex
from mixope.base.errors import DataError, UsageError
from mixope.logs import Logs
from mixope.policies.fingerprints import array_bytes, digest
from mixope.policies.keys import first_rows
from mixope.policies.laws import TOLERANCE, log

PREFIX = "column:"
_LOGARITHMS = ("logp", "log_prob", "logprob", "log_probability")


def is_column(source: Any) -> bool:
    """Whether a source names a column of the log."""
    return isinstance(source, str) and source.startswith(PREFIX)


@dataclass(frozen=True)
class LoggedColumn:
    """The name of a column, until the log is known (:meth:`on`)."""

    column: str

    def on(self, logs: Logs) -> LoggedPairs:
        """The policy on the pairs of a log."""
        return _read(logs, self.column)

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """Unknown before the log is."""
        raise UsageError(f"{PREFIX}{self.column} is a column of the log: give it as the target of an evaluation")

    def fingerprint(self) -> str:
        """Of the name."""
        return digest(b"column", self.column.encode())


@dataclass(frozen=True, eq=False)
class LoggedPairs:
    """π(a|s) on logged pairs."""

    column: str
    index: TupleIndex
    chances: FloatArray

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for logged pairs; anything else is refused."""
        found = self.index.find([*_columns(observations), *_columns(actions)])
        strange = found < 0
        if strange.any():
            raise DataError(
                f"the column {self.column!r} knows the target on logged pairs only, and this asks for other actions",
                rows=first_rows(strange),
                total=int(strange.sum()),
                expected="an estimator that needs logged pairs only: trajectory weights; for ids, also state ratios",
                hint="choose 'wis', or 'emp' for ids; others need the target itself: a table, a function, a model",
            )
        return log(self.chances[found])

    def fingerprint(self) -> str:
        """Of the pairs and their probabilities."""
        return digest(b"pairs", self.index.fingerprint().encode(), array_bytes(self.chances))

    def __repr__(self) -> str:
        return f"LoggedPairs({self.column!r}, {len(self.chances)} pairs, {self.fingerprint()})"


def _read(logs: Logs, column: str) -> LoggedPairs:
    """Every pair of the log with its probability, which must be the same wherever the pair is logged."""
    if logs.schema.observation_kind == "mixed":
        raise UsageError(f"{PREFIX}{column}: a target in a column needs states that are ids, factors or vectors")
    logarithms = column.lower().endswith(_LOGARITHMS)
    used, other = ("action_logp", "action_prob") if logarithms else ("action_prob", "action_logp")
    sources = [replace(source, columns={**source.columns, used: column, other: None}) for source in logs.sources]
    table = Logs(sources).table([*logs.schema.observation, *logs.schema.action, "propensity"])
    arrays = [_plain(table.column(name).to_numpy()) for name in (*logs.schema.observation, *logs.schema.action)]
    chances = np.asarray(table.column("propensity").to_numpy(), dtype=np.float64)
    _check(chances, column, logs)
    index = TupleIndex(arrays)
    kept = chances[index.first]
    spread = np.abs(chances - kept[index.codes]) > TOLERANCE * np.maximum(1.0, kept[index.codes])
    if spread.any():
        raise DataError(
            f"the column {column!r} has several probabilities for the same state and action",
            where=logs.name,
            column=column,
            rows=first_rows(spread),
            total=int(spread.sum()),
            expected="a target that depends on the observation alone",
            hint="log what else the target looks at as part of the observation",
        )
    return LoggedPairs(column, index, kept)


def _check(chances: FloatArray, column: str, logs: Logs) -> None:
    above = (chances > 1 + TOLERANCE) & (logs.schema.action_kind == "discrete")
    wrong = ~np.isfinite(chances) | (chances < 0) | above
    if wrong.any():
        raise DataError(
            f"the column {column!r} does not hold the target's probability on every row",
            where=logs.name,
            column=column,
            rows=first_rows(wrong),
            total=int(wrong.sum()),
            expected="numbers in [0, 1]; logarithms in a column named target_logp",
            got=f"{chances[wrong][0]:.6g}",
        )


def _columns(values: AnyArray) -> list[AnyArray]:
    array = np.asarray(values)
    return [_plain(array)] if array.ndim == 1 else [_plain(array[:, k]) for k in range(array.shape[1])]


def _plain(column: AnyArray) -> AnyArray:
    """Integers, floats or fixed-width strings, so that like is compared with like."""
    if column.dtype.kind == "O":
        column = np.array(column.tolist())
    return column.astype(np.int64) if column.dtype.kind in "iub" else column
