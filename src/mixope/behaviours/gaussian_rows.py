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

from mixope.arrays import FloatArray, IntArray
from mixope.behaviours.boxed_draws import Box, boxes
from mixope.behaviours.gaussian_fit import Defended, check_spread, fit_gaussian
from mixope.behaviours.rows_protocol import check_weight, first_best, held_out, vectors
from mixope.errors import DataError
from mixope.features.bumps import NormalisedBumps
from mixope.features.protocol import FeatureMap, FittedMap
from mixope.features.quadratic import FittedJoined, Quadratic
from mixope.statistics.rows import Rows

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
        check_spread(model.model, choice.design(states))
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


def _states(rows: Rows) -> FloatArray:
    return vectors(rows.observation, "states", "a density needs states that are vectors: log them as float columns")


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
