"""A heteroscedastic Gaussian as the mixture: mean and log-variance linear in features, by maximum likelihood.

With x = (1, φ(s)), for every component of the action on its own,

    b(a|s) = N(a; xᵀβ, exp(xᵀγ)).

The information matrix has no block between β and γ, so Fisher scoring alternates: β by ridge regression with weights
c/σ², γ by steps (Σ c xxᵀ)⁻¹ Σ c x (e²/σ² − 1), e = a − xᵀβ. Actions kept in a box are Gaussian draws seen through it:

    clipped    atoms at a bound: probability Φ((low − μ)/σ) or Φ((μ − high)/σ) there, the density inside. EM: a draw
               beyond a bound enters with its expectation and variance given that it lies there;
    squashed   actions piled up at the ends without atoms: a = c + w tanh(u), u Gaussian, if that wins held out.

Where rows are few a fit is overconfident, and a b too small is a weight too large. So the answer allows for the errors
of β and γ, each of which adds the leverage ℓ to first order, and mixes in a little of the law of all actions together:

    b̂(a|s) = (1 − ε) N(a; xᵀβ, exp(xᵀγ)(1 + 2ℓ)) + ε N̄(a),      ℓ = xᵀ(Σ c xxᵀ)⁻¹x,   ε = .001.

Which features do is decided by held-out log-likelihood (:mod:`mixope.behaviours.protocol`). Measured on Pendulum
(one logger, 20,000 rows): quadratics alone lose .2 nats per row, 50 bumps .008, both together .006. On a wavy mean with
3,000 rows, leverage and ε cut the loss from .08 to .035 and the worst row from 60 nats to 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax, logsumexp

from mixope.base.arrays import FloatArray, IntArray, square
from mixope.base.errors import DataError
from mixope.behaviours.boxes import Box, Draws, boxes
from mixope.behaviours.protocol import Behaviour, FittedBehaviour, first_best, held_out, usable_rows, vectors
from mixope.features.bumps import NormalisedBumps
from mixope.features.encoding import fit_encoded
from mixope.features.protocol import FeatureMap, FittedMap
from mixope.features.quadratic import FittedJoined, Quadratic
from mixope.requests.rows import Rows

BUMPS = (50, 100, 200)
#: As many rows, over the components of the action but no fewer than LEAST_FOR_CHOICE, settle which features do, since
#: each component is a regression of its own; the fit itself takes all.
MOST_FOR_CHOICE, LEAST_FOR_CHOICE = 20_000, 5_000
FEWEST_ROWS = 30
#: σ² is kept between these multiples of the variance of the action.
SMALLEST, LARGEST = 1e-6, 1e2
#: In rows: bumps overlap, so that even a small one smooths; the log-variance needs less detail than the mean.
MEAN_RIDGE, VARIANCE_RIDGE = 1e-4, 1.0
#: |log σ²| is held to this while γ moves: e^±300 are numbers, their products are not.
_FAR = 300.0
#: Rounds end when one gains less than this, in nats per row.
GAIN = 1e-5
#: ε, the share of the law of all actions together.
DEFENSIVE = 1e-3
#: At most so many rounds, each one regression per component; a fit that still gains then says so in its notes.
ROUNDS = 60
CUT_SHORT = "the fit of the behaviour was cut short while its rounds still gained"


@dataclass(frozen=True)
class HeteroscedasticGaussian(Behaviour):
    """b from ``features`` of the state; by default quadratics, alone or with bumps, whichever wins held out."""

    features: FeatureMap | None = None
    name = "Gaussian mixture"

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedDensity:
        """Choose features and box, then fit to all rows of positive weight."""
        rows, weight = varied(*usable_rows(rows, weight))
        choice, _ = choose(self.features, rows, weight, seed, (fit_gaussian,))
        known = choice.prepare(rows, weight)
        model = fit_gaussian(known)
        check_spread(model.experts[0], known.design)
        return FittedDensity(choice, model)


@dataclass(frozen=True)
class FittedDensity(FittedBehaviour):
    """Ready: what was chosen, the law, and what was left out of its fit to bound the time."""

    choice: Choice
    model: Gaussians
    cut_down: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found about bounds of the actions, and whether the fit was cut down or short."""
        return self.choice.box.notes + self.cut_down + (() if self.model.converged else (CUT_SHORT,))

    def log_prob(self, rows: Rows) -> FloatArray:
        """log b(a|s), one per row."""
        return self.model.log_density(self.choice.prepare(rows))


@dataclass(frozen=True)
class Prepared:
    """Rows as fits want them: x, the draws behind the actions, weights, and the number of the logger."""

    design: FloatArray
    draws: Draws
    weight: FloatArray
    label: IntArray

    def take(self, rows: IntArray) -> Prepared:
        """Some of the rows."""
        return Prepared(self.design[rows], self.draws.take(rows), self.weight[rows], self.label[rows])

    def some(self, most: int, seed: int) -> Prepared:
        """All rows, or as many as ``most`` of them."""
        n = len(self.weight)
        if n <= most:
            return self
        return self.take(np.sort(np.random.default_rng([seed, 31]).choice(n, most, replace=False)))

    def held_out(self, fit: Fit, seed: int) -> FloatArray:
        """log b̂ of every row by a fit without it."""

        def trial(inside: IntArray, outside: IntArray) -> FloatArray:
            return fit(self.take(inside)).log_density(self.take(outside))

        return held_out(trial, len(self.weight), seed)


@dataclass(frozen=True)
class Choice:
    """Features and box, and what they reached held out, in nats per row."""

    label: str
    features: FittedMap
    box: Box
    held_out: float = float("nan")

    def design(self, states: FloatArray) -> FloatArray:
        """x = (1, φ(s)) of every state."""
        phi = self.features.transform(states)
        return np.concatenate([np.ones((len(phi), 1)), phi], axis=1)

    def prepare(self, rows: Rows, weight: FloatArray | None = None) -> Prepared:
        """x of every row, and the draw behind its action; weights and labels for rows to be fitted to."""
        design, actions = self.design(_states(rows)), _actions(rows)
        if actions.shape[1] != len(self.box.low):
            raise DataError(
                "the actions have another number of components than the sample",
                expected=f"{len(self.box.low)} components",
                got=f"{actions.shape[1]}",
            )
        draws = self.box.draws(actions)
        if weight is None:
            return Prepared(design, draws, np.ones(len(rows)), np.zeros(len(rows), dtype=np.int64))
        return Prepared(design, draws, weight, np.unique(rows.logger, return_inverse=True)[1].astype(np.int64))


#: From rows to a law.
Fit = Callable[[Prepared], "Gaussians"]


def choose(
    features: FeatureMap | None, rows: Rows, weight: FloatArray, seed: int, fits: Sequence[Fit]
) -> tuple[Choice, Fit]:
    """The best held out among features, boxes and fits, on part of the rows if there are many."""
    most = rows_for_choice(_actions(rows).shape[1])
    if len(rows) > most:
        part = np.random.default_rng([seed, 29]).choice(len(rows), most, replace=False)
        rows, weight = rows.take(part), weight[part]
    tried: list[tuple[Choice, Fit]] = []

    def scores() -> Iterator[FloatArray]:
        for label, fitted in _fitted_maps(features, rows, seed):
            for box in boxes(_actions(rows)):
                choice = Choice(label, fitted, box)
                prepared = choice.prepare(rows, weight)
                for fit in fits:
                    tried.append((choice, fit))
                    yield prepared.held_out(fit, seed)

    best, reached = first_best(scores(), weight, max(2, len(fits)))
    choice, fit = tried[best]
    return replace(choice, held_out=reached), fit


def rows_for_choice(components: int) -> int:
    """How many rows settle a choice."""
    return max(MOST_FOR_CHOICE // components, LEAST_FOR_CHOICE)


def _fitted_maps(features: FeatureMap | None, rows: Rows, seed: int) -> Iterator[tuple[str, FittedMap]]:
    """The user's, or candidates in order of size, with at least ten rows per feature."""
    states = _states(rows)
    if features is not None:
        yield type(features).__name__, fit_encoded(features, states, rows.roles, seed)
        return
    quadratic = fit_encoded(Quadratic(), states, rows.roles, seed)
    yield "quadratic", quadratic
    for size in BUMPS:
        if 10 * size <= len(states):
            bumps = fit_encoded(NormalisedBumps(size), states, rows.roles, seed)
            yield f"quadratic + {size} bumps", FittedJoined(quadratic, bumps)


def _states(rows: Rows) -> FloatArray:
    return vectors(rows.observation, "states", "a density needs states that are vectors: log them as float columns")


def _actions(rows: Rows) -> FloatArray:
    return vectors(rows.action, "actions")


def varied(rows: Rows, weight: FloatArray) -> tuple[Rows, FloatArray]:
    """The same, if a density can be fitted to them."""
    _states(rows)
    actions = _actions(rows)
    if len(rows) < FEWEST_ROWS:
        raise DataError(
            "too few rows to fit a behaviour", expected=f"at least {FEWEST_ROWS} rows of positive weight", got=len(rows)
        )
    for i in range(actions.shape[1]):
        _check_varies(actions[:, i], i)
    return rows, weight


def _check_varies(action: FloatArray, i: int) -> None:
    """A density needs a continuum of actions."""
    distinct = len(np.unique(action[:1000]))
    if distinct <= 5 and (distinct := len(np.unique(action))) <= 5:
        raise DataError(
            f"action component {i} takes {'one value' if distinct == 1 else f'{distinct} values'} only,"
            " so it has no density",
            column="action",
            expected="real numbers that vary",
            got=f"{np.unique(action).tolist()}",
            hint="a deterministic logger has no density: drop the component, log the action as a discrete one, or use"
            " a state-action estimator ('sadl', 'dualdice', 'mwl'), which needs no behaviour",
        )


@dataclass(frozen=True)
class GaussianParameters:
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

    def allowing_for_error(self, design: FloatArray, weight: FloatArray) -> GaussianParameters:
        """The same, knowing R: the rounds themselves do without."""
        return replace(self, root=np.linalg.inv(np.linalg.cholesky(gram(design, weight, MEAN_RIDGE))).T)


@dataclass(frozen=True)
class Gaussians:
    """(1 − ε) Σ_k g_k N_k + ε N̄: one expert or several, the weights W of their gate, shape (1 + M, K), and N̄."""

    experts: tuple[GaussianParameters, ...]
    gate: FloatArray
    everywhere: GaussianParameters
    converged: bool = False

    def joint(self, rows: Prepared) -> FloatArray:
        """log g_k(s) N_k(a|s), shape (n, K)."""
        each = np.stack([e.log_density(rows.design, rows.draws) for e in self.experts], axis=1)
        return np.asarray(log_softmax(rows.design @ self.gate, axis=1) + each)

    def log_density(self, rows: Prepared) -> FloatArray:
        """log b̂(a|s)."""
        shape, everywhere = rows.draws.value.shape, self.everywhere
        background = rows.draws.log_density(
            np.broadcast_to(everywhere.mean[0], shape), np.broadcast_to(everywhere.log_variance[0], shape)
        )
        inside = logsumexp(self.joint(rows), axis=1)
        return np.asarray(np.logaddexp(np.log1p(-DEFENSIVE) + inside, np.log(DEFENSIVE) + background))


def fit_gaussian(rows: Prepared, *, steady: bool = False) -> Gaussians:
    """One expert, by rounds until they gain nothing; ``steady`` if the variance is the same everywhere."""
    design, draws, weight = rows.design, rows.draws, rows.weight
    model = everywhere = same_everywhere(draws, weight, design.shape[1])
    before, converged = -np.inf, False
    information = gram(design, weight, MEAN_RIDGE if steady else VARIANCE_RIDGE)
    for _ in range(ROUNDS):
        model = (regress if steady else improve)(model, design, draws, weight, information)
        now = float(np.average(model.log_density(design, draws), weights=weight))
        if converged := now - before < GAIN:
            break
        before = now
    gate = np.zeros((design.shape[1], 1))
    return Gaussians((model.allowing_for_error(design, weight),), gate, everywhere, converged)


def same_everywhere(draws: Draws, weight: FloatArray, columns: int) -> GaussianParameters:
    """The same mean and variance in every state: where rounds start."""
    centre = np.average(draws.value, axis=0, weights=weight)
    level = np.log(np.average((draws.value - centre) ** 2, axis=0, weights=weight))
    mean, log_variance = np.zeros((columns, len(centre))), np.zeros((columns, len(centre)))
    mean[0], log_variance[0] = centre, level
    return GaussianParameters(mean, log_variance, level + np.log(SMALLEST), level + np.log(LARGEST))


def improve(
    model: GaussianParameters, design: FloatArray, draws: Draws, weight: FloatArray, information: FloatArray
) -> GaussianParameters:
    """One round: β = (Σ c xxᵀ/σ² + λ)⁻¹ Σ c x a/σ², then two steps of γ; a clipped a enters as its expectation."""
    mu, h = model.moments(design)
    beta, gamma = model.mean.copy(), model.log_variance.copy()
    for i in range(beta.shape[1]):
        value, variance = draws.expected(i, mu[:, i], np.exp(0.5 * h[:, i]))
        # In units of the typical variance, or the ridge would outweigh the rows.
        precise = weight * np.exp(np.average(h[:, i], weights=weight) - h[:, i])
        beta[:, i] = np.linalg.solve(gram(design, precise, MEAN_RIDGE), design.T @ (precise * value))
        squared = (value - design @ beta[:, i]) ** 2 + variance
        for _ in range(2):
            gamma[:, i] = _score_step(gamma[:, i], design, squared, weight, information)
    return replace(model, mean=beta, log_variance=gamma)


def regress(
    model: GaussianParameters, design: FloatArray, draws: Draws, weight: FloatArray, information: FloatArray
) -> GaussianParameters:
    """One round with σ² the same everywhere: β = (Σ c xxᵀ + λ)⁻¹ Σ c x a, then σ² = Σ c e² / Σ c.

    Without clipped draws the first round is the last.
    """
    mu, h = model.moments(design)
    each = [draws.expected(i, mu[:, i], np.exp(0.5 * h[:, i])) for i in range(mu.shape[1])]
    value, variance = (np.stack(part, axis=1) for part in zip(*each, strict=True))
    beta = np.linalg.solve(information, design.T @ (weight[:, None] * value))
    level = np.log(np.average((value - design @ beta) ** 2 + variance, axis=0, weights=weight))
    gamma = np.zeros_like(beta)
    gamma[0] = np.maximum(level, model.smallest)
    return replace(model, mean=beta, log_variance=gamma)


def _score_step(
    gamma: FloatArray, design: FloatArray, squared: FloatArray, weight: FloatArray, information: FloatArray
) -> FloatArray:
    """γ + t (Σ c xxᵀ + λ)⁻¹ (Σ c x (e²/σ² − 1) − λγ), t halved until Σ c (log σ² + e²/σ²) + λ|γ|² falls."""
    ridge = ridges(len(gamma), VARIANCE_RIDGE)

    def loss(gamma: FloatArray, h: FloatArray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is no gain
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
    result = square(design * np.sqrt(weight)[:, None])
    result.flat[:: len(result) + 1] += ridges(len(result), ridge)
    return result


def ridges(columns: int, ridge: float) -> FloatArray:
    """λ of every column."""
    return np.concatenate([[1e-9], np.full(columns - 1, ridge)])


def check_spread(model: GaussianParameters, design: FloatArray) -> None:
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
