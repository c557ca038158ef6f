"""A refit: everything that an estimator fits (behaviour, calibration, ratio, value), on re-weighted episodes.

Rows are not read again. Counts are re-weighted (:mod:`mixope.resampling.episodes`); whole trajectories are kept as one
number a row (which transition), and their ratios are made anew from the re-weighted counts. So a refit costs a solve,
not a scan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixope.arrays import FloatArray, sum_by
from mixope.counting import Counted, order_rows
from mixope.errors import MixopeError
from mixope.estimand import Estimand
from mixope.estimators import AnyEstimator, Solution, TrajectoryEstimator, make
from mixope.policies import Policy, TabularPolicy
from mixope.policies.protocol import DiscretePolicy
from mixope.problem import Problem, pair_probabilities
from mixope.resampling.episodes import EpisodeCounts, count_episodes
from mixope.statistics.ordered_rows import OrderedRows, repeat_episodes
from mixope.statistics.transitions import Transitions
from mixope.targets import check_labels, resolve_policy


@dataclass(frozen=True)
class Refit:
    """An estimator and its question, ready to be asked again of any re-weighting of the episodes."""

    problem: Problem
    estimator: AnyEstimator
    counts: EpisodeCounts
    rows: OrderedRows | None
    seed: int

    def solve(self, weight: FloatArray) -> Solution:
        """Everything fitted anew, on the log in which episode e occurs ``weight[e]`` times."""
        problem = replace(self.problem, transitions=self.counts.reweighted(weight))
        if not isinstance(self.estimator, TrajectoryEstimator):
            return self.estimator.solve(problem)
        assert self.rows is not None
        joined, ratio = self.estimator.columns(problem)
        kept = np.flatnonzero(sum_by(self.counts.group, weight[self.counts.episode]) > 0)
        everywhere = {name: np.full(self.counts.transitions.n_groups, -np.inf) for name in joined}
        for name, values in joined.items():
            everywhere[name][kept] = values
        return self.estimator.solve_trajectories(problem, repeat_episodes(self.rows.weighed(everywhere, ratio), weight))

    @cached_property
    def whole(self) -> Solution:
        """On the logs as they are."""
        return self.solve(np.ones(self.counts.n_episodes))

    def weights(self, replicate: int) -> FloatArray:
        """How often each episode was drawn, within its logger."""
        generator = np.random.default_rng([self.seed, replicate])
        weight = np.zeros(self.counts.n_episodes)
        for label in range(len(self.counts.transitions.loggers)):
            mine = np.flatnonzero(self.counts.logger == label)
            if len(mine):
                weight[mine] = generator.multinomial(len(mine), np.full(len(mine), 1.0 / len(mine)))
        return weight

    def replicate(self, number: int) -> float | str:
        """The value of one resampled log, or why there is none."""
        return self._attempt(self.weights(number))

    def without(self, episode: int) -> float | str:
        """The value with one episode left out (the jackknife)."""
        weight = np.ones(self.counts.n_episodes)
        weight[episode] = 0.0
        return self._attempt(weight)

    def _attempt(self, weight: FloatArray) -> float | str:
        try:
            value = self.solve(weight).value
        except (MixopeError, np.linalg.LinAlgError, RuntimeError) as refusal:  # a singular factor is a RuntimeError
            return str(refusal).splitlines()[0]
        return value if np.isfinite(value) else "the value is not finite"


def prepare(
    counted: Counted,
    target: Any,
    estimator: str | AnyEstimator,
    *,
    estimand: Estimand | None = None,
    loggers: Mapping[str, Any] | None = None,
    seed: int = 0,
    counts: EpisodeCounts | None = None,
    rows: OrderedRows | None = None,
) -> Refit:
    """The scans and the policies, once; give ``counts`` (and ``rows``) where several refits share the logs."""
    logs, seen = counted.logs, counted.transitions
    known = {str(label): resolve_policy(policy, logs) for label, policy in (loggers or {}).items()}
    check_labels(known, seen.loggers)
    made = make(estimator)
    problem = Problem(seen, resolve_policy(target, logs), estimand or Estimand(), known, seed=seed)
    if rows is None and isinstance(made, TrajectoryEstimator):
        rows = order_rows(counted)
    return Refit(tabulate(problem), made, counts or count_episodes(counted), rows, seed)


def tabulate(problem: Problem) -> Problem:
    """The same question with its policies as tables."""
    seen = problem.transitions
    loggers = {label: tabulated(policy, seen) for label, policy in problem.loggers.items()}
    return replace(problem, target=tabulated(problem.target, seen), loggers=loggers)


def tabulated(policy: Policy, transitions: Transitions) -> Policy:
    """A discrete policy as a table over the logged states, so that refits do not call it again."""
    if isinstance(policy, TabularPolicy) or not isinstance(policy, DiscretePolicy):
        return policy
    pair_probabilities(policy, transitions, "the policy")  # an action that it refuses is refused here
    laws, states = policy.probs(transitions.observations), transitions.observations
    return TabularPolicy(laws, states, policy.actions, unknown_actions="zero")
