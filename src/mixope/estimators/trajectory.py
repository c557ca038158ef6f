"""The trajectory family: classic importance sampling by whole episodes, and multiple importance sampling.

With W_t the cumulative ratio of an episode up to step t, W its last, g_t the weight of a step (1, γᵗ, or 1 up to the
horizon) and G = Σ_t g_t of the episode (1/(1−γ) if it truly ended, since the rest earns nothing; 1 where the total of
an episode is asked for):

    is         mean over episodes of  W · Σ_t g_t r_t / G
    wis        the same, self-normalised:  Σ W (Σ g r / G) / Σ W
    is-step    Σ Σ_t g_t W_t r_t / Σ G
    wis-step   each step self-normalised over the episodes that reach it, then averaged over steps with weights g_t,
               times the share of episodes that has not ended before, where ends count
    mis, mis-step    as is, is-step, with the balance heuristic Σ_k β_k Π π_k in the denominator (Tirinzoni et al. 2019)

ρ comes from recorded propensities, else from the loggers' known policies, else from counts per logger. These see only
as far as an episode reaches: their "average" is the mean over the logged steps, not the long run. Variance grows
exponentially with length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.base.errors import Advice, UsageError
from mixope.base.estimand import Estimand
from mixope.behaviours import CountedMixture, PerLogger
from mixope.estimators.asking import Asking
from mixope.estimators.both_kinds import BothKinds
from mixope.estimators.counts.solution import uncovered_mass
from mixope.estimators.features.estimators import trajectory_on_features
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.solution import Given, Measures, Solution
from mixope.requests.problem import Problem, pair_probabilities
from mixope.requests.scores import ClusterScores
from mixope.requests.trajectories import RatioColumns, Trajectories
from mixope.requests.transitions import Transitions


@dataclass(frozen=True)
class WeightedSteps:
    """Trajectories under an estimand: step weights g per row, G per episode, weights on a common scale.

    ``ends_count`` where an end is absorbing, so that a later step earns 0 and counts; ``whole`` where the total of the
    episode is asked for, not its mean.
    """

    data: Trajectories
    gain: FloatArray
    span: FloatArray
    ends_count: bool
    whole: bool = False

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


Rule = Callable[[WeightedSteps], tuple[float, FloatArray]]


@dataclass(frozen=True)
class Trajectory(BothKinds):
    """A trajectory estimator: how weights become a value, and whether the denominator is the balance heuristic.

    ``instead`` is what to do where it cannot see the total of an episode; by default, to take another estimator.
    """

    name: str
    rule: Rule
    balance: bool = False
    stepwise: bool = False
    instead: str | None = None

    def on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        """Value and per-episode scores."""
        return trajectory_on_features(problem, self.weigh, balance=self.balance)

    def on_counts(self, problem: Problem) -> Asking[Solution]:
        """The same, with the uncovered mass under the logged states."""
        ratio = self._ratio(problem)
        (steps,) = yield (problem.steps_in_order(),)
        rows = problem.logged
        logged = sum_by(rows.state, rows.rows, rows.n_states)
        uncovered = uncovered_mass(rows, problem.logged_target, logged)
        found = self.weigh(problem.estimand, steps.in_key_order().weighed(ratio))

        def counted() -> float:
            by_counts = self._ratio(replace(problem, loggers={}, whole=problem), recorded=False)
            return self.weigh(problem.estimand, steps.in_key_order().weighed(by_counts)).value

        return replace(found, uncovered_mass=uncovered, given=self._given(problem), otherwise=counted)

    def _given(self, problem: Problem) -> Given | None:
        """What is divided by, where it is not counted."""
        if not self.balance and _all_recorded(problem):
            return "propensities"
        known = [label in problem.loggers for label in problem.transitions.loggers]
        return "policies" if (any(known) if self.balance else all(known)) else None

    def _ratio(self, problem: Problem, *, recorded: bool = True) -> RatioColumns:
        """Log-probabilities of every group, and how they make a ratio."""
        rows = problem.logged
        with np.errstate(divide="ignore"):
            target = np.log(problem.logged_target[rows.pair])
            if self.balance:
                laws = tuple(np.log(_logger_law(problem, j)[rows.pair]) for j in range(len(rows.loggers)))
                return RatioColumns(target, laws, tuple(_episode_shares(rows)))
            if recorded and _all_recorded(problem):
                return RatioColumns(target)
            return RatioColumns(target, (np.log(_own_law(problem)),), (1.0,))

    def weigh(self, estimand: Estimand, data: Trajectories) -> Solution:
        """Value and per-episode scores."""
        steps = _steps(estimand, data)
        censored = self.rule is _normalised_by_step
        bias = _cut_short(self, steps, estimand, censored=censored)
        value, scores = self.rule(steps)
        of_ones = replace(steps, data=replace(data, reward=np.ones(data.n_rows)))
        weight = _scaled(data.log_weight if self.stepwise else data.last_log_weight)
        size = float(weight.sum()) ** 2 / float((weight**2).sum()) if weight.any() else 0.0
        return Solution(
            value=value,
            scores=ClusterScores(scores),
            known_bias=bias,
            normalised=self.rule not in (_plain, _plain_by_step),
            measures=Measures(
                effective_sample_size=size * (1.0 if self.stepwise else data.n_rows / data.n_episodes),
                effective_episodes=None if self.stepwise else size,
                largest_share=float(weight.max() / weight.sum()) if weight.any() else 1.0,
                mean_weight=float(np.mean(steps.last_weight)),
                episode_length=self.rule(of_ones)[0] if steps.whole else None,
            ),
        )


_ROUNDING = 1e-9
_UNSEEN = 0.01
"""The share of the discounted steps that may lie beyond what was recorded of any episode."""


def _cut_short(asked: Trajectory, steps: WeightedSteps, estimand: Estimand, *, censored: bool) -> str | None:
    """Weights of whole episodes see no further than the recorder did: what to say where some ended and some were cut.

    Weights normalised by step (``censored``) can do with cut episodes as long as others go on. The total of an episode
    is refused; a mean over steps is biased.
    """
    data = steps.data
    longest = int(data.length.max())
    was_cut = ~data.terminated & (data.length < (estimand.horizon or np.inf))
    cut, unseen = int(was_cut.sum()), bool(was_cut[data.length == longest].any())
    unseen &= estimand.discount**longest > _UNSEEN
    if not cut or not steps.ends_count or (censored and not unseen):
        return None
    what = f"{cut:,} of {data.n_episodes:,} episodes were cut before their end"
    if steps.whole:
        other = "use 'emp' or 'dr'" if censored else "use 'emp', 'dr' or 'wis-step'"
        advice = asked.instead or f"{other}, which can do with that"
        raise UsageError(Advice(f"{asked.name!r} cannot see the total of an episode where {what}; ", advice))
    if censored or cut == data.n_episodes:
        return None
    return f"{what}; what they would have earned later is taken to be like what was seen. See 'emp', 'dr' or 'wis-step'"


def _scaled(log_weight: FloatArray) -> FloatArray:
    top = log_weight.max()
    return np.exp(log_weight - top) if np.isfinite(top) else np.zeros_like(log_weight)


def _all_recorded(problem: Problem) -> bool:
    inverse = problem.transitions.inverse
    return inverse is not None and not bool(np.isnan(inverse).any())


def _logger_law(problem: Problem, number: int) -> FloatArray:
    """π_k on the logged pairs: known, or counted from its own rows."""
    rows = problem.logged
    label = rows.loggers[number]
    if label in problem.loggers:
        return pair_probabilities(problem.loggers[label], rows, f"logger {label!r}")
    counts = np.zeros(rows.n_pairs)
    np.add.at(counts, rows.pair[rows.logger == number], rows.rows[rows.logger == number])
    total = sum_by(rows.pair_state, counts, rows.n_states)[rows.pair_state]
    return np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)


def _own_law(problem: Problem) -> FloatArray:
    """Each group's own logger: its known policy where all are known, else counts."""
    rows = problem.logged
    if all(label in problem.loggers for label in rows.loggers):
        laws = np.stack([_logger_law(problem, j) for j in range(len(rows.loggers))])
        return np.asarray(laws[rows.logger, rows.pair])
    groups = rows.as_rows()
    return np.exp(PerLogger(CountedMixture()).fit(groups, np.ones(rows.n_groups)).log_prob(groups))


def _episode_shares(rows: Transitions) -> FloatArray:
    """How many of the episodes are of each logger; alike where no start is known, which the survey refuses."""
    starts = sum_by(rows.logger, rows.starts, len(rows.loggers))
    return np.asarray(starts / starts.sum() if starts.any() else np.full(len(starts), 1 / len(starts)))


def _steps(estimand: Estimand, data: Trajectories) -> WeightedSteps:
    t = data.step
    longest = int(data.length.max())
    if estimand.restarts:
        return WeightedSteps(data, np.ones(data.n_rows), data.length.astype(np.float64), ends_count=False)
    gain = np.asarray(estimand.discount**t, dtype=np.float64)
    if estimand.kind == "episode":
        return WeightedSteps(data, gain, np.ones(data.n_episodes), ends_count=True, whole=True)
    if estimand.kind == "discounted":
        gamma = estimand.discount
        span = np.where(data.terminated, 1.0, 1.0 - gamma**data.length) / (1.0 - gamma)
        return WeightedSteps(data, gain, span, ends_count=True)
    assert estimand.horizon is not None
    if longest < estimand.horizon and not data.terminated.all():
        raise UsageError(
            f"the episodes have at most {longest} steps, so importance sampling cannot see {estimand.horizon};"
            " use 'emp' or 'dr', or a shorter horizon"
        )
    span = np.where(data.terminated, estimand.horizon, np.minimum(data.length, estimand.horizon)).astype(np.float64)
    return WeightedSteps(data, (t < estimand.horizon).astype(np.float64), span, ends_count=True)


def _plain(steps: WeightedSteps) -> tuple[float, FloatArray]:
    earned = steps.by_episode(steps.gain * steps.data.reward) / steps.span
    terms = steps.last_weight * earned
    value = float(terms.mean())
    return value, (terms - value) / len(terms)


def _normalised(steps: WeightedSteps) -> tuple[float, FloatArray]:
    earned = steps.by_episode(steps.gain * steps.data.reward) / steps.span
    weight = _scaled(steps.data.last_log_weight)
    if not weight.any():
        return float("nan"), np.zeros_like(weight)
    value = float(weight @ earned / weight.sum())
    return value, weight * (earned - value) / weight.sum()


def _plain_by_step(steps: WeightedSteps) -> tuple[float, FloatArray]:
    terms = steps.by_episode(steps.gain * steps.weight * steps.data.reward)
    value = float(terms.sum() / steps.span.sum())
    return value, (terms - value * steps.span) / steps.span.sum()


def _normalised_by_step(steps: WeightedSteps) -> tuple[float, FloatArray]:
    """Σ_t g_t S_t m_t: means m_t over the episodes that reach step t, and the share S_t that has not ended before it.

    Both from weights on the scale of the largest one of the step. S_t = Π_{u<t} (1 − h_u) with h_u the weighted share
    of episodes that end at step u among those that reach it (Kaplan and Meier's estimate), so that an episode that was
    cut counts as long as it was seen. Where ends do not count, S_t is 1.
    """
    data, t = steps.data, steps.data.step
    n = int(data.length.max())
    top = np.full(n, -np.inf)
    np.maximum.at(top, t, data.log_weight)
    weight = np.exp(data.log_weight - np.where(np.isfinite(top), top, 0.0)[t])
    at_risk = sum_by(t, weight, n)
    unit = np.divide(1.0, at_risk, out=np.zeros(n), where=at_risk > 0)
    mean = sum_by(t, weight * data.reward, n) * unit
    ends = data.ends & steps.ends_count
    hazard = sum_by(t, weight * ends, n) * unit
    surviving = np.append(1.0, np.cumprod(1.0 - hazard))
    share = _step_shares(steps, n, float(surviving[-1]))
    value = share * surviving[:-1] * mean
    later = np.append(np.cumsum(value[::-1])[::-1], 0.0)[1:]
    spared = np.divide(unit, 1.0 - hazard, out=np.zeros(n), where=hazard < 1.0)
    off_mean = (share * surviving[:-1] * unit)[t] * weight * (data.reward - mean[t])
    off_share = (later * spared)[t] * weight * (ends - hazard[t])
    return float(value.sum()), steps.by_episode(off_mean - off_share)


def _step_shares(steps: WeightedSteps, n: int, surviving: float) -> FloatArray:
    """g_t / Σ g_t over the steps that some episode reaches; if none goes on after them, later steps earn 0 but count.

    Of the total of an episode, g_t itself.
    """
    gain = np.zeros(n)
    gain[steps.data.step] = steps.gain
    if steps.whole:
        return gain
    everyone_ended = steps.ends_count and surviving < _ROUNDING
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
