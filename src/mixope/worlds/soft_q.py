"""A target and loggers of several stages of skill, by tabular soft Q-learning on many chains at once.

With temperature τ and discount γ, all chains share and improve one table,

    Q(s,a) ← Q(s,a) + α_n ( r + γ τ log Σ_b exp(Q(s′,b)/τ) − Q(s,a) ),

α_n = n^−POWER at the n-th update of the pair (chains that meet at a pair in one step average their goals; an end has
no successor value). A policy reads a table at a *heat* h, with a floor of ε on every action,

    π(a|s) = (1 − ε) softmax(Q(s,·)/(hτ))(a) + ε/A.

The chains act at heat 1 with a floor. Target and stages need none: they are read so hot that all have full support (an
action no logger can take would be a gap that no amount of data closes), and a floor on the target would put mass on
bad actions in every state, where few rows can tell what they cost. The target reads the last table. The stages cool in
equal ratios from HOTTEST times its heat, nearly uniform, to COOLEST times, and their tables come from an ever longer
part of the training.

The heats are a benchmark choice: on Taxi they give a target of average −0.12 and, from one logger and 40,000 rows,
3 % of uncovered target mass, so that counting has a coverage bias of a few standard errors without being hopeless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.worlds.model import Model
from mixope.worlds.simulation import laws, transition_laws

POWER = 0.6
YOUNGEST, HOTTEST, COOLEST = 0.5, 5.0, 1.4


@dataclass(frozen=True)
class Training:
    """How policies are trained and read off.

    ``temperature`` is τ as a share of the range of the model's rewards, so that one setting serves all environments;
    ``heat`` is the target's; ``floor`` is that of the chains; ``restart`` is the chance, in every step, that a chain
    starts afresh from the start law.
    """

    gamma: float = 0.95
    temperature: float = 0.012
    heat: float = 14.2
    floor: float = 0.1
    chains: int = 256
    steps: int = 2000
    restart: float = 0.01


TRAININGS = {
    "sessions": Training(gamma=0.99, heat=3.5),
    "survival": Training(gamma=0.99, heat=6.0),
    "queue": Training(gamma=0.99, heat=6.0),
    "frozenlake": Training(gamma=0.99, heat=3.0),
}
"""Of worlds whose reward comes late or once, where the usual heat would leave hardly more than a uniform policy."""


def target(model: Model, *, seed: int = 0, training: Training | None = None) -> FloatArray:
    """The policy to evaluate, shape (S, A): the last table at the target's heat."""
    training = training or TRAININGS.get(model.name, Training())
    (table,) = learn(model, [training.steps], seed=seed, training=training)
    return read_off(table, training.heat * _temperature(model, training))


def stages(model: Model, n: int, *, seed: int = 0, training: Training | None = None) -> list[FloatArray]:
    """``n`` policies (S, A) from nearly uniform to nearly as good as :func:`target` of the same seed.

    A single stage is the last one.
    """
    training = training or TRAININGS.get(model.name, Training())
    if n < 1:
        raise UsageError(f"expected at least one stage, got {n}")
    ages = np.linspace(YOUNGEST, 1, n) if n > 1 else np.ones(1)
    heats = np.geomspace(HOTTEST, COOLEST, n) if n > 1 else np.array([COOLEST])
    tables = learn(model, [int(age * training.steps) for age in ages], seed=seed, training=training)
    temperature = training.heat * _temperature(model, training)
    return [read_off(table, heat * temperature) for table, heat in zip(tables, heats, strict=True)]


def learn(model: Model, stops: Sequence[int], *, seed: int, training: Training = Training()) -> list[FloatArray]:
    """The tables Q after each number of steps in ``stops`` (ascending), each of shape (S, A)."""
    generator, temperature = np.random.default_rng(seed), _temperature(model, training)
    moving, starting = transition_laws(model), laws(model.start, np.array([0, model.n_states]))
    following = model.transition.indices.astype(np.int64)
    goes_on = training.gamma * ~model.terminated
    Q, updates = np.zeros(model.n_states * model.n_actions), np.zeros(model.n_states * model.n_actions)
    origin = np.zeros(training.chains, dtype=np.int64)
    state = starting.draw(origin, generator.random(training.chains))
    tables: dict[int, FloatArray] = {0: Q.copy()}
    for step in range(1, max(stops) + 1):
        acting = read_off(Q.reshape(model.n_states, -1)[state], temperature, training.floor)
        action = (acting.cumsum(axis=1)[:, :-1] < generator.random((training.chains, 1))).sum(axis=1)
        pair = state * model.n_actions + action
        entry = moving.draw(pair, generator.random(training.chains))
        state = following[entry]
        value = _soft_value(Q.reshape(model.n_states, -1)[state], temperature)
        _update(Q, updates, pair, model.reward[entry] + goes_on[entry] * value)
        afresh = (generator.random(training.chains) < training.restart) | model.terminated[entry]
        state = np.where(afresh, starting.draw(origin, generator.random(training.chains)), state)
        if step in stops:
            tables[step] = Q.copy()
    return [tables[step].reshape(model.n_states, model.n_actions) for step in stops]


def read_off(table: FloatArray, temperature: float, floor: float = 0.0) -> FloatArray:
    """π = (1 − ε) softmax(Q/τ) + ε/A, τ being ``temperature`` and ε ``floor``."""
    preferences = np.exp((table - table.max(axis=1, keepdims=True)) / temperature)
    soft = preferences / preferences.sum(axis=1, keepdims=True)
    return np.asarray((1 - floor) * soft + floor / table.shape[1], dtype=np.float64)


def _temperature(model: Model, training: Training) -> float:
    return float(training.temperature * np.ptp(model.reward))


def _soft_value(rows: FloatArray, temperature: float) -> FloatArray:
    top = rows.max(axis=1)
    excess = np.exp((rows - top[:, None]) / temperature).sum(axis=1)
    return np.asarray(top + temperature * np.log(excess), dtype=np.float64)


def _update(Q: FloatArray, updates: FloatArray, pair: IntArray, goal: FloatArray) -> None:
    """One step of α_n towards the mean goal of each pair met, in place."""
    met, group, count = np.unique(pair, return_inverse=True, return_counts=True)
    updates[met] += 1
    mean_goal = np.bincount(group, weights=goal) / count
    Q[met] += updates[met] ** -POWER * (mean_goal - Q[met])
