"""Trained models of reinforcement-learning libraries as policies, once an adapter has found out how to ask them.

A model that draws its actions has the law that it draws from. One that always takes its best action has none that logs
of others could support: it needs an ``epsilon`` (finitely many actions) or a ``scale`` (real ones), and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mixope.adapters.networks import Network, NetworkMoment, check_law, normal_policy
from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import Advice, Setting, UsageError
from mixope.policies.callables import DiscreteCallablePolicy
from mixope.policies.combinations import Softened
from mixope.policies.gaussian import Law
from mixope.policies.laws import UnknownActions
from mixope.policies.protocol import Policy


class TrainedModel(Network, Protocol):
    """A trained model; ``answers`` knows probabilities, or means and standard deviations before any squashing."""

    @property
    def stochastic(self) -> bool:
        """Whether it draws its actions."""
        ...

    @property
    def squashes(self) -> bool:
        """Whether what it draws is tanh of a Gaussian."""
        ...

    def greedy(self, observations: AnyArray) -> FloatArray:
        """The best action of every row: its number (n,), or the action itself (n, d)."""
        ...


@dataclass(frozen=True, eq=False)
class ModelLaws:
    """Observations in, action laws out: those of the model, or all on the best action."""

    model: TrainedModel
    n_actions: int

    def __call__(self, observations: AnyArray) -> FloatArray:
        """Shape (n, A), in double precision."""
        if not self.model.stochastic:
            return np.asarray(np.eye(self.n_actions)[self.model.greedy(observations).astype(np.int64)])
        (laws,) = self.model.answers("probabilities", observations)
        return np.asarray(laws / laws.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class BestAction:
    """Observations in, the action of a deterministic model out."""

    model: TrainedModel

    def __call__(self, observations: AnyArray) -> FloatArray:
        """Shape (n, d)."""
        return self.model.greedy(observations)


def discrete_model(model: TrainedModel, actions: AnyArray, epsilon: float | None, unknown: UnknownActions) -> Policy:
    """A model with finitely many actions; a greedy one needs an epsilon."""
    policy = DiscreteCallablePolicy(ModelLaws(model, len(actions)), actions, unknown_actions=unknown)
    if epsilon is None and not model.stochastic:
        asked = f"{model.where} always takes its best action; say how it explores: "
        raise UsageError(Advice(asked, Setting("epsilon", 0.05), ", or 0 for the greedy policy itself"))
    return policy if epsilon is None else Softened(policy, epsilon)


def continuous_model(model: TrainedModel, low: Any, high: Any, scale: Any, law: Law | None) -> Policy:
    """A model over real actions in a box; a deterministic one needs a scale. Plain Gaussians are recorded clipped."""
    boxed = bool(np.isfinite(low).all() and np.isfinite(high).all())
    bottom, top = (np.asarray(edge, dtype=np.float64) if boxed else None for edge in (low, high))
    if law is not None:
        check_law(law)
    recorded: Law = law or ("clipped" if boxed else "plain")
    if model.stochastic:
        refuse_given(model, scale=scale)
        if model.squashes:
            refuse_given(model, law=law)
            recorded = "squashed"
        return normal_policy(
            NetworkMoment(model, "mean_std", 0), NetworkMoment(model, "mean_std", 1), bottom, top, recorded
        )
    if scale is None:
        asked = f"{model.where} takes one action in a state, and a deterministic policy has no density; "
        raise UsageError(Advice(asked, Setting("scale"), " gives the standard deviation of a Gaussian around it"))
    return normal_policy(BestAction(model), scale, bottom, top, recorded)


def refuse_given(model: TrainedModel, **options: Any) -> None:
    """Options that the model has no use for."""
    needless = [name for name, value in options.items() if value is not None]
    if needless:
        raise UsageError(f"{needless[0]} is not for {model.where}, whose law leaves nothing of that kind to say")
