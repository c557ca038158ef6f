"""How well the average reward *can* be estimated from given loggers, and how wrong the paper's form must be.

Loggers write episodes of at most H steps from μ₀. Logger j takes the share β_j of them and acts by π_j; with p_{j,t}
its law of states after t steps (less than 1 in total once episodes have ended), the law of all rows pooled is

    d₀(s, a) ∝ Σ_j β_j Σ_{t<H} p_{j,t}(s) π_j(a|s).

The efficiency bound: no regular estimator has a mean squared error below V_eff/N at N rows, where

    V_eff = Σ_{s,a} d_π(s)² π(a|s)² / d₀(s,a) · Var(r + V(s′) | s, a),

V being the target's differential value; after an end V(s′) is E_μ₀ V, the start law being known. It is infinite where
the target goes and no logger does.

The paper's form of the ratio equation takes s and s′ to have the same law. In episodes of H steps from a reset they do
not, and with ω(s) = d_π(s)/d₀(s) its estimate is off by

    ( E ω(s₀) V(s₀) − E ω(s_H) V(s_H) ) / H      however much data there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import UsageError
from mixope.worlds.model import Model
from mixope.worlds.truth import episode_visits, long_run, stopped


def efficiency_bound(
    model: Model,
    target: AnyArray,
    loggers: Sequence[AnyArray],
    shares: Sequence[float] | None = None,
    *,
    horizon: int | None,
) -> float:
    """V_eff; divide by the number of rows to get a mean squared error. ``horizon=None`` means whole episodes."""
    truth = long_run(model, target)
    needed = truth.stationary[:, None] * model.checked_policy(target)
    d0 = logged_law(model, loggers, horizon, shares)
    if (d0[needed > 0] == 0).any():
        return float("inf")
    terms = np.divide(needed**2, d0, out=np.zeros_like(d0), where=d0 > 0)
    return float((terms * return_variance(model, truth.differential_value)).sum())


def return_variance(model: Model, value: FloatArray) -> FloatArray:
    """Var(r + V(s′) | s, a), shape (S, A).

    A NaN in V counts as 0: the target never gets there from a state where it has mass, so its weight is 0.
    """
    V = np.nan_to_num(value)
    following = np.where(model.terminated, model.start @ V, V[model.transition.indices])
    returns = model.reward + following
    mean = model.expected(returns).ravel()[model.entry_rows()]
    return model.expected((returns - mean) ** 2)


def paper_form_bias(
    model: Model, target: AnyArray, loggers: Sequence[AnyArray], shares: Sequence[float] | None = None, *, horizon: int
) -> float:
    """(E ωV(s₀) − E ωV(s_H)) / H; NaN where an episode can close in a state of the target that no row starts from."""
    if model.ends:
        raise UsageError(f"the bias of the paper's form is known for continuing environments; {model.name} has ends")
    truth = long_run(model, target)
    d0 = logged_law(model, loggers, horizon, shares).sum(axis=1)
    drift = model.start - last_law(model, loggers, horizon, shares)
    moved = (drift != 0) & (truth.stationary > 0)
    if (d0[moved] == 0).any():
        return float("nan")
    ratio = truth.stationary[moved] / d0[moved]
    return float((drift[moved] * ratio * truth.differential_value[moved]).sum() / horizon)


def logged_law(
    model: Model, loggers: Sequence[AnyArray], horizon: int | None, shares: Sequence[float] | None = None
) -> FloatArray:
    """d₀, shape (S, A), summing to 1. Without ``shares`` all loggers write equally many episodes."""
    visits = np.zeros((model.n_states, model.n_actions))
    for policy, share in zip(loggers, checked_shares(loggers, shares), strict=True):
        visits += share * expected_visits(model, policy, horizon)[:, None] * model.checked_policy(policy)
    return np.asarray(visits / visits.sum(), dtype=np.float64)


def expected_visits(model: Model, policy: AnyArray, horizon: int | None) -> FloatArray:
    """Σ_{t<H} p_t, shape (S,); ``None`` means until the end."""
    if horizon is None:
        return episode_visits(model, policy)
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
