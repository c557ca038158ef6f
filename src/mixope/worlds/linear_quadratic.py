"""A linear–quadratic–Gaussian system: vector states and actions, noise, and yet everything known exactly.

    s′ = A s + B a + w,  w ~ N(0, W),      r = −( sᵀQs + aᵀRa ),      a ~ N(K s + b, Σ),      s₀ ~ N(0, S₀).

With F = A + BK and N = W + BΣBᵀ the states of a policy are Gaussian at every step, mean m and covariance S moving as
m′ = Fm + Bb, S′ = FSFᵀ + N, and its value is a quadratic (γ = 1 the differential value, γ < 1 the discounted one):

    V(s) = −( sᵀPs + 2pᵀs + κ ),   P = Q + KᵀRK + γFᵀPF,   p = KᵀRb + γFᵀ(PBb + p),
    κ = cost + γκ,   cost = bᵀRb + tr RΣ + γ( (Bb)ᵀP(Bb) + tr PN + 2pᵀBb ),

where for γ = 1 the average is η = −cost and κ makes E_d V = 0. The efficiency bound follows in
:func:`efficiency_bound`: V_eff = E_d₀[(ωρ)² Var(V(s′) | s,a)] = ∫ d_π(x)²/d₀(x) v(x) dx over x = (s, a), with

    v(x) = 2 tr PWPW + 4 (Pμ + p)ᵀ W (Pμ + p),   μ = As + Ba.

d₀ mixes the Gaussians of all loggers and steps. For a single one d_π²/d₀ is Gaussian again and the integral closed; for
several it is taken by Gauss–Hermite quadrature of two orders, whose difference is the reported error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.base.errors import DataError, UsageError
from mixope.policies.gaussian import LinearGaussianPolicy
from mixope.worlds.efficiency import checked_shares

ORDERS = (18, 24)
MAX_DIMENSIONS = 3
# Covariances that move by less than this share in a step have arrived.
ARRIVED = 1e-13


@dataclass(frozen=True, eq=False)
class LinearQuadratic:
    """The system; its states are observed as they are."""

    A: FloatArray
    B: FloatArray
    W: FloatArray
    Q: FloatArray
    R: FloatArray
    S0: FloatArray
    name: str = "linear-quadratic"

    @property
    def action_size(self) -> int:
        """The number of components of an action."""
        return int(self.B.shape[1])

    def start(self, chains: int, generator: np.random.Generator) -> FloatArray:
        """Draws from N(0, S₀)."""
        return _noise(self.S0, chains, generator)

    def observe(self, states: FloatArray) -> FloatArray:
        """The states themselves."""
        return states

    def step(
        self, states: FloatArray, actions: FloatArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """s′ = As + Ba + w and r = −(sᵀQs + aᵀRa)."""
        reward = -(_quadratic(self.Q, states) + _quadratic(self.R, actions))
        return states @ self.A.T + actions @ self.B.T + _noise(self.W, len(states), generator), reward

    def ended(self, states: FloatArray) -> BoolArray:
        """Never."""
        return np.zeros(len(states), dtype=bool)


class Gaussian(NamedTuple):
    """A normal law of states, or of states and actions."""

    mean: FloatArray
    covariance: FloatArray

    def log_density(self, points: FloatArray) -> FloatArray:
        """log N(x) of rows x."""
        root = np.linalg.cholesky(self.covariance)
        z = np.linalg.solve(root, (points - self.mean).T)
        volume = np.log(np.diagonal(root)).sum() + 0.5 * len(root) * np.log(2 * np.pi)
        return np.asarray(-0.5 * (z * z).sum(axis=0) - volume, dtype=np.float64)


class Value(NamedTuple):
    """V(s) = −( sᵀPs + 2pᵀs + κ )."""

    P: FloatArray
    p: FloatArray
    kappa: float

    def __call__(self, states: AnyArray) -> FloatArray:
        """V of rows s."""
        return np.asarray(-(_quadratic(self.P, states) + 2 * states @ self.p + self.kappa), dtype=np.float64)


class GaussianLongRun(NamedTuple):
    """A policy's average reward, stationary law of states and differential value."""

    average: float
    stationary: Gaussian
    differential_value: Value


class EfficiencyBound(NamedTuple):
    """The efficiency bound V_eff and the error of its quadrature, 0 where it is closed; divide by rows for an MSE."""

    value: float
    error: float


def linear_quadratic() -> LinearQuadratic:
    """The default system: two states, of which the second is pushed and moves the first, and one action."""
    return LinearQuadratic(
        A=np.array([[0.9, 0.3], [-0.1, 0.8]]),
        B=np.array([[0.0], [0.5]]),
        W=np.diag([0.05, 0.1]),
        Q=np.diag([1.0, 0.2]),
        R=np.array([[0.1]]),
        S0=np.eye(2),
    )


def target() -> LinearGaussianPolicy:
    """The policy to evaluate on the default system."""
    return LinearGaussianPolicy([-0.5, -0.6], 0.0, 0.5)


def loggers(n: int) -> list[LinearGaussianPolicy]:
    """One logger of the default system, or four, from idle to nearly the target; all wander wider than the target."""
    four = [([0.0, 0.0], 0.2, 0.7), ([-0.2, -0.2], -0.2, 0.7), ([-0.3, -0.4], 0.0, 0.7), ([-0.5, -0.5], 0.1, 0.8)]
    chosen = {1: four[2:3], 4: four}.get(n)
    if chosen is None:
        raise UsageError(f"expected 1 or 4 loggers, got {n}; LinearGaussianPolicy(weights, bias, scale) makes others")
    return [LinearGaussianPolicy(weights, bias, scale) for weights, bias, scale in chosen]


def long_run(system: LinearQuadratic, policy: LinearGaussianPolicy) -> GaussianLongRun:
    """Average, stationary law and differential value."""
    closed = _closed_loop(system, policy)
    value, cost = _value(system, closed, 1.0)
    stationary = _stationary(closed)
    m, S = stationary
    kappa = -float(np.trace(value.P @ S) + m @ value.P @ m + 2 * value.p @ m)
    return GaussianLongRun(-cost, stationary, Value(value.P, value.p, kappa))


def average(system: LinearQuadratic, policy: LinearGaussianPolicy) -> float:
    """The average reward η."""
    return long_run(system, policy).average


def discounted(system: LinearQuadratic, policy: LinearGaussianPolicy, gamma: float) -> float:
    """(1 − γ) E V(s₀)."""
    if not 0 <= gamma < 1:
        raise UsageError(f"expected a discount in [0, 1), got {gamma}; for gamma = 1 ask for the average")
    value, cost = _value(system, _closed_loop(system, policy), gamma)
    return float(-(1 - gamma) * np.trace(value.P @ system.S0) - cost)


def horizon(system: LinearQuadratic, policy: LinearGaussianPolicy, steps: int) -> float:
    """The mean reward of the first ``steps`` steps."""
    if steps < 1:
        raise UsageError(f"expected a horizon of at least 1 step, got {steps}")
    cost = np.zeros((len(system.A) + system.action_size,) * 2)
    cost[: len(system.A), : len(system.A)], cost[len(system.A) :, len(system.A) :] = system.Q, system.R
    laws = ((weight, _with_actions(law, policy)) for weight, law in _laws(system, policy, steps))
    return -float(sum(w * (np.trace(cost @ x.covariance) + x.mean @ cost @ x.mean) for w, x in laws))


def logged_law(
    system: LinearQuadratic,
    loggers: Sequence[LinearGaussianPolicy],
    horizon: int | None,
    shares: Sequence[float] | None = None,
) -> list[tuple[float, Gaussian]]:
    """d₀ as a mixture of Gaussians over (s, a), with weights; ``horizon=None`` means episodes that began long ago."""
    weights = checked_shares([np.zeros(0)] * len(loggers), shares)
    return [
        (share * weight, _with_actions(law, policy))
        for share, policy in zip(weights.tolist(), loggers, strict=True)
        for weight, law in _laws(system, policy, horizon)
    ]


def efficiency_bound(
    system: LinearQuadratic,
    target: LinearGaussianPolicy,
    loggers: Sequence[LinearGaussianPolicy],
    shares: Sequence[float] | None = None,
    *,
    horizon: int | None,
) -> EfficiencyBound:
    """V_eff from logs of ``horizon`` steps per episode, or from loggers that have run for ever (``None``).

    Infinite where no part of d₀ has tails that carry d_π², which for several loggers is a cautious answer.
    """
    truth = long_run(system, target)
    wanted = _with_actions(truth.stationary, target)
    parts = [part for part in logged_law(system, loggers, horizon, shares) if part[0] > 0]
    carriers = [overlap for _, law in parts if (overlap := _overlap(wanted, law)) is not None]
    if not carriers:
        return EfficiencyBound(float("inf"), 0.0)
    variance = _return_variance(system, truth.differential_value)
    if len(parts) == 1:
        return EfficiencyBound(_closed_bound(variance, wanted, parts[0][1]), 0.0)
    return _quadrature_bound(variance, wanted, parts, _tightest(carriers))


class _ClosedLoop(NamedTuple):
    """F, Bb and N of a policy, with its K, b and Σ."""

    F: FloatArray
    drift: FloatArray
    N: FloatArray
    K: FloatArray
    b: FloatArray
    Sigma: FloatArray


def _closed_loop(system: LinearQuadratic, policy: LinearGaussianPolicy) -> _ClosedLoop:
    K, b, Sigma = policy.weights, policy.bias, _action_noise(policy)
    if K.shape != system.B.T.shape:
        raise DataError("the policy does not fit the system", expected=f"weights {system.B.T.shape}", got=K.shape)
    return _ClosedLoop(system.A + system.B @ K, system.B @ b, system.W + system.B @ Sigma @ system.B.T, K, b, Sigma)


def _action_noise(policy: LinearGaussianPolicy) -> FloatArray:
    scale = policy.scale(np.zeros((1, policy.weights.shape[1])))[0]
    return np.diag(np.broadcast_to(scale**2, len(policy.weights)))


def _value(system: LinearQuadratic, closed: _ClosedLoop, gamma: float) -> tuple[Value, float]:
    """V_γ and its ``cost``; κ is cost/(1 − γ), and left 0 where γ = 1."""
    from scipy.linalg import solve_discrete_lyapunov

    F, drift, N, K, b, Sigma = closed
    root = np.sqrt(gamma) * F
    if gamma == 1:
        _check_stable(F)
    P = np.asarray(solve_discrete_lyapunov(root.T, system.Q + K.T @ system.R @ K), dtype=np.float64)
    p = _solve(np.eye(len(F)) - gamma * F.T, K.T @ system.R @ b + gamma * F.T @ P @ drift)
    now = b @ system.R @ b + np.trace(system.R @ Sigma)
    cost = float(now + gamma * (drift @ P @ drift + np.trace(P @ N) + 2 * p @ drift))
    return Value(P, p, cost / (1 - gamma) if gamma < 1 else 0.0), cost


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def _check_stable(F: FloatArray) -> None:
    radius = float(np.abs(np.linalg.eigvals(F)).max())
    if radius >= 1:
        raise DataError(
            "the policy does not keep the system stable, so it has no average",
            expected="a spectral radius of A + BK below 1",
            got=f"{radius:.6g}",
        )


def _stationary(closed: _ClosedLoop) -> Gaussian:
    """m = Fm + Bb and S = FSFᵀ + N."""
    from scipy.linalg import solve_discrete_lyapunov

    mean = _solve(np.eye(len(closed.F)) - closed.F, closed.drift)
    return Gaussian(mean, np.asarray(solve_discrete_lyapunov(closed.F, closed.N), dtype=np.float64))


def _laws(
    system: LinearQuadratic, policy: LinearGaussianPolicy, horizon: int | None
) -> Iterator[tuple[float, Gaussian]]:
    """The laws of the state over the steps of an episode, with weights; once arrived, the rest is one law."""
    closed = _closed_loop(system, policy)
    if horizon is None:
        _check_stable(closed.F)
        yield 1.0, _stationary(closed)
        return
    if horizon < 1:
        raise UsageError(f"expected a horizon of at least 1 step, got {horizon}")
    law = Gaussian(np.zeros(len(system.A)), system.S0)
    for t in range(horizon):
        following = Gaussian(closed.F @ law.mean + closed.drift, closed.F @ law.covariance @ closed.F.T + closed.N)
        if _arrived(law, following):
            yield (horizon - t) / horizon, law
            return
        yield 1 / horizon, law
        law = following


def _arrived(law: Gaussian, following: Gaussian) -> bool:
    size = np.abs(law.covariance).max()
    moved = max(np.abs(following.covariance - law.covariance).max(), np.abs(following.mean - law.mean).max() ** 2)
    return bool(moved <= ARRIVED * size)


def _with_actions(law: Gaussian, policy: LinearGaussianPolicy) -> Gaussian:
    """The law of (s, a)."""
    K, S = policy.weights, law.covariance
    mean = np.concatenate([law.mean, K @ law.mean + policy.bias])
    return Gaussian(mean, np.block([[S, S @ K.T], [K @ S, K @ S @ K.T + _action_noise(policy)]]))


class _Quadratic(NamedTuple):
    """c + (Lx + l)ᵀ W (Lx + l), with W = 4·noise."""

    constant: float
    L: FloatArray
    offset: FloatArray
    W: FloatArray

    def at(self, points: FloatArray) -> FloatArray:
        return self.constant + _quadratic(self.W, points @ self.L.T + self.offset)

    def expected(self, law: Gaussian) -> float:
        middle = self.L @ law.mean + self.offset
        spread = np.trace(self.W @ self.L @ law.covariance @ self.L.T)
        return float(self.constant + middle @ self.W @ middle + spread)


def _return_variance(system: LinearQuadratic, value: Value) -> _Quadratic:
    """v(x), the reward being known given x = (s, a)."""
    PW = value.P @ system.W
    return _Quadratic(2 * float(np.trace(PW @ PW)), value.P @ np.hstack([system.A, system.B]), value.p, 4 * system.W)


def _overlap(wanted: Gaussian, law: Gaussian) -> Gaussian | None:
    """The Gaussian proportional to wanted²/law: precision 2Λ − Λ₀ and mean in proportion; None where there is none."""
    precision, logged = np.linalg.inv(wanted.covariance), np.linalg.inv(law.covariance)
    joint = 2 * precision - logged
    if np.linalg.eigvalsh(joint).min() <= 0:
        return None
    covariance = np.linalg.inv(joint)
    return Gaussian(covariance @ (2 * precision @ wanted.mean - logged @ law.mean), covariance)


def _closed_bound(variance: _Quadratic, wanted: Gaussian, law: Gaussian) -> float:
    """∫ wanted²/law · E_g v with g ∝ wanted²/law; the integral is the ratio at any one point, such as g's mean."""
    g = _overlap(wanted, law)
    if g is None:
        return float("inf")
    at = g.mean[None]
    mass = np.exp(2 * wanted.log_density(at) - law.log_density(at) - g.log_density(at))[0]
    return float(mass * variance.expected(g))


def _tightest(carriers: Sequence[Gaussian]) -> Gaussian:
    """The least spread overlap: where a part of d₀ covers the target best, it dominates the mixture."""
    return min(carriers, key=lambda law: float(np.linalg.slogdet(law.covariance)[1]))


def _quadrature_bound(
    variance: _Quadratic, wanted: Gaussian, parts: Sequence[tuple[float, Gaussian]], reference: Gaussian
) -> EfficiencyBound:
    if len(wanted.mean) > MAX_DIMENSIONS:
        raise UsageError(
            f"the bound of several loggers is computed up to {MAX_DIMENSIONS} dimensions of state and action together, "
            f"got {len(wanted.mean)}"
        )
    coarse, fine = (_integrate(variance, wanted, parts, reference, order) for order in ORDERS)
    return EfficiencyBound(fine, abs(fine - coarse))


def _integrate(
    variance: _Quadratic, wanted: Gaussian, parts: Sequence[tuple[float, Gaussian]], reference: Gaussian, order: int
) -> float:
    """∫ wanted²/d₀ · v as E_g[ wanted²/(d₀ g) · v ] on the Gauss–Hermite nodes of the reference g."""
    nodes, weights = _hermite(order, len(wanted.mean))
    points = reference.mean + nodes @ np.linalg.cholesky(reference.covariance).T
    logged = np.zeros(len(points))
    for share, law in parts:
        logged += share * np.exp(law.log_density(points))
    density = np.exp(2 * wanted.log_density(points) - reference.log_density(points)) / logged
    return float(weights @ (density * variance.at(points)))


def _hermite(order: int, dimensions: int) -> tuple[FloatArray, FloatArray]:
    """Tensor nodes and weights of N(0, I)."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / w.sum()
    nodes = np.array(list(product(x, repeat=dimensions)))
    return nodes, np.prod(np.array(list(product(w, repeat=dimensions))), axis=1)


def _quadratic(matrix: FloatArray, rows: AnyArray) -> FloatArray:
    """xᵀMx for every row x."""
    return np.asarray(np.einsum("ni,ij,nj->n", rows, matrix, rows), dtype=np.float64)


def _noise(covariance: FloatArray, chains: int, generator: np.random.Generator) -> FloatArray:
    draws = generator.standard_normal((chains, len(covariance)))
    return np.asarray(draws @ np.linalg.cholesky(covariance).T, dtype=np.float64)
