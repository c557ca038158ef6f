"""What networks give, in words that do not depend on who runs them, and the policies made of it.

    probabilities   (n, A)  the action laws                     logits        (n, A)  their logarithms up to a constant
    mean_std        (n, d) and (n, d), or (n, 2d)               mean_log_std  the same with log σ

:mod:`~mixope.adapters.onnx` and :mod:`~mixope.adapters.torch` run networks; what they answer under one
of these meanings becomes a discrete policy or a Gaussian one here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError, UnknownName, UsageError
from mixope.policies.callables import CallablePolicy
from mixope.policies.gaussian import GaussianPolicy, Law, Map, SquashedGaussianPolicy
from mixope.policies.laws import UnknownActions, numbered
from mixope.policies.protocol import Policy
from mixope.policies.sklearn_adapter import rounded_laws

OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "probabilities": ("probabilities",),
    "logits": ("logits",),
    "mean_std": ("mean", "std"),
    "mean_log_std": ("mean", "log_std"),
}
LAWS = ("plain", "clipped", "squashed")


class Network(Protocol):
    """Whatever runs a network."""

    @property
    def where(self) -> str:
        """What to call it in errors."""
        ...

    def answers(self, meaning: str, observations: AnyArray) -> list[FloatArray]:
        """The one or two outputs of a meaning, in double precision, with a row per observation."""
        ...


@dataclass(frozen=True)
class NetworkDistribution:
    """Observations in, action laws out."""

    network: Network
    meaning: str

    def __call__(self, observations: AnyArray) -> FloatArray:
        """Shape (n, A)."""
        (answer,) = self.network.answers(self.meaning, observations)
        if self.meaning == "probabilities" or answer.ndim != 2:
            return rounded_laws(answer)
        from scipy.special import softmax

        return np.asarray(softmax(answer, axis=1), dtype=np.float64)


@dataclass(frozen=True)
class NetworkMoment:
    """Observations in, the mean (0) or the scale (1) out."""

    network: Network
    meaning: str
    which: int

    def __call__(self, observations: AnyArray) -> FloatArray:
        """Shape (n, d)."""
        answers = self.network.answers(self.meaning, observations)
        answer = answers[self.which] if len(answers) == 2 else _half(answers[0], self.which, self.network.where)
        return np.exp(answer) if self.which == 1 and self.meaning == "mean_log_std" else answer


def is_discrete(meaning: str) -> bool:
    """Whether outputs of this meaning are about finitely many actions."""
    return meaning in ("probabilities", "logits")


def check_meaning(outputs: str | None) -> None:
    """A word of ``OUTPUTS``, or nothing."""
    if outputs is not None and outputs not in OUTPUTS:
        raise UnknownName("kind of network outputs", outputs, OUTPUTS)


def network_policy(
    network: Network,
    meaning: str,
    width: int | None,
    *,
    actions: Any = None,
    unknown_actions: UnknownActions = "error",
    low: Any = None,
    high: Any = None,
    law: Law = "plain",
) -> Policy:
    """The policy of a network whose outputs have this meaning; ``width`` is the number of actions where none are named.

    The other options are those of :func:`~mixope.adapters.onnx.onnx_policy`.
    """
    check_law(law)
    if is_discrete(meaning):
        if low is not None or high is not None or law != "plain":
            raise UsageError(f"low, high and law are for continuous policies; the network gives {meaning}")
        labels = actions if actions is not None or width is None else numbered(width)
        return CallablePolicy(NetworkDistribution(network, meaning), labels, unknown_actions=unknown_actions)
    if actions is not None or unknown_actions != "error":
        raise UsageError(f"actions and unknown_actions are for discrete policies; the network gives {meaning}")
    return normal_policy(NetworkMoment(network, meaning, 0), NetworkMoment(network, meaning, 1), low, high, law)


def check_law(law: str) -> None:
    """A word of ``LAWS``."""
    if law not in LAWS:
        raise UnknownName("law", law, LAWS)


def normal_policy(mean: Map, scale: Any, low: Any, high: Any, law: Law) -> Policy:
    """A Gaussian under the law by which its actions were recorded; squashed ones lie within ±1 if there is no box."""
    if law == "squashed":
        return SquashedGaussianPolicy(mean, scale, low=-1.0 if low is None else low, high=1.0 if high is None else high)
    return GaussianPolicy(mean, scale, low=low, high=high, clipped=law == "clipped")


def _half(answer: FloatArray, which: int, where: str) -> FloatArray:
    if answer.ndim != 2 or answer.shape[1] % 2:
        raise DataError(
            "a single output must hold means and scales side by side",
            where=where,
            expected="an even number of columns",
            got=f"shape {answer.shape}",
        )
    return np.split(answer, 2, axis=1)[which]
