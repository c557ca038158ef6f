"""The law of the rows that loggers write: episodes of at most H steps from μ₀, all loggers pooled.

Logger j takes the share β_j of the episodes and acts by π_j; with p_{j,t} its law of states after t steps (less than 1
in total once episodes have ended),

    d₀(s, a) ∝ Σ_j β_j Σ_{t<H} p_{j,t}(s) π_j(a|s).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.environments.chain import stopped
from mixope.environments.model import Model
from mixope.errors import UsageError


def logged_law(
    model: Model, loggers: Sequence[AnyArray], horizon: int, shares: Sequence[float] | None = None
) -> FloatArray:
    """d₀, shape (S, A), summing to 1. Without ``shares`` all loggers write equally many episodes."""
    visits = np.zeros((model.n_states, model.n_actions))
    for policy, share in zip(loggers, checked_shares(loggers, shares), strict=True):
        visits += share * expected_visits(model, policy, horizon)[:, None] * model.checked_policy(policy)
    return np.asarray(visits / visits.sum(), dtype=np.float64)


def expected_visits(model: Model, policy: AnyArray, horizon: int) -> FloatArray:
    """Σ_{t<H} p_t, shape (S,)."""
    if horizon < 1:
        raise UsageError(f"expected a horizon of at least 1 step, got {horizon}")
    chain = stopped(model, policy)
    law, visits = chain.start, np.zeros(model.n_states)
    for _ in range(horizon):
        visits += law
        law = law @ chain.matrix
    return visits


def last_law(
    model: Model, loggers: Sequence[AnyArray], horizon: int, shares: Sequence[float] | None = None
) -> FloatArray:
    """Σ_j β_j p_{j,H}: the law of the state after the last step of an episode, shape (S,)."""
    total = np.zeros(model.n_states)
    for policy, share in zip(loggers, checked_shares(loggers, shares), strict=True):
        chain = stopped(model, policy)
        law = chain.start
        for _ in range(horizon):
            law = law @ chain.matrix
        total += share * law
    return total


def checked_shares(loggers: Sequence[AnyArray], shares: Sequence[float] | None) -> FloatArray:
    """The shares β, normalised to 1."""
    if not loggers:
        raise UsageError("expected at least one logger, got none")
    weights = np.ones(len(loggers)) if shares is None else np.asarray(shares, dtype=np.float64)
    if weights.shape != (len(loggers),) or (weights < 0).any() or weights.sum() <= 0:
        raise UsageError(f"expected a share of at least 0 for each of {len(loggers)} loggers, got {shares}")
    return np.asarray(weights / weights.sum(), dtype=np.float64)
