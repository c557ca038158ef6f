"""How well the average reward *can* be estimated from given loggers, and how wrong the paper's form must be.

The efficiency bound: no regular estimator has a mean squared error below V_eff/N at N rows, where

    V_eff = Σ_{s,a} d_π(s)² π(a|s)² / d₀(s,a) · Var(r + V(s′) | s, a),

d₀ being the law of logged rows (:mod:`~mixope.environments.logged_law`) and V the target's differential value; after an
end V(s′) is E_μ₀ V, the start law being known. It is infinite where the target goes and no logger does.

The paper's form of the ratio equation takes s and s′ to have the same law. In episodes of H steps from a reset they do
not, and with ω(s) = d_π(s)/d₀(s) its estimate is off by

    ( E ω(s₀) V(s₀) − E ω(s_H) V(s_H) ) / H      however much data there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.environments.logged_law import last_law, logged_law
from mixope.environments.model import Model
from mixope.environments.truth import long_run
from mixope.errors import UsageError


def efficiency_bound(
    model: Model,
    target: AnyArray,
    loggers: Sequence[AnyArray],
    shares: Sequence[float] | None = None,
    *,
    horizon: int,
) -> float:
    """V_eff; divide by the number of rows to get a mean squared error."""
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
    model: Model,
    target: AnyArray,
    loggers: Sequence[AnyArray],
    shares: Sequence[float] | None = None,
    *,
    horizon: int,
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
