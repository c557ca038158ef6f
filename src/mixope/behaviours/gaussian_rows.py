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

Which features do is decided by held-out log-likelihood (:mod:`mixope.behaviours.rows_protocol`). Measured on Pendulum
(one logger, 20,000 rows): quadratics alone lose .2 nats a row, 50 bumps .008, both together .006. On a wavy mean with
3,000 rows, leverage and ε cut the loss from .08 to .035 and the worst row from 60 nats to 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mixope.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.behaviours.rows_protocol import check_weight, first_best, held_out, vectors
from mixope.errors import DataError
from mixope.features.bumps import NormalisedBumps
from mixope.features.protocol import FeatureMap, FittedMap
from mixope.policies.rows import first_rows
from mixope.statistics.rows import Rows

HALF_LOG_TAU = 0.5 * float(np.log(2 * np.pi))
#: The share of rows on one bound that makes it an atom, or within 1 % of the range from it that makes a pile.
ATOM = 0.005
#: σ² is kept between these multiples of the variance of the action.
SMALLEST, LARGEST = 1e-6, 1e2
#: In rows: bumps overlap, so that even a small one smooths; the log-variance needs less detail than the mean.
MEAN_RIDGE, VARIANCE_RIDGE = 1e-4, 1.0
#: Rounds end when one gains less than this, in nats a row.
GAIN = 1e-5
#: ε, the share of the law of all actions together.
DEFENSIVE = 1e-3
BUMPS = (50, 100, 200)
#: As many rows settle which features do; the fit itself takes all.
MOST_FOR_CHOICE = 30_000
FEWEST_ROWS = 30


@dataclass(frozen=True)
class HeteroscedasticGaussian:
    """b from ``features`` of the state; by default quadratics, alone or with bumps, whichever wins held out."""

    features: FeatureMap | None = None
    name: str = "Gaussian mixture"

    def fit(self, sample: Rows, weight: FloatArray, seed: int = 0) -> FittedGaussian:
        """Choose features and box, then fit to all rows of the sample."""
        states, actions, weight = usable(sample, weight)
        choice = choose(self.features, states, actions, weight, seed)
        model = fit_gaussian(choice.design(states), choice.box.draws(actions), weight)
        _check_spread(model.model, choice.design(states))
        return FittedGaussian(choice, model)


@dataclass(frozen=True)
class FittedGaussian:
    """Ready. ``held_out`` in nats a row; ``chosen`` names the features; ``note`` says what was found of the box."""

    choice: Choice
    model: Defended

    @property
    def held_out(self) -> float:
        """Mean log b̂ of rows left out of the fit."""
        return self.choice.held_out

    @property
    def chosen(self) -> str:
        """The features that won."""
        return self.choice.label

    @property
    def note(self) -> str:
        """What was found about bounds of the actions; empty if nothing."""
        return self.choice.box.note

    def log_prob(self, rows: Rows) -> FloatArray:
        """log b(a|s), one a row."""
        states, actions = self.choice.arrays(rows)
        return self.model.log_density(self.choice.design(states), self.choice.box.draws(actions))


@dataclass(frozen=True)
class Choice:
    """Features and box, and what they reached held out."""

    label: str
    features: FittedMap
    box: Box
    held_out: float = float("nan")

    def design(self, states: FloatArray) -> FloatArray:
        """x = (1, φ(s)) of every row."""
        phi = self.features.transform(states)
        return np.concatenate([np.ones((len(phi), 1)), phi], axis=1)

    def arrays(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """States and actions of rows to be answered, checked."""
        states, actions = _states(rows), vectors(rows.action, "actions")
        if actions.shape[1] != len(self.box.low):
            raise DataError(
                "the actions have another number of components than the sample",
                expected=f"{len(self.box.low)} components",
                got=f"{actions.shape[1]}",
            )
        return states, actions


def usable(sample: Rows, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """States, actions and weights of the rows that count, if a density can be fitted to them."""
    weight = check_weight(weight, len(sample))
    used = np.flatnonzero(weight > 0)
    sample = sample.take(used)
    states, actions = _states(sample), vectors(sample.action, "actions")
    if len(used) < FEWEST_ROWS:
        raise DataError(
            "too few rows to fit a behaviour", expected=f"at least {FEWEST_ROWS} rows of positive weight", got=len(used)
        )
    for i in range(actions.shape[1]):
        _check_varies(actions[:, i], i)
    return states, actions, weight[used]


def choose(
    features: FeatureMap | None, states: FloatArray, actions: FloatArray, weight: FloatArray, seed: int
) -> Choice:
    """The best held out among features and boxes, on part of the rows if there are many."""
    if len(states) > MOST_FOR_CHOICE:
        part = np.random.default_rng([seed, 29]).choice(len(states), MOST_FOR_CHOICE, replace=False)
        states, actions, weight = states[part], actions[part], weight[part]
    tried: list[Choice] = []

    def scores() -> Iterator[FloatArray]:
        for label, fitted in _fitted_maps(features, states, seed):
            for box in boxes(actions):
                tried.append(Choice(label, fitted, box))
                yield _held_out(tried[-1], states, actions, weight, seed)

    best, reached = first_best(scores(), weight)
    return replace(tried[best], held_out=reached)


def _fitted_maps(features: FeatureMap | None, states: FloatArray, seed: int) -> Iterator[tuple[str, FittedMap]]:
    """The user's, or candidates in order of size, with ten rows a feature at least."""
    if features is not None:
        yield type(features).__name__, features.fit(states, seed)
        return
    quadratic = Quadratic().fit(states, seed)
    yield "quadratic", quadratic
    for size in BUMPS:
        if 10 * size <= len(states):
            yield f"quadratic + {size} bumps", FittedJoined(quadratic, NormalisedBumps(size).fit(states, seed))


def _held_out(choice: Choice, states: FloatArray, actions: FloatArray, weight: FloatArray, seed: int) -> FloatArray:
    design, draws = choice.design(states), choice.box.draws(actions)

    def trial(inside: IntArray, outside: IntArray) -> FloatArray:
        model = fit_gaussian(design[inside], draws.take(inside), weight[inside])
        return model.log_density(design[outside], draws.take(outside))

    return held_out(trial, len(states), seed)


# --- the model and its fit


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

    h = design @ gamma
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


# --- the box that draws are seen through


@dataclass(frozen=True)
class Box:
    """How draws show in the actions, by component: the bounds of clipped and of squashed ones, ∓∞ without any."""

    low: FloatArray
    high: FloatArray
    squashed: BoolArray
    note: str = ""

    def draws(self, actions: FloatArray) -> Draws:
        """The draws behind the actions, as far as the box lets them be seen."""
        width = self.high - self.low
        margin = np.where(np.isfinite(width), 1e-6 * np.where(np.isfinite(width), width, 0.0), 0.0)
        clipped = ~self.squashed
        self._check_inside(actions, margin)
        below, above = clipped & (actions <= self.low + margin), clipped & (actions >= self.high - margin)
        value, log_slope = actions.copy(), np.zeros_like(actions)
        for i in np.flatnonzero(self.squashed):
            value[:, i], log_slope[:, i] = _unsquash(actions[:, i], self.low[i], self.high[i])
        return Draws(value, log_slope, below, above, self.low, self.high)

    def _check_inside(self, actions: FloatArray, margin: FloatArray) -> None:
        """Squashed ones may lie beyond by a little, their bounds being those of the sample."""
        slack = np.where(self.squashed, np.inf, margin)
        outside: BoolArray = np.any((actions < self.low - slack) | (actions > self.high + slack), axis=1)
        if outside.any():
            raise DataError(
                "actions lie beyond a bound at which others were clipped",
                column="action",
                rows=first_rows(outside),
                total=int(outside.sum()),
                expected=f"from {self.low.tolist()} to {self.high.tolist()}",
                got=f"{actions[outside][0].tolist()}",
                hint="record all actions before clipping, or all after it",
            )


def boxes(actions: FloatArray) -> list[Box]:
    """Clipped where there are atoms; and a second one, squashed where actions pile up at an end without them."""
    n, d = actions.shape
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    notes = []
    for i in range(d):
        for bounds, end in ((low, actions[:, i].min()), (high, actions[:, i].max())):
            share = float(np.mean(actions[:, i] == end))
            if share * n >= max(ATOM * n, 5):
                bounds[i] = end
                notes.append(
                    f"{_component(i, d)}: {share:.1%} of actions are exactly {end:g}: treated as clipped there"
                )
    clipped = Box(low, high, np.zeros(d, dtype=np.bool_), "; ".join(notes))
    piled = np.array([_piled(actions[:, i]) for i in range(d)]) & np.isinf(low) & np.isinf(high)
    return [clipped, _squashed(clipped, actions, piled)] if piled.any() else [clipped]


def _squashed(clipped: Box, actions: FloatArray, piled: BoolArray) -> Box:
    """Clipped as before, squashed where piled."""
    low, high = clipped.low.copy(), clipped.high.copy()
    notes = [clipped.note] if clipped.note else []
    for i in np.flatnonzero(piled):
        low[i], high[i] = -_bound(-actions[:, i]), _bound(actions[:, i])
        where = f"{_component(int(i), len(piled))}: actions pile up at {low[i]:.4g} or {high[i]:.4g}"
        notes.append(f"{where}: treated as squashed by tanh")
    return Box(low, high, piled, "; ".join(notes))


def _bound(action: FloatArray) -> float:
    """The upper bound: a number of two digits if one is near, as boxes go; else a typical gap beyond the largest."""
    end, width = float(action.max()), float(np.ptp(action))
    step = 10.0 ** (np.floor(np.log10(max(abs(end), 1e-300))) - 1)
    bound = float(np.ceil(end / step) * step)
    return bound if bound - end <= 0.01 * width else end + width / len(action)


def _piled(action: FloatArray) -> bool:
    near = 0.01 * np.ptp(action)
    ends = float(np.mean(action < action.min() + near)), float(np.mean(action > action.max() - near))
    return max(ends) > ATOM


def _unsquash(action: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """With x = (a − c)/w: u = atanh x and log du/da = −log w(1 − x²); an action on a bound counts as just inside."""
    width = (high - low) / 2
    up = np.log(np.maximum((action - low) / width, 2.0**-25))
    down = np.log(np.maximum((high - action) / width, 2.0**-25))
    return (up - down) / 2, -np.log(width) - up - down


@dataclass(frozen=True)
class Draws:
    """Draws (n, d): their values, log |d draw / d action|, and which of them are only known to lie beyond a bound."""

    value: FloatArray
    log_slope: FloatArray
    below: BoolArray
    above: BoolArray
    low: FloatArray
    high: FloatArray

    def take(self, rows: IntArray) -> Draws:
        """Some of the rows."""
        return Draws(self.value[rows], self.log_slope[rows], self.below[rows], self.above[rows], self.low, self.high)

    def log_density(self, mean: FloatArray, log_variance: FloatArray) -> FloatArray:
        """log b(a|s), summed over components; a bound has the mass that lies beyond it."""
        from scipy.special import log_ndtr

        scale = np.exp(0.5 * log_variance)
        result = self.log_slope - 0.5 * ((self.value - mean) / scale) ** 2 - 0.5 * log_variance - HALF_LOG_TAU
        if self.below.any():
            result = np.where(self.below, log_ndtr((self.low - mean) / scale), result)
        if self.above.any():
            result = np.where(self.above, log_ndtr((mean - self.high) / scale), result)
        return np.asarray(result.sum(axis=1))

    def expected(self, i: int, mean: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[draw] and Var[draw] of component i given what was seen.

        Beyond high, with α = (high − μ)/σ and h = N(α)/(1 − Φ(α)): μ + σh and σ²(1 + αh − h²); beyond low, mirrored.
        """
        from scipy.special import log_ndtr

        value, variance = self.value[:, i].copy(), np.zeros(len(mean))
        for beyond, bound, sign in ((self.above[:, i], self.high[i], 1.0), (self.below[:, i], self.low[i], -1.0)):
            if beyond.any():
                alpha = sign * (bound - mean[beyond]) / scale[beyond]
                h = np.exp(-0.5 * alpha**2 - HALF_LOG_TAU - log_ndtr(-alpha))
                value[beyond] = mean[beyond] + sign * scale[beyond] * h
                variance[beyond] = scale[beyond] ** 2 * np.clip(1 + alpha * h - h**2, 0.0, 1.0)
        return value, variance


# --- features that need no landmarks


@dataclass(frozen=True)
class Quadratic:
    """φ(s): standardised coordinates, their squares and (up to 15 coordinates) products."""

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedQuadratic:
        """Centre, scale and range of every coordinate."""
        scale = observations.std(axis=0)
        return FittedQuadratic(
            observations.mean(axis=0),
            np.where(scale > 0, scale, 1.0),
            observations.min(axis=0),
            observations.max(axis=0),
        )


@dataclass(frozen=True)
class FittedQuadratic:
    """Coordinates are held to the range of the sample: beyond it, a quadratic knows nothing."""

    centre: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def size(self) -> int:
        """d + d(d + 1)/2, or 2d without products."""
        return len(self.centre) + len(self._pairs()[0])

    def transform(self, observations: AnyArray) -> FloatArray:
        """φ of every row."""
        z = (np.clip(observations, self.low, self.high) - self.centre) / self.scale
        left, right = self._pairs()
        return np.concatenate([z, z[:, left] * z[:, right]], axis=1)

    def _pairs(self) -> tuple[AnyArray, AnyArray]:
        d = len(self.centre)
        return np.triu_indices(d) if d <= 15 else (np.arange(d), np.arange(d))


@dataclass(frozen=True)
class FittedJoined:
    """Two fitted maps side by side."""

    first: FittedMap
    second: FittedMap

    @property
    def size(self) -> int:
        """Of both."""
        return self.first.size + self.second.size

    def transform(self, observations: AnyArray) -> FloatArray:
        """φ of every row."""
        return np.concatenate([self.first.transform(observations), self.second.transform(observations)], axis=1)


# --- what cannot be fitted


def _states(rows: Rows) -> FloatArray:
    return vectors(rows.observation, "states", "a density needs states that are vectors: log them as float columns")


def _component(i: int, d: int) -> str:
    return "action" if d == 1 else f"action component {i}"


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


def _check_spread(model: Gaussian, design: FloatArray) -> None:
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
