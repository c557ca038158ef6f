"""What those who wrote the logs earn by themselves, where states are not counted and episodes were cut.

Least squares on the features of the state, from the rows of one logger (or of all):

    A = Σ φ(s)(φ(s) − γφ(s′))ᵀ / rows,   b = Σ φ r / rows,   e = Σ φ / rows
    sums        A β = b            Aᵀ θ = k E_μ₀ φ                 value  k E_μ₀ φ·β
    average     A β + η e = b      Aᵀ θ = 0,  e·θ = 1              value  η

with V = φ·β and ω = φ·θ; φ(s′) is 0 after an end, E_μ₀ φ for the average. β and θ come from one pseudo-inverse. One
round for the moments, one for the scores by episode; all loggers share both. See
:mod:`mixope.estimators.counts.on_policy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.base.errors import MixopeError, UsageError
from mixope.base.estimand import Estimand
from mixope.estimators.asking import Asking
from mixope.estimators.counts.on_policy import ChainValue, OnPolicyValues, RewardPieces, on_policy_values, settled
from mixope.estimators.features.estimators import RewardSums
from mixope.estimators.features.problem import SampledRows
from mixope.features import FittedMap
from mixope.logs import EPISODE_KEYS
from mixope.requests.by_episode import pieces_of_episodes, sum_by_episode
from mixope.requests.episodes import RETURNS, EpisodeTotals, return_of
from mixope.requests.grouping import Grouped, Grouping, GroupSums
from mixope.requests.moments import MomentRequest, Moments
from mixope.requests.processor import phi_of
from mixope.requests.request import Batch, Request, SlicedRequest
from mixope.requests.rows import Rows
from mixope.requests.scores import ClusterScores
from mixope.requests.terms import ColumnSum, FeatureColumns, NumberSum, Product, Term

MOST_FITTED = 20
"""With more loggers than this, the pool alone is fitted."""
ROWS_PER_FEATURE = 10
_NEGATIVE_MASS = 0.1
_CUTOFF = 1e-5
"""Directions of the features whose share in the system is below this are left out: what rows tell of them is chance."""


def on_policy_on_features(
    known: SampledRows,
    totals: EpisodeTotals,
    estimand: Estimand,
    base: int,
    piece_steps: int | None = None,
    fit: bool = True,
) -> Asking[OnPolicyValues]:
    """Σ γᵗ r by episode, rewards by pieces where blocks are wanted, and the chains of those with cut episodes.

    Without ``fit``, the average is the mean of the logged steps.
    """
    whole, n = settled(estimand, totals), len(known.labels) + 1
    cut = [not whole[totals.logger == j].all() for j in range(n - 1)]
    wanted = any(cut) and (fit or not estimand.restarts)
    fits = Fits.of(known, estimand, cut, piece_steps) if wanted else None
    requests: list[Request] = [] if estimand.restarts else [_returns(estimand, base)]
    requests += [RewardSums(piece_steps)] if piece_steps is not None else []
    requests += [fits.request] if isinstance(fits, Fits) else []
    answers = iter((yield tuple(requests)) if requests else ())
    returns = None if estimand.restarts else next(answers).column(RETURNS)
    pieces = None if piece_steps is None else _pieces(next(answers))
    chains: Sequence[ChainValue | MixopeError | None]
    chains = (yield from fits.solve(next(answers))) if isinstance(fits, Fits) else [fits] * n
    return on_policy_values(estimand, totals, chains, returns, pieces)


def _returns(estimand: Estimand, base: int) -> Grouped:
    return Grouped(Grouping(EPISODE_KEYS, (return_of(estimand, base),)))


def _pieces(sums: GroupSums) -> RewardPieces:
    return RewardPieces(sums.column("r"), sums.column("n"), pieces_of_episodes(sums))


@dataclass(frozen=True)
class ChainSums(MomentRequest):
    """Of each label, or of everybody: Σ φ(φ − γφ′)ᵀ, Σ φ r, Σ φ, Σ φ at ends and at first rows, rows and first rows."""

    features: FittedMap
    gamma: float
    labels: tuple[str, ...] = ()

    @property
    def maps(self) -> tuple[FittedMap, ...]:
        """φ."""
        return (self.features,)

    def terms(self, rows: Rows) -> tuple[Term, ...]:
        """The same, in terms."""
        n = rows.times
        by_row = np.stack([n * rows.reward, n, n * rows.terminated, n * rows.start], axis=1)
        found: list[Term] = []
        for k, label in enumerate(self.labels or (None,)):
            mine = np.ones(len(rows)) if label is None else (rows.logger == label).astype(np.float64)
            going = FeatureColumns(self.features, -self.gamma * n * mine * ~rows.terminated, following=True)
            gap, sums = (FeatureColumns(self.features, n * mine), going), mine[:, None] * by_row
            found += [
                Product(f"gap{k}", (FeatureColumns(self.features),), gap, by_fold=False),
                ColumnSum(f"by row{k}", (FeatureColumns(self.features, sums),), by_fold=False, stacked=True),
                NumberSum(f"size{k}", sums, by_fold=False),
            ]
        return tuple(found)


@dataclass(frozen=True)
class ChainScores(SlicedRequest):
    """By episode: Σ ω(r − η + γV(s′) − V(s)) and Σ V(s₀), by the row's own logger's fit and by the pool's.

    The columns of ``beta`` and ``theta``, ``level`` (η) and ``after`` (V after an end) are the loggers' in the order
    of ``labels``, and the pool's last.
    """

    features: FittedMap
    gamma: float
    labels: tuple[str, ...]
    beta: FloatArray
    theta: FloatArray
    level: FloatArray
    after: FloatArray
    piece_steps: int | None = None

    sees_unfollowed = True

    def add(self, total: GroupSums | None, batch: Batch) -> GroupSums:
        """With one slice added; all its episodes are there, and no more is added than is known what followed."""
        rows, n = batch.followed.rows, batch.followed.rows.times
        phi, ahead = phi_of(self.features, rows), phi_of(self.features, rows, following=True)
        value = phi @ self.beta
        later = np.where(rows.terminated[:, None], self.after, self.gamma * (ahead @ self.beta))
        score = n[:, None] * (phi @ self.theta) * (rows.reward[:, None] - self.level + later - value)
        begun = rows.start * n
        everybody = len(self.level) - 1
        number = {label: k for k, label in enumerate(self.labels)}
        own = np.array([number.get(label, everybody) for label in rows.logger.tolist()], dtype=np.int64)
        columns = {"starts": begun}
        for name, whose in (("own", own), ("pool", np.full(len(rows), everybody))):
            columns[name] = np.take_along_axis(score, whose[:, None], axis=1)[:, 0]
            columns[f"{name} first"] = np.take_along_axis(value, whose[:, None], axis=1)[:, 0] * begun
        part = sum_by_episode(batch.table, batch.laid(columns), "own scores", self.piece_steps)
        return part if total is None else total.merge(part)


@dataclass(frozen=True)
class Fits:
    """Everybody's chain: on which features, from which moments."""

    known: SampledRows
    estimand: Estimand
    request: ChainSums
    piece_steps: int | None

    @classmethod
    def of(
        cls, known: SampledRows, estimand: Estimand, cut: Sequence[bool], piece_steps: int | None
    ) -> Fits | MixopeError:
        """With as many bumps as the smallest logger that needs them can carry; or why nothing can be fitted."""
        if estimand.horizon is not None:
            return UsageError(
                f"some episodes were cut before {estimand.horizon:,} steps, and where states are not counted"
                " nothing says what would have followed"
            )
        labels = known.labels if len(known.labels) <= MOST_FITTED else ()
        fewest = min((known.logger_rows[label] for label, one in zip(labels, cut, strict=False) if one), default=None)
        features = known.own_features(fewest or known.n_rows)
        return cls(known, estimand, ChainSums(features, estimand.discount, labels), piece_steps)

    def solve(self, moments: Moments) -> Asking[list[ChainValue | MixopeError]]:
        """The fits, then the scores by episode."""
        labels, features = self.request.labels, self.request.features
        parts = [_Sums.of(moments, k) for k in range(max(len(labels), 1))]
        fits = [self._fit(part, label) for part, label in zip(parts, labels, strict=False)]
        fits.append(self._fit(_Sums.all(parts), None))
        solved = [fit if isinstance(fit, _Fit) else _Fit.nothing(features.size) for fit in fits]
        (sums,) = yield (
            ChainScores(
                features,
                self.request.gamma,
                labels,
                np.stack([fit.beta for fit in solved], axis=1),
                np.stack([fit.theta for fit in solved], axis=1),
                np.array([fit.level for fit in solved]),
                np.array([fit.after for fit in solved]),
                self.piece_steps,
            ),
        )
        many = UsageError(f"some episodes were cut; of more than {MOST_FITTED} loggers the pool alone is fitted")
        *loggers, pool = fits
        own = [self._chain(fit, sums, "own") for fit in loggers or [many] * len(self.known.labels)]
        return [*own, self._chain(pool, sums, "pool")]

    def _fit(self, sums: _Sums, label: str | None) -> _Fit | MixopeError:
        """β and θ from one pseudo-inverse, or why they cannot be had."""
        features, restarts = self.request.features, self.estimand.restarts
        if sums.starts == 0 and (sums.ends > 0 or not restarts):
            return UsageError("no first step of an episode is in the logs")
        if sums.rows < ROWS_PER_FEATURE * features.size:
            said = f"some episodes were cut, and {sums.rows:,.0f} rows are too few"
            return UsageError(f"{said} to tell what would have followed")
        fit = _average(sums) if restarts else _summed(sums, self.estimand.scale)
        sample = self.known.sample
        mine = sample if label is None else sample.take(sample.logger == label)
        weights = features.transform(mine.observation) @ fit.theta if len(mine) else np.ones(1)
        negative, positive = (float(np.maximum(sign * weights, 0.0).sum()) for sign in (-1.0, 1.0))
        if not np.isfinite(fit.value) or negative > _NEGATIVE_MASS * positive:
            return UsageError("some episodes were cut, and what would have followed cannot be fitted")
        return fit

    def _chain(self, fit: _Fit | MixopeError, sums: GroupSums, name: str) -> ChainValue | MixopeError:
        if isinstance(fit, MixopeError):
            return fit
        first = sums.column(f"{name} first") - fit.first * sums.column("starts")
        scores = sums.column(name) / fit.rows + fit.at_starts * first / max(fit.starts, 1.0)
        lengths = None if self.piece_steps is None else pieces_of_episodes(sums)
        return ChainValue(fit.value, ClusterScores.of_pieces(scores, lengths))


@dataclass(frozen=True)
class _Sums:
    """The moments of some rows."""

    gap: FloatArray
    reward: FloatArray
    visits: FloatArray
    ended: FloatArray
    start: FloatArray
    rows: float
    ends: float
    starts: float

    @classmethod
    def of(cls, moments: Moments, number: int) -> _Sums:
        gap, by_row, size = (moments[f"{name}{number}"].sum(axis=0) for name in ("gap", "by row", "size"))
        return cls(gap, *by_row, *map(float, size[1:]))

    @classmethod
    def all(cls, parts: Sequence[_Sums]) -> _Sums:
        return cls(*(sum(getattr(part, each.name) for part in parts) for each in fields(cls)))

    @property
    def start_law(self) -> FloatArray:
        """E_μ₀ φ."""
        return self.start / max(self.starts, 1.0)


@dataclass(frozen=True)
class _Fit:
    """V = φ·β and ω = φ·θ of some rows; η, V after an end, the mean of V(s₀), and what a start counts in the score."""

    value: float
    beta: FloatArray
    theta: FloatArray
    level: float
    after: float
    first: float
    at_starts: float
    rows: float
    starts: float

    @classmethod
    def nothing(cls, size: int) -> _Fit:
        """That of somebody who has none."""
        return cls(0.0, np.zeros(size), np.zeros(size), 0.0, 0.0, 0.0, 0.0, 1.0, 1.0)


def _summed(sums: _Sums, scale: float) -> _Fit:
    """A discounted value, or the total of an episode."""
    inverse = np.linalg.pinv(sums.gap / sums.rows, rcond=_CUTOFF)
    beta, theta = inverse @ (sums.reward / sums.rows), scale * (sums.start_law @ inverse)
    first = float(sums.start_law @ beta)
    return _Fit(scale * first, beta, theta, 0.0, 0.0, first, scale, sums.rows, sums.starts)


def _average(sums: _Sums) -> _Fit:
    """η and the differential value; an end leads to μ₀."""
    gap = sums.gap - np.outer(sums.ended, sums.start_law)
    inverse = np.linalg.pinv(np.column_stack([gap, sums.visits]) / sums.rows, rcond=_CUTOFF)
    *beta, level = inverse @ (sums.reward / sums.rows)
    theta, first = inverse[-1], float(sums.start_law @ np.array(beta))
    at_ends = float(theta @ sums.ended) / sums.rows
    return _Fit(float(level), np.array(beta), theta, float(level), first, first, at_ends, sums.rows, sums.starts)
