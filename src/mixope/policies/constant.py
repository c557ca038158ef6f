"""A policy that does not look at the state: the same action law everywhere."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.errors import DataError
from mixope.policies.actions import ActionSet, UnknownActions, numbered
from mixope.policies.fingerprints import array_bytes, digest
from mixope.policies.probabilities import as_numbers
from mixope.policies.protocol import DiscretePolicy
from mixope.policies.tabular import TabularPolicy


@final
class Constant:
    """π(a|s) = p(a), for every observation of any kind, vectors included."""

    def __init__(self, probabilities: Any, actions: Any = None, *, unknown_actions: UnknownActions = "error") -> None:
        law = as_numbers(probabilities, "probabilities")
        if law.ndim != 1 or len(law) == 0:
            raise DataError("a constant policy is one action law", expected="(A,)", got=f"shape {law.shape}")
        self._actions = ActionSet(numbered(len(law)) if actions is None else actions, unknown_actions)
        if len(self._actions) != len(law):
            raise DataError(
                "the probabilities do not fit their labels",
                expected=f"{len(law)} actions",
                got=f"{len(self._actions)} actions",
            )
        self._law = self._actions.laws(law[None], "probabilities")[0]

    @property
    def actions(self) -> AnyArray:
        """``(A,)``, in the order of the columns."""
        return self._actions.values

    def probs(self, observations: AnyArray) -> FloatArray:
        """The law, once for every observation."""
        return np.tile(self._law, (len(observations), 1))

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log p(a) for every row."""
        law = np.broadcast_to(self._law, (len(observations), len(self._law)))
        return self._actions.log_picked(law, actions)

    def fingerprint(self) -> str:
        """Hash of the law, whatever the order of the actions."""
        order = self._actions.order
        return digest(b"constant", array_bytes(self.actions[order]), array_bytes(self._law[order]))

    def __repr__(self) -> str:
        return f"Constant({len(self._actions)} actions, {self.fingerprint()})"


def uniform(actions: Any, states: Any = None) -> DiscretePolicy:
    """All ``actions`` equally likely: in every state there may be, or only in ``states`` where these are given."""
    count = len(actions)
    if count == 0:
        raise DataError("a uniform policy needs actions", expected="at least one", got="none")
    if states is None:
        return Constant(np.full(count, 1 / count), actions)
    return TabularPolicy(np.full((len(states), count), 1 / count), states, actions)
