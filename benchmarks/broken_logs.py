"""Healthy logs, and logs that are broken on purpose, where the truth is exact.

A setting is a function from an environment, a number of episodes and a seed to a :class:`Case`: the logs, what is asked
of them, and the right answer. Where the world changed, the truth is that of the world as it is now. What can go wrong
with the ends of episodes is in :mod:`broken_episodes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import mixope
from mixope import worlds
from mixope.base.estimand import Estimand
from mixope.behaviours import Behaviour, FittedBehaviour
from mixope.estimators import state_ratio
from mixope.requests.rows import Rows

N_LOGGERS = 4
HORIZON = {"walk": 50, "cartpole": 200}
Columns = dict[str, np.ndarray]
AVERAGE, EPISODE = Estimand(), Estimand("episode")
ENDING: dict[str, tuple[str, str, Estimand]] = {
    "sessions": ("sessions", "id", EPISODE),
    "sessions-discounted": ("sessions", "factors", Estimand("discounted", gamma=0.95)),
    "survival": ("survival", "factors", EPISODE),
    "queue": ("queue", "factors", EPISODE),
    "queue-discounted": ("queue", "id", Estimand("discounted", gamma=0.95)),
    "frozenlake": ("frozenlake", "id", EPISODE),
    "blackjack": ("blackjack", "factors", EPISODE),
    "cartpole-discounted": ("cartpole", "vector", Estimand("discounted", gamma=0.99)),
}
"""Worlds whose episodes end: the environment, how its states are logged, and what is asked. Logs run to the end."""
TIMES = {"blackjack": 10}
"""How many episodes there are for one of other worlds: a game has one or two steps, and there are 280 hands."""


@dataclass(frozen=True)
class World:
    """A model, a target, its loggers; states as ids or as factors. CartPole has no model, and policies on vectors."""

    model: worlds.Model | None
    target: Any
    loggers: tuple[Any, ...]
    observed: str
    horizon: int | None
    estimand: Estimand = AVERAGE

    def policy(self, law: Any) -> Any:
        if self.model is None:
            return law
        if self.observed == "id":
            return mixope.TabularPolicy(law)
        factors = self.model.factors
        return mixope.TabularPolicy(law, np.stack(list(factors.values()), 1), factors=list(factors))

    @property
    def known(self) -> dict[str, Any]:
        return {f"logger-{j}": self.policy(law) for j, law in enumerate(self.loggers)}

    def value(self, target: Any, model: worlds.Model | None = None) -> float:
        """What a target is worth, here or in a world that has changed."""
        if self.model is None:
            return worlds.cartpole.truth(target, self.estimand).value
        return worlds.truth.value(model or self.model, target, self.estimand)

    def simulate(self, episodes: int, seed: int, model: worlds.Model | None = None) -> Columns:
        if self.model is None:
            return worlds.continuous.simulate(
                worlds.cartpole.CartPole(), self.loggers, episodes, self.horizon, seed=seed
            )
        return worlds.simulate(
            model or self.model, self.loggers, episodes, self.horizon, seed=seed, observed=self.observed
        )


@lru_cache(maxsize=16)
def world(name: str, seed: int = 0) -> World:
    plain = name.removesuffix("-factors")
    usual = (plain, "factors" if name != plain else "id", AVERAGE)
    kind, observed, estimand = ENDING.get(name, usual)
    horizon = HORIZON.get(kind, None if name in ENDING else 100)
    if kind == "cartpole":
        from mixope.worlds import cartpole

        return World(None, cartpole.target(), tuple(cartpole.loggers(N_LOGGERS)), observed, horizon, estimand)
    model = worlds.make(kind)
    loggers = tuple(worlds.stages(model, N_LOGGERS, seed=seed))
    return World(model, worlds.target(model, seed=seed), loggers, observed, horizon, estimand)


@dataclass(frozen=True)
class Case:
    """Logs, what is asked of them, and the right answer."""

    columns: Columns
    truth: float
    estimator: Any = "auto"
    known: dict[str, Any] | None = None
    target: Any = None
    """Another target than the world's."""


@lru_cache(maxsize=32)
def truth(name: str, changed: str = "") -> float:
    here = world(name)
    if changed == "dynamics":
        return here.value(here.target, slippery(name))
    if changed == "reward":
        return here.value(here.target, replace(here.model, reward=here.model.reward + shift(name)))
    return here.value(here.target)


@lru_cache(maxsize=8)
def shift(name: str) -> float:
    """How far rewards are moved where they are: half the standard deviation of a logged reward."""
    return 0.5 * float(np.std(world(name).simulate(40, 0)["reward"]))


@lru_cache(maxsize=8)
def slippery(name: str) -> worlds.Model:
    """The world with another world in it: three times in ten the previous action order applies."""
    here = world(name).model
    matrix = here.transition.toarray().reshape(here.n_states, here.n_actions, here.n_states)
    reward, ended = np.zeros_like(matrix), np.zeros(matrix.shape, dtype=bool)
    rows = here.entry_rows()
    cells = rows // here.n_actions, rows % here.n_actions, here.transition.indices
    reward[cells], ended[cells] = here.reward, here.terminated
    by_next = np.where(matrix.max(axis=1) > 0, np.max(np.where(matrix > 0, reward, -np.inf), axis=1), 0.0)
    any_end = ended.any(axis=1)
    mixed = 0.7 * matrix + 0.3 * np.roll(matrix, 1, axis=1)
    state, action, after = (index.ravel() for index in np.indices(matrix.shape))
    return worlds.from_outcomes(
        here.name,
        shape=(here.n_states, here.n_actions),
        state=state,
        action=action,
        next_state=after,
        probability=mixed.ravel(),
        reward=np.where(matrix > 0, reward, by_next[:, None, :]).ravel(),
        start=here.start,
        terminated=(ended | (any_end[:, None, :] & (matrix == 0))).ravel(),
        factors=dict(here.factors),
    )


def healthy(name: str, episodes: int, seed: int) -> Case:
    return Case(world(name).simulate(episodes, seed), truth(name))


def healthy_known(name: str, episodes: int, seed: int) -> Case:
    here = world(name)
    return Case(here.simulate(episodes, seed), truth(name), "known-mixture", here.known)


def healthy_propensities(name: str, episodes: int, seed: int) -> Case:
    return Case(world(name).simulate(episodes, seed), truth(name), "bch-pooled")


def healthy_noisy(name: str, episodes: int, seed: int) -> Case:
    """Rewards with noise of their own spread: what is not certain must not look broken."""
    return _noisy(healthy(name, episodes, seed), name, seed)


def _noisy(case: Case, name: str, seed: int) -> Case:
    reward = case.columns["reward"]
    noise = 2 * shift(name) * np.random.default_rng([seed, 9]).normal(size=len(reward))
    return replace(case, columns={**case.columns, "reward": reward + noise})


def one_logger(name: str, episodes: int, seed: int) -> Case:
    """Only the first logger, the one farthest from the target."""
    here = world(name)
    return Case(replace(here, loggers=here.loggers[:1]).simulate(episodes, seed), truth(name))


def missing_logger(name: str, episodes: int, seed: int) -> Case:
    """The rows of the logger nearest the target were lost."""
    here = world(name)
    return Case(replace(here, loggers=here.loggers[:-1]).simulate(episodes, seed), truth(name))


def rare_gap(name: str, episodes: int, seed: int) -> Case:
    """Half a per cent of the target is one action that is never logged, in every state."""
    here = world(name)
    rare = here.target.argmin(axis=1)
    unlogged = np.eye(here.model.n_actions)[rare]
    target = here.target * (1 - unlogged)
    target = 0.9955 * target / target.sum(axis=1, keepdims=True) + 0.0045 * unlogged
    cut = [law * (1 - unlogged) for law in here.loggers]
    cut = [law / law.sum(axis=1, keepdims=True) for law in cut]
    columns = replace(here, loggers=tuple(cut)).simulate(episodes, seed)
    return Case(columns, here.value(target), target=target)


def no_overlap(name: str, episodes: int, seed: int) -> Case:
    """The likeliest action of the target is never logged, in every other state."""
    here = world(name)
    favourite = np.eye(here.model.n_actions)[here.target.argmax(axis=1)]
    favourite[1::2] = 0
    cut = [law * (1 - favourite) for law in here.loggers]
    cut = [law / law.sum(axis=1, keepdims=True) for law in cut]
    return Case(replace(here, loggers=tuple(cut)).simulate(episodes, seed), truth(name))


def greedy_logger(name: str, episodes: int, seed: int) -> Case:
    """One logger without exploration: it takes one action in each state, the target's likeliest but one."""
    here = world(name)
    second = np.argsort(here.target, axis=1)[:, -2]
    law = np.eye(here.model.n_actions)[second]
    narrow = replace(here, loggers=(0.98 * law + 0.02 * here.target,))
    return Case(narrow.simulate(episodes, seed), truth(name))


def wrong_labels(name: str, episodes: int, seed: int) -> Case:
    """Two loggers' labels changed places, and their policies are relied upon."""
    here = world(name)
    columns = here.simulate(episodes, seed)
    labels = columns["policy_id"]
    swapped = np.where(labels == "logger-0", "logger-3", np.where(labels == "logger-3", "logger-0", labels))
    return Case({**columns, "policy_id": swapped}, truth(name), "known-mixture", here.known)


def wrong_propensities(name: str, episodes: int, seed: int) -> Case:
    """The propensities of a uniform policy, logged by mistake for half of the loggers."""
    here = world(name)
    columns = here.simulate(episodes, seed)
    wrong = np.isin(columns["policy_id"], ["logger-2", "logger-3"])
    given = np.where(wrong, 1 / here.model.n_actions, columns["action_prob"])
    return Case({**columns, "action_prob": given}, truth(name), "bch-pooled")


def shifted_rewards(name: str, episodes: int, seed: int) -> Case:
    columns = world(name).simulate(episodes, seed)
    reward = columns["reward"] + shift(name) * (columns["policy_id"] == "logger-1")
    return Case({**columns, "reward": reward}, truth(name))


def shifted_rewards_unlabelled(name: str, episodes: int, seed: int) -> Case:
    """The same, and the episodes are in no order: nothing in the logs tells."""
    case = shifted_rewards(name, episodes, seed)
    columns = {key: values for key, values in case.columns.items() if key != "policy_id"}
    order = np.random.default_rng([seed, 5]).permutation(episodes)
    return Case({**columns, "episode_id": order[columns["episode_id"]]}, case.truth)


def shifted_rewards_unseen(name: str, episodes: int, seed: int) -> Case:
    """The same, under noise."""
    return _noisy(shifted_rewards_unlabelled(name, episodes, seed), name, seed)


def shifted_rows(name: str, episodes: int, seed: int) -> Case:
    """A quarter of the rows, drawn at random, is shifted: no label, no order, no episode tells."""
    columns = world(name).simulate(episodes, seed)
    wrong = np.random.default_rng([seed, 6]).random(len(columns["reward"])) < 0.25
    return Case({**columns, "reward": columns["reward"] + shift(name) * wrong}, truth(name))


def changed_within(name: str, episodes: int, seed: int) -> Case:
    """Rewards are others from the median step of the rows on, and stay so."""
    columns = world(name).simulate(episodes, seed)
    late = columns["step"] > np.median(columns["step"])
    return Case({**columns, "reward": columns["reward"] + shift(name) * late}, truth(name, "reward"))


def changed_reward(name: str, episodes: int, seed: int) -> Case:
    columns = world(name).simulate(episodes, seed)
    late = _late(columns)
    return Case({**columns, "reward": columns["reward"] + shift(name) * late}, truth(name, "reward"))


def changed_dynamics(name: str, episodes: int, seed: int) -> Case:
    here = world(name)
    before, after = here.simulate(episodes, seed), here.simulate(episodes, seed + 1, slippery(name))
    first, second = ~_late(before), _late(after)
    columns = {key: np.concatenate([before[key][first], after[key][second]]) for key in before}
    return Case(columns, truth(name, "dynamics"))


def _late(columns: Columns) -> np.ndarray:
    """Rows in the second half of their logger's episodes."""
    result = np.zeros(len(columns["reward"]), dtype=bool)
    for label in np.unique(columns["policy_id"]):
        mine = columns["policy_id"] == label
        result[mine] = columns["episode_id"][mine] >= np.median(np.unique(columns["episode_id"][mine]))
    return result


@dataclass(frozen=True)
class Marginal(Behaviour):
    """A behaviour model that is wrong on purpose: the share of every action, whatever the state."""

    name = "marginal"

    def fit(self, rows: Rows, weight: np.ndarray, seed: int = 0) -> FittedBehaviour:
        share = np.bincount(rows.action_code, weights=rows.times * weight)
        return FittedMarginal(share / share.sum())


@dataclass(frozen=True)
class FittedMarginal(FittedBehaviour):
    share: np.ndarray

    def log_prob(self, rows: Rows) -> np.ndarray:
        return np.log(self.share[rows.action_code])


def constant_behaviour(name: str, episodes: int, seed: int) -> Case:
    estimator = state_ratio.emp(behaviour=Marginal())
    return Case(world(name).simulate(episodes, seed), truth(name), estimator)


HEALTHY: dict[str, Callable[[str, int, int], Case]] = {
    "healthy": healthy,
    "healthy, policies known": healthy_known,
    "healthy, propensities": healthy_propensities,
    "healthy, noisy rewards": healthy_noisy,
}
BROKEN: dict[str, Callable[[str, int, int], Case]] = {
    "one logger, far away": one_logger,
    "the nearest logger missing": missing_logger,
    "no overlap": no_overlap,
    "one greedy logger": greedy_logger,
    "a rare action never logged": rare_gap,
    "constant behaviour model": constant_behaviour,
    "wrong labels": wrong_labels,
    "wrong propensities": wrong_propensities,
    "rewards of a logger shifted": shifted_rewards,
    "the same, unlabelled": shifted_rewards_unlabelled,
    "the same, unlabelled and noisy": shifted_rewards_unseen,
    "rewards of a quarter of the rows shifted": shifted_rows,
    "rewards change half-way": changed_reward,
    "rewards change within episodes": changed_within,
    "dynamics change half-way": changed_dynamics,
}
SETTINGS = {**HEALTHY, **BROKEN}
INVISIBLE = {"rewards of a quarter of the rows shifted"}
"""What nothing in the logs can tell."""
NOT_ON_TAXI = ("dynamics change half-way",)
"""Its matrix of all states, actions and next states is too large."""
CONTINUING = ("rewards change within episodes",)
"""What is a change of the world only where an episode goes on; in the next one, all begins as before."""
ON_VECTORS = ("healthy", "healthy, propensities", "one logger, far away", "the nearest logger missing")
"""What makes sense where there is no table of policies, and every reward is 1."""
