"""Logger weights: how much each logger's rows count.

``sample``: as many as they are. ``KL`` (the paper's ad-hoc proposal): w_j is the share of visited states where π_j is
the policy nearest to the target, argmin_k KL(π(·|s) ‖ π_k(·|s)) = argmax_k E_π log π_k; rows then get c = w_j^KL / w_j.
With counts this is exact; estimated policies are smoothed (an unseen action would make KL infinite). With rows it is an
average over states of a sample and draws of the target. A logger of weight 0 is dropped, not divided by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy import sparse

from mixope.base.arrays import AnyArray, FloatArray, IntArray, batches
from mixope.base.errors import Advice, DataError, Setting, UsageError
from mixope.behaviours.defaults import DefaultMixture
from mixope.behaviours.protocol import ask
from mixope.policies import ContinuousPolicy, DiscretePolicy, Policy
from mixope.requests.problem import Problem, align_actions, state_probabilities
from mixope.requests.rows import Rows
from mixope.requests.transitions import Transitions

_SMOOTHING = 1.0
#: With rows: states looked at, draws of a continuous target in each, and the least log-probability that counts.
_STATES = 2000
_DRAWS = 8
_LEAST = -50.0


def sample_weights(problem: Problem) -> FloatArray:
    """c = 1 for every logger."""
    return np.ones(len(problem.transitions.loggers))


def kl_weights(problem: Problem) -> FloatArray:
    """c = w^KL / w for every logger, from counts."""
    rows = problem.transitions
    visited = np.unique(rows.state)
    counts = [_counts(rows, number) for number in range(len(rows.loggers))]
    closeness = []
    for states in batches(visited, len(rows.actions)):
        target = state_probabilities(problem.target, rows, states)
        laws = (_logger_law(problem, number, counts[number], states) for number in range(len(rows.loggers)))
        closeness.append(np.stack([_expected_log(target, law) for law in laws]))
    return _nearest(np.concatenate(closeness, axis=1), rows.logger_rows() / rows.n_rows)


def nearest_logger_weights(
    sample: Rows, target: Policy, loggers: Mapping[str, Policy], shares: Mapping[str, float], seed: int = 0
) -> dict[str, float]:
    """c = w^KL / w by label, from rows of a sample.

    :param loggers: the policies that are known; the others are fitted to their rows in the sample.
    :param shares: the share of all logged rows by label, of every logger.
    """
    generator = np.random.default_rng([seed, 19])
    some = sample.take(generator.choice(len(sample), min(len(sample), _STATES), replace=False))
    draws = _draws(sample, some, target, seed)
    closeness = np.stack([_closeness(sample, some, draws, loggers, label, seed) for label in shares])
    weights = _nearest(closeness, np.array(list(shares.values())))
    return dict(zip(shares, weights.tolist(), strict=True))


def _nearest(closeness: FloatArray, share: FloatArray) -> FloatArray:
    """From E_π log π_j, shape (loggers, states): ties go to the first."""
    wanted = np.bincount(np.argmax(closeness, axis=0), minlength=len(share)) / closeness.shape[1]
    return np.asarray(np.divide(wanted, share, out=np.zeros_like(wanted), where=share > 0))


def _logger_law(problem: Problem, number: int, counts: sparse.csr_matrix, states: IntArray) -> FloatArray:
    """π_j in some states: known, or counted and smoothed."""
    rows = problem.transitions
    label = rows.loggers[number]
    if label in problem.loggers:
        return state_probabilities(problem.loggers[label], rows, states)
    smoothed = counts[states].toarray() + _SMOOTHING
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))


def _counts(rows: Transitions, number: int) -> sparse.csr_matrix:
    """Rows of one logger by state and action."""
    mine = rows.logger == number
    entries = rows.rows[mine], (rows.state[mine], rows.action[mine])
    return sparse.csr_matrix(entries, shape=(rows.n_states, len(rows.actions)))


def _expected_log(target: FloatArray, logger: FloatArray) -> FloatArray:
    """E_π log π_j per state."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(target > 0, target * np.log(logger), 0.0)
    return np.asarray(terms.sum(axis=1))


def _closeness(
    sample: Rows,
    some: Rows,
    draws: list[tuple[FloatArray, AnyArray]],
    loggers: Mapping[str, Policy],
    label: str,
    seed: int,
) -> FloatArray:
    """E_π log π_j in every state: by its policy, or by a model of its rows."""
    drawn = [(weight, replace(some, action=actions)) for weight, actions in draws]
    if label in loggers:
        answers = [ask(loggers[label], rows, f"logger {label!r}") for _, rows in drawn]
    else:
        mine = np.flatnonzero(sample.logger == label)
        if len(mine) == 0:
            raise DataError(
                f"the sample holds no rows of logger {label!r}, so its nearness to the target cannot be estimated",
                column="policy_id",
                hint=Advice(
                    "give its policy with ", Setting("loggers", label), ", or do not re-weight loggers (use 'emp')"
                ),
            )
        fitted = DefaultMixture().fit(sample.take(mine), np.ones(len(mine)), seed)
        answers = [fitted.log_prob(rows) for _, rows in drawn]
    parts = [weight * np.maximum(answer, _LEAST) for (weight, _), answer in zip(drawn, answers, strict=True)]
    return np.asarray(np.sum(parts, axis=0))


def _draws(sample: Rows, some: Rows, target: Policy, seed: int) -> list[tuple[FloatArray, AnyArray]]:
    """Actions of the target with their weights: all of them if discrete, a few draws if not."""
    n = len(some)
    if some.action.ndim == 1:
        actions = np.unique(sample.action)
        if isinstance(target, DiscretePolicy):
            probs = align_actions(target.probs(some.observation), target.actions, actions)
            return [(probs[:, k], np.full(n, a)) for k, a in enumerate(actions)]
        return [(np.exp(target.log_prob(some.observation, np.full(n, a))), np.full(n, a)) for a in actions]
    if not isinstance(target, ContinuousPolicy):
        raise UsageError("re-weighting by nearness needs a target that can be drawn from (a sample method)")
    draws = (target.sample(some.observation, np.random.default_rng([seed, 23, k])) for k in range(_DRAWS))
    return [(np.full(n, 1.0 / _DRAWS), actions) for actions in draws]
