"""What is estimated. The estimand has a name, because the same policy has different values under different ones.

average      R = lim 1/N Σ E r                      per step; the long run of a process that starts again after an end
discounted   (1−γ) E Σ γᵗ rₜ  from μ₀               per step; an end is final, and earns nothing from there on
horizon      1/T E Σ_{t<T} rₜ  from μ₀              per step; likewise
episode      E Σ γᵗ rₜ  from μ₀ until the end       per episode, not divided by its length; γ is 1 unless it is given

**What an end means** is said here and nowhere else, by :attr:`Estimand.restarts`. A row that is *terminated* ended its
episode: either the process starts again from μ₀ in no time, so that V(s′) is E_μ₀ V and the mass that ends flows back
to μ₀ (the average), or the end is absorbing, so that V(s′) is 0, the mass that ends is gone, weights that are right
average the mass that is left rather than one, and 0 is among the rewards that can be earned (all others). A row that
is *truncated* ended nothing: somebody stopped recording, and its next state is like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from mixope.base.arrays import is_number, is_whole
from mixope.base.errors import Advice, Setting, UnknownName, UsageError

Kind = Literal["average", "discounted", "horizon", "episode"]
NEARLY_ONE = 1.0 - 1e-5
"""The discount under which a value from the starts stands for a long run that depends on them."""
LONGEST = 2**53
"""Steps beyond which floats no longer tell one number from the next."""


@dataclass(frozen=True)
class Estimand:
    """A named quantity of a policy, per step or per episode."""

    kind: Kind = "average"
    gamma: float | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UnknownName("estimand", self.kind, get_args(Kind))
        if self.gamma is not None and not is_number(self.gamma):
            raise UsageError(f"gamma is a number, got {self.gamma!r}")
        if self.horizon is not None and not is_whole(self.horizon):
            raise UsageError(f"horizon is a whole number of steps, got {self.horizon!r}")
        if self.gamma is None and self.kind == "discounted":
            said = "estimand 'discounted' needs gamma (0 < gamma < 1): add "
            raise UsageError(Advice(said, Setting("gamma", 0.99)))
        if self.gamma is not None and self.kind not in ("discounted", "episode"):
            said = f"gamma = {self.gamma} was given, but the estimand is {self.kind!r}; say "
            raise UsageError(Advice(said, _by("discounted"), " or ", _by("episode")))
        if (self.horizon is not None) != (self.kind == "horizon"):
            raise UsageError(
                "estimand 'horizon' needs the number of steps"
                if self.horizon is None
                else Advice(
                    f"horizon = {self.horizon} was given, but the estimand is {self.kind!r}; say ", _by("horizon")
                )
            )
        self._check_gamma()
        if self.horizon is not None and not (is_whole(self.horizon) and 1 <= self.horizon <= LONGEST):
            raise UsageError(
                f"horizon must be a whole number, at least 1 step and at most {LONGEST:,}, got {self.horizon!r}"
            )

    def _check_gamma(self) -> None:
        gamma = self.discount
        if not is_number(gamma):
            raise UsageError(f"gamma must be a number between 0 and 1, got {gamma!r}")
        if self.kind == "episode" and not 0.0 < gamma <= 1.0:
            raise UsageError(f"gamma must be above 0 and at most 1, got {gamma}")
        if self.kind == "discounted" and not 0.0 < gamma < 1.0:
            said = f"gamma must lie between 0 and 1, got {gamma}; for gamma = 1 use "
            raise UsageError(Advice(said, _by("average"), " (per step) or ", _by("episode"), " (until the end)"))

    def __str__(self) -> str:
        if self.kind == "discounted":
            return f"discounted (γ = {self.gamma:g})"
        if self.kind == "episode":
            discounted = "" if self.discount == 1.0 else f" (discounted, γ = {self.gamma:g})"
            return f"total of an episode{discounted}"
        return f"mean of the first {self.horizon} steps" if self.kind == "horizon" else "long-run average"

    @property
    def unit(self) -> str:
        """Per step, or per episode."""
        return "reward per episode" if self.kind == "episode" else "reward per step"

    @property
    def restarts(self) -> bool:
        """Whether an end leads back to μ₀; if not, it is absorbing and earns nothing from there on."""
        return self.kind == "average"

    @property
    def sums(self) -> bool:
        """Whether it is the sum of γᵗ rₜ over all steps, times :attr:`scale`: one linear system in γ."""
        return self.kind in ("discounted", "episode")

    @property
    def discount(self) -> float:
        """γ; 1 where later rewards count in full."""
        return 1.0 if self.gamma is None else self.gamma

    @property
    def scale(self) -> float:
        """What a sum of (discounted) rewards from μ₀ is multiplied by."""
        if self.kind == "discounted":
            return 1.0 - self.discount
        return 1.0 / self.horizon if self.horizon is not None else 1.0

    @property
    def forever(self) -> float:
        """What a reward of one at every step, without an end, is worth."""
        return self.scale / (1.0 - self.discount) if self.sums and self.discount < 1.0 else 1.0

    @property
    def needs_ends(self) -> bool:
        """Whether the sum is finite only if the target comes to an end."""
        return self.kind == "episode" and self.discount == 1.0


def _by(kind: Kind) -> Setting:
    return Setting("estimand", kind)
