"""Diagnostics: can these logs carry the answer? One list of checks; the verdict is the worst of what they say."""

from collections.abc import Callable

from mixope.diagnostics.agreement import loggers_agree
from mixope.diagnostics.approximation import approximation, correction
from mixope.diagnostics.checks import GRADED, has_interval, known_bias, mean_weight, reward_range, solver
from mixope.diagnostics.coverage import small_gaps
from mixope.diagnostics.evidence import Evidence
from mixope.diagnostics.steadiness import logs_are_steady, value_is_steady
from mixope.diagnostics.verdicts import Diagnostic, Verdict, verdict
from mixope.statistics.episodes import EpisodeSums
from mixope.statistics.transitions import Transitions

CHECKS: tuple[Callable[[Evidence], Diagnostic | tuple[Diagnostic, ...] | None], ...] = (
    *GRADED,
    mean_weight,
    known_bias,
    has_interval,
    reward_range,
    solver,
    lambda evidence: evidence.of_logs,
    value_is_steady,
    small_gaps,
    approximation,
    correction,
)
"""To add a check: a function from evidence to a diagnostic (None where it does not apply), and a line here."""


def check_logs(transitions: Transitions | None, sums: EpisodeSums) -> tuple[Diagnostic, ...]:
    """The checks of the logs themselves, made once per run: do loggers, and do episodes, agree on the world?"""
    agreement = None if transitions is None else loggers_agree(transitions)
    return (*(() if agreement is None else (agreement,)), *logs_are_steady(sums))


def diagnose(evidence: Evidence) -> tuple[Diagnostic, ...]:
    """All checks that apply; a reference line is no estimate of the target and is not judged."""
    if evidence.solution.is_reference:
        return ()
    found: list[Diagnostic] = []
    for check in CHECKS:
        made = check(evidence)
        found += made if isinstance(made, tuple) else () if made is None else (made,)
    return tuple(found)


__all__ = ["CHECKS", "Diagnostic", "Evidence", "Verdict", "check_logs", "diagnose", "verdict"]
