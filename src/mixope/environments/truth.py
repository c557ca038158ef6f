"""What a policy really earns, per step: the three estimands, exact.

    average     η = lim 1/N Σ_{t<N} E r_t           an end restarts from μ₀
    discounted  (1 − γ) E Σ_t γᵗ r_t, from μ₀       an end is absorbing and earns 0
    horizon     1/T Σ_{t<T} E r_t, from μ₀          an end is absorbing and earns 0

With them the stationary law d_π and the differential value V of the average (:mod:`~mixope.environments.long_run`).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from mixope.arrays import AnyArray, FloatArray
from mixope.environments import long_run as long_runs
from mixope.environments.chain import restarted, stopped
from mixope.environments.model import Model
from mixope.errors import UsageError


def long_run(model: Model, policy: AnyArray) -> long_runs.LongRun:
    """Average, stationary law and differential value from one solve."""
    return long_runs.solve(restarted(model, policy))


def average(model: Model, policy: AnyArray) -> float:
    """The average reward η = Σ d_π r_π."""
    return long_run(model, policy).average


def stationary(model: Model, policy: AnyArray) -> FloatArray:
    """The stationary law d_π of states, shape (S,)."""
    return long_run(model, policy).stationary


def differential_value(model: Model, policy: AnyArray) -> FloatArray:
    """V = r_π − η + P_π V with Σ d_π V = 0, shape (S,); NaN where the average is not η."""
    return long_run(model, policy).differential_value


def discounted_value(model: Model, policy: AnyArray, gamma: float) -> FloatArray:
    """V = r_π + γ P_π V, un-normalised, shape (S,)."""
    if not 0 <= gamma < 1:
        raise UsageError(f"expected a discount in [0, 1), got {gamma}; for gamma = 1 ask for the average")
    chain = stopped(model, policy)
    system = sparse.csc_array(sparse.eye_array(model.n_states) - gamma * chain.matrix)
    return np.asarray(splu(system).solve(chain.reward), dtype=np.float64)


def discounted(model: Model, policy: AnyArray, gamma: float) -> float:
    """(1 − γ) Σ μ₀ V."""
    return float((1 - gamma) * (model.start @ discounted_value(model, policy, gamma)))


def horizon(model: Model, policy: AnyArray, steps: int) -> float:
    """The mean reward of the first ``steps`` steps."""
    if steps < 1:
        raise UsageError(f"expected a horizon of at least 1 step, got {steps}")
    chain = stopped(model, policy)
    law, total = chain.start, 0.0
    for _ in range(steps):
        total += float(law @ chain.reward)
        law = law @ chain.matrix
    return total / steps
