"""Mean and log-variance of Gaussian draws, linear in features, by maximum likelihood, allowing for its errors.

    b(a|s) = N(a; xᵀβ, exp(xᵀγ)),      b̂ = (1 − ε) N(a; xᵀβ, exp(xᵀγ)(1 + 2ℓ)) + ε N̄(a)

The rounds are those of :mod:`mixope.behaviours.gaussian_rows`, which says what the letters mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.boxed_draws import Draws
from mixope.errors import DataError

#: σ² is kept between these multiples of the variance of the action.
SMALLEST, LARGEST = 1e-6, 1e2
#: In rows: bumps overlap, so that even a small one smooths; the log-variance needs less detail than the mean.
MEAN_RIDGE, VARIANCE_RIDGE = 1e-4, 1.0
#: |log σ²| is held to this while γ moves: e^±300 are numbers, their products are not.
_FAR = 300.0
#: Rounds end when one gains less than this, in nats a row.
GAIN = 1e-5
#: ε, the share of the law of all actions together.
DEFENSIVE = 1e-3


@dataclass(frozen=True)
class Gaussian:
    """β and γ, shape (1 + M, d), the range of log σ² by component, and R with RRᵀ = (Σ c xxᵀ)⁻¹ once it is known."""

    mean: FloatArray
    log_variance: FloatArray
    smallest: FloatArray
    largest: FloatArray
    root: FloatArray | None = None

    def moments(self, design: FloatArray) -> tuple[FloatArray, FloatArray]:
        """μ and log σ² of every row, with 1 + 2ℓ if ℓ = |Rᵀx|² is known."""
        h = np.clip(design @ self.log_variance, self.smallest, self.largest)
        if self.root is not None:
            h += np.log1p(2 * np.sum((design @ self.root) ** 2, axis=1))[:, None]
        return design @ self.mean, h

    def log_density(self, design: FloatArray, draws: Draws) -> FloatArray:
        """log b(a|s)."""
        return draws.log_density(*self.moments(design))

    def allowing_for_error(self, design: FloatArray, weight: FloatArray) -> Gaussian:
        """The same, knowing R: the rounds themselves do without."""
        return replace(self, root=np.linalg.inv(np.linalg.cholesky(gram(design, weight, MEAN_RIDGE))).T)


@dataclass(frozen=True)
class Defended:
    """(1 − ε) b + ε N̄, with N̄ the same Gaussian everywhere."""

    model: Gaussian
    everywhere: Gaussian

    def log_density(self, design: FloatArray, draws: Draws) -> FloatArray:
        """log b̂(a|s)."""
        return defended(self.model.log_density(design, draws), self.everywhere, draws)


def defended(log_density: FloatArray, everywhere: Gaussian, draws: Draws) -> FloatArray:
    """log((1 − ε) b + ε N̄)."""
    shape = draws.value.shape
    background = draws.log_density(
        np.broadcast_to(everywhere.mean[0], shape), np.broadcast_to(everywhere.log_variance[0], shape)
    )
    return np.asarray(np.logaddexp(np.log1p(-DEFENSIVE) + log_density, np.log(DEFENSIVE) + background))


def fit_gaussian(design: FloatArray, draws: Draws, weight: FloatArray, rounds: int = 60) -> Defended:
    """Rounds until they gain nothing."""
    model = everywhere = same_everywhere(draws, weight, design.shape[1])
    before = -np.inf
    for _ in range(rounds):
        model = improve(model, design, draws, weight)
        now = float(np.average(model.log_density(design, draws), weights=weight))
        if now - before < GAIN:
            break
        before = now
    return Defended(model.allowing_for_error(design, weight), everywhere)


def same_everywhere(draws: Draws, weight: FloatArray, columns: int) -> Gaussian:
    """The same mean and variance in every state: where rounds start."""
    centre = np.average(draws.value, axis=0, weights=weight)
    level = np.log(np.average((draws.value - centre) ** 2, axis=0, weights=weight))
    mean, log_variance = np.zeros((columns, len(centre))), np.zeros((columns, len(centre)))
    mean[0], log_variance[0] = centre, level
    return Gaussian(mean, log_variance, level + np.log(SMALLEST), level + np.log(LARGEST))


def improve(model: Gaussian, design: FloatArray, draws: Draws, weight: FloatArray) -> Gaussian:
    """One round: β = (Σ c xxᵀ/σ² + λ)⁻¹ Σ c x a/σ², then two steps of γ; a clipped a enters as its expectation."""
    mu, h = model.moments(design)
    beta, gamma = model.mean.copy(), model.log_variance.copy()
    information = gram(design, weight, VARIANCE_RIDGE)
    for i in range(beta.shape[1]):
        value, variance = draws.expected(i, mu[:, i], np.exp(0.5 * h[:, i]))
        # In units of the typical variance, or the ridge would outweigh the rows.
        precise = weight * np.exp(np.average(h[:, i], weights=weight) - h[:, i])
        beta[:, i] = np.linalg.solve(gram(design, precise, MEAN_RIDGE), design.T @ (precise * value))
        squared = (value - design @ beta[:, i]) ** 2 + variance
        for _ in range(2):
            gamma[:, i] = _score_step(gamma[:, i], design, squared, weight, information)
    return replace(model, mean=beta, log_variance=gamma)


def _score_step(
    gamma: FloatArray, design: FloatArray, squared: FloatArray, weight: FloatArray, information: FloatArray
) -> FloatArray:
    """γ + t (Σ c xxᵀ + λ)⁻¹ (Σ c x (e²/σ² − 1) − λγ), t halved until Σ c (log σ² + e²/σ²) + λ|γ|² falls."""
    ridge = ridges(len(gamma), VARIANCE_RIDGE)

    def loss(gamma: FloatArray, h: FloatArray) -> float:
        with np.errstate(over="ignore"):
            return float(weight @ (h + squared * np.exp(-h)) + ridge @ gamma**2)

    h = np.clip(design @ gamma, -_FAR, _FAR)
    step = np.linalg.solve(information, design.T @ (weight * (squared * np.exp(-h) - 1)) - ridge * gamma)
    move, now = design @ step, loss(gamma, h)
    for t in 0.5 ** np.arange(8):
        if loss(gamma + t * step, h + t * move) < now:
            return np.asarray(gamma + t * step)
    return gamma


def gram(design: FloatArray, weight: FloatArray, ridge: float) -> FloatArray:
    """Σ w xxᵀ + λ, the constant left free."""
    result = np.asarray(design.T @ (design * weight[:, None]))
    result.flat[:: len(result) + 1] += ridges(len(result), ridge)
    return result


def ridges(columns: int, ridge: float) -> FloatArray:
    """λ of every column."""
    return np.concatenate([[1e-9], np.full(columns - 1, ridge)])


def check_spread(model: Gaussian, design: FloatArray) -> None:
    """A logger that always does the same in a state has no density either."""
    at_floor = (design @ model.log_variance <= model.smallest).mean(axis=0)
    for i in np.flatnonzero(at_floor > 0.5):
        raise DataError(
            f"action component {i} is a function of the state: its logger draws nothing",
            column="action",
            expected="actions that vary in a state",
            got=f"a variance below {SMALLEST:g} of the total in {at_floor[i]:.0%} of rows",
            hint="use a state-action estimator ('sadl', 'dualdice', 'mwl'), which needs no behaviour",
        )
