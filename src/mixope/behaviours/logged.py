"""Logged propensities: every row's own probability or density under its own logger, as recorded.

Where none was recorded (NaN), the known policy of the row's logger answers. There is nothing to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray
from mixope.base.errors import Advice, DataError, Setting
from mixope.behaviours.protocol import Behaviour, FittedBehaviour, Inverse, ask, check_possible
from mixope.policies.keys import first_rows, listed
from mixope.policies.protocol import Policy
from mixope.requests.rows import Rows


@dataclass(frozen=True)
class Logged(Behaviour, FittedBehaviour):
    """b is the recorded ``action_prob``; where it is not recorded, the policy of the row's logger in ``loggers``."""

    loggers: Mapping[str, Policy] = field(default_factory=dict, hash=False)
    name = "logged"
    fitted = False

    def knowing(self, loggers: Mapping[str, Policy]) -> Logged:
        """With policies to fall back on."""
        return self if self.loggers else replace(self, loggers=loggers)

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> Logged:
        """Itself, once the rows are seen to have what is needed."""
        self.invert(rows)
        return self

    def log_prob(self, rows: Rows) -> FloatArray:
        """Recorded, or asked of the logger; the mean of a group is the one that keeps its Σ 1/b."""
        missing = np.isnan(rows.propensity)
        self._check_known(rows, missing & ~np.isin(rows.logger, list(self.loggers)))
        _check_no_logarithms(rows)
        with np.errstate(divide="ignore"):
            result = np.log(rows.propensity)
        for label in np.unique(rows.logger[missing]).tolist():
            mine = missing & (rows.logger == label)
            result[mine] = ask(self.loggers[str(label)], rows.take(mine), f"logger {label!r}")
        return check_possible(result, rows, "their logger's policy")

    def invert(self, rows: Rows) -> Inverse:
        """The sums of recorded propensities, which may vary inside a group; a group with a gap is refused."""
        if rows.inverse is None or rows.inverse_reward is None or rows.inverse_squared is None:
            return super().invert(rows)
        self._check_known(rows, np.isnan(rows.inverse))
        return Inverse(rows.inverse, rows.inverse_reward, rows.inverse_squared, by_row=True)

    def _check_known(self, rows: Rows, unknown: BoolArray) -> None:
        if not unknown.any():
            return
        gaps, n = int(rows.times[unknown].sum()), int(rows.times.sum())
        problem = f"propensities are missing in {gaps} of {n} rows"
        expected = "action_prob or action_logp on every row"
        otherwise = "choose an estimator that estimates the behaviour, such as 'emp', or "
        hint = Advice(otherwise, "complete the column")
        if rows.inverse is not None:
            problem = f"propensities are missing in groups that hold {gaps} of {n} rows"
        elif rows.count is not None and gaps == n and not self.loggers:
            problem = "these logs have no recorded propensities"
        if rows.inverse is None:
            expected += f", or the policies of loggers {listed(np.unique(rows.logger[unknown]))}"
            hint = Advice(otherwise, "give ", Setting("loggers"))
        raise DataError(
            problem,
            column="action_prob",
            rows=first_rows(unknown) if rows.count is None else (),
            total=gaps,
            expected=expected,
            hint=hint,
        )


def _check_no_logarithms(rows: Rows) -> None:
    """A probability or density is not below 0; logarithms of them often are."""
    wrong = rows.propensity < 0
    if wrong.any():
        raise DataError(
            f"{int(wrong.sum())} of {len(rows)} propensities are below 0",
            column="action_prob",
            rows=first_rows(wrong),
            total=int(wrong.sum()),
            expected="probabilities or densities of the logged actions, above 0",
            got=float(rows.propensity[wrong][0]),
            hint=Advice(
                "log-densities belong in a column named action_logp: ",
                Setting("columns", {"action_logp": ..., "action_prob": None}),
            ),
        )
