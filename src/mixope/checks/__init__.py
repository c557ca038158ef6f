"""Diagnostics: can these logs carry the answer? One list of checks; the verdict is the worst of what they say."""

from collections.abc import Callable, Iterator

from mixope.checks.absorbing import absorbing_states
from mixope.checks.agreement import halves_agree, loggers_agree
from mixope.checks.approximation import approximation, correction
from mixope.checks.behaviour_fit import behaviour_fit
from mixope.checks.checks import GRADED, has_interval, known_bias, mean_weight, reward_range, rewards_seen, solver
from mixope.checks.coverage import small_gaps
from mixope.checks.deciding import few_decide, rare_ends
from mixope.checks.dropped import dropped_rows, judge_dropped
from mixope.checks.edge import edge_of_the_logs
from mixope.checks.ends import ends_at_a_limit, ends_at_cuts, ends_over_steps, lengths_fit, unmarked_stops
from mixope.checks.evidence import Evidence
from mixope.checks.learning import about_learning, loggers_learned, stretch_of
from mixope.checks.odd_rewards import rewards_are_real, states_are_measured
from mixope.checks.order import rewards_in_step, rewards_of_others, states_in_step
from mixope.checks.possible import within_possible
from mixope.checks.repeats import episodes_are_new
from mixope.checks.replay import model_replays_logs
from mixope.checks.state import state_is_all
from mixope.checks.steadiness import logs_are_steady, value_is_steady
from mixope.checks.verdicts import Diagnostic, Verdict, verdict
from mixope.checks.width import interval_says_something
from mixope.requests.episodes import EpisodeSums
from mixope.requests.shifts import reward_echoes, reward_shifts
from mixope.requests.stale import stale_states
from mixope.requests.transitions import Transitions, transition_cells

CHECKS: tuple[Callable[[Evidence], Diagnostic | tuple[Diagnostic, ...] | None], ...] = (
    *GRADED,
    behaviour_fit,
    mean_weight,
    known_bias,
    has_interval,
    rewards_seen,
    reward_range,
    interval_says_something,
    solver,
    dropped_rows,
    unmarked_stops,
    lambda evidence: evidence.of_logs,
    value_is_steady,
    model_replays_logs,
    state_is_all,
    absorbing_states,
    few_decide,
    rare_ends,
    small_gaps,
    edge_of_the_logs,
    approximation,
    correction,
)
"""To add a check: a function from evidence to a diagnostic (None where it does not apply), and a line here."""


def check_logs(transitions: Transitions | None, sums: EpisodeSums) -> tuple[Diagnostic, ...]:
    """The checks of the logs themselves, made once per run: do loggers, episodes and rewards agree on the world?"""
    found = [*logs_are_steady(sums)]
    found += [
        check
        for check in (
            ends_at_a_limit(sums.limit),
            loggers_learned(sums.learning),
            states_are_measured(sums.sentinels),
            *_of_sample(sums),
        )
        if check is not None
    ]
    found += () if sums.odd is None else rewards_are_real(sums.odd)
    if transitions is not None:
        found += [check for check in _of_counts(transitions, sums) if check is not None]
    repeats = None if sums.repeats is None else episodes_are_new(sums.repeats)
    return (*found, *(() if repeats is None else (repeats,)))


def _of_sample(sums: EpisodeSums) -> Iterator[Diagnostic | None]:
    """What neighbouring rows of a sample tell, where states are vectors."""
    if sums.shifts is not None:
        yield rewards_in_step(sums.shifts.all_rows)
        yield rewards_of_others(sums.shifts)
    if sums.staleness is not None:
        yield states_in_step(sums.staleness)


def _of_counts(transitions: Transitions, sums: EpisodeSums) -> Iterator[Diagnostic | None]:
    """What counts tell, and what rows in their order do where there are not too many."""
    yield loggers_agree(transitions)
    yield lengths_fit(transitions, sums.totals)
    if sums.ordered is not None:
        yield halves_agree(transitions, sums.ordered, sums.totals.logger)
        yield ends_over_steps(transitions, sums.ordered)
        yield ends_at_cuts(transitions, sums.ordered)
        cells = transition_cells(transitions)
        yield rewards_in_step(reward_shifts(sums.ordered, cells))
        yield rewards_of_others(reward_echoes(sums.ordered, cells))
        stale = stale_states(transitions, sums.ordered)
        yield None if stale is None else states_in_step(stale)


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
    "about_learning",
    "check_logs",
    "diagnose",
    "episodes_are_new",
    "judge_dropped",
    "stretch_of",
    "verdict",
    "within_possible",
]
