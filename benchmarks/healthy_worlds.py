"""Healthy logs of every kind, as a shop, a clinic, a plant or a game would write them, with the right answer.

None of these is a simulator of the package. States are ids, pairs of factors, numbers, or numbers beside a category;
episodes end, are cut at one step or at any, go on for ever or have one row; rewards are prices, amounts, counts, days
or a win at the end. The truth is solved, or, where states are numbers, simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import mixope

Columns = dict[str, np.ndarray]
Generator = np.random.Generator


@dataclass(frozen=True)
class Table:
    """A world that can be counted.

    ``moves[s, a]`` is the law of what comes next; what is missing to 1 is the end. ``reward`` draws from s, a, s′
    (−1 for the end), ``mean`` is its mean by s and a. Episodes are cut after ``steps`` rows, or between 1 and so many.
    """

    moves: np.ndarray
    mean: np.ndarray
    reward: Callable[[np.ndarray, np.ndarray, np.ndarray, Generator], np.ndarray]
    start: np.ndarray
    loggers: tuple[np.ndarray, ...]
    target: np.ndarray
    asked: dict[str, Any]
    steps: int
    staggered: bool = False
    factors: int = 0
    """Where the state is logged as two columns, how many values the second one has."""
    derived: bool = False
    """Whether next observations are left out, so that they come from the next row."""

    def policy(self) -> Any:
        """The target as the package takes it."""
        if not self.factors:
            return mixope.TabularPolicy(self.target)
        states = np.arange(len(self.target))
        pairs = np.stack([states // self.factors, states % self.factors], axis=1)
        return mixope.TabularPolicy(self.target, pairs, factors=["big", "small"])

    def truth(self) -> float:
        """The value of the target, solved."""
        chain = np.einsum("sa,sat->st", self.target, self.moves)
        reward, n = (self.target * self.mean).sum(axis=1), len(self.start)
        kind = self.asked["estimand"]
        if kind == "average":
            chain = chain + (1.0 - chain.sum(axis=1))[:, None] * self.start[None, :]
            law = np.linalg.lstsq(np.vstack([chain.T - np.eye(n), np.ones(n)]), np.append(np.zeros(n), 1.0), rcond=None)
            return float(law[0] @ reward)
        if kind == "horizon":
            law, total = self.start, 0.0
            for _ in range(self.asked["horizon"]):
                total, law = total + law @ reward, chain.T @ law
            return float(total / self.asked["horizon"])
        gamma = self.asked.get("gamma", 1.0)
        value = float(self.start @ np.linalg.solve(np.eye(n) - gamma * chain, reward))
        return value * (1.0 - gamma if kind == "discounted" else 1.0)

    def simulate(self, episodes: int, seed: int) -> Columns:
        """Every logger takes its turn."""
        generator = np.random.default_rng(seed)
        logger = np.arange(episodes) % len(self.loggers)
        limit = (
            generator.integers(1, self.steps + 1, size=episodes) if self.staggered else np.full(episodes, self.steps)
        )
        state, parts = drawn(np.broadcast_to(self.start, (episodes, len(self.start))), generator), []
        alive, laws = np.arange(episodes), np.stack(self.loggers)
        for step in range(self.steps):
            here = state[alive]
            action = drawn(laws[logger[alive], here], generator)
            moves = self.moves[here, action]
            later = drawn(np.hstack([moves, 1.0 - moves.sum(axis=1, keepdims=True)]), generator)
            later = np.where(later == len(self.start), -1, later)
            earned = self.reward(here, action, later, generator)
            ended, cut = later < 0, (later >= 0) & (limit[alive] == step + 1)
            parts.append((alive, np.full(len(alive), step), here, action, earned, np.maximum(later, 0), ended, cut))
            state[alive] = np.maximum(later, 0)
            alive = alive[~(ended | cut)]
            if not len(alive):
                break
        names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
        rows = dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))
        order = np.lexsort((rows["step"], rows["episode_id"]))
        rows = {name: values[order] for name, values in rows.items()}
        rows["policy_id"] = np.array([f"v{j}" for j in range(len(self.loggers))])[logger[rows["episode_id"]]]
        return self._as_logged(rows)

    def _as_logged(self, rows: Columns) -> Columns:
        if self.derived:
            del rows["next_observation"]
        for name in ("observation", "next_observation"):
            if self.factors and name in rows:
                states = rows.pop(name)
                rows |= {f"{name}.big": states // self.factors, f"{name}.small": states % self.factors}
        return rows


def drawn(laws: np.ndarray, generator: Generator) -> np.ndarray:
    """One draw from every row."""
    total = np.cumsum(laws, axis=1)
    return np.minimum((generator.random(len(laws))[:, None] * total[:, -1:] >= total).sum(axis=1), laws.shape[1] - 1)


def mixed(law: np.ndarray, share: float) -> np.ndarray:
    """Some of the time at random."""
    return (1 - share) * law + share / law.shape[1]


def random_policy(states: int, actions: int, seed: int, sharp: float = 1.0) -> np.ndarray:
    preference = np.exp(sharp * np.random.default_rng([seed, 1]).normal(size=(states, actions)))
    return preference / preference.sum(axis=1, keepdims=True)


def random_moves(states: int, actions: int, seed: int, stay: float = 0.0) -> np.ndarray:
    moves = np.random.default_rng([seed, 2]).dirichlet(np.full(states, 0.5), size=(states, actions))
    return stay * np.eye(states)[:, None, :] + (1 - stay) * moves


def by_pair(
    mean: np.ndarray, draw: Callable[[np.ndarray, Generator], np.ndarray]
) -> Callable[[np.ndarray, np.ndarray, np.ndarray, Generator], np.ndarray]:
    """Rewards of which the pair says the mean."""
    return lambda state, action, later, generator: draw(mean[state, action], generator)


def shop(seed: int, kind: str) -> Table:
    """Eight segments, three offers; what is paid is a price, an amount, or a number of things."""
    mean = 2.0 * np.random.default_rng([seed, 3]).random((8, 3)) + 0.2
    prices = lambda m, g: 10.0 * (g.random(len(m)) < m / 10.0)  # noqa: E731
    amounts = lambda m, g: np.where(g.random(len(m)) < 0.3, m / 0.3 * np.exp(0.8 * g.normal(size=len(m)) - 0.32), 0.0)  # noqa: E731
    counts = lambda m, g: g.poisson(m).astype(float)  # noqa: E731
    draw = {"prices": prices, "amounts": amounts, "counts": counts}[kind]
    loggers = tuple(mixed(random_policy(8, 3, seed + k), 0.3) for k in range(2))
    start = np.full(8, 1 / 8)
    moves = random_moves(8, 3, seed, 0.3)
    return Table(
        moves, mean, by_pair(mean, draw), start, loggers, random_policy(8, 3, seed + 9), {"estimand": "average"}, 30
    )


def clinic(seed: int, kind: str) -> Table:
    """Severity 0–5 in two wards; two treatments; a day costs 1, death 20; stays end, or are cut."""
    severity, ward = np.arange(12) // 2, np.arange(12) % 2
    moves, mean = np.zeros((12, 2, 12)), np.zeros((12, 2))
    for s in range(12):
        for a in range(2):
            worse = 0.15 + 0.05 * severity[s] / 5 - 0.05 * a
            death, home = 0.01 + 0.02 * severity[s] * (1 - 0.4 * a), 0.3 * (severity[s] == 0)
            left, up, down = 1 - death - home, min(severity[s] + 1, 5) * 2, max(severity[s] - 1, 0) * 2
            for w in range(2):
                share = 0.9 if w == ward[s] else 0.1
                moves[s, a, up + w] += left * share * worse
                moves[s, a, down + w] += left * share * 0.35
                moves[s, a, severity[s] * 2 + w] += left * share * (0.65 - worse)
            mean[s, a] = -1 - 0.1 * a - 20 * death
    chance = {(s, a): 0.01 + 0.02 * severity[s] * (1 - 0.4 * a) for s in range(12) for a in range(2)}
    deaths = np.array([[chance[s, a] for a in range(2)] for s in range(12)])
    homes = 0.3 * (severity == 0)

    def reward(state: np.ndarray, action: np.ndarray, later: np.ndarray, generator: Generator) -> np.ndarray:
        death = deaths[state, action]
        died = (later < 0) & (generator.random(len(state)) < death / (death + homes[state]))
        return -1 - 0.1 * action - 20.0 * died

    loggers = tuple(mixed(random_policy(12, 2, seed + k), 0.4) for k in range(2))
    start = np.where(severity == 3, 0.5, 0.0)
    asked: dict[str, Any] = {"discounted": {"estimand": "discounted", "gamma": 0.9}}.get(kind, {"estimand": "episode"})
    steps = 400 if kind == "ends" else 15
    return Table(moves, mean, reward, start, loggers, random_policy(12, 2, seed + 9), asked, steps, factors=2)


def plant(seed: int, kind: str) -> Table:
    """Wear 0–9 goes up slowly and is put right by a repair: long episodes, a slow chain."""
    moves, mean = np.zeros((10, 2, 10)), np.zeros((10, 2))
    for s in range(10):
        moves[s, 0, min(s + 1, 9)] += 0.15
        moves[s, 0, s] += 0.85
        moves[s, 1, 0], moves[s, 1, s] = 0.9, 0.1
        mean[s] = 1.0 - 0.08 * s, -0.5
    reward = by_pair(mean, lambda m, g: m + 0.3 * g.normal(size=len(m)))
    often = np.stack([np.linspace(0.98, 0.7, 10), 1 - np.linspace(0.98, 0.7, 10)], axis=1)
    target = np.stack([np.linspace(0.99, 0.5, 10), 1 - np.linspace(0.99, 0.5, 10)], axis=1)
    steps = 1000 if kind == "long" else 60
    return Table(moves, mean, reward, np.eye(10)[0], (often, mixed(often, 0.2)), target, {"estimand": "average"}, steps)


def game(seed: int) -> Table:
    """Six fields in a row; a win at the far end pays 1, all else 0; a fall ends it too."""
    moves, mean = np.zeros((6, 2, 6)), np.zeros((6, 2))
    ahead, fall = np.array([0.5, 0.7]), np.array([0.05, 0.12])
    for s in range(6):
        for a in range(2):
            if s < 5:
                moves[s, a, s + 1] += ahead[a]
            else:
                mean[s, a] = ahead[a]
            moves[s, a, s] += 1 - ahead[a] - fall[a]
    win = ahead / (ahead + fall)
    reward = lambda s, a, later, g: ((later < 0) & (s == 5) & (g.random(len(s)) < win[a])).astype(float)  # noqa: E731
    loggers = (mixed(random_policy(6, 2, seed), 0.5),)
    return Table(
        moves, mean, reward, np.eye(6)[0], loggers, random_policy(6, 2, seed + 9), {"estimand": "episode"}, 400
    )


def recency(seed: int, kind: str) -> Table:
    """Weeks since the last purchase, 26 weeks of every customer; two mailings, a purchase pays 30."""
    weeks = 27
    chance = np.stack([np.full(weeks, 0.05), np.full(weeks, 0.08)], axis=1)
    moves = np.zeros((weeks, 2, weeks))
    moves[:, :, 0] = chance
    for s in range(weeks):
        moves[s, :, min(s + 1, weeks - 1)] += 1 - chance[s]
    mean = 30.0 * chance
    reward = lambda s, a, later, g: 30.0 * (later == 0)  # noqa: E731
    loggers = (np.full((weeks, 2), 0.5),)
    target = np.tile([0.2, 0.8], (weeks, 1))
    asked = {"average": {"estimand": "average"}, "horizon": {"estimand": "horizon", "horizon": 26}}
    asked |= {"discounted": {"estimand": "discounted", "gamma": 0.95}}
    return Table(moves, mean, reward, np.eye(weeks)[0], loggers, target, asked[kind], 26)


def requests(seed: int) -> Table:
    """One row an episode: a context, an answer, thumbs up or not."""
    mean = np.random.default_rng([seed, 4]).random((20, 4))
    reward = by_pair(mean, lambda m, g: (g.random(len(m)) < m).astype(float))
    loggers = tuple(mixed(random_policy(20, 4, seed + k), 0.2) for k in range(2))
    start, moves = np.full(20, 0.05), np.zeros((20, 4, 20))
    return Table(moves, mean, reward, start, loggers, random_policy(20, 4, seed + 9), {"estimand": "episode"}, 1)


def any_chain(seed: int, kind: str) -> Table:
    """Fifteen states that lead anywhere, cut at one step, at any step, or without next observations."""
    mean = np.random.default_rng([seed, 5]).normal(size=(15, 3))
    reward = by_pair(mean, lambda m, g: m + 0.5 * g.normal(size=len(m)))
    loggers = tuple(mixed(random_policy(15, 3, seed + k), 0.3) for k in range(3))
    asked: dict[str, Any] = {"estimand": "discounted", "gamma": 0.9} if kind == "staggered" else {"estimand": "average"}
    return Table(
        random_moves(15, 3, seed),
        mean,
        reward,
        np.full(15, 1 / 15),
        loggers,
        random_policy(15, 3, seed + 9),
        asked,
        40,
        staggered=kind == "staggered",
        factors=5 if kind == "factors" else 0,
        derived=kind == "derived",
    )


@dataclass(frozen=True)
class Numbers:
    """Three numbers (and a category, where ``mixed``) that drift back to 0, pushed by one of three actions."""

    mixed: bool
    gamma: float | None
    steps: int = 25

    @property
    def asked(self) -> dict[str, Any]:
        return {"estimand": "average"} if self.gamma is None else {"estimand": "discounted", "gamma": self.gamma}

    def policy(self) -> Any:
        return self.rule

    def rule(self, state: Any) -> dict[int, float]:
        """The target, state by state."""
        values = [float(state[name]) for name in ("x", "y", "z")] if self.mixed else [float(x) for x in state]
        chances = self.law(np.array([values]), 0.9)[0]
        return {action: float(p) for action, p in enumerate(chances)}

    @staticmethod
    def law(x: np.ndarray, sharp: float) -> np.ndarray:
        """Softmax of three directions."""
        scores = sharp * np.stack([x[:, 0] - x[:, 1], x[:, 1] - x[:, 2], 0.5 * x[:, 2]], axis=1)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def step(
        self, x: np.ndarray, group: np.ndarray, action: np.ndarray, generator: Generator
    ) -> tuple[np.ndarray, ...]:
        push = np.array([[-0.6, 0.2, 0.0], [0.1, -0.6, 0.2], [0.2, 0.0, -0.6]])[action]
        later = 0.7 * x + push + 0.5 * generator.normal(size=x.shape)
        earned = 1.0 - 0.5 * (later**2).mean(axis=1) + 0.4 * group + 0.2 * generator.normal(size=len(x))
        moves = (generator.random(len(x)) < 0.2) & self.mixed
        return later, np.where(moves, generator.integers(0, 3, size=len(x)), group), earned

    def begin(self, n: int, generator: Generator) -> tuple[np.ndarray, np.ndarray]:
        group = generator.integers(0, 3, size=n) if self.mixed else np.zeros(n, dtype=int)
        return generator.normal(size=(n, 3)), group

    @lru_cache(maxsize=8)  # noqa: B019
    def truth(self) -> float:
        """By simulation: its error is a hundredth of the intervals'."""
        generator, n = np.random.default_rng(12345), 100_000
        x, group = self.begin(n, generator)
        total, weight = 0.0, 0.0
        for t in range(60 if self.gamma is None else int(12 / (1 - self.gamma))):
            x, group, earned = self.step(x, group, drawn(self.law(x, 0.9), generator), generator)
            factor = float(t >= 30) if self.gamma is None else self.gamma**t
            total, weight = total + factor * float(earned.mean()), weight + factor
        return total / weight

    def simulate(self, episodes: int, seed: int) -> Columns:
        generator = np.random.default_rng(seed)
        x, group = self.begin(episodes, generator)
        logger, parts = np.arange(episodes) % 2, []
        for t in range(self.steps):
            laws = np.where((logger == 0)[:, None], mixed(self.law(x, 0.3), 0.1), mixed(self.law(x, 0.9), 0.3))
            action = drawn(laws, generator)
            later, moved, earned = self.step(x, group, action, generator)
            parts.append((np.arange(episodes), np.full(episodes, t), x, group, action, earned, later, moved))
            x, group = later, moved
        episode, step, x, group, action, earned, later, moved = map(np.concatenate, zip(*parts, strict=True))
        rows = {"episode_id": episode, "step": step, "action": action, "reward": earned}
        rows |= {"truncated": step == self.steps - 1, "terminated": np.zeros(len(step), dtype=bool)}
        if self.mixed:
            names = np.array(["north", "south", "west"])
            rows |= {f"observation.{name}": x[:, j] for j, name in enumerate("xyz")} | {
                "observation.region": names[group]
            }
            rows |= {f"next_observation.{name}": later[:, j] for j, name in enumerate("xyz")}
            rows["next_observation.region"] = names[moved]
        else:
            rows |= {"observation": x, "next_observation": later}
        rows["policy_id"] = np.array(["v0", "v1"])[logger[episode]]
        order = np.lexsort((step, episode))
        return {name: values[order] for name, values in rows.items()}


COUNTED: dict[str, Callable[[int], Table]] = {
    "shop, prices": lambda seed: shop(seed, "prices"),
    "shop, amounts": lambda seed: shop(seed, "amounts"),
    "shop, counts": lambda seed: shop(seed, "counts"),
    "clinic, to the end": lambda seed: clinic(seed, "ends"),
    "clinic, cut after 15 days": lambda seed: clinic(seed, "cut"),
    "clinic, discounted": lambda seed: clinic(seed, "discounted"),
    "plant, 60 steps": lambda seed: plant(seed, "short"),
    "plant, 1,000 steps": lambda seed: plant(seed, "long"),
    "game": game,
    "recency, average": lambda seed: recency(seed, "average"),
    "recency, 26 weeks": lambda seed: recency(seed, "horizon"),
    "recency, discounted": lambda seed: recency(seed, "discounted"),
    "single requests": requests,
    "any chain": lambda seed: any_chain(seed, "ids"),
    "any chain, factors": lambda seed: any_chain(seed, "factors"),
    "any chain, cut anywhere": lambda seed: any_chain(seed, "staggered"),
    "any chain, no next observations": lambda seed: any_chain(seed, "derived"),
}
ON_NUMBERS: dict[str, Callable[[int], Numbers]] = {
    "numbers, average": lambda seed: Numbers(False, None),
    "numbers, discounted": lambda seed: Numbers(False, 0.9),
    "numbers and a category": lambda seed: Numbers(True, 0.9),
}
WORLDS: dict[str, Callable[[int], Table | Numbers]] = {**COUNTED, **ON_NUMBERS}
