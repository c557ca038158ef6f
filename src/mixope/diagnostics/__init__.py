"""Diagnostics: can these logs carry the answer? One list of checks; the verdict is the worst of what they say."""

from collections.abc import Callable, Iterator

from mixope.diagnostics.absorbing import absorbing_states
from mixope.diagnostics.agreement import halves_agree, loggers_agree
from mixope.diagnostics.approximation import approximation, correction
from mixope.diagnostics.checks import GRADED, has_interval, known_bias, mean_weight, reward_range, rewards_seen, solver
from mixope.diagnostics.coverage import small_gaps
from mixope.diagnostics.deciding import few_decide, rare_ends
from mixope.diagnostics.dropped import dropped_rows, judge_dropped
from mixope.diagnostics.ends import ends_at_a_limit, ends_over_steps, lengths_fit, unmarked_stops
from mixope.diagnostics.evidence import Evidence
from mixope.diagnostics.known_policies import loggers_fit
from mixope.diagnostics.odd_rewards import rewards_are_real
from mixope.diagnostics.order import rewards_in_step
from mixope.diagnostics.repeats import episodes_are_new
from mixope.diagnostics.steadiness import logs_are_steady, value_is_steady
from mixope.diagnostics.verdicts import Diagnostic, Verdict, verdict
from mixope.statistics.episodes import EpisodeSums
from mixope.statistics.shifts import reward_shifts
from mixope.statistics.transitions import Transitions, transition_cells

CHECKS: tuple[Callable[[Evidence], Diagnostic | tuple[Diagnostic, ...] | None], ...] = (
    *GRADED,
    loggers_fit,
    mean_weight,
    known_bias,
    has_interval,
    rewards_seen,
    reward_range,
    solver,
    dropped_rows,
    unmarked_stops,
    lambda evidence: evidence.of_logs,
    value_is_steady,
    absorbing_states,
    few_decide,
    rare_ends,
    small_gaps,
    approximation,
    correction,
)
"""To add a check: a function from evidence to a diagnostic (None where it does not apply), and a line here."""


def check_logs(transitions: Transitions | None, sums: EpisodeSums) -> tuple[Diagnostic, ...]:
    """The checks of the logs themselves, made once per run: do loggers, episodes and rewards agree on the world?"""
    found = [*logs_are_steady(sums)]
    of_sample = ends_at_a_limit(sums.limit), None if sums.shifts is None else rewards_in_step(sums.shifts)
    found += [check for check in of_sample if check is not None]
    found += () if sums.odd is None else rewards_are_real(sums.odd)
    if transitions is not None:
        found += [check for check in _of_counts(transitions, sums) if check is not None]
    repeats = None if sums.repeats is None else episodes_are_new(sums.repeats)
    return (*found, *(() if repeats is None else (repeats,)))


def _of_counts(transitions: Transitions, sums: EpisodeSums) -> Iterator[Diagnostic | None]:
    """What counts tell, and what rows in their order do where there are not too many."""
    yield loggers_agree(transitions)
    yield lengths_fit(transitions, sums.totals)
    if sums.ordered is not None:
        yield halves_agree(transitions, sums.ordered, sums.totals.logger)
        yield ends_over_steps(transitions, sums.ordered)
        yield rewards_in_step(reward_shifts(sums.ordered, transition_cells(transitions)))


def diagnose(evidence: Evidence) -> tuple[Diagnostic, ...]:
    """All checks that apply; a reference line is no estimate of the target and is not judged."""
    if evidence.solution.is_reference:
        return ()
    found: list[Diagnostic] = []
    for check in CHECKS:
        made = check(evidence)
        found += made if isinstance(made, tuple) else () if made is None else (made,)
    return tuple(found)


__all__ = [
    "CHECKS",
    "Diagnostic",
    "Evidence",
    "Verdict",
    "check_logs",
    "diagnose",
    "episodes_are_new",
    "judge_dropped",
    "verdict",
]
