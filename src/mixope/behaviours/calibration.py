"""Calibration: make E[ρ | s] = 1 hold in the sample.

Replace ρ by ρ(1 + ηᵀφ(s)) with η solving Σ c ρ(1 + ηᵀφ)φ = Σ c φ. With one-hot φ, as here, this is one factor a state:
k(s) = Σ c / Σ c ρ over the rows at s: the target is renormalised over the actions that were logged there, and the flow
between states becomes a stochastic matrix. Before calibration, Σ c(ρ − 1) at a state measures the behaviour model.
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray, IntArray, sum_by


def state_factors(state: IntArray, count: FloatArray, ratio: FloatArray, n_states: int) -> FloatArray:
    """k(s) for every state; 0 where no logged action has any probability under the target."""
    rows = sum_by(state, count, n_states)
    mass = sum_by(state, ratio, n_states)
    return np.divide(rows, mass, out=np.zeros(n_states), where=mass > 0)


def misfit(
    state: IntArray, rows: FloatArray, ratio: FloatArray, squared: FloatArray, n_states: int
) -> tuple[float, int]:
    """χ² of Σ(ρ − 1) over states, standardised: near 0 if ρ = π/b is right, large if b is wrong; and its states.

    Under the right b, z² = (Σ(ρ−1))²/Σ(ρ−1)² at a state has mean 1; the sum over states less their
    number, over √(2 · states), is about standard normal.
    """
    off = sum_by(state, ratio - rows, n_states)
    spread = sum_by(state, squared - 2 * ratio + rows, n_states)
    busy = (sum_by(state, rows, n_states) >= 20) & (spread > 1e-9)
    n = int(busy.sum())
    if n == 0:
        return 0.0, 0
    chi_squared = float(np.sum(off[busy] ** 2 / spread[busy]))
    return (chi_squared - n) / float(np.sqrt(2 * n)), n
