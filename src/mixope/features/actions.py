"""Action features for value models: ψ(a) for a logged action, and its mean E_π ψ under a policy.

    discrete     ψ = one-hot
    continuous   ψ = (1, a_i, a_i a_j) of the executed action (clipped to the box where one is known), standardised;
                 without products where an action has more than three components

The mean under a Gaussian policy is exact (also when clipped), under a squashed one by Gauss–Hermite quadrature (one
dimension is enough: components are independent given the state), under any other policy by fixed-seed draws. With
x(s,a) = φ(s) ⊗ ψ(a) this is all that is needed for x(s,π) = φ(s) ⊗ E_π ψ.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, Protocol

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError
from mixope.policies import ContinuousPolicy, DiscretePolicy, GaussianPolicy, Policy
from mixope.policies.laws import check_totals
from mixope.policies.own_code import asking

MOST_QUADRATIC = 3
"""Products of components are features up to so many of them."""
_NODES = 15
_DRAWS = 48
_ROOT_TAU = float(np.sqrt(2 * np.pi))


class ActionMap(Protocol):
    """ψ, and its mean under a policy."""

    @property
    def size(self) -> int:
        """How many features."""
        ...

    @property
    def centre(self) -> tuple[float, ...]:
        """Features amid all others, with a combination that is one wherever it is one for every action."""
        ...

    def of(self, actions: AnyArray) -> FloatArray:
        """ψ(a) of every row."""
        ...

    def under(self, policy: Policy, observations: AnyArray) -> FloatArray:
        """E_π ψ in every row's state."""
        ...


@dataclass(frozen=True)
class DiscreteActions:
    """One feature an action."""

    actions: AnyArray

    @property
    def size(self) -> int:
        """As many features as actions."""
        return len(self.actions)

    @property
    def centre(self) -> tuple[float, ...]:
        """All actions alike: they sum to one."""
        return (1.0 / self.size,) * self.size

    def of(self, actions: AnyArray) -> FloatArray:
        """A one in the action's column; an action that is not in the sample is an error."""
        column = np.clip(np.searchsorted(self.actions, actions), 0, self.size - 1)
        strange = self.actions[column] != actions
        if strange.any():
            raise DataError(
                "an action is not among those of the sample", column="action", got=np.asarray(actions)[strange][0]
            )
        return np.asarray(np.eye(self.size)[column])

    def under(self, policy: Policy, observations: AnyArray) -> FloatArray:
        """π(·|s) over the logged actions."""
        n = len(observations)
        if isinstance(policy, DiscretePolicy):
            have = {value: k for k, value in enumerate(policy.actions.tolist())}
            with asking(policy):
                known = policy.probs(observations)
            zero = np.zeros(n)
            return np.stack([known[:, have[a]] if a in have else zero for a in self.actions.tolist()], axis=1)
        with asking(policy):
            columns = [np.exp(policy.log_prob(observations, np.full(n, a))) for a in self.actions]
        found = np.stack(columns, axis=1)
        check_totals(found.sum(axis=1), "the policy")
        return found


@dataclass(frozen=True)
class QuadraticActions:
    """1, a_i and, of few components, a_i a_j of the executed action in standard units."""

    mean: FloatArray
    scale: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    seed: int = 0

    @property
    def size(self) -> int:
        """1 + d, and d(d + 1)/2 products where d is small."""
        return 1 + len(self.mean) + len(self._pairs)

    @property
    def centre(self) -> tuple[float, ...]:
        """The mean action: the first feature is one."""
        return (1.0, *[0.0] * (self.size - 1))

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        """The products that are features; none of many components, which would leave few bumps for the states."""
        d = len(self.mean)
        return list(combinations_with_replacement(range(d), 2)) if d <= MOST_QUADRATIC else []

    def _executed(self, actions: AnyArray) -> FloatArray:
        executed = np.asarray(actions, dtype=np.float64)
        if self.low is None and self.high is None:
            return executed
        return np.clip(executed, self.low, self.high)

    def standard(self, actions: AnyArray) -> FloatArray:
        """What is executed of recorded actions (…, d), in standard units."""
        return np.asarray((self._executed(actions) - self.mean) / self.scale)

    def of(self, actions: AnyArray) -> FloatArray:
        """ψ of actions (n, d), or of several for a row (n, k, d)."""
        u = self.standard(actions)
        pairs = [u[..., i] * u[..., j] for i, j in self._pairs]
        return np.stack([np.ones(u.shape[:-1]), *(u[..., i] for i in range(len(self.mean))), *pairs], axis=-1)

    def under(self, policy: Policy, observations: AnyArray) -> FloatArray:
        """Quadrature for a Gaussian, draws for anything else that can be drawn from."""
        if isinstance(policy, GaussianPolicy):
            return self._gaussian(policy, observations)
        if hasattr(policy, "at_noise"):
            return self._by_component(policy, observations)
        if isinstance(policy, ContinuousPolicy):
            with asking(policy):
                draws = [policy.sample(observations, np.random.default_rng([self.seed, k])) for k in range(_DRAWS)]
            return np.asarray(np.mean([self.of(draw) for draw in draws], axis=0))
        raise DataError(
            "the target cannot be drawn from, so a value model has no mean over its actions",
            expected="a policy with sample(observations, generator)",
            hint="use a GaussianPolicy, or an estimator without a value model such as 'emp'",
        )

    def _gaussian(self, policy: GaussianPolicy, observations: AnyArray) -> FloatArray:
        """Exact moments of independent normals, clipped to the box where there is one."""
        mean = policy.mean(observations)
        boxes = [(self.low, self.high), (policy.low, policy.high) if policy.clipped else (None, None)]
        low = np.full(mean.shape[1], -np.inf)
        high = np.full(mean.shape[1], np.inf)
        for bottom, top in boxes:
            low = low if bottom is None else np.maximum(low, bottom)
            high = high if top is None else np.minimum(high, top)
        first, second = _clipped_moments(mean, np.broadcast_to(policy.scale(observations), mean.shape), low, high)
        return self._of_moments(first, second)

    def _by_component(self, policy: Any, observations: AnyArray) -> FloatArray:
        """Components are independent given the state, so one quadrature for all of them at once has all moments."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        first, second = 0.0, 0.0
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            executed = self._executed(policy.at_noise(observations, node))
            first, second = first + weight * executed, second + weight * executed**2
        return self._of_moments(np.asarray(first), np.asarray(second))

    def _of_moments(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """E ψ of independent components, from their first two moments."""
        u = (first - self.mean) / self.scale
        uu = (second - 2 * self.mean * first + self.mean**2) / self.scale**2
        pairs = [uu[:, i] if i == j else u[:, i] * u[:, j] for i, j in self._pairs]
        return np.stack([np.ones(len(u)), *u.T, *pairs], axis=1)


def _clipped_moments(
    mean: FloatArray, scale: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """E c and E c² of c = clip(N(μ, σ²), l, h), with α = (l − μ)/σ, β = (h − μ)/σ:

    E c = lΦ(α) + h(1 − Φ(β)) + μ(Φ(β) − Φ(α)) + σ(ϕ(α) − ϕ(β)), and likewise for the square.
    """
    from scipy.special import ndtr

    alpha, beta = (low - mean) / scale, (high - mean) / scale
    below, inside, above = ndtr(alpha), ndtr(beta) - ndtr(alpha), ndtr(-beta)
    density_low, density_high = np.exp(-0.5 * alpha**2) / _ROOT_TAU, np.exp(-0.5 * beta**2) / _ROOT_TAU
    floor, top = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
    slope_low = np.where(np.isfinite(alpha), alpha, 0.0) * density_low
    slope_high = np.where(np.isfinite(beta), beta, 0.0) * density_high
    first = floor * below + top * above + mean * inside + scale * (density_low - density_high)
    second = (
        floor**2 * below
        + top**2 * above
        + (mean**2 + scale**2) * inside
        + 2 * mean * scale * (density_low - density_high)
        + scale**2 * (slope_low - slope_high)
    )
    return first, second
