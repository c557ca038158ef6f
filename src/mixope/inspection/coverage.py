"""What the logs cover of a target, at the states as they were logged: gaps, loggers, and a map where there is one."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mixope.base.arrays import AnyArray, FloatArray, IntArray, batches, sum_by
from mixope.inspection.grids import factor_names, grid_of
from mixope.inspection.records import Coverage, Gap, LoggerCoverage
from mixope.policies import DiscretePolicy, Policy
from mixope.policies.own_code import asking
from mixope.requests.problem import align_actions, state_probabilities
from mixope.requests.transitions import Transitions

SHOWN_GAPS = 10


def cover(transitions: Transitions, policy: Policy, shown: int = SHOWN_GAPS) -> Coverage:
    """The target's actions against the logged ones, weighted by the rows of each state."""
    visited = np.flatnonzero(_state_rows(transitions) > 0)
    actions = policy.actions if isinstance(policy, DiscretePolicy) else transitions.actions
    logged, law = _logged(transitions, actions), np.zeros(transitions.n_pairs)
    covered, uncovered, gaps, worst = 0.0, 0.0, 0, list[Gap]()
    missing = np.zeros(transitions.n_states)
    for states in batches(visited, len(actions)):
        share = _state_rows(transitions)[states] / transitions.n_rows
        probabilities = _laws(policy, transitions, states)
        unseen = (probabilities > 0) & ~logged[states].toarray()
        mass = np.where(unseen, share[:, None] * probabilities, 0.0)
        missing[states] = np.where(unseen, probabilities, 0.0).sum(axis=1)
        covered += float(share[~unseen.any(axis=1)].sum())
        uncovered, gaps = uncovered + float(mass.sum()), gaps + int(unseen.sum())
        order = np.argsort(-mass, axis=None, kind="stable")[: min(shown, int(unseen.sum()))]
        found = [
            Gap(
                state=tuple(np.atleast_1d(transitions.observations[states[s]]).tolist()),
                action=actions[a : a + 1].tolist()[0],
                probability=float(probabilities[s, a]),
                state_rows=int(_state_rows(transitions)[states[s]]),
                mass=float(mass[s, a]),
            )
            for s, a in zip(*np.unravel_index(order, mass.shape), strict=True)
        ]
        worst = sorted([*worst, *found], key=lambda gap: -gap.mass)[:shown]
        mine = slice(*np.searchsorted(transitions.pair_state, [states[0], states[-1] + 1]))
        place = np.searchsorted(states, transitions.pair_state[mine])
        law[mine] = align_actions(probabilities, actions, transitions.actions)[place, transitions.pair_action[mine]]
    names, grid = factor_names(transitions), grid_of(transitions, _state_rows(transitions), missing)
    return Coverage(covered, uncovered, gaps, tuple(worst), _by_logger(transitions, law), names, grid)


def _by_logger(transitions: Transitions, law: FloatArray) -> tuple[LoggerCoverage, ...]:
    """Σ n(s)/N π(a|s) over the pairs that each logger has logged, and over those that nobody else has."""
    mass = _state_rows(transitions)[transitions.pair_state] / transitions.n_rows * law
    seen = np.unique(transitions.logger * transitions.n_pairs + transitions.pair)
    logger, pair = seen // transitions.n_pairs, seen % transitions.n_pairs
    alone = np.bincount(pair, minlength=transitions.n_pairs)[pair] == 1
    covered, only = (sum_by(logger, mass[pair] * part, len(transitions.loggers)) for part in (1.0, alone))
    return tuple(
        LoggerCoverage(label, float(a), float(b))
        for label, a, b in zip(transitions.loggers, covered, only, strict=True)
    )


def _laws(policy: Policy, transitions: Transitions, states: IntArray) -> FloatArray:
    """π of the actions to look for, in some states."""
    if isinstance(policy, DiscretePolicy):
        with asking(policy):
            return policy.probs(transitions.observations[states])
    return state_probabilities(policy, transitions, states)


def _logged(transitions: Transitions, actions: AnyArray) -> sparse.csr_matrix:
    """Whether each of ``actions`` was logged in each state."""
    position = {action: column for column, action in enumerate(actions.tolist())}
    column = np.array([position.get(action, -1) for action in transitions.actions.tolist()])[transitions.pair_action]
    known = column >= 0
    entries = np.ones(int(known.sum()), dtype=bool), (transitions.pair_state[known], column[known])
    return sparse.csr_matrix(entries, shape=(transitions.n_states, len(actions)))


def _state_rows(transitions: Transitions) -> FloatArray:
    rows = np.bincount(transitions.state, weights=transitions.rows, minlength=transitions.n_states)
    return np.asarray(rows, dtype=np.float64)
