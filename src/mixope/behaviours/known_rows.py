"""The mixture of known policies on rows: b(a|s) = Σ_j p̂(j|s) π_j(a|s), with p̂(j|s) from a classifier of the label.

p̂ is the share of every logger where states do not tell loggers apart, else a logit or boosting, by held-out log-loss.
With one logger, b is its policy. Tabular twin: :mod:`mixope.behaviours.known_mixture`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.classifier_rows import DEFAULTS, StateLaw, fit_state_law, shares
from mixope.behaviours.rows_protocol import check_possible, check_weight
from mixope.errors import UsageError
from mixope.policies.protocol import Policy
from mixope.statistics.rows import Rows


@dataclass(frozen=True)
class KnownMixtureRows:
    """b from labels and the loggers' policies."""

    loggers: Mapping[str, Policy]
    name: str = "known mixture"

    def fit(self, sample: Rows, weight: FloatArray, seed: int = 0) -> FittedKnownMixture:
        """Learn which logger was where."""
        weight = check_weight(weight, len(sample))
        used = np.flatnonzero(weight > 0)
        sample = sample.take(used)
        for label in np.unique(sample.logger).tolist():
            if label not in self.loggers:
                raise UsageError(
                    f"the policy of logger {label!r} is not known. Give it with loggers={{{label!r}: policy}} (or"
                    f" --logger {label}=file), or choose an estimator that does not need it, such as 'emp'"
                )
        candidates = {"shares": shares, **DEFAULTS}
        law = fit_state_law(sample.observation, sample.logger, weight[used], candidates, seed)
        return FittedKnownMixture(law, tuple(self.loggers[str(label)] for label in law.classes))


@dataclass(frozen=True)
class FittedKnownMixture:
    """Ready. ``held_out`` is the mean log p̂(j|s) of the labels of rows left out of the fit."""

    law: StateLaw
    policies: tuple[Policy, ...]

    @property
    def held_out(self) -> float:
        """In nats a row, of labels."""
        return self.law.held_out

    @property
    def chosen(self) -> str:
        """What tells loggers apart."""
        return self.law.chosen

    def log_prob(self, rows: Rows) -> FloatArray:
        """log Σ_j p̂(j|s) π_j(a|s), one a row."""
        share = self.law.probs(rows.observation)
        each = np.stack([policy.log_prob(rows.observation, rows.action) for policy in self.policies], axis=1)
        top = np.where(np.isfinite(each), each, -np.inf).max(axis=1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            result = top[:, 0] + np.log(np.sum(share * np.exp(each - top), axis=1))
        return check_possible(result, "any of the loggers' policies")
