"""What is estimated. The estimand has a name, because the same policy has different values under different ones.

average      R = lim 1/N Σ E r                      the long run; a terminated episode restarts from μ₀
discounted   (1−γ) E Σ γᵗ rₜ  from μ₀               per step; a terminated episode earns nothing more
horizon      1/T E Σ_{t<T} rₜ  from μ₀              per step; likewise
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from mixope.errors import Advice, Setting, UnknownName, UsageError

Kind = Literal["average", "discounted", "horizon"]


@dataclass(frozen=True)
class Estimand:
    """A named quantity of a policy, per step."""

    kind: Kind = "average"
    gamma: float | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UnknownName("estimand", self.kind, get_args(Kind))
        if (self.gamma is not None) != (self.kind == "discounted"):
            raise UsageError(
                "estimand 'discounted' needs gamma (0 < gamma < 1)"
                if self.gamma is None
                else Advice(
                    f"gamma = {self.gamma} was given, but the estimand is {self.kind!r}; say ", _by("discounted")
                )
            )
        if (self.horizon is not None) != (self.kind == "horizon"):
            raise UsageError(
                "estimand 'horizon' needs the number of steps"
                if self.horizon is None
                else Advice(
                    f"horizon = {self.horizon} was given, but the estimand is {self.kind!r}; say ", _by("horizon")
                )
            )
        if self.gamma is not None and not 0.0 < self.gamma < 1.0:
            raise UsageError(
                Advice(f"gamma must lie between 0 and 1, got {self.gamma}; for gamma = 1 use ", _by("average"))
            )
        if self.horizon is not None and self.horizon < 1:
            raise UsageError(f"horizon must be at least 1 step, got {self.horizon}")

    def __str__(self) -> str:
        if self.kind == "discounted":
            return f"discounted (γ = {self.gamma:g})"
        return f"mean of the first {self.horizon} steps" if self.kind == "horizon" else "long-run average"

    @property
    def unit(self) -> str:
        """Every value is per step."""
        return "reward per step"


def _by(kind: Kind) -> Setting:
    return Setting("estimand", kind)
