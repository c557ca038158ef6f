"""One logger left out: what a prediction from the rows of the others is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mixope.base.arrays import FloatArray
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.estimators import Solution
from mixope.estimators.features.problem import FeatureProblem
from mixope.policies import Policy
from mixope.requests.request import Request


@dataclass(frozen=True)
class HeldOut:
    """One logger left out: its policy, and what the others' rows say of it, or why they say nothing.

    ``how`` its policy was had: it is known, counted or fitted. ``scores`` are by episode of the others. ``strange`` is
    the share of its rows whose action nobody else took in that state, where states are counted.
    """

    number: int
    label: str
    how: str
    policy: Policy | None
    estimand: Estimand = field(default_factory=Estimand)
    solution: Solution | None = None
    scores: FloatArray | None = None
    refusal: str = ""
    strange: float = 0.0
    problem: FeatureProblem | None = None


def refuse_whole_episodes(name: str, requests: Sequence[Request]) -> tuple[Any, ...]:
    """Weights of whole episodes see a policy through its own logger's episodes."""
    raise UsageError(
        f"estimator {name!r} needs whole episodes and is not backtested; choose one that solves from transition"
        " counts or moments, such as 'emp', 'dr' or 'bch'"
    )
