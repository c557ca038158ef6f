"""Policies made of policies, for any discrete ones.

:class:`Mixture` draws a policy with probability w_k before every action: π(a|s) = Σ_k w_k π_k(a|s).
:class:`Softened` explores: π_ε(a|s) = (1 − ε) π(a|s) + ε / A.
Columns are aligned by the value of the action, not its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray, is_number
from mixope.base.errors import DataError, UsageError
from mixope.policies.fingerprints import digest
from mixope.policies.keys import listed
from mixope.policies.laws import ActionSet, as_numbers, check_laws, log
from mixope.policies.protocol import DiscretePolicy


@final
class Mixture:
    """Σ_k w_k π_k. ``weights`` sum to one; equal ones if absent. A policy of weight 0 is left out."""

    def __init__(self, policies: Sequence[DiscretePolicy], weights: Any = None) -> None:
        if len(policies) == 0:
            raise UsageError("a mixture needs at least one policy, got none")
        for position, policy in enumerate(policies):
            _check_discrete(policy, f"policy {position} of the mixture")
        law = _check_weights(weights, len(policies))
        self._actions = ActionSet(policies[0].actions)
        orders = [_align(self._actions, policy, position) for position, policy in enumerate(policies)]
        self._parts = [part for part in zip(law.tolist(), policies, orders, strict=True) if part[0] > 0]

    @property
    def actions(self) -> AnyArray:
        """The actions of the first policy, in its order."""
        return self._actions.values

    @property
    def weights(self) -> FloatArray:
        """Weights of the policies that take part."""
        return np.array([weight for weight, _, _ in self._parts])

    def probs(self, observations: AnyArray) -> FloatArray:
        """Σ_k w_k π_k(·|s) for every row."""
        total = np.zeros((len(observations), len(self._actions)))
        for weight, policy, order in self._parts:
            total += weight * policy.probs(observations)[:, order]
        return total

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log Σ_k w_k π_k(a|s), summed in the log domain; each policy treats unknown actions its own way."""
        total = np.full(len(observations), -np.inf)
        for weight, policy, _ in self._parts:
            total = np.logaddexp(total, np.log(weight) + policy.log_prob(observations, actions))
        capped: FloatArray = np.minimum(total, 0.0)
        return capped

    def fingerprint(self) -> str:
        """Hash of weights and policies, in any order."""
        return digest(
            b"mixture", *sorted(f"{weight!r} {part.fingerprint()}".encode() for weight, part, _ in self._parts)
        )

    def __repr__(self) -> str:
        return f"Mixture({len(self._parts)} policies, {self.fingerprint()})"


@final
class Softened:
    """(1 − ε) π + ε · uniform over the actions of π."""

    def __init__(self, policy: DiscretePolicy, epsilon: float) -> None:
        _check_discrete(policy, "the policy to soften")
        if not is_number(epsilon) or not 0 <= epsilon <= 1:
            raise UsageError(f"epsilon is the probability of a uniform action: expected 0 … 1, got {epsilon!r}")
        self._policy, self._epsilon = policy, float(epsilon)
        # The policy underneath decides whether unknown actions are errors; here they get no share of the uniform part.
        self._known = ActionSet(policy.actions, unknown="zero")

    @property
    def actions(self) -> AnyArray:
        """Those of the policy underneath."""
        return self._known.values

    def probs(self, observations: AnyArray) -> FloatArray:
        """(1 − ε) π(·|s) + ε / A for every row."""
        return (1 - self._epsilon) * self._policy.probs(observations) + self._epsilon / len(self._known)

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log of the softened probability; −inf for actions that the policy underneath counts as zero."""
        sharp = np.exp(self._policy.log_prob(observations, actions))
        soft = (1 - self._epsilon) * sharp + self._epsilon / len(self._known)
        return log(np.where(self._known.columns(actions) >= 0, soft, 0.0))

    def fingerprint(self) -> str:
        """Hash of ε and of the policy underneath."""
        return digest(b"softened", repr(self._epsilon).encode(), self._policy.fingerprint().encode())

    def __repr__(self) -> str:
        return f"Softened({self._policy!r}, epsilon={self._epsilon:g})"


def _check_discrete(policy: object, what: str) -> None:
    if not isinstance(policy, DiscretePolicy):
        raise UsageError(
            f"{what} has no finite set of actions: expected a policy with probs() and actions, "
            f"got {type(policy).__name__}. "
            "A callable becomes one with CallablePolicy(function, actions=[...])."
        )


def _check_weights(weights: Any, count: int) -> FloatArray:
    if weights is None:
        return np.full(count, 1 / count)
    law = as_numbers(weights, "weights")
    if law.shape != (count,):
        raise DataError("the weights do not fit the policies", expected=f"{count} weights", got=f"shape {law.shape}")
    checked: FloatArray = check_laws(law[None], "weights", lambda rows: ["the mixture" for _ in rows])[0]
    return checked


def _align(actions: ActionSet, policy: DiscretePolicy, position: int) -> IntArray:
    """Columns of ``policy`` in the order of ``actions``."""
    theirs = ActionSet(policy.actions, unknown="zero")
    order = theirs.columns(actions.values)
    if len(theirs) == len(actions) and (order >= 0).all():
        return order
    ours, other = set(actions.values.tolist()), set(theirs.values.tolist())
    raise DataError(
        f"policies 0 and {position} of the mixture have different actions",
        expected=f"the actions {listed(actions.values)}",
        got=f"missing {listed(sorted(ours - other)) or 'none'}; besides {listed(sorted(other - ours)) or 'none'}",
        hint="give every policy the same actions, with probability 0 where it never takes one",
    )
