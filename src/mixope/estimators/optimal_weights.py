"""opt-emp: EMP with the row weights by logger that minimise its first-order variance.

With row weights c_j a row influences the value by c_j d_π(s,a)/D(s,a) · ε, ε = r − η + V(s′) − q(s,a), D the weighted
law of the rows. With p_j(s,a) logger j's share of the rows of a pair and τ_j σ²(s,a) the variance of its ε there,

    V(c) = Σ_{s,a} v(s,a) · E_p[τ c²] / E_p[c]²,    v(s,a) = d_π(s,a)² σ²(s,a)/d₀(s,a),

and by Cauchy–Schwarz every pair, hence the sum, is least at c_j ∝ 1/τ_j. Where all rows estimate one transition law
and one reward law, τ = 1 and nothing beats c = 1: *pooling is optimal*. Weights help where recorders differ in noise.

The noise is read off the squared influences ψ² of the pooled estimate: of their sum at a pair logger j has the share
p_j τ_j / Σ_k p_k τ_k. With S_j(s,a) = Σ ψ² over its rows and t = log τ that is a logit, and a small convex problem:

    min_t  Σ_{s,a} [ S(s,a) log Σ_k p_k(s,a) e^{t_k} − Σ_j S_j(s,a) t_j ]        (loggers compare only where they meet).

Chance alone makes t differ from 0: t is shrunk by 1 − (J−1)/W (at least 0), W = gᵀM⁻¹g the clustered χ² of the
gradient g at t = 0; then often all is pooled. An episode's own weight is taken from a fit without that episode (one
Newton step away), so that no row chooses its weight: cross-fitting, with no split that would depend on names or order.

It needs whole episodes, hence one pass more than ``emp``: the transitions of every episode in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, Setting, UsageError
from mixope.estimators.asking import Asking
from mixope.estimators.counts.occupancy import pooled
from mixope.estimators.counts.solution import CountedSolution, dressed
from mixope.estimators.solution import Solution, Weights
from mixope.estimators.state_ratio import state_ratio_solution
from mixope.requests.problem import Problem
from mixope.requests.scores import ClusterScores, ScoreTable
from mixope.requests.trajectories import Trajectories
from mixope.requests.transitions import BASIS

_RIDGE, _ROUNDING, _LARGEST = 1e-3, 1e-9, float(np.log(1e3))
_NEWTON_STEPS = 50


@dataclass(frozen=True)
class LoggerNoise:
    """log τ a logger (mean 0 over rows), how much of it is believed, and the row weight c of every episode."""

    log_noise: FloatArray
    belief: float
    episode_weight: FloatArray

    @property
    def weights(self) -> FloatArray:
        """c a logger."""
        return np.exp(-self.belief * self.log_noise)


@dataclass(frozen=True)
class OptimalWeights:
    """EMP, counted and pooled, with variance-minimising weights by logger; see the module."""

    name: str = "opt-emp"

    def solve(self, problem: Problem) -> Asking[Solution]:
        """Pool, measure the loggers' noise, weigh, and solve again."""
        (steps,) = yield (problem.steps_in_order(),)
        ordered = steps.in_key_order()
        data, group = ordered.episodes, ordered.group
        pooled = _solve(problem)
        noise = logger_noise(problem, pooled, data, group)
        c = noise.episode_weight[data.episode]
        final = pooled if noise.belief == 0 else _solve(_reweighted(problem, group, c, data.reward))
        return _by_episode(final, problem, data, group, c, noise)


def _solve(problem: Problem) -> CountedSolution:
    return state_ratio_solution(*pooled(problem)).on_logged(problem.followed)


def logger_noise(problem: Problem, pooled: CountedSolution, data: Trajectories, group: IntArray) -> LoggerNoise:
    """The convex problem of the module, its shrinkage and its leave-one-episode-out solutions."""
    rows = problem.logged
    n = len(rows.loggers)
    square = _squared_influence(pooled, data, group)
    share = _shares_by_pair(problem)
    pair, own = rows.pair[group], rows.logger[group[data.first]]
    mass = np.zeros((rows.n_pairs, n))
    np.add.at(mass, (pair, rows.logger[group]), square)
    if n == 1 or not mass.any():
        return LoggerNoise(np.zeros(n), 0.0, np.ones(data.n_episodes))
    t, curvature = fit_log_noise(mass, share)
    level = mass.sum(axis=1) / sum_by(rows.pair, rows.rows, rows.n_pairs)
    seen = _PairSums(square, level, share, pair, own, data)
    belief = _belief(seen.gradients(np.zeros(n)))
    without = t - seen.gradients(t) @ np.linalg.pinv(curvature, hermitian=True)
    said = rows.logger_rows() / rows.n_rows
    own_noise = without[np.arange(data.n_episodes), own] - without @ said
    weight = np.exp(-belief * np.clip(own_noise, -_LARGEST, _LARGEST))
    return LoggerNoise(t - t @ said, belief, weight)


def _squared_influence(solution: CountedSolution, data: Trajectories, group: IntArray) -> FloatArray:
    """ψ² of every row, relative to the largest; what is rounding of the reward counts as 0."""
    assert solution.scores is not None
    unit, rest = solution.scores[group, BASIS.index("reward")], solution.scores[group, BASIS.index("rows")]
    psi = unit * data.reward + rest
    psi[np.abs(psi) <= _ROUNDING * (np.abs(unit * data.reward) + np.abs(rest))] = 0.0
    return np.asarray((psi / max(float(np.abs(psi).max()), np.finfo(float).tiny)) ** 2)


def _shares_by_pair(problem: Problem) -> FloatArray:
    """p_j(s,a), shape (pairs, loggers)."""
    rows = problem.logged
    counts = np.zeros((rows.n_pairs, len(rows.loggers)))
    np.add.at(counts, (rows.pair, rows.logger), rows.rows)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def fit_log_noise(mass: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """t = log τ by Newton's method on the convex problem, and its curvature there; ``mass`` is S_j(s,a).

    A slight ridge keeps a logger without any noise finite.
    """
    total, own = mass.sum(axis=1), mass.sum(axis=0)
    t = np.zeros(mass.shape[1])
    ridge = _RIDGE * float(total.sum()) / len(t)

    def loss(t: FloatArray) -> float:
        return float(total @ np.log(share @ np.exp(t)) - own @ t + 0.5 * ridge * t @ t)

    for _ in range(_NEWTON_STEPS):
        gradient, curvature = _derivatives(total, own, share, t, ridge)
        step = np.linalg.solve(curvature, gradient)
        length = 1.0
        while loss(t - length * step) > loss(t) and length > 1e-6:
            length /= 2
        t = t - length * step
        if np.abs(length * step).max() < 1e-12:
            break
    return t, _derivatives(total, own, share, t, ridge)[1]


def _derivatives(
    total: FloatArray, own: FloatArray, share: FloatArray, t: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    tilted = _tilted(share, t)
    expected = total @ tilted
    curvature = np.diag(expected) - (tilted * total[:, None]).T @ tilted + ridge * np.eye(len(t))
    return np.asarray(expected - own + ridge * t), np.asarray(curvature)


def _tilted(share: FloatArray, t: FloatArray) -> FloatArray:
    """p_j τ_j / Σ_k p_k τ_k."""
    weight = share * np.exp(t)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class _PairSums:
    """ψ² by row, its mean and the loggers' shares by pair, the pair of every row and the logger of every episode."""

    square: FloatArray
    level: FloatArray
    share: FloatArray
    pair: IntArray
    own: IntArray
    data: Trajectories

    def gradients(self, t: FloatArray) -> FloatArray:
        """By episode, Σ_rows (ψ² − its fitted mean)(1[own logger] − p̃): sums to the gradient, each of mean 0.

        Without the mean, which adds up to 0 at every pair, the spread would be that of where an episode goes.
        """
        episode, n, own = self.data.episode, self.data.n_episodes, self.own
        mean = (self.level / (self.share @ np.exp(t)))[self.pair] * np.exp(t)[own[episode]]
        surprise, tilted = self.square - mean, _tilted(self.share, t)
        gradient = -np.stack([sum_by(episode, surprise * tilted[self.pair, j], n) for j in range(len(t))], axis=1)
        gradient[np.arange(n), own] += sum_by(episode, surprise, n)
        return np.asarray(gradient)


def _belief(gradients: FloatArray) -> float:
    """1 − (J−1)/W, at least 0: nothing is believed that chance explains."""
    total, spread = gradients.sum(axis=0), gradients.T @ gradients
    if not spread.any():
        return 0.0
    W = float(total @ np.linalg.pinv(spread, rcond=1e-10, hermitian=True) @ total)
    return max(0.0, 1.0 - (gradients.shape[1] - 1) / W) if W > 0 else 0.0


def _reweighted(problem: Problem, group: IntArray, c: FloatArray, reward: FloatArray) -> Problem:
    rows, n = problem.logged, problem.logged.n_groups
    weighed, earned, squares = (sum_by(group, c * reward**power, n) for power in range(3))
    counted = replace(rows, rows=weighed, reward=earned, squares=squares)
    return replace(problem.with_counts(counted), whole=problem.whole or problem)


def _by_episode(
    solution: CountedSolution, problem: Problem, data: Trajectories, group: IntArray, c: FloatArray, noise: LoggerNoise
) -> Solution:
    """Scores and weights of the rows as they are: a row of weight c influences c times its coefficient."""
    table, kept = solution.scores, solution.weights
    assert table is not None
    assert kept is not None
    n = problem.logged.n_groups
    first = group[data.first]
    logged = np.zeros(data.n_rows)
    logged[data.first] = (problem.logged.starts / np.maximum(np.bincount(first, minlength=n), 1))[first]
    psi = ScoreTable(table).over(group, {"rows": c, "reward": c * data.reward, "starts": logged})
    weight = c * (kept.total / np.maximum(sum_by(group, c, n), np.finfo(float).tiny))[group]
    weights = Weights(sum_by(group, weight, n), sum_by(group, weight**2, n), float(weight.max(initial=0.0)))
    found = dressed(problem, replace(solution, weights=weights, of_logged=True))
    return replace(
        found,
        scores=ClusterScores(sum_by(data.episode, psi, data.n_episodes)),
        measures=replace(found.measures, noise_ratio=float(np.exp(noise.belief * np.ptp(noise.log_noise)))),
    )


def opt_emp(form: str = "general") -> OptimalWeights:
    """EMP with optimal weights; there is no influence function of the paper's regularised program."""
    if form != "general":
        said = "'opt-emp' weighs by influence functions, which the paper's form has not; use "
        raise UsageError(Advice(said, Setting("form", "general")))
    return OptimalWeights()
