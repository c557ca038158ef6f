"""Diagnostics of one estimate: each goes from facts to a value, a threshold, a status and a sentence.

Most have one shape, a number that should not be too high (or too low), and stand in the table :data:`GRADED`; why the
thresholds are what they are is in docs/trust.md. The verdict is the worst of all: any failure means that the logs do
not support an answer, any warning asks for caution. Checks of the logs themselves are in
:mod:`mixope.diagnostics.agreement` and :mod:`mixope.diagnostics.steadiness`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
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
    held_out: float | None = None
    n_blocks: int | None = None


@dataclass(frozen=True)
class Check:
    """A line of the table: what is measured (None where it does not apply), where it warns and fails, what it says."""

    name: str
    measure: Callable[[Facts], float | None]
    limits: Callable[[Facts], tuple[float, float]]
    sentence: Callable[[Facts], str]
    high_is_bad: bool = True

    def __call__(self, facts: Facts) -> Diagnostic | None:
        """Judge the facts."""
        value = self.measure(facts)
        if value is None:
            return None
        return graded(self.name, value, *self.limits(facts), self.sentence(facts), high_is_bad=self.high_is_bad)


def graded(name: str, value: float, warn: float, fail: float, sentence: str, *, high_is_bad: bool = True) -> Diagnostic:
    """A number against the threshold that it has passed, or the first one."""
    sign = 1.0 if high_is_bad else -1.0
    status: Status = "fail" if sign * (value - fail) > 0 else "warn" if sign * (value - warn) > 0 else "pass"
    return Diagnostic(name, value, fail if status == "fail" else warn, status, sentence)


def _fixed(warn: float, fail: float) -> Callable[[Facts], tuple[float, float]]:
    return lambda facts: (warn, fail)


def _uncovered_limits(facts: Facts) -> tuple[float, float]:
    return (0.05, 0.25) if facts.corrects_coverage else (0.005, 0.10)


def _misfit_limits(facts: Facts) -> tuple[float, float]:
    return (20.0, 200.0) if facts.on_vectors else (4.0, 25.0)  # overlapping features are not independent tests


GRADED: tuple[Check, ...] = (
    Check(
        "effective sample size",  # how many rows of the target's own; a plug-in value weighs nothing
        lambda f: f.effective_sample_size if f.weighs_rows else None,
        _fixed(100, 10),
        lambda f: (
            f"the weighted logs are worth {f.effective_sample_size:,.0f} of {f.n_rows:,.0f} rows"
            f" ({f.effective_sample_size / max(f.n_rows, 1.0):.1%})"
        ),
        high_is_bad=False,
    ),
    Check(
        "uncovered mass",  # target probability on actions never logged where it would be; vectors are not counted
        lambda f: None if f.on_vectors else f.uncovered_mass,
        _uncovered_limits,
        lambda f: (
            f"{f.uncovered_mass:.2%} of the target's steps are actions never logged in their state"
            + (" (the value model on the factors corrects for it as far as they tell)" if f.corrects_coverage else "")
        ),
    ),
    Check(
        "mass outside",  # rows outside the part of the logs that was solved; vectors have no parts
        lambda f: None if f.on_vectors else f.outside_mass,
        _fixed(0.05, 0.5),
        lambda f: f"{f.outside_mass:.2%} of the rows lie outside the part on which the target can be followed",
    ),
    Check(
        "largest weight",  # one row should not decide
        lambda f: f.largest_share,
        _fixed(0.05, 0.25),
        lambda f: f"the heaviest {f.unit_of_weight} carries {f.largest_share or 0.0:.2%} of all weight",
    ),
    Check(
        "leaked mass",  # state–action ratios lose mass where the target takes an action that was not logged
        lambda f: f.leaked_mass,
        _fixed(0.005, 0.10),
        lambda f: f"{f.leaked_mass or 0.0:.2%} of the mass leaks into actions that were never logged",
    ),
    Check(
        "episodes",  # the independent pieces; blocks of steps stand in for them where there are few and long ones
        lambda f: float(f.n_episodes),
        lambda f: (20, 2 if f.n_blocks is None else 1),
        lambda f: (
            f"{f.n_episodes:,} episode{'' if f.n_episodes == 1 else 's'} stand{'s' if f.n_episodes == 1 else ''} behind"
            f" the interval{'' if f.n_blocks is None else f', cut into {f.n_blocks} blocks of steps'}"
            + ("; fewer than 20 make it unreliable" if f.n_episodes < 20 else "")
        ),
        high_is_bad=False,
    ),
    Check(
        "behaviour fit",  # Σ(ρ − 1) standardised, before calibration; counted behaviours fit by construction
        lambda f: f.behaviour_misfit,
        _misfit_limits,
        lambda f: (
            f"the behaviour's probabilities are off by {f.behaviour_misfit or 0.0:.1f} standard deviations before"
            " calibration"
            + ("; they may belong to another policy" if (f.behaviour_misfit or 0.0) > _misfit_limits(f)[0] else "")
        ),
    ),
    Check(
        "held-out stationarity",  # the ratio of some episodes on the flow of the others, in the direction of the value
        lambda f: f.held_out,
        _fixed(3.0, 10.0),
        lambda f: (
            "a ratio from other episodes leaves the flow of those held out unbalanced by"
            f" {f.held_out or 0.0:.1f} standard deviations"
        ),
    ),
)


def mean_weight(facts: Facts) -> Diagnostic | None:
    """Weights that are right average to one; ratios on counts do by construction."""
    if facts.mean_weight is None:
        return None
    off = abs(facts.mean_weight - 1.0)
    found = graded(
        "mean weight", off, 0.2, 0.5, f"importance weights average {facts.mean_weight:.3g}; right ones average 1"
    )
    return replace(found, value=facts.mean_weight)


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


def solver(facts: Facts) -> Diagnostic:
    """Whether the equations were solved."""
    return Diagnostic("solver", facts.residual, 1e-8, "pass" if facts.solver_ok else "warn", facts.solver_message)


CHECKS: tuple[Callable[[Facts], Diagnostic | None], ...] = (*GRADED, mean_weight, known_bias, reward_range, solver)


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
