"""Benchmark environments: discrete worlds written down as sparse models, so that the truth is solved, not simulated.

    model = make("taxi")
    loggers, new = stages(model, 4), target(model)
    logs = simulate(model, loggers, episodes=200, horizon=200, seed=0)
    truth.average(model, new), efficiency_bound(model, new, loggers, horizon=200)

Policies are plain (n_states, n_actions) arrays here. To add an environment: one file with a builder, one line in
``BUILDERS``. Worlds of vectors (``CONTINUOUS``) have their own simulator, ``continuous.simulate``, and Gaussian
policies (CartPole: controllers of two actions); their truth is closed (linear–quadratic) or simulated with a standard
error. ``hospital`` has states of categories and numbers, some of them missing. ``engagement`` is an A/B test of a
product, drawn by user and day, with the exact effect in the long run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mixope.base.errors import UnknownName, UsageError
from mixope.base.moved import renamed
from mixope.worlds import (
    actor_critic,
    cartpole,
    continuous,
    engagement,
    hospital,
    linear_quadratic,
    pendulum,
    soft_q,
    truth,
)
from mixope.worlds.continuous import ContinuousEnvironment
from mixope.worlds.efficiency import efficiency_bound, logged_law, paper_form_bias
from mixope.worlds.games import blackjack, frozenlake
from mixope.worlds.garnet import garnet
from mixope.worlds.machines import machines
from mixope.worlds.model import Model, from_outcomes
from mixope.worlds.simulation import simulate
from mixope.worlds.small_worlds import gridworld, singlepath, walk
from mixope.worlds.soft_q import Training, stages, target
from mixope.worlds.taxi import taxi
from mixope.worlds.truth import LongRunTruth
from mixope.worlds.visits import emptying_queue, sessions, survival

__getattr__ = renamed(__name__, {"LongRun": "mixope.worlds.LongRunTruth"})
__all__ = [
    "BUILDERS",
    "CONTINUOUS",
    "ContinuousEnvironment",
    "LongRunTruth",
    "Model",
    "Training",
    "actor_critic",
    "blackjack",
    "cartpole",
    "continuous",
    "efficiency_bound",
    "emptying_queue",
    "engagement",
    "from_outcomes",
    "frozenlake",
    "garnet",
    "gridworld",
    "hospital",
    "linear_quadratic",
    "logged_law",
    "machines",
    "make",
    "make_continuous",
    "paper_form_bias",
    "pendulum",
    "sessions",
    "simulate",
    "singlepath",
    "soft_q",
    "stages",
    "survival",
    "target",
    "taxi",
    "truth",
    "walk",
]

BUILDERS: dict[str, Callable[..., Model]] = {
    "taxi": taxi,
    "gridworld": gridworld,
    "gridworld-slip": partial(gridworld, slip=0.1),
    "singlepath": singlepath,
    "walk": walk,
    "machines": machines,
    "garnet": garnet,
    "sessions": sessions,
    "survival": survival,
    "queue": emptying_queue,
    "frozenlake": frozenlake,
    "blackjack": blackjack,
}
CONTINUOUS: dict[str, Callable[[], ContinuousEnvironment]] = {
    "pendulum": pendulum.Pendulum,
    "linear-quadratic": linear_quadratic.linear_quadratic,
    "cartpole": cartpole.CartPole,
}


def make(name: str, **options: Any) -> Model:
    """The environment of that name; ``options`` go to its builder (``make("taxi", pickup_bonus=True)``)."""
    if name not in BUILDERS:
        raise UnknownName("environment", name, BUILDERS)
    try:
        return BUILDERS[name](**options)
    except TypeError as error:
        raise UsageError(f"environment {name!r} does not take these options: {error}") from error


def make_continuous(name: str) -> ContinuousEnvironment:
    """The environment of that name whose states are vectors."""
    if name not in CONTINUOUS:
        raise UnknownName("continuous environment", name, CONTINUOUS)
    return CONTINUOUS[name]()
