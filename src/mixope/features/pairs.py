"""Pairs of state and action as numbers for a learner, and the pairs that a policy would make of a state.

    state        encoded by the roles of its columns (:mod:`mixope.features.encoding`)
    action       one-hot for ids; the executed action (clipped to the box where one is known) in standard units
    under π      K pairs (s, a_k) with shares p_k, so that E_π f(s,a) is Σ p_k f(s, a_k)

The pairs under a policy depend on the state alone, never on the rows beside it: all actions with their probabilities
where there are few, else actions at fixed quantiles of the law; a Gaussian at fixed noises, in opposite pairs. Only of
a policy that can do nothing but draw are they draws, with fixed seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError
from mixope.features.actions import DiscreteActions, QuadraticActions
from mixope.features.encoding import StateEncoding
from mixope.policies import ContinuousPolicy, Policy
from mixope.policies.own_code import asking

MOST_ACTIONS = 12
"""All actions of a law are looked at up to so many."""
DRAWS = 8
"""Pairs per state where not all actions are looked at; even, so that noises come in opposite pairs."""
FARTHEST = 10.0
"""Standardised numbers are clipped at so many standard deviations: a learner must not follow them further."""


@dataclass(frozen=True)
class PairInputs:
    """Encoded states beside encoded actions."""

    states: StateEncoding
    actions: DiscreteActions | QuadraticActions

    @property
    def size(self) -> int:
        """Columns of a pair."""
        return self.states.size + self._components

    @property
    def _components(self) -> int:
        return self.actions.size if isinstance(self.actions, DiscreteActions) else len(self.actions.mean)

    def of(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """The pairs of the rows, shape (n, size), in single precision."""
        known = self.actions
        encoded = known.of(actions) if isinstance(known, DiscreteActions) else _standard(known, actions)
        return _single(np.concatenate([self._states(observations), encoded], axis=1))

    def under(self, policy: Policy, observations: AnyArray) -> tuple[FloatArray, FloatArray]:
        """The pairs that a policy makes of states, shape (n, K, size), and their shares, (n, K)."""
        states = self._states(observations)
        chosen, shares = chosen_by(self.actions, policy, observations)
        repeated = np.broadcast_to(states[:, None, :], (*chosen.shape[:2], states.shape[1]))
        return _single(np.concatenate([repeated, chosen], axis=2)), _single(shares)

    def _states(self, observations: AnyArray) -> FloatArray:
        return np.clip(self.states.transform(observations), -FARTHEST, FARTHEST)


def _standard(actions: QuadraticActions, recorded: AnyArray) -> FloatArray:
    """The executed actions in standard units, no farther than a learner may follow them."""
    return np.clip(actions.standard(recorded), -FARTHEST, FARTHEST)


def chosen_by(
    actions: DiscreteActions | QuadraticActions, policy: Policy, observations: AnyArray
) -> tuple[FloatArray, FloatArray]:
    """Encoded actions of a policy in every state, (n, K, d), and their shares."""
    if isinstance(actions, DiscreteActions):
        return _of_law(actions.under(policy, observations))
    if hasattr(policy, "at_noise"):
        with asking(policy):
            found = [_standard(actions, policy.at_noise(observations, noise)) for noise in _noises(len(actions.mean))]
    elif isinstance(policy, ContinuousPolicy):
        with asking(policy):
            seeds = [np.random.default_rng([actions.seed, k]) for k in range(DRAWS)]
            found = [_standard(actions, policy.sample(observations, seed)) for seed in seeds]
    else:
        raise DataError(
            "the target cannot be drawn from, so that a learned value has no mean over its actions",
            expected="a policy with sample(observations, generator)",
            hint="use a GaussianPolicy, or an estimator without a value model such as 'emp'",
        )
    chosen = np.stack(found, axis=1)
    return chosen, np.full(chosen.shape[:2], 1.0 / len(found))


def _of_law(law: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One-hot actions with their probabilities; at fixed quantiles of the law where there are many."""
    n, width = law.shape
    hot = np.eye(width)
    if width <= MOST_ACTIONS:
        return np.broadcast_to(hot, (n, width, width)), law
    total = law.sum(axis=1, keepdims=True)
    at = np.cumsum(law, axis=1) / np.maximum(total, 1e-300)
    quantiles = (np.arange(DRAWS) + 0.5) / DRAWS
    column = np.minimum((at[:, None, :] < quantiles[None, :, None]).sum(axis=2), width - 1)
    return hot[column], np.broadcast_to(total / DRAWS, (n, DRAWS))


def _noises(size: int) -> FloatArray:
    """Standard normal noises in opposite pairs, each component of variance one over them: the same for all states."""
    half = np.random.default_rng(size).standard_normal((DRAWS // 2, size))
    half /= np.sqrt((half**2).mean(axis=0))
    return np.concatenate([half, -half])


def _single(values: AnyArray) -> FloatArray:
    return np.asarray(values, dtype=np.float32)
