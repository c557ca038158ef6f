"""The trajectory family: classic importance sampling by whole episodes, and multiple importance sampling.

With W_t the cumulative ratio of an episode up to step t, W its last, g_t the weight of a step (1, γᵗ, or 1 up to the
horizon) and G = Σ_t g_t of the episode (1/(1−γ) if it truly ended, since the rest earns nothing):

    is         mean over episodes of  W · Σ_t g_t r_t / G
    wis        the same, self-normalised:  Σ W (Σ g r / G) / Σ W
    is-step    Σ Σ_t g_t W_t r_t / Σ G
    wis-step   each step self-normalised over the episodes that reach it, then averaged over steps with weights g_t
    mis, mis-step    as is, is-step, with the balance heuristic Σ_k β_k Π π_k in the denominator (Tirinzoni et al. 2019)

ρ comes from recorded propensities, else from the loggers' known policies, else from counts a logger. These see only
as far as an episode reaches: their "average" is the mean over the logged steps, not the long run. Variance grows
exponentially with length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixope.arrays import FloatArray, sum_by
from mixope.behaviours import CountedMixture, PerLogger
from mixope.errors import UsageError
from mixope.estimand import Estimand
from mixope.estimators.asking import Asking
from mixope.estimators.feature_estimators import trajectory_on_features
from mixope.estimators.feature_problem import FeatureProblem
from mixope.estimators.solution import Measures, Solution
from mixope.problem import Problem, pair_probabilities
from mixope.statistics.trajectories import RatioColumns, Trajectories
from mixope.statistics.transitions import Transitions


@dataclass(frozen=True)
class Steps:
    """Trajectories under an estimand: step weights g a row, G an episode, weights on a common scale."""

    data: Trajectories
    gain: FloatArray
    span: FloatArray
    ends_count: bool

    @property
    def weight(self) -> FloatArray:
        """W_t a row."""
        return np.exp(self.data.log_weight)

    @property
    def last_weight(self) -> FloatArray:
        """W an episode."""
        return np.exp(self.data.last_log_weight)

    def by_episode(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of every episode."""
        return sum_by(self.data.episode, values, self.data.n_episodes)


Rule = Callable[[Steps], tuple[float, FloatArray]]


@dataclass(frozen=True)
class Trajectory:
    """A trajectory estimator: how weights become a value, and whether the denominator is the balance heuristic."""

    name: str
    rule: Rule
    balance: bool = False
    stepwise: bool = False

    def solve(self, problem: Problem | FeatureProblem) -> Asking[Solution]:
        """Value and per-episode scores; on counts, with the uncovered mass under the logged states."""
        if isinstance(problem, FeatureProblem):
            return (yield from trajectory_on_features(problem, self.weigh, balance=self.balance))
        ratio = self._ratio(problem)
        (steps,) = yield (problem.steps_in_order(),)
        rows = problem.transitions
        covered = sum_by(rows.pair_state, problem.pair_target, rows.n_states)
        logged = sum_by(rows.state, rows.rows, rows.n_states)
        uncovered = float(logged @ np.clip(1 - covered, 0, 1) / logged.sum())
        found = self.weigh(problem.estimand, steps.in_key_order().weighed(ratio))
        return replace(found, uncovered_mass=uncovered)

    def _ratio(self, problem: Problem) -> RatioColumns:
        """Log-probabilities of every group, and how they make a ratio."""
        rows = problem.transitions
        with np.errstate(divide="ignore"):
            target = np.log(problem.pair_target[rows.pair])
            if self.balance:
                laws = tuple(np.log(_logger_law(problem, j)[rows.pair]) for j in range(len(rows.loggers)))
                return RatioColumns(target, laws, tuple(_episode_shares(rows)))
            if rows.inverse is not None and not np.isnan(rows.inverse).any():
                return RatioColumns(target)
            return RatioColumns(target, (np.log(_own_law(problem)),), (1.0,))

    def weigh(self, estimand: Estimand, data: Trajectories) -> Solution:
        """Value and per-episode scores."""
        steps = _steps(estimand, data)
        value, scores = self.rule(steps)
        weight = _scaled(data.log_weight if self.stepwise else data.last_log_weight)
        size = float(weight.sum()) ** 2 / float((weight**2).sum()) if weight.any() else 0.0
        return Solution(
            value=value,
            episode_scores=scores,
            measures=Measures(
                effective_sample_size=size * (1.0 if self.stepwise else data.n_rows / data.n_episodes),
                effective_episodes=None if self.stepwise else size,
                largest_share=float(weight.max() / weight.sum()) if weight.any() else 1.0,
                mean_weight=float(np.mean(steps.last_weight)),
            ),
        )


def _scaled(log_weight: FloatArray) -> FloatArray:
    top = log_weight.max()
    return np.exp(log_weight - top) if np.isfinite(top) else np.zeros_like(log_weight)


def _logger_law(problem: Problem, number: int) -> FloatArray:
    """π_k on the logged pairs: known, or counted from its own rows."""
    rows = problem.transitions
    label = rows.loggers[number]
    if label in problem.loggers:
        return pair_probabilities(problem.loggers[label], rows, f"logger {label!r}")
    counts = np.zeros(rows.n_pairs)
    np.add.at(counts, rows.pair[rows.logger == number], rows.rows[rows.logger == number])
    total = sum_by(rows.pair_state, counts, rows.n_states)[rows.pair_state]
    return np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)


def _own_law(problem: Problem) -> FloatArray:
    """Each group's own logger: its known policy where all are known, else counts."""
    rows = problem.transitions
    if all(label in problem.loggers for label in rows.loggers):
        laws = np.stack([_logger_law(problem, j) for j in range(len(rows.loggers))])
        return np.asarray(laws[rows.logger, rows.pair])
    groups = rows.as_rows()
    return np.exp(PerLogger(CountedMixture()).fit(groups, np.ones(rows.n_groups)).log_prob(groups))


def _episode_shares(rows: Transitions) -> FloatArray:
    starts = sum_by(rows.logger, rows.starts, len(rows.loggers))
    return np.asarray(starts / starts.sum())


def _steps(estimand: Estimand, data: Trajectories) -> Steps:
    t = data.step
    longest = int(data.length.max())
    if estimand.kind == "average":
        return Steps(data, np.ones(data.n_rows), data.length.astype(np.float64), ends_count=False)
    if estimand.kind == "discounted":
        assert estimand.gamma is not None
        gamma = estimand.gamma
        span = np.where(data.terminated, 1.0, 1.0 - gamma**data.length) / (1.0 - gamma)
        return Steps(data, np.asarray(gamma**t, dtype=np.float64), span, ends_count=True)
    assert estimand.horizon is not None
    if longest < estimand.horizon and not data.terminated.all():
        raise UsageError(
            f"the episodes have at most {longest} steps, so importance sampling cannot see {estimand.horizon};"
            " use 'emp' or 'dr', or a shorter horizon"
        )
    span = np.where(data.terminated, estimand.horizon, np.minimum(data.length, estimand.horizon)).astype(np.float64)
    return Steps(data, (t < estimand.horizon).astype(np.float64), span, ends_count=True)


def _plain(steps: Steps) -> tuple[float, FloatArray]:
    earned = steps.by_episode(steps.gain * steps.data.reward) / steps.span
    terms = steps.last_weight * earned
    value = float(terms.mean())
    return value, (terms - value) / len(terms)


def _normalised(steps: Steps) -> tuple[float, FloatArray]:
    earned = steps.by_episode(steps.gain * steps.data.reward) / steps.span
    weight = _scaled(steps.data.last_log_weight)
    if not weight.any():
        return float("nan"), np.zeros_like(weight)
    value = float(weight @ earned / weight.sum())
    return value, weight * (earned - value) / weight.sum()


def _plain_by_step(steps: Steps) -> tuple[float, FloatArray]:
    terms = steps.by_episode(steps.gain * steps.weight * steps.data.reward)
    value = float(terms.sum() / steps.span.sum())
    return value, (terms - value * steps.span) / steps.span.sum()


def _normalised_by_step(steps: Steps) -> tuple[float, FloatArray]:
    """Numerator and denominator of each step on the scale of that step's largest weight.

    An episode that truly ended keeps its last weight, and earns nothing, at every later step; sums over the episodes
    that ended by step t are running sums over t, in logarithms.
    """
    data, t = steps.data, steps.data.step
    n, last = int(data.length.max()), data.last_log_weight
    ended = np.flatnonzero(data.terminated & (data.length < n)) if steps.ends_count else np.zeros(0, dtype=np.int64)
    top, carried = np.full(n, -np.inf), np.full(n, -np.inf)
    np.maximum.at(top, t, data.log_weight)
    highest = np.full(n, -np.inf)
    np.maximum.at(highest, data.length[ended], last[ended])
    top = np.maximum(top, np.maximum.accumulate(highest))
    np.logaddexp.at(carried, data.length[ended], last[ended])
    safe = np.where(np.isfinite(top), top, 0.0)
    weight = np.exp(data.log_weight - safe[t])
    below = sum_by(t, weight, n) + np.exp(np.logaddexp.accumulate(carried) - safe)
    above = sum_by(t, weight * data.reward, n)
    mean = np.divide(above, below, out=np.zeros(n), where=below > 0)
    share = _step_shares(steps, n)
    unit = share / np.where(below > 0, below, 1.0)
    scores = steps.by_episode(unit[t] * weight * (data.reward - mean[t]))
    with np.errstate(divide="ignore"):
        later = np.log(np.abs(unit * mean)) - safe
    for sign in (1.0, -1.0):
        mine = np.where(np.sign(mean) == sign, later, -np.inf)
        from_here_on = np.logaddexp.accumulate(mine[::-1])[::-1]
        scores[ended] -= sign * np.exp(last[ended] + from_here_on[data.length[ended]])
    return float(share @ mean), scores


def _step_shares(steps: Steps, n: int) -> FloatArray:
    """g_t / Σ g_t over the steps that some episode reaches; if all truly ended, later steps earn nothing but count."""
    gain = np.zeros(n)
    gain[steps.data.step] = steps.gain
    everyone_ended = steps.ends_count and bool(steps.data.terminated.all())
    return gain / (float(steps.span.max()) if everyone_ended else float(gain.sum()))


def importance_sampling() -> Trajectory:
    """Ordinary importance sampling."""
    return Trajectory("is", _plain)


def weighted() -> Trajectory:
    """Self-normalised."""
    return Trajectory("wis", _normalised)


def stepwise() -> Trajectory:
    """Per-decision."""
    return Trajectory("is-step", _plain_by_step, stepwise=True)


def weighted_stepwise() -> Trajectory:
    """Per-decision, self-normalised."""
    return Trajectory("wis-step", _normalised_by_step, stepwise=True)


def multiple() -> Trajectory:
    """Multiple importance sampling with the balance heuristic."""
    return Trajectory("mis", _plain, balance=True)


def multiple_stepwise() -> Trajectory:
    """Per-decision multiple importance sampling."""
    return Trajectory("mis-step", _plain_by_step, balance=True, stepwise=True)
