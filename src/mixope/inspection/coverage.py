"""What of a target the logs have seen: its actions against the logged ones, state by state."""

from __future__ import annotations

import numpy as np

from mixope.arrays import AnyArray, FloatArray, sum_by
from mixope.inspection.records import Coverage, Gap, LoggerCoverage
from mixope.policies import DiscretePolicy, Policy
from mixope.problem import align_actions, state_probabilities
from mixope.statistics.transitions import Transitions

SHOWN_GAPS = 10


def cover(transitions: Transitions, policy: Policy, shown: int = SHOWN_GAPS) -> Coverage:
    """The target's actions against the logged ones, weighted by the rows of each state."""
    visited = np.flatnonzero(_state_rows(transitions) > 0)
    share = _state_rows(transitions)[visited] / transitions.n_rows
    actions, probabilities = _laws(policy, transitions, visited)
    unseen = (probabilities > 0) & ~_logged(transitions, actions)[visited]
    mass = np.where(unseen, share[:, None] * probabilities, 0.0)
    order = np.argsort(-mass, axis=None, kind="stable")[: min(shown, int(unseen.sum()))]
    worst = [
        Gap(
            state=tuple(np.atleast_1d(transitions.observations[visited[s]]).tolist()),
            action=actions[a : a + 1].tolist()[0],
            probability=float(probabilities[s, a]),
            state_rows=int(_state_rows(transitions)[visited[s]]),
            mass=float(mass[s, a]),
        )
        for s, a in zip(*np.unravel_index(order, mass.shape), strict=True)
    ]
    return Coverage(
        float(share[~unseen.any(axis=1)].sum()),
        float(mass.sum()),
        int(unseen.sum()),
        tuple(worst),
        _by_logger(transitions, visited, align_actions(probabilities, actions, transitions.actions)),
    )


def _by_logger(transitions: Transitions, visited: AnyArray, law: FloatArray) -> tuple[LoggerCoverage, ...]:
    """Σ n(s)/N π(a|s) over the pairs that each logger has logged, and over those that nobody else has."""
    number = np.zeros(transitions.n_states, dtype=np.int64)
    number[visited] = np.arange(len(visited))
    law = law[number[transitions.pair_state], transitions.pair_action]
    mass = _state_rows(transitions)[transitions.pair_state] / transitions.n_rows * law
    seen = np.unique(transitions.logger * transitions.n_pairs + transitions.pair)
    logger, pair = seen // transitions.n_pairs, seen % transitions.n_pairs
    alone = np.bincount(pair, minlength=transitions.n_pairs)[pair] == 1
    covered, only = (sum_by(logger, mass[pair] * part, len(transitions.loggers)) for part in (1.0, alone))
    return tuple(
        LoggerCoverage(label, float(a), float(b))
        for label, a, b in zip(transitions.loggers, covered, only, strict=True)
    )


def _laws(policy: Policy, transitions: Transitions, states: AnyArray) -> tuple[AnyArray, FloatArray]:
    """The actions to look for, and π of them in some states."""
    if isinstance(policy, DiscretePolicy):
        return policy.actions, policy.probs(transitions.observations[states])
    return transitions.actions, state_probabilities(policy, transitions)[states]


def _logged(transitions: Transitions, actions: AnyArray) -> AnyArray:
    """Whether each of ``actions`` was logged in each state."""
    position = {action: column for column, action in enumerate(actions.tolist())}
    column = np.array([position.get(action, -1) for action in transitions.actions.tolist()])[transitions.pair_action]
    seen = np.zeros((transitions.n_states, len(actions)), dtype=bool)
    seen[transitions.pair_state[column >= 0], column[column >= 0]] = True
    return seen


def _state_rows(transitions: Transitions) -> FloatArray:
    rows = np.bincount(transitions.state, weights=transitions.rows, minlength=transitions.n_states)
    return np.asarray(rows, dtype=np.float64)
