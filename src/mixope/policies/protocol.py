"""What a policy is: something that answers, in batch, how likely an action is in a state.

Observations come as the logs have them: ``(n,)`` ids (integers or strings), ``(n, k)`` factors (integers, or objects
where a factor is a string), or ``(n, d)`` floats for vectors. Actions come as ``(n,)`` ids or ``(n, d)`` floats.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray


@runtime_checkable
class Policy(Protocol):
    """The one thing every estimator needs of a policy."""

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for every row; −inf where the policy never acts so."""
        ...

    def fingerprint(self) -> str:
        """A short hash of what the policy does, so that results can name it and statistics of strangers never mix."""
        ...


@runtime_checkable
class DiscretePolicy(Policy, Protocol):
    """A policy with finitely many actions."""

    @property
    def actions(self) -> AnyArray:
        """The actions the policy knows, in the order of the columns of :meth:`probs`."""
        ...

    def probs(self, observations: AnyArray) -> FloatArray:
        """π(·|s) for every row: shape ``(n, len(actions))``, rows sum to one."""
        ...


@runtime_checkable
class ContinuousPolicy(Policy, Protocol):
    """A policy over real vectors."""

    def sample(self, observations: AnyArray, generator: np.random.Generator) -> FloatArray:
        """One action for every row."""
        ...
