"""Exact first-order (asymptotic) variances of the state-ratio estimators, on explicit models.

To first order the error of an estimate from N rows is (1/N) Σ_rows ψ, so N × variance tends to

    Σ_j β_j Var( Σ_t ψ_j(s_t, a_t, s_{t+1}) ) / L

over episodes of logger j (share β_j of the episodes, L rows per episode on average); the variance of such a sum comes
by recursion over the steps. With ε = r − η + V(s′) − q(s,a), q = E[r − η + V(s′) | s,a], Σ d_π V = 0, row weights c_j,
m_j(s) the share of rows that lie in s and are logger j's, D(s,a) = Σ_j c_j m_j(s) π_j(a|s), ω(s) = d_π(s)/Σ_a D(s,a):

    emp                  c_j d_π(s) π(a|s)/D(s,a) · ε                 c = 1: the efficient influence function
    bch-pooled           c_j ω ρ_j ( r − η + V(s′) − V(s) )           ρ_j = π/π_j, calibrated in every state
      uncalibrated       c_j ω ( ρ_j (r − η + V(s′)) − V(s) )         the Perron vector of the uncalibrated flow
    exact mixture        as bch-pooled with π/π₀ for ρ_j, π₀ = D/Σ_a D given: Proposition 3's rival of EMP
    known-mixture        π₀ = Σ_j p̂(j|s) π_j with counted p̂:  ω( ρ₀ (r − η + V(s′) − V(s)) − E_{π_j}[ρ₀ (q − V) | s] )
    emp-single, bch      each logger alone, averaged

ε has mean 0 given (s,a), and what bch adds to it, ω(ρq − V), has mean 0 given s: the two parts do not correlate, so
estimating the behaviour can only help (Theorem 1). And Σ_j c_j² m_j π_j / D² ≥ 1/Σ_j m_j π_j by Cauchy–Schwarz, pair
by pair: no row weights do better than c = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.base.errors import UnknownName, UsageError
from mixope.worlds.efficiency import checked_shares, expected_visits
from mixope.worlds.model import Model
from mixope.worlds.truth import LongRunTruth, long_run, stopped

_MEAN_ZERO = 1e-11


@dataclass(frozen=True, eq=False)
class FutureLogs:
    """Logs to come: episodes of ``horizon`` steps by ``loggers``, to evaluate ``target``.

    ``shares`` are those of the episodes (None: equal); ``noise`` is the variance of an error that each logger's
    recorder adds to every reward.
    """

    model: Model
    target: AnyArray
    loggers: Sequence[AnyArray]
    horizon: int
    shares: Sequence[float] | None = None
    noise: Sequence[float] | None = None

    @cached_property
    def truth(self) -> LongRunTruth:
        """η, d_π and V."""
        return long_run(self.model, self.target)

    @cached_property
    def episode_shares(self) -> FloatArray:
        """β."""
        return checked_shares(self.loggers, self.shares)

    @cached_property
    def visits(self) -> FloatArray:
        """Expected visits of an episode, shape (loggers, S)."""
        return np.stack([expected_visits(self.model, policy, self.horizon) for policy in self.loggers])

    @cached_property
    def rows_an_episode(self) -> float:
        """L."""
        return float(self.episode_shares @ self.visits.sum(axis=1))

    @cached_property
    def row_law(self) -> FloatArray:
        """m_j(s), shape (loggers, S); sums to 1."""
        return np.asarray(self.episode_shares[:, None] * self.visits / self.rows_an_episode)

    @cached_property
    def policies(self) -> FloatArray:
        """π_j, shape (loggers, S, A)."""
        return np.stack([self.model.checked_policy(policy) for policy in self.loggers])

    @cached_property
    def value(self) -> FloatArray:
        """V by state; 0 where it has no meaning and no weight."""
        return np.nan_to_num(self.truth.differential_value)

    @cached_property
    def advantage_return(self) -> FloatArray:
        """r − η + V(s′) on every stored transition; after an end E_μ₀ V."""
        model, V = self.model, self.value
        following = np.where(model.terminated, model.start @ V, V[model.transition.indices])
        return np.asarray(model.reward - self.truth.average + following)

    @cached_property
    def q(self) -> FloatArray:
        """E[r − η + V(s′) | s, a]."""
        return self.model.expected(self.advantage_return)

    @cached_property
    def needed(self) -> FloatArray:
        """d_π(s) π(a|s)."""
        return np.asarray(self.truth.stationary[:, None] * self.model.checked_policy(self.target))

    def alone(self, number: int) -> FutureLogs:
        """The same question from one logger's episodes."""
        noise = None if self.noise is None else [self.noise[number]]
        return replace(self, loggers=[self.loggers[number]], shares=None, noise=noise)


@dataclass(frozen=True, eq=False)
class Score:
    """ψ of one logger = ``weight``(s,a) · (r − η + V(s′)) − ``base``(s,a); only the reward's noise needs them apart."""

    weight: FloatArray
    base: FloatArray


def asymptotic_variance(setting: FutureLogs, estimator: str, weights: Sequence[float] | None = None) -> float:
    """lim N × variance of the estimator named; ``weights`` are c by logger (up to scale), where it pools.

    Infinite where the target goes and no logger of positive weight does.
    """
    if estimator in _AVERAGED:
        if weights is not None:
            raise UsageError(f"{estimator!r} averages over loggers and takes no row weights")
        return _averaged(setting, _AVERAGED[estimator])
    if estimator not in _POOLED:
        raise UnknownName("estimator with a first-order variance", estimator, [*_POOLED, *_AVERAGED])
    c = np.ones(len(setting.loggers)) if weights is None else np.asarray(weights, dtype=np.float64)
    if c.shape != (len(setting.loggers),) or (c < 0).any() or c.sum() <= 0:
        raise UsageError(f"expected a weight of at least 0 for each of {len(setting.loggers)} loggers, got {weights}")
    law = np.einsum("j,js,jsa->sa", c, setting.row_law, setting.policies)
    if (law[setting.needed > 0] == 0).any():
        return float("inf")
    scores = _POOLED[estimator](setting, c, law)
    with np.errstate(invalid="ignore"):
        total = sum(
            b * _episode(setting, j, score)
            for j, (b, score) in enumerate(zip(setting.episode_shares, scores, strict=True))
        )
    return float(total / setting.rows_an_episode)


def _averaged(setting: FutureLogs, single: str) -> float:
    """Σ_j (1/J)² V_j / w_j: each logger has the share w_j of the rows and 1/J of the say."""
    share = setting.row_law.sum(axis=1)
    each = [asymptotic_variance(setting.alone(j), single) for j in range(len(setting.loggers))]
    return float(sum(v / w for v, w in zip(each, share, strict=True)) / len(each) ** 2)


def _over(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """The ratio, 0 where there is nothing to weigh."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def _counted(setting: FutureLogs, c: FloatArray, law: FloatArray) -> list[Score]:
    weight = _over(setting.needed, law)
    return [Score(cj * weight, cj * weight * setting.q) for cj in c]


def _logged(setting: FutureLogs, c: FloatArray, law: FloatArray, calibrated: bool) -> list[Score]:
    omega, V = _over(setting.truth.stationary, law.sum(axis=1))[:, None], setting.value[:, None]
    scores = []
    for cj, policy, visits in zip(c, setting.policies, setting.visits, strict=True):
        missing = (omega * setting.needed > 0) & (policy == 0)
        weight = cj * omega * _over(setting.model.checked_policy(setting.target), policy)
        weight[(missing & (visits[:, None] > 0)).any(axis=1)] = np.inf  # its rows there cannot stand for the target's
        scores.append(Score(weight, weight * V if calibrated else cj * omega * V + 0.0 * weight))
    return scores


def _mixture(
    setting: FutureLogs, c: FloatArray, law: FloatArray, calibrated: bool, counted: bool = False
) -> list[Score]:
    omega, V = _over(setting.truth.stationary, law.sum(axis=1))[:, None], setting.value[:, None]
    weight = _over(setting.needed, law)
    scores = []
    for cj, policy in zip(c, setting.policies, strict=True):
        base = weight * V if calibrated else omega * V + 0.0 * weight
        if counted:
            base = base + (policy * weight * (setting.q - V)).sum(axis=1, keepdims=True)
        scores.append(Score(cj * weight, cj * base))
    return scores


_POOLED: dict[str, Callable[[FutureLogs, FloatArray, FloatArray], list[Score]]] = {
    "emp": _counted,
    "bch-pooled": lambda s, c, law: _logged(s, c, law, calibrated=True),
    "bch-pooled, uncalibrated": lambda s, c, law: _logged(s, c, law, calibrated=False),
    "exact mixture": lambda s, c, law: _mixture(s, c, law, calibrated=True),
    "exact mixture, uncalibrated": lambda s, c, law: _mixture(s, c, law, calibrated=False),
    "known-mixture": lambda s, c, law: _mixture(s, c, law, calibrated=True, counted=True),
}
_AVERAGED = {"emp-single": "emp", "bch": "bch-pooled", "bch, uncalibrated": "bch-pooled, uncalibrated"}
ESTIMATORS = (*_POOLED, *_AVERAGED)


def _episode(setting: FutureLogs, number: int, score: Score) -> float:
    """Var of Σ_t ψ over an episode of one logger, the estimated start law and the recorder's noise included."""
    model, policy = setting.model, setting.policies[number]
    reached = setting.visits[number][:, None] * policy
    if not np.isfinite(score.weight[reached > 0]).all():
        return float("inf")
    pair = model.entry_rows()
    psi = score.weight.ravel()[pair] * setting.advantage_return - score.base.ravel()[pair]
    noise = 0.0 if setting.noise is None else setting.noise[number] * float((reached * score.weight**2).sum())
    ending = float((setting.needed * model.expected(model.terminated.astype(np.float64))).sum())
    start = setting.rows_an_episode * ending * (setting.value - model.start @ setting.value)
    return noise + sum_variance(model, policy, psi, setting.horizon, start)


def sum_variance(
    model: Model, policy: AnyArray, psi: FloatArray, horizon: int, start: FloatArray | None = None
) -> float:
    """Var( g(s₀) + Σ_t ψ(s_t, a_t, s_{t+1}) ) over an episode of at most ``horizon`` steps; ``start`` is g.

    With U_t(s) = E[Σ_{u≥t} ψ | s_t = s] it is Var(g + U₀) + Σ_t E Var(ψ + U_{t+1}(s′) | s_t); U = 0 where ψ has mean 0
    in every state, and then only the visits count.
    """
    probabilities = model.checked_policy(policy)
    first = np.zeros(model.n_states) if start is None else start
    visits = expected_visits(model, probabilities, horizon)
    mean, square = _given_state(model, probabilities, psi), _given_state(model, probabilities, psi**2)
    seen: BoolArray = visits > 0
    if np.abs(mean[seen]).max() <= _MEAN_ZERO * np.sqrt(square[seen].max()):
        return float(visits[seen] @ square[seen]) + _spread(model.start, first)
    chain = stopped(model, probabilities)
    to_come = [np.zeros(model.n_states)]
    for _ in range(horizon):
        to_come.append(mean + chain.matrix @ to_come[-1])
    total, law = _spread(model.start, first + to_come[horizon]), model.start
    for t in range(horizon):
        later = np.where(model.terminated, 0.0, to_come[horizon - t - 1][model.transition.indices])
        total += float(law @ (_given_state(model, probabilities, (psi + later) ** 2) - to_come[horizon - t] ** 2))
        law = law @ chain.matrix
    return total


def _given_state(model: Model, policy: FloatArray, values: FloatArray) -> FloatArray:
    """E[x | s] under the policy, x given on every stored transition."""
    return np.asarray((policy * model.expected(values)).sum(axis=1))


def _spread(law: FloatArray, values: FloatArray) -> float:
    return float(law @ values**2 - (law @ values) ** 2)
