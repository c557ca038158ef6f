"""Per logger: π̂_j fitted to the rows of each logger separately; a row is answered by the model of its own label.

Labels say which logger acted, so no rounds of EM are needed to find it out: with the default mixture, each logger gets
that of one logger (counts, a classifier, or one Gaussian).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.base.errors import DataError
from mixope.behaviours.protocol import Behaviour, FittedBehaviour, usable_rows
from mixope.policies.keys import first_rows, listed
from mixope.policies.protocol import Policy
from mixope.requests.rows import Rows


@dataclass(frozen=True)
class PerLogger(Behaviour):
    """Fits ``behaviour`` once per logger."""

    behaviour: Behaviour

    @property
    def name(self) -> str:
        """Says what is fitted."""
        return f"per logger: {self.behaviour.name}"

    @property
    def fitted(self) -> bool:
        """As the behaviour is."""
        return self.behaviour.fitted

    @property
    def counted(self) -> bool:
        """As the behaviour is."""
        return self.behaviour.counted

    def knowing(self, loggers: Mapping[str, Policy]) -> PerLogger:
        """As the behaviour does."""
        return replace(self, behaviour=self.behaviour.knowing(loggers))

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedPerLogger:
        """One fit per label that has rows of positive weight."""
        usable_rows(rows, weight)
        used = {label: (rows.logger == label) & (weight > 0) for label in np.unique(rows.logger).tolist()}
        fit = self.behaviour.fit
        return FittedPerLogger(
            {label: fit(rows.take(mine), weight[mine], seed) for label, mine in used.items() if mine.any()}
        )


@dataclass(frozen=True)
class FittedPerLogger(FittedBehaviour):
    """A fitted behaviour per label."""

    by_logger: Mapping[str, FittedBehaviour]

    @property
    def counted(self) -> bool:
        """Where all of them are."""
        return all(fitted.counted for fitted in self.by_logger.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Of each logger."""
        return tuple(f"logger {label!r}: {note}" for label, of in self.by_logger.items() for note in of.notes)

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
