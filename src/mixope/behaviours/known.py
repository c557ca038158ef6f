"""The mixture of known policies: b(a|s) = Σ_j p̂(j|s) π_j(a|s), with p̂(j|s) the chance that logger j was the one at s.

p̂ is the share of the state's rows where states are numbered. Elsewhere it is the share of every logger where states do
not tell loggers apart, else a logit or boosting, by held-out log-loss. It uses more than the mixture that is fitted to
actions alone (the exact π_j), and less than logged propensities (it does not care which logger drew the action).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from mixope.base.arrays import AnyArray, FloatArray, IntArray, sum_by
from mixope.base.errors import UsageError
from mixope.behaviours.classifier import BY_ROWS, StateLaw, fit_state_law, shares
from mixope.behaviours.logged import Logged
from mixope.behaviours.protocol import (
    Behaviour,
    FittedBehaviour,
    ask,
    check_possible,
    known_policy,
    numbered,
    usable_rows,
)
from mixope.policies.protocol import Policy
from mixope.requests.rows import Rows


@dataclass(frozen=True)
class KnownMixture(Behaviour):
    """b from labels and the loggers' policies; on counted logs of one logger, its recorded propensities do."""

    loggers: Mapping[str, Policy] = field(default_factory=dict, hash=False)
    name = "known mixture"
    fitted = False

    def knowing(self, loggers: Mapping[str, Policy]) -> KnownMixture:
        """With the policies to mix."""
        return self if self.loggers else replace(self, loggers=loggers)

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedKnownMixture | Logged:
        """Learn which logger was where."""
        rows, weight = usable_rows(rows, weight)
        labels = tuple(np.unique(rows.logger).tolist())
        if len(labels) == 1 and labels[0] not in self.loggers and is_recorded_policy(rows):
            return Logged()
        policies = {label: known_policy(self.loggers, label) for label in labels}
        if rows.state is not None:
            return FittedKnownMixture(policies, counted_shares(rows.state, rows.logger, weight))
        candidates = {"shares": shares, **BY_ROWS}
        return FittedKnownMixture(policies, fit_state_law(rows, rows.logger, weight, candidates, seed))


@dataclass(frozen=True)
class FittedKnownMixture(FittedBehaviour):
    """Ready: policies by label, and p̂(j|s) as counted shares (states, labels) or as a classifier."""

    policies: Mapping[str, Policy]
    law: StateLaw | FloatArray

    @property
    def notes(self) -> tuple[str, ...]:
        """Of the classifier of labels."""
        return self.law.notes if isinstance(self.law, StateLaw) else ()

    def log_prob(self, rows: Rows) -> FloatArray:
        """log Σ_j p̂(j|s) π_j(a|s), one per row."""
        each = np.stack([ask(policy, rows, f"logger {label!r}") for label, policy in self.policies.items()], axis=1)
        share = self.law.probs(rows) if isinstance(self.law, StateLaw) else self.law[numbered(rows.state)]
        return check_possible(np.asarray(logsumexp(each, axis=1, b=share)), rows, "any of the loggers' policies")


def counted_shares(state: IntArray, logger: AnyArray, weight: FloatArray) -> FloatArray:
    """p̂(j|s): shape (states, loggers), zeros where nobody was."""
    labels, code = np.unique(logger, return_inverse=True)
    counts = sum_by(state * len(labels) + code, weight, (int(state.max()) + 1) * len(labels)).reshape(-1, len(labels))
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))


def is_recorded_policy(rows: Rows) -> bool:
    """Whether recorded propensities of one logger say what its policy is: they must agree in each numbered pair."""
    if rows.pair is None or rows.inverse is None or rows.inverse_squared is None or np.isnan(rows.inverse).any():
        return False
    count, inverse, squared = (sum_by(rows.pair, of) for of in (rows.times, rows.inverse, rows.inverse_squared))
    seen = count > 0
    if not np.allclose(squared[seen] / count[seen], (inverse[seen] / count[seen]) ** 2, rtol=1e-6):
        raise UsageError(
            f"the recorded propensities of logger {str(rows.logger[0])!r} change from row to row in the same state,"
            " so it is not one policy; use 'bch' (logged propensities) or 'emp'"
        )
    return True
