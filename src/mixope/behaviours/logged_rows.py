"""Logged propensities of rows: every row's own density or probability under its own logger, as recorded.

Where none was recorded (NaN), the known policy of the row's logger answers. There is nothing to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mixope.arrays import BoolArray, FloatArray
from mixope.behaviours.rows_protocol import check_possible
from mixope.errors import DataError
from mixope.policies.protocol import Policy
from mixope.policies.rows import first_rows, listed
from mixope.statistics.rows import Rows


@dataclass(frozen=True)
class LoggedRows:
    """b is the recorded ``action_prob``; where it is not recorded, the policy of the row's logger in ``loggers``."""

    loggers: Mapping[str, Policy] = field(default_factory=dict)
    name: str = "logged"

    def fit(self, sample: Rows, weight: FloatArray, seed: int = 0) -> LoggedRows:
        """Itself, once the sample is seen to have what is needed."""
        self.log_prob(sample)
        return self

    def log_prob(self, rows: Rows) -> FloatArray:
        """Recorded, or asked of the logger."""
        missing = np.isnan(rows.propensity)
        self._check_known(rows, missing)
        _check_no_logarithms(rows)
        with np.errstate(divide="ignore"):
            result = np.log(rows.propensity)
        for label in np.unique(rows.logger[missing]).tolist():
            mine = missing & (rows.logger == label)
            result[mine] = self.loggers[str(label)].log_prob(rows.observation[mine], rows.action[mine])
        return check_possible(result, "their logger's policy")

    def _check_known(self, rows: Rows, missing: BoolArray) -> None:
        unknown = missing & ~np.isin(rows.logger, list(self.loggers))
        if unknown.any():
            raise DataError(
                f"propensities are missing in {int(unknown.sum())} of {len(rows)} rows",
                column="action_prob",
                rows=first_rows(unknown),
                total=int(unknown.sum()),
                expected="action_prob or action_logp on every row, or the policies of loggers "
                + listed(np.unique(rows.logger[unknown])),
                hint="choose an estimator that estimates the behaviour, such as 'emp', or pass loggers={label: policy}",
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
            hint="log-densities belong in a column named action_logp: columns={'action_logp': …, 'action_prob': None}",
        )
