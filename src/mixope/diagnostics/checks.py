"""Diagnostics: small functions from facts about an estimate to value, threshold, status and a sentence.

The verdict is the worst of them: any failure means the logs do not support an answer, any warning asks for caution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Literal

Status = Literal["pass", "warn", "fail"]


class Verdict(Enum):
    """Whether the number can be used."""

    TRUSTWORTHY = "trustworthy"
    CAUTION = "caution"
    UNSUPPORTED = "not supported by these logs"
    REFERENCE = "reference only"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Diagnostic:
    """One check: what was measured, where it starts to matter, how it came out, in words."""

    name: str
    value: float
    threshold: float
    status: Status
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Facts:
    """What the checks look at."""

    value: float
    effective_sample_size: float
    uncovered_mass: float
    outside_mass: float
    largest_share: float | None
    mean_weight: float | None
    leaked_mass: float | None
    n_rows: float
    n_episodes: int
    lowest_reward: float
    highest_reward: float
    behaviour_misfit: float | None
    solver_ok: bool
    solver_message: str
    residual: float
    corrects_coverage: bool
    weighs_rows: bool = True
    known_bias: str | None = None
    unit_of_weight: str = "row"
    on_vectors: bool = False
    is_reference: bool = False
    n_blocks: int | None = None


def _graded(name: str, value: float, warn: float, fail: float, sentence: str, *, high_is_bad: bool) -> Diagnostic:
    sign = 1.0 if high_is_bad else -1.0
    status: Status = "fail" if sign * (value - fail) > 0 else "warn" if sign * (value - warn) > 0 else "pass"
    return Diagnostic(name, value, fail if status == "fail" else warn, status, sentence)


def effective_sample_size(facts: Facts) -> Diagnostic | None:
    """How many rows of the target's own the weighted rows are worth; a plug-in value weighs nothing."""
    if not facts.weighs_rows:
        return None
    share = facts.effective_sample_size / max(facts.n_rows, 1.0)
    return _graded(
        "effective sample size",
        facts.effective_sample_size,
        100,
        10,
        f"the weighted logs are worth {facts.effective_sample_size:,.0f} of {facts.n_rows:,.0f} rows ({share:.1%})",
        high_is_bad=False,
    )


def uncovered_mass(facts: Facts) -> Diagnostic | None:
    """Target probability on actions never logged where it would be; nothing is counted on vectors."""
    if facts.on_vectors:
        return None
    cured = " (the value model on the factors corrects for it as far as they tell)" if facts.corrects_coverage else ""
    warn, fail = (0.05, 0.25) if facts.corrects_coverage else (0.005, 0.10)
    return _graded(
        "uncovered mass",
        facts.uncovered_mass,
        warn,
        fail,
        f"{facts.uncovered_mass:.2%} of the target's steps are actions never logged in their state{cured}",
        high_is_bad=True,
    )


def outside_mass(facts: Facts) -> Diagnostic | None:
    """Rows outside the part of the logs that was solved; vectors have no parts."""
    if facts.on_vectors:
        return None
    return _graded(
        "mass outside",
        facts.outside_mass,
        0.05,
        0.5,
        f"{facts.outside_mass:.2%} of the rows lie outside the part on which the target can be followed",
        high_is_bad=True,
    )


def largest_share(facts: Facts) -> Diagnostic | None:
    """One row should not decide."""
    if facts.largest_share is None:
        return None
    return _graded(
        "largest weight",
        facts.largest_share,
        0.05,
        0.25,
        f"the heaviest {facts.unit_of_weight} carries {facts.largest_share:.2%} of all weight",
        high_is_bad=True,
    )


def mean_weight(facts: Facts) -> Diagnostic | None:
    """Weights that are right average to one; self-normalised ones do by construction."""
    if facts.mean_weight is None:
        return None
    off = abs(facts.mean_weight - 1.0)
    return Diagnostic(
        "mean weight",
        facts.mean_weight,
        0.5 if off > 0.5 else 0.2,
        "fail" if off > 0.5 else "warn" if off > 0.2 else "pass",
        f"importance weights average {facts.mean_weight:.3g}; right ones average 1",
    )


def leaked_mass(facts: Facts) -> Diagnostic | None:
    """State–action ratios lose mass where the target takes an action that was not logged."""
    if facts.leaked_mass is None:
        return None
    return _graded(
        "leaked mass",
        facts.leaked_mass,
        0.005,
        0.10,
        f"{facts.leaked_mass:.2%} of the mass leaks into actions that were never logged",
        high_is_bad=True,
    )


def known_bias(facts: Facts) -> Diagnostic | None:
    """A method that is known to be biased on logs like these."""
    if facts.known_bias is None:
        return None
    return Diagnostic("known bias", 1.0, 0.0, "warn", facts.known_bias)


def reward_range(facts: Facts) -> Diagnostic:
    """A mean of rewards lies among the rewards."""
    slack = 1e-9 * max(abs(facts.lowest_reward), abs(facts.highest_reward), 1.0)
    inside = facts.lowest_reward - slack <= facts.value <= facts.highest_reward + slack
    where = "lies inside" if inside else "lies OUTSIDE"
    return Diagnostic(
        "reward range",
        facts.value,
        facts.highest_reward if facts.value > facts.highest_reward else facts.lowest_reward,
        "pass" if inside else "fail",
        f"the value {where} the logged rewards, {facts.lowest_reward:g} to {facts.highest_reward:g}",
    )


def episodes(facts: Facts) -> Diagnostic:
    """Episodes are the independent pieces."""
    return _graded(
        "episodes",
        float(facts.n_episodes),
        20,
        2 if facts.n_blocks is None else 1,
        f"{facts.n_episodes:,} episodes stand behind the interval"
        + ("; fewer than 20 make it unreliable" if facts.n_episodes < 20 else ""),
        high_is_bad=False,
    )


def behaviour_misfit(facts: Facts) -> Diagnostic | None:
    """Σ(ρ − 1) at every state, standardised, before calibration; counted behaviours fit by construction."""
    if facts.behaviour_misfit is None:
        return None
    warn, fail = (20.0, 200.0) if facts.on_vectors else (4.0, 25.0)  # overlapping features are not independent tests
    return _graded(
        "behaviour fit",
        facts.behaviour_misfit,
        warn,
        fail,
        f"the behaviour's probabilities are off by {facts.behaviour_misfit:.1f} standard deviations before calibration"
        + ("; they may belong to another policy" if facts.behaviour_misfit > warn else ""),
        high_is_bad=True,
    )


def solver(facts: Facts) -> Diagnostic:
    """Whether the equations were solved."""
    return Diagnostic("solver", facts.residual, 1e-8, "pass" if facts.solver_ok else "warn", facts.solver_message)


CHECKS: tuple[Callable[[Facts], Diagnostic | None], ...] = (
    effective_sample_size,
    uncovered_mass,
    outside_mass,
    largest_share,
    mean_weight,
    leaked_mass,
    known_bias,
    reward_range,
    episodes,
    behaviour_misfit,
    solver,
)


def diagnose(facts: Facts) -> tuple[Diagnostic, ...]:
    """All checks; the logged mean is no estimate of the target and is not judged."""
    found = () if facts.is_reference else tuple(check(facts) for check in CHECKS)
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def verdict(diagnostics: tuple[Diagnostic, ...]) -> Verdict:
    """The worst of them; what was not judged is a reference line."""
    if not diagnostics:
        return Verdict.REFERENCE
    statuses = {d.status for d in diagnostics}
    if "fail" in statuses:
        return Verdict.UNSUPPORTED
    return Verdict.CAUTION if "warn" in statuses else Verdict.TRUSTWORTHY
