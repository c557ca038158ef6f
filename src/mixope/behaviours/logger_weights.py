"""Logger weights: how much each logger's rows count.

``sample``: as many as they are. ``KL`` (the paper's ad-hoc proposal): w_j is the share of visited states in which π_j
is the policy nearest to the target, argmin_k KL(π(·|s) ‖ π_k(·|s)); rows then get c = w_j^KL / w_j. Estimated policies
are smoothed (an unseen action would make KL infinite); a logger of weight 0 is dropped, not divided by.
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray
from mixope.problem import Problem, state_probabilities
from mixope.statistics.transitions import Transitions

_SMOOTHING = 1.0


def sample_weights(problem: Problem) -> FloatArray:
    """c = 1 for every logger."""
    return np.ones(len(problem.transitions.loggers))


def kl_weights(problem: Problem) -> FloatArray:
    """c = w^KL / w for every logger."""
    rows = problem.transitions
    visited = np.unique(rows.state)
    target = problem.state_target[visited]
    distance = np.stack([_divergence(target, _logger_law(problem, j)[visited]) for j in range(len(rows.loggers))])
    nearest = np.argmin(distance, axis=0)
    wanted = np.bincount(nearest, minlength=len(rows.loggers)) / len(visited)
    share = rows.logger_rows() / rows.n_rows
    return np.asarray(np.divide(wanted, share, out=np.zeros_like(wanted), where=share > 0))


def _logger_law(problem: Problem, number: int) -> FloatArray:
    """π_j in every state: known, or counted and smoothed."""
    rows = problem.transitions
    label = rows.loggers[number]
    if label in problem.loggers:
        return state_probabilities(problem.loggers[label], rows)
    return _smoothed(rows, number)


def _smoothed(rows: Transitions, number: int) -> FloatArray:
    mine = rows.logger == number
    counts = np.full((rows.n_states, len(rows.actions)), _SMOOTHING)
    np.add.at(counts, (rows.state[mine], rows.action[mine]), rows.rows[mine])
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _divergence(target: FloatArray, logger: FloatArray) -> FloatArray:
    """KL(π ‖ π_j) a state."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(target > 0, target * (np.log(target) - np.log(logger)), 0.0)
    return np.asarray(terms.sum(axis=1))
