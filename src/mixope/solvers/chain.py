"""A finite Markov chain: its stationary law, its potential (differential value), its discounted and T-step occupancy.

With P the transition matrix (rows sum to one, or to less where the process ends):

    stationary   d = d P,  Σ d = 1                        potential   V = g + P V,  d·V = 0
    discounted   d = (1−γ) μ + γ d P                      value       V = r + γ P V
    T-step       d_t = d_{t−1} P,  d_0 = μ

Small or slowly mixing chains are solved directly (one sparse LU gives d and V), large ones by iteration, whose cost
does not depend on fill-in. A large chain that does not converge mixes slowly, is close to a grid or a line, and has
little fill-in: LU again, or ARPACK where even the factors would be too large. No dense matrix is ever made of a large
chain. The residual is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from mixope.arrays import FloatArray
from mixope.solvers.outcome import Outcome, Solved

TOLERANCE = 1e-11
_DENSE_STATES = 400
_DIRECT_STATES = 6000
_FACTOR_STATES = 500_000
_SWEEPS = 5000


@dataclass(frozen=True)
class Chain:
    """A chain given by its sparse transition matrix."""

    transition: sparse.csr_matrix

    @property
    def n_states(self) -> int:
        """How many states."""
        return int(self.transition.shape[0])

    @cached_property
    def _direct(self) -> bool:
        return self.n_states <= _DIRECT_STATES

    @cached_property
    def stationary(self) -> tuple[FloatArray, Solved]:
        """The law d with d = d P on an irreducible chain."""
        if self.n_states == 1:
            return np.ones(1), Solved(Outcome.DIRECT, 0.0)
        if self._direct:
            return self._report(self._stationary_by_elimination(), Outcome.DIRECT)
        d, sweeps, converged = self._stationary_by_iteration()
        if converged:
            return self._report(d, Outcome.ITERATED, sweeps)
        if self.n_states <= _FACTOR_STATES:
            return self._report(self._stationary_by_elimination(), Outcome.DIRECT, sweeps)
        return self._report(self._stationary_by_arpack(d), Outcome.KRYLOV, sweeps)

    def potential(self, gain: FloatArray) -> FloatArray:
        """V with V = g + P V and d·V = 0, for a gain with d·g = 0 (a reward less its average)."""
        d, solved = self.stationary
        if self.n_states == 1:
            return np.zeros(1)
        if solved.outcome is Outcome.ITERATED:
            value = _fixed_point(lambda v: 0.5 * (v + gain + self.transition @ v), np.zeros_like(gain), d)
        else:
            value = np.zeros(self.n_states)
            value[:-1] = self._factor(gain[:-1], "N")
        return np.asarray(value - d @ value)

    @cached_property
    def _factor(self) -> Callable[[FloatArray, str], FloatArray]:
        """Solve with I − P without its last state: a non-singular M-matrix if the chain is irreducible."""
        n = self.n_states
        matrix = sparse.eye_array(n - 1, format="csc") - self.transition[: n - 1, : n - 1]
        return factorised(sparse.csc_matrix(matrix))

    def _stationary_by_elimination(self) -> FloatArray:
        """Fix d at the last state to one; the others are how often they are visited between two visits there."""
        into = np.asarray(self.transition[[-1], :-1].todense()).ravel()
        visits = np.append(self._factor(into, "T"), 1.0)
        visits = np.maximum(visits, 0.0)
        return np.asarray(visits / visits.sum())

    def _stationary_by_iteration(self) -> tuple[FloatArray, int, bool]:
        """Power iteration on (I + P)/2, which has the same stationary law and no period."""
        backwards = self.transition.T.tocsr()
        d = np.full(self.n_states, 1.0 / self.n_states)
        for sweep in range(1, _SWEEPS + 1):
            moved = backwards @ d
            change = float(np.abs(moved - d).sum())
            d = 0.5 * (d + moved)
            d /= d.sum()
            if change < TOLERANCE * 1e-2:
                return d, sweep, True
        return d, _SWEEPS, False

    def _stationary_by_arpack(self, guess: FloatArray) -> FloatArray:
        try:
            _, vectors = linalg.eigs(self.transition.T.tocsr(), k=1, which="LR", v0=guess, tol=1e-14, maxiter=3000)
        except linalg.ArpackError:
            return guess
        d = np.abs(np.real(vectors[:, 0]))
        return np.asarray(d / d.sum())

    def _residual(self, d: FloatArray) -> float:
        return float(np.abs(self.transition.T @ d - d).sum())

    def _report(self, d: FloatArray, outcome: Outcome, iterations: int = 0) -> tuple[FloatArray, Solved]:
        residual = self._residual(d)
        return d, Solved(outcome if residual <= 1e3 * TOLERANCE else Outcome.INACCURATE, residual, iterations)

    def discounted_occupancy(self, start: FloatArray, gamma: float) -> tuple[FloatArray, Solved]:
        """d = (1−γ) μ + γ d P; sums to less than one where the process can end."""
        source = (1.0 - gamma) * start
        d, outcome = self._discounted(gamma, source, "T")
        residual = float(np.abs(source + gamma * (self.transition.T @ d) - d).sum()) / (1.0 - gamma)
        return np.maximum(d, 0.0), Solved(outcome if residual <= 1e3 * TOLERANCE else Outcome.INACCURATE, residual)

    def discounted_value(self, reward: FloatArray, gamma: float) -> FloatArray:
        """V = r + γ P V."""
        return self._discounted(gamma, reward, "N")[0]

    def _discounted(self, gamma: float, right: FloatArray, trans: str) -> tuple[FloatArray, Outcome]:
        """Solve with I − γP (or its transpose): directly if small, else by a Krylov method, directly where that stalls.

        The error of a solution is at most its residual over 1 − γ, so that is what must be small.
        """
        if not self._direct:
            matrix = self.transition if trans == "N" else self.transition.T.tocsr()
            system = sparse.csr_matrix(sparse.eye_array(self.n_states, format="csr") - gamma * matrix)
            close = 1e-13 * (1.0 - gamma)
            found, _ = linalg.bicgstab(system, right, rtol=close, atol=0.0, maxiter=_SWEEPS)
            left = float(np.abs(system @ found - right).sum())
            if left <= TOLERANCE * (1.0 - gamma) * max(float(np.abs(right).sum()), 1e-300):
                return np.asarray(found), Outcome.ITERATED
        return self._discounted_factor(gamma)(right, trans), Outcome.DIRECT

    def _discounted_factor(self, gamma: float) -> Callable[[FloatArray, str], FloatArray]:
        return factorised(sparse.csc_matrix(sparse.eye_array(self.n_states, format="csc") - gamma * self.transition))

    def laws(self, start: FloatArray, horizon: int) -> FloatArray:
        """d_t for t = 0 … T−1: shape (T, states)."""
        backwards = self.transition.T.tocsr()
        law = np.empty((horizon, self.n_states))
        law[0] = start
        for t in range(1, horizon):
            law[t] = backwards @ law[t - 1]
        return law


def factorised(matrix: sparse.csc_matrix) -> Callable[[FloatArray, str], FloatArray]:
    """A solver for ``matrix @ x = b`` ("N") and ``matrix.T @ x = b`` ("T"): dense if small, else sparse LU."""
    if matrix.shape[0] <= _DENSE_STATES:
        from scipy.linalg import lu_factor, lu_solve

        lu = lu_factor(np.asarray(matrix.todense()))
        return lambda b, trans: np.asarray(lu_solve(lu, b, trans=0 if trans == "N" else 1))
    superlu: Any = linalg.splu(matrix)
    return lambda b, trans: np.asarray(superlu.solve(np.ascontiguousarray(b), trans=trans))


def _fixed_point(step: Callable[[FloatArray], FloatArray], start: FloatArray, centre: FloatArray | None) -> FloatArray:
    """Iterate to a fixed point; ``centre`` removes the drift of a solution that is free up to a constant."""
    value = start
    for _ in range(20 * _SWEEPS):
        moved = step(value)
        if centre is not None:
            moved = moved - centre @ moved
        scale = max(float(np.abs(moved).max(initial=0.0)), 1.0)
        if float(np.abs(moved - value).max(initial=0.0)) < 1e-14 * scale * 10:
            return moved
        value = moved
    return value
