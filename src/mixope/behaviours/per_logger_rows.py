"""Per logger: π̂_j fitted to the rows of each logger apart; a row is answered by the model of its own label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.rows_protocol import FittedBehaviour, RowBehaviour, check_weight
from mixope.errors import DataError
from mixope.policies.rows import first_rows, listed
from mixope.statistics.rows import Rows


@dataclass(frozen=True)
class PerLoggerRows:
    """Fits ``behaviour`` once a logger."""

    behaviour: RowBehaviour

    @property
    def name(self) -> str:
        """Says what is fitted."""
        return f"per logger: {self.behaviour.name}"

    def fit(self, sample: Rows, weight: FloatArray, seed: int = 0) -> FittedPerLogger:
        """One fit a label that has rows of positive weight."""
        weight = check_weight(weight, len(sample))
        used = {str(label): np.flatnonzero((sample.logger == label) & (weight > 0)) for label in set(sample.logger)}
        return FittedPerLogger(
            {
                label: self.behaviour.fit(sample.take(used[label]), weight[used[label]], seed)
                for label in sorted(used)
                if len(used[label])
            }
        )


@dataclass(frozen=True)
class FittedPerLogger:
    """A fitted behaviour a label."""

    by_logger: Mapping[str, FittedBehaviour]

    def log_prob(self, rows: Rows) -> FloatArray:
        """log π̂_j(a|s) with j the row's label."""
        unknown = ~np.isin(rows.logger, list(self.by_logger))
        if unknown.any():
            raise DataError(
                f"no model was fitted for logger {listed(np.unique(rows.logger[unknown]))}",
                column="policy_id",
                rows=first_rows(unknown),
                total=int(unknown.sum()),
                expected=f"one of {listed(sorted(self.by_logger))}",
                hint="fit on a larger sample, which holds rows of every logger, or pool the loggers ('emp')",
            )
        result = np.empty(len(rows))
        for label, fitted in self.by_logger.items():
            mine = np.flatnonzero(rows.logger == label)
            if len(mine):
                result[mine] = fitted.log_prob(rows.take(mine))
        return result
