"""The question put to an estimator: encoded logs, the target's probabilities, the estimand, the loggers known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mixope.arrays import AnyArray, FloatArray, IntArray
from mixope.errors import DataError, UsageError
from mixope.estimand import Estimand
from mixope.policies.protocol import DiscretePolicy, Policy
from mixope.statistics.transitions import Transitions


@dataclass(frozen=True)
class Problem:
    """Everything an estimator may look at; it never opens a file."""

    transitions: Transitions
    target: Policy
    estimand: Estimand = field(default_factory=Estimand)
    loggers: Mapping[str, Policy] = field(default_factory=dict)
    start_law: FloatArray | None = None
    seed: int = 0

    @cached_property
    def pair_target(self) -> FloatArray:
        """π(a|s) on the logged pairs."""
        return pair_probabilities(self.target, self.transitions, "the target")

    @cached_property
    def state_target(self) -> FloatArray:
        """π(a|s) for every state and every logged action: shape (states, actions)."""
        return state_probabilities(self.target, self.transitions)

    def on_groups(self, groups: IntArray) -> Problem:
        """The same question on a part of the groups; states keep their numbers."""
        return replace(self, transitions=restrict(self.transitions, groups))

    def known_logger(self, label: str) -> Policy:
        """A logger's policy, or an error that says how to give it."""
        if label not in self.loggers:
            raise UsageError(
                f"the policy of logger {label!r} is not known. Give it with loggers={{{label!r}: policy}} (or --logger"
                f" {label}=file), or choose an estimator that does not need it, such as 'emp'"
            )
        return self.loggers[label]

    @property
    def starts(self) -> FloatArray:
        """μ₀: given, or the first observations of the logs."""
        if self.start_law is not None:
            return self.start_law
        law = self.transitions.start_law
        if law.sum() == 0:
            raise DataError(
                "no first observation is known, so there is no start law",
                expected="episodes whose first step is in the logs",
                hint="use estimand='average' on logs without terminated rows, or log the first steps",
            )
        return law


def restrict(transitions: Transitions, groups: IntArray) -> Transitions:
    """Only some groups; states, actions and loggers keep their numbers."""
    arrays = {name: value[groups] for name in _GROUP_ARRAYS if (value := getattr(transitions, name)) is not None}
    return replace(transitions, **arrays)


_GROUP_ARRAYS = (
    "logger",
    "state",
    "action",
    "next_state",
    "rows",
    "reward",
    "lowest",
    "highest",
    "starts",
    "inverse",
    "inverse_reward",
    "inverse_squared",
)


def pair_probabilities(policy: Policy, transitions: Transitions, who: str) -> FloatArray:
    """π(a|s) of a policy on the logged pairs, checked."""
    observations = transitions.observations[transitions.pair_state]
    with np.errstate(over="ignore"):
        values = np.exp(policy.log_prob(observations, transitions.actions[transitions.pair_action]))
    if values.shape != (transitions.n_pairs,) or not np.all(np.isfinite(values)):
        raise DataError(
            f"{who} did not give one log-probability for each of {transitions.n_pairs} (state, action) pairs",
            expected=f"shape ({transitions.n_pairs},), finite or −inf",
            got=f"shape {values.shape}",
        )
    return np.asarray(values, dtype=np.float64)


def state_probabilities(policy: Policy, transitions: Transitions) -> FloatArray:
    """π(a|s) of a policy in all states for the logged actions."""
    if isinstance(policy, DiscretePolicy):
        probabilities = policy.probs(transitions.observations)
        return align_actions(probabilities, policy.actions, transitions.actions)
    n, k = transitions.n_states, len(transitions.actions)
    observations = np.repeat(transitions.observations, k, axis=0)
    return np.exp(policy.log_prob(observations, np.tile(transitions.actions, n))).reshape(n, k)


def align_actions(probabilities: FloatArray, have: AnyArray, want: AnyArray) -> FloatArray:
    """Columns of ``probabilities`` in the order of ``want``; zero for actions the policy does not have."""
    position = {value: i for i, value in enumerate(have.tolist())}
    result = np.zeros((len(probabilities), len(want)))
    for column, value in enumerate(want.tolist()):
        if value in position:
            result[:, column] = probabilities[:, position[value]]
    return result
