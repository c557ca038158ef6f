"""Environments with a target, loggers, the truth and the efficiency bound: the paper's four, and those that end.

Taxi, Gridworld (with slip .1: without it the bound is 0), SinglePath and every other model have soft Q-learning
policies of several stages and an exact truth. Pendulum has the analytic policies of
:mod:`mixope.worlds.pendulum` and a truth by long simulation; ``pendulum-trained`` has actor–critic stages
instead. CartPole has the controllers of :mod:`mixope.worlds.cartpole`. Policies are trained with seed 0, whatever
the seed of the logs: all logs of an environment ask the same question.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mixope import worlds
from mixope.base.arrays import FloatArray
from mixope.base.errors import UsageError
from mixope.logs import Logs
from mixope.policies import GaussianPolicy, TabularPolicy
from mixope.worlds import ContinuousEnvironment, actor_critic, cartpole, continuous, pendulum

PENDULUM, TRAINED, CARTPOLE = "pendulum", "pendulum-trained", "cartpole"
PENDULUM_TRUTH = -1.4930
"""± .0007, 160 million steps."""
STAGES = 5
"""Of the trained actors: four log, the last is the target."""
TRUTH_CHAINS = 4000


@dataclass(frozen=True, eq=False)
class PaperCase:
    """Who logs, who is evaluated, and what the average is; policies of the loggers are by label."""

    name: str
    target: Any
    loggers: dict[str, Any]
    truth: float
    model: worlds.Model | None = None
    vectors: ContinuousEnvironment | None = None

    @property
    def known(self) -> worlds.Model:
        """The model, of an environment that has one."""
        assert self.model is not None
        return self.model

    @property
    def laws(self) -> list[FloatArray]:
        """The loggers' tables, where there is a model."""
        return [policy.probabilities for policy in self.loggers.values()]

    def simulate(self, episodes: int, horizon: int | None, seed: int) -> Any:
        """A log of these loggers, an equal share each."""
        if self.model is None:
            assert self.vectors is not None
            columns: Mapping[str, Any] = continuous.simulate(
                self.vectors, list(self.loggers.values()), episodes, horizon, seed=seed
            )
            return Logs.from_arrays(**columns)
        return worlds.simulate(self.model, self.laws, episodes, horizon, seed=seed)

    def bound(self, horizon: int) -> float | None:
        """V_eff; where there is no model the dynamics are deterministic and it is 0: None."""
        return None if self.model is None else _bound(self.name, len(self.loggers), horizon)


@lru_cache(maxsize=16)
def world(name: str, n_loggers: int) -> PaperCase:
    """The environment of that name with so many loggers."""
    if name == PENDULUM:
        known = _labelled(pendulum.loggers(n_loggers))
        return PaperCase(name, pendulum.target(), known, PENDULUM_TRUTH, vectors=pendulum.Pendulum())
    if name == TRAINED:
        goal, actors, average = _trained(n_loggers)
        return PaperCase(name, goal, _labelled(actors), average, vectors=pendulum.Pendulum())
    if name == CARTPOLE:
        policies = _labelled(cartpole.loggers(n_loggers))
        return PaperCase(name, cartpole.target(), policies, 1.0, vectors=cartpole.CartPole())
    model = worlds.make(name)
    target = worlds.target(model)
    laws = worlds.stages(model, n_loggers)
    truth = worlds.truth.average(model, target)
    return PaperCase(name, TabularPolicy(target), _labelled([TabularPolicy(law) for law in laws]), truth, model)


def _labelled(policies: Sequence[Any]) -> dict[str, Any]:
    return {f"logger-{j}": policy for j, policy in enumerate(policies)}


def _trained(n_loggers: int) -> tuple[GaussianPolicy, list[GaussianPolicy], float]:
    *loggers, target = actor_critic.train(STAGES)
    if n_loggers > len(loggers):
        raise UsageError(f"expected at most {len(loggers)} trained loggers, got {n_loggers}")
    return target, loggers[-n_loggers:], pendulum.truth(target, chains=TRUTH_CHAINS, seed=1).value


@lru_cache(maxsize=64)
def _bound(name: str, n_loggers: int, horizon: int) -> float:
    whole = world(name, n_loggers)
    return worlds.efficiency_bound(whole.known, whole.target.probabilities, whole.laws, horizon=horizon)


def log_seed(seed: int, repetition: int, *settings: object) -> int:
    """The seed of a simulated log, from everything that the log depends on."""
    name = zlib.crc32(" ".join(map(str, settings)).encode())
    return int(np.random.SeedSequence([seed, name, repetition]).generate_state(1)[0])
