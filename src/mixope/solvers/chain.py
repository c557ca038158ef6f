"""A finite Markov chain: its stationary law, its potential (differential value), its discounted and T-step occupancy.

With P the transition matrix (rows sum to one, or to less where the process ends):

    stationary   d = d P,  Σ d = 1                        potential   V = g + P V,  d·V = 0
    discounted   d = μ + γ d P                            value       V = r + γ P V
    T-step       d_t = d_{t−1} P,  d_0 = μ

Small chains are solved directly (one sparse LU gives d and V). Large ones lose their states with few neighbours first
(:mod:`mixope.solvers.thinning`); what is left is solved directly if it is tiny, else by iteration (sweeps, then Krylov
methods), whose cost does not depend on fill-in. What does not converge mixes slowly, is close to a grid or a line, and
has little fill-in: LU again, or ARPACK where even the factors would be too large. No dense matrix is ever made of a
large chain. The residual is reported. The same ladder serves chains that leak (:class:`Resolvent`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from mixope.base.arrays import FloatArray
from mixope.solvers.outcome import Outcome, Solved
from mixope.solvers.thinning import Thinned, thin_out

Side = Literal["N", "T"]
"""Solve with a matrix as it is, or with its transpose."""
TOLERANCE = 1e-11
_DENSE_STATES = 400
_DIRECT_STATES = 6000
_FACTOR_STATES = 500_000
_SWEEPS = 1000
_LOOK = 50
"""After so many sweeps each time, those that would take too long are given up."""
_CYCLES = 5


@dataclass(frozen=True)
class Chain:
    """A chain given by its sparse transition matrix.

    ``thinned`` says that states with few neighbours are gone already. Such a chain mixes fast and its factors fill up,
    so that it is iterated unless it is very small.
    """

    transition: sparse.csr_matrix
    thinned: bool = False

    @property
    def n_states(self) -> int:
        """How many states."""
        return int(self.transition.shape[0])

    @cached_property
    def _direct(self) -> bool:
        return self.n_states <= _most_direct(self.thinned)

    @cached_property
    def stationary(self) -> tuple[FloatArray, Solved]:
        """The law d with d = d P on an irreducible chain."""
        if self.n_states == 1:
            return np.ones(1), Solved(Outcome.DIRECT, 0.0)
        if self._direct:
            return self._report(self._stationary_by_elimination(), Outcome.DIRECT)
        if self._core is not None:
            return self._stationary_by_core(self._core)
        d, sweeps, converged = self._stationary_by_iteration()
        if not converged:
            found = self._stationary_by_krylov()
            d, converged = (d, False) if found is None else (found, True)
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
        value = None
        if self._core is not None:
            right, sides = self._thinned.shorten(gain, "N")
            value = self._thinned.lengthen(self._core.potential(right / self._thinned.rate), sides, "N")
        elif solved.outcome is Outcome.ITERATED:
            value = krylov(lambda v: v - self.transition @ v + float(d @ v), gain, TOLERANCE * 0.1)
        if value is None:
            value = np.append(self._factor(gain[:-1], "N"), 0.0)
        return np.asarray(value - d @ value)

    @cached_property
    def _thinned(self) -> Thinned:
        return thin_out(self.transition, np.zeros(self.n_states), _DENSE_STATES)

    @cached_property
    def _core(self) -> Chain | None:
        """What is left of a large chain without the states that have few neighbours; None where nothing was gained."""
        if self._direct or self.thinned or not self._thinned.rounds:
            return None
        return Chain(self._thinned.transition, thinned=True)

    def _stationary_by_core(self, core: Chain) -> tuple[FloatArray, Solved]:
        """x A = 0 on the core, with x = d D⁻¹ since its steps take unequal time, and then on all states."""
        law, solved = core.stationary
        visits = self._thinned.lengthen(law / self._thinned.rate, None, "T")
        return self._report(visits / visits.sum(), solved.outcome, solved.iterations)

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
        """Power iteration on (I + P)/2, which has the same stationary law and no period.

        It is given up where it would take too many sweeps even if it went on as fast as it did lately.
        """
        backwards, before = self.transition.T.tocsr(), np.inf
        d = np.full(self.n_states, 1.0 / self.n_states)
        for sweep in range(1, _SWEEPS + 1):
            moved = backwards @ d
            change = float(np.abs(moved - d).sum())
            d = 0.5 * (d + moved)
            d /= d.sum()
            if change < TOLERANCE * 1e-2:
                return d, sweep, True
            if sweep % _LOOK == 0:
                if change * min(change / before, 1.0) ** ((_SWEEPS - sweep) / _LOOK) > TOLERANCE * 1e-2:
                    return d, sweep, False
                before = change
        return d, _SWEEPS, False

    def _stationary_by_krylov(self) -> FloatArray | None:
        """d (I − P + 1 uᵀ) = uᵀ, u even: the eigenvalue 1 is taken out of P, the others stay."""
        backwards, n = self.transition.T.tocsr(), self.n_states
        even = np.full(n, 1.0 / n)
        d = krylov(lambda x: x - backwards @ x + even * float(x.sum()), even, TOLERANCE * 0.1)
        return None if d is None else np.asarray(np.maximum(d, 0.0) / np.maximum(d, 0.0).sum())

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

    def discounted_occupancy(self, source: FloatArray, gamma: float) -> tuple[FloatArray, Solved]:
        """d = μ + γ d P; γ may be 1 where the process ends from every state. The residual is relative to Σ μ.

        Floats leave 10⁻¹⁶ of Σ d in every equation, which close to γ = 1 is more of Σ μ = (1−γ) Σ d than is tolerated.
        Nearly all of that is an error of how much mass there is, which is known (:meth:`_mass`). So d is given its mass
        and refined once, and how far that moved it stands in for the residual.
        """
        resolvent = self.resolvent(gamma)
        d, outcome = resolvent.solve(source, "T")
        mass, tolerated = float(source.sum()), 1e3 * TOLERANCE
        if self._mass(d, gamma) == 0.0:  # γ is 1, and nothing ends but by rounding
            return np.maximum(d, 0.0), Solved(Outcome.INACCURATE, np.inf)
        residual = float(np.abs(self._off_balance(d, source, gamma)).sum()) / mass
        if max(residual, abs(self._mass(d, gamma) / mass - 1.0)) > tolerated:
            d *= mass / self._mass(d, gamma)
            off = self._off_balance(d, source, gamma)
            step, _ = resolvent.solve(off - float(off.sum()) * d / float(d.sum()), "T")
            d += step
            d *= mass / self._mass(d, gamma)
            residual = float(np.abs(step).sum()) / float(d.sum())
        return np.maximum(d, 0.0), Solved(outcome if residual <= tolerated else Outcome.INACCURATE, residual)

    def _off_balance(self, d: FloatArray, source: FloatArray, gamma: float) -> FloatArray:
        return np.asarray(source + gamma * (self.transition.T @ d) - d)

    def _mass(self, d: FloatArray, gamma: float) -> float:
        """Σ d(s) (1 − γ Σ P(s,·)), which is Σ μ whatever γ is."""
        kept = np.asarray(self.transition.sum(axis=1)).ravel()
        leak = np.where(np.abs(1.0 - kept) > TOLERANCE, 1.0 - kept, 0.0)  # less than that is what sums of shares miss
        return float(d @ (1.0 - gamma + gamma * leak))

    def discounted_value(self, reward: FloatArray, gamma: float) -> FloatArray:
        """V = r + γ P V."""
        return self.resolvent(gamma).solve(reward, "N")[0]

    def resolvent(self, gamma: float) -> Resolvent:
        """(I − γP)⁻¹, with what was factorised for it."""
        if gamma not in self._resolvents:
            self._resolvents[gamma] = Resolvent(self.transition, gamma)
        return self._resolvents[gamma]

    @cached_property
    def _resolvents(self) -> dict[float, Resolvent]:
        return {}

    def gain(self, reward: FloatArray, time: FloatArray) -> float:
        """η of η t + V = r + P V on an irreducible chain, t the time that a state takes.

        For every u, (I − P + t uᵀ) V = r has the solution with u·V = η. Spread evenly, u takes the eigenvalue 1 out
        of P and leaves the others, so that an iteration converges as fast as the chain mixes; on the last state
        alone it keeps the matrix sparse.
        """
        n = self.n_states
        if self._core is not None:
            earned, lasted = (self._thinned.shorten(each, "N")[0] / self._thinned.rate for each in (reward, time))
            return self._core.gain(earned, lasted)
        if not self._direct:
            v = krylov(lambda x: x - self.transition @ x + time * x.mean(), reward, TOLERANCE * 0.1)
            if v is not None:
                return float(v.mean())
        last = sparse.csr_matrix((time, (np.arange(n), np.full(n, n - 1))), shape=(n, n))
        matrix = sparse.eye_array(n, format="csr") - self.transition + last
        return float(factorised(sparse.csc_matrix(matrix))(reward, "N")[-1])

    def laws(self, start: FloatArray, horizon: int) -> FloatArray:
        """d_t for t = 0 … T−1: shape (T, states)."""
        backwards = self.transition.T.tocsr()
        law = np.empty((horizon, self.n_states))
        law[0] = start
        for t in range(1, horizon):
            law[t] = backwards @ law[t - 1]
        return law


@dataclass(frozen=True)
class Resolvent:
    """Solves with I − γP and its transpose; P may leak mass, and must where γ is 1. ``thinned`` as for a chain."""

    transition: sparse.csr_matrix
    gamma: float
    thinned: bool = False

    def solve(self, right: FloatArray, trans: Side = "N") -> tuple[FloatArray, Outcome]:
        """Directly if it is small, else without its thin states, by a Krylov method, directly where that stalls.

        The error of a solution is at most its residual over 1 − γ, so that is what must be small.
        """
        if self._core is not None:
            return self._solve_by_core(self._core, right, trans)
        if self._large:
            matrix = self.transition if trans == "N" else self._backwards
            close = TOLERANCE * (max(1.0 - self.gamma, 1e-2) if self.gamma < 1.0 else 0.1)
            found = krylov(lambda x: x - self.gamma * (matrix @ x), right, close)
            if found is not None:
                return found, Outcome.ITERATED
        return self._factor(right, trans), Outcome.DIRECT

    @property
    def outcome(self) -> Outcome:
        """How the solves so far ended."""
        if self._core is not None:
            return self._core.outcome
        return Outcome.ITERATED if self._large and "_factor" not in self.__dict__ else Outcome.DIRECT

    @property
    def _large(self) -> bool:
        return int(self.transition.shape[0]) > _most_direct(self.thinned)

    @cached_property
    def _thinned(self) -> Thinned:
        step = self.gamma * self.transition
        return thin_out(step, np.asarray(1.0 - step @ np.ones(step.shape[0])), _DENSE_STATES)

    @cached_property
    def _core(self) -> Resolvent | None:
        """What is left without the states that have few neighbours; None where nothing was gained."""
        if self.thinned or not self._large or not self._thinned.rounds:
            return None
        return Resolvent(self._thinned.transition, 1.0, thinned=True)

    def _solve_by_core(self, core: Resolvent, right: FloatArray, trans: Side) -> tuple[FloatArray, Outcome]:
        """D (I − D⁻¹N) is what is left of I − γP."""
        shorter, sides = self._thinned.shorten(right, trans)
        rate = self._thinned.rate
        found, outcome = core.solve(shorter / rate if trans == "N" else shorter, trans)
        return self._thinned.lengthen(found if trans == "N" else found / rate, sides, trans), outcome

    @cached_property
    def _backwards(self) -> sparse.csr_matrix:
        return self.transition.T.tocsr()

    @cached_property
    def _factor(self) -> Callable[[FloatArray, str], FloatArray]:
        n = self.transition.shape[0]
        return factorised(sparse.csc_matrix(sparse.eye_array(n, format="csc") - self.gamma * self.transition))


def _most_direct(thinned: bool) -> int:
    """Up to how many states factors come first."""
    return min(_DENSE_STATES, _DIRECT_STATES) if thinned else _DIRECT_STATES


def krylov(
    apply: Callable[[FloatArray], FloatArray], right: FloatArray, close: float, accepted: float | None = None
) -> FloatArray | None:
    """x with A x = b to a residual of ``close`` relative to b (in the sum of absolute values), or None.

    A residual that ends between ``close`` and ``accepted`` will do. Counts of few rows make chains with many shallow
    traps, where BiCGSTAB diverges. GMRES that keeps some directions over its restarts (LGMRES) gets out of them, and
    goes on as long as each round makes the residual ten times smaller; BiCGSTAB has the rest.
    """
    system = linalg.LinearOperator((len(right), len(right)), matvec=apply, dtype=np.float64)
    size = max(float(np.abs(right).sum()), 1e-300)
    enough, wanted = (accepted or close) * size, 1e-2 * close
    found, before, left = np.zeros(len(right)), np.inf, size
    while left > enough and left < before / 10:
        found, _ = linalg.lgmres(system, right, found, rtol=wanted, atol=0.0, maxiter=_CYCLES, inner_m=60, outer_k=10)
        before, left = left, float(np.abs(apply(found) - right).sum())
    if left <= enough:
        return np.asarray(found)
    with np.errstate(over="ignore", invalid="ignore"):
        found, _ = linalg.bicgstab(system, right, maxiter=_SWEEPS, rtol=wanted, atol=0.0)
        left = float(np.abs(apply(found) - right).sum())
    return np.asarray(found) if np.isfinite(left) and left <= enough else None


def factorised(matrix: sparse.csc_matrix) -> Callable[[FloatArray, str], FloatArray]:
    """A solver for ``matrix @ x = b`` ("N") and ``matrix.T @ x = b`` ("T"): dense if small, else sparse LU."""
    if matrix.shape[0] <= _DENSE_STATES:
        from scipy.linalg import lu_factor, lu_solve

        lu = lu_factor(np.asarray(matrix.todense()))
        return lambda b, trans: np.asarray(lu_solve(lu, b, trans=0 if trans == "N" else 1))
    superlu: Any = linalg.splu(matrix)
    return lambda b, trans: np.asarray(superlu.solve(np.ascontiguousarray(b), trans=trans))
