"""Faults that once were green, in worlds of this file alone: is an answer that misses the truth still trustworthy?

    python benchmarks/mends.py                                            # ids, small, a few minutes
    python benchmarks/mends.py --views ids factors --sizes 50 200 500 2000 --logs 40
    python benchmarks/mends.py --only padding --views vectors --sizes 50 200 --logs 10

Every log has a world of its own, drawn from its seed, with the exact truth: a few states, two or three actions, one or
two loggers without names. One world is shown in four views: its states are *ids*, two *factors*, *vectors* (a point for
every state, and noise that nothing depends on), or *mixed* (numbers with noise beside a category). Episodes are cut, or
end.

- *counter*: the state counts steps since the last purchase, and every episode is cut: its newest value was never left.
- *visits*: the state is the number of the visit, and a session ends by chance; the question is the total of a session.
- *traits*: units differ for ever by what the state leaves out. *drift*: rewards fall from the first episode to the
  last, and the truth is what the last of them would earn.
- *rare rewards*: one row in 2,000 pays. *rare ends*: a few ends are expected in all.
- *code*: −999 in 1 % of the rows (*among counts*: of whole numbers up to 100); *code among small*: −1 in 10 %; *one
  reward* of 10⁶; *clipped*: the highest fifth is cut off.
- *padding*: sessions that ended are filled up with rows that earn 0 in a state of their own, and no end is marked.
- *healthy*: the same worlds with nothing wrong.

*Right* is an interval that holds the truth; *refused* is ``not supported by these logs``, or an error in words.
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import mixope
from mixope.base.errors import MixopeError
from mixope.policies import CallablePolicy
from tables import markdown

VIEWS = ("ids", "factors", "vectors", "mixed")
GAMMA = 0.95
AVERAGE, DISCOUNTED = {}, {"estimand": "discounted", "gamma": GAMMA}
HORIZON, EPISODE = {"estimand": "horizon"}, {"estimand": "episode"}
HEAD = (
    "item",
    "logs",
    "states",
    "asked for",
    "episodes",
    "right",
    "green",
    "green and wrong",
    "right and refused",
    "by",
)
Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class World:
    """P(s′|s,a), mean rewards, chance of an end after (s, a), law of the starts; ``steps`` until the recorder stops.

    ``shown`` maps what the world is in to what the log says of it.
    """

    moves: np.ndarray
    mean: np.ndarray
    start: np.ndarray
    steps: int
    ends: np.ndarray
    shown: np.ndarray
    noise: float = 1.0
    pays: np.ndarray | None = None
    """The chance of a reward of its own, where rewards are rare; ``mean`` is then the prize."""

    @property
    def earned(self) -> np.ndarray:
        return self.mean if self.pays is None else self.mean * self.pays

    def value(self, law: np.ndarray, estimand: str = "average", gamma: float = 1.0) -> float:
        """Exact."""
        reward, n = np.sum(law * self.earned, axis=1), len(law)
        onward = np.einsum("sa,sa,sat->st", law, 1.0 - self.ends, self.moves)
        if estimand == "average":
            chain = onward + np.outer(np.sum(law * self.ends, axis=1), self.start)
            system = np.vstack([chain.T - np.eye(n), np.ones(n)])
            mass = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
            return float(mass @ reward)
        if estimand == "horizon":
            mass, total = self.start, 0.0
            for _ in range(self.steps):
                total, mass = total + float(mass @ reward), onward.T @ mass
            return total / self.steps
        total = float(self.start @ np.linalg.solve(np.eye(n) - gamma * onward, reward))
        return total if estimand == "episode" else (1.0 - gamma) * total

    def rows(self, laws: np.ndarray, episodes: int, draw: np.random.Generator) -> Columns:
        """What loggers with these ``laws`` (L, S, A) write, in the world's own states."""
        logger = np.arange(episodes) % len(laws)
        state, alive, parts = draw.choice(len(self.start), episodes, p=self.start), np.arange(episodes), []
        goes, acts = self.moves.cumsum(axis=2), laws.cumsum(axis=2)
        for t in range(self.steps):
            s = state[alive]
            a = (draw.random(len(s))[:, None] > acts[logger[alive], s][:, :-1]).sum(axis=1)
            after = (draw.random(len(s))[:, None] > goes[s, a][:, :-1]).sum(axis=1)
            ended = draw.random(len(s)) < self.ends[s, a]
            reward = self.mean[s, a] + self.noise * draw.normal(size=len(s))
            if self.pays is not None:
                reward = self.mean[s, a] * (draw.random(len(s)) < self.pays[s, a])
            parts.append((alive, np.full(len(s), t), s, a, reward, after, ended, ~ended & (t + 1 == self.steps)))
            state[alive], alive = after, alive[~ended]
        names = ("episode_id", "step", "state", "action", "reward", "next", "terminated", "truncated")
        columns = list(map(np.concatenate, zip(*parts, strict=True)))
        order = np.lexsort([columns[1], columns[0]])
        return {name: column[order] for name, column in zip(names, columns, strict=True)}


@dataclass(frozen=True)
class Log:
    """A world, the laws of its loggers and of the target in what is shown, what was written, and the truth."""

    world: World
    target: np.ndarray
    rows: Columns
    truth: Mapping[str, float] = field(default_factory=dict)
    """By estimand, where it is not the world's own."""


Make = Callable[[int, np.random.Generator], Log]
Change = Callable[[Log, np.random.Generator], Log]


def _policies(states: int, actions: int, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    laws = draw.dirichlet(np.full(actions, 2.0), size=(int(draw.integers(1, 3)), states))
    return laws, 0.6 * laws.mean(axis=0) + 0.4 * draw.dirichlet(np.ones(actions), size=states)


def _written(world: World, episodes: int, draw: np.random.Generator) -> Log:
    laws, target = _policies(int(world.shown.max()) + 1, world.mean.shape[1], draw)
    return Log(world, target, world.rows(laws[:, world.shown], episodes, draw))


def at_random(steps: int, ends: float, *, rare: float = 0.0) -> Make:
    """A world without structure; ``rare`` is the mean chance of a reward, where few rows have one."""

    def make(episodes: int, draw: np.random.Generator) -> Log:
        n, actions = int(draw.integers(6, 13)), int(draw.integers(2, 4))
        moves, start = draw.dirichlet(np.full(n, 0.5), size=(n, actions)), draw.dirichlet(np.full(n, 2.0))
        mean, spread = draw.normal(size=(n, actions)), draw.uniform(0.3, 1.7, size=(n, actions))
        pays = rare * draw.dirichlet(np.ones(n * actions)).reshape(n, actions) * n * actions if rare else None
        mean = np.full((n, actions), 50.0) if rare else mean
        return _written(World(moves, mean, start, steps, ends * spread, np.arange(n), 1.0, pays), episodes, draw)

    return make


def rare_ends(expected: float) -> Make:
    """A step earns about 1, and so many ends are expected in the whole log."""

    def make(episodes: int, draw: np.random.Generator) -> Log:
        made = at_random(20, expected / (20 * episodes))
        world = made(1, draw).world
        world = replace(world, mean=1.0 + 0.2 * world.mean, noise=0.1)
        return _written(world, episodes, draw)

    return make


def counter(episodes: int, draw: np.random.Generator) -> Log:
    """Steps since the last purchase, which comes with a chance that the action alone moves."""
    steps, n = int(draw.integers(8, 27)), 300
    chance = draw.uniform(0.03, 0.12, size=2)
    moves = np.zeros((n, 2, n))
    for a in range(2):
        moves[np.arange(n), a, 0] = chance[a]
        moves[np.arange(n), a, np.minimum(np.arange(n) + 1, n - 1)] += 1.0 - chance[a]
    prize = draw.uniform(10, 50)
    world = World(moves, np.full((n, 2), prize), np.eye(n)[0], steps, np.zeros((n, 2)), np.arange(n))
    pays = np.tile(chance, (n, 1))
    chosen = draw.uniform(0.2, 0.8)
    behaviour, target = np.tile([chosen, 1 - chosen], (n, 1)), np.tile([1 - chosen, chosen], (n, 1))
    rows = world.rows(behaviour[None], episodes, draw)
    rows["reward"] = prize * (rows["next"] == 0)
    return Log(replace(world, pays=pays), target, rows)


def visits(episodes: int, draw: np.random.Generator) -> Log:
    """The number of the visit; a session ends by a chance that the action moves, or is cut."""
    steps, n = int(draw.integers(10, 21)), 200
    moves = np.zeros((n, 2, n))
    moves[np.arange(n), :, np.minimum(np.arange(n) + 1, n - 1)] = 1.0
    ends, mean = np.tile(draw.uniform(0.06, 0.16, size=2), (n, 1)), np.tile(draw.uniform(0.3, 2.0, size=2), (n, 1))
    world = World(moves, mean, np.eye(n)[0], steps, ends, np.arange(n))
    chosen = draw.uniform(0.3, 0.7)
    behaviour, target = np.tile([chosen, 1 - chosen], (n, 1)), np.tile([1 - chosen, chosen], (n, 1))
    return Log(world, target, world.rows(behaviour[None], episodes, draw))


def traits(episodes: int, draw: np.random.Generator) -> Log:
    """Two kinds of units, one of which buys seldom; the state is the steps since the last purchase, up to six."""
    n, share = 7, draw.uniform(0.3, 0.7)
    low, high = draw.uniform(0.02, 0.06), draw.uniform(0.25, 0.45)
    moves, pays = np.zeros((2 * n, 2, 2 * n)), np.zeros((2 * n, 2))
    for kind, base in enumerate((low, high)):
        for k in range(n):
            for a in range(2):
                chance, here = base * (1.0, 1.3)[a], kind * n
                moves[here + k, a, here] += chance
                moves[here + k, a, here + min(k + 1, n - 1)] += 1.0 - chance
                pays[here + k, a] = chance
    start = np.zeros(2 * n)
    start[0], start[n] = share, 1.0 - share
    world = World(moves, np.full((2 * n, 2), 20.0), start, 26, np.zeros((2 * n, 2)), np.tile(np.arange(n), 2))
    laws, target = _policies(n, 2, draw)
    rows = world.rows(laws[:, world.shown], episodes, draw)
    rows["reward"] = 20.0 * (world.shown[rows["next"]] == 0)
    world = replace(world, pays=pays)
    average = 0.0
    for first, weight in ((0, share), (n, 1.0 - share)):  # two long runs, one for each kind
        part = slice(first, first + n)
        alone = World(moves[part, :, part], world.mean[part], np.eye(n)[0], 26, world.ends[part], np.arange(n))
        average += weight * replace(alone, pays=pays[part]).value(target)
    return Log(world, target, rows, {"average": average})


def drifting(log: Log, draw: np.random.Generator) -> Log:
    """Rewards fall by as much as they spread, from the first episode to the last."""
    falls = float(np.std(log.world.earned)) * draw.uniform(0.8, 1.5)
    rows = dict(log.rows)
    rows["reward"] = rows["reward"] - falls * rows["episode_id"] / max(rows["episode_id"].max(), 1)
    return Log(replace(log.world, mean=log.world.mean - falls), log.target, rows)


def replaced(value: Callable[[np.ndarray], float], share: float) -> Change:
    """A value in place of so many rewards; one at least."""

    def change(log: Log, draw: np.random.Generator) -> Log:
        reward = log.rows["reward"].copy()
        rows = draw.choice(len(reward), max(1, round(share * len(reward))), replace=False)
        reward[rows] = value(reward)
        return Log(log.world, log.target, log.rows | {"reward": reward})

    return change


def in_counts(log: Log, draw: np.random.Generator) -> Log:
    """Rewards from 0 to 100 or so in whole numbers, as prices are, and −999 in 1 % of the rows."""
    world = replace(log.world, mean=40.0 + 20.0 * log.world.mean)
    whole = np.maximum(np.round(40.0 + 20.0 * log.rows["reward"]), 0.0)
    return replaced(lambda r: -999.0, 0.01)(Log(world, log.target, log.rows | {"reward": whole}), draw)


def clipped(log: Log, draw: np.random.Generator) -> Log:
    reward = log.rows["reward"]
    return Log(log.world, log.target, log.rows | {"reward": np.minimum(reward, np.quantile(reward, 0.8))})


def padded(log: Log, draw: np.random.Generator) -> Log:
    """Every session filled up with rows of 0 in a state of its own, which no row leaves."""
    rows, n = log.rows, len(log.world.start)
    last = np.flatnonzero(rows["terminated"])
    more = log.world.steps - 1 - rows["step"][last]
    which = np.repeat(last, more)
    step = np.arange(len(which)) - np.repeat(np.cumsum(more) - more, more) + rows["step"][which] + 1
    action = draw.integers(0, log.world.mean.shape[1], len(which))
    filler = {"episode_id": rows["episode_id"][which], "step": step, "state": np.full(len(which), n), "action": action}
    filler |= {"reward": np.zeros(len(which)), "next": filler["state"]}
    written = {name: np.concatenate([rows[name], filler[name]]) for name in filler}
    written["next"][last] = n
    written["terminated"] = np.zeros(len(written["step"]), dtype=bool)
    written["truncated"] = written["step"] == log.world.steps - 1
    order = np.lexsort([written["step"], written["episode_id"]])
    world = replace(log.world, shown=np.append(log.world.shown, log.world.shown.max() + 1))
    target = np.vstack([log.target, np.full(log.target.shape[1], 1.0 / log.target.shape[1])])
    return Log(world, target, {name: column[order] for name, column in written.items()}, {"world": 0.0})


@dataclass(frozen=True)
class Case:
    """A kind of world, what is done to its rows, and what is asked."""

    item: str
    make: Make
    asked: tuple[dict[str, Any], ...]
    change: Change = lambda log, draw: log
    views: tuple[str, ...] = VIEWS


CUT, ENDING = at_random(20, 0.0), at_random(25, 0.12)
CASES = {
    "healthy, cut": Case("–", CUT, (AVERAGE, DISCOUNTED)),
    "healthy, sessions": Case("–", ENDING, (EPISODE, AVERAGE)),
    "counter": Case("5", counter, (AVERAGE, DISCOUNTED, HORIZON)),
    "visits": Case("5", visits, (EPISODE,)),
    "traits": Case("6", traits, (AVERAGE, DISCOUNTED)),
    "drift": Case("6", CUT, (AVERAGE,), drifting),
    "rare rewards": Case("7", at_random(20, 0.0, rare=1 / 2000), (AVERAGE,)),
    "rare ends": Case("7", rare_ends(3.0), (EPISODE,)),
    "code": Case("8", CUT, (AVERAGE,), replaced(lambda r: -999.0, 0.01)),
    "code among small": Case("8", CUT, (AVERAGE,), replaced(lambda r: -1.0, 0.1)),
    "code among counts": Case("8", CUT, (AVERAGE,), in_counts),
    "one reward": Case("8", CUT, (AVERAGE,), replaced(lambda r: 1e6, 0.0)),
    "clipped": Case("8", CUT, (AVERAGE,), clipped),
    "code, sessions": Case("8", ENDING, (EPISODE,), replaced(lambda r: -999.0, 0.01)),
    "clipped, sessions": Case("8", ENDING, (EPISODE,), clipped),
    "padding": Case("9", ENDING, (AVERAGE, DISCOUNTED), padded),
}


def points_of(states: int) -> np.ndarray:
    """A place for every state: far from each other in the plane, near where numbers are near."""
    k = np.arange(states)
    return np.stack([1.5 * (k % 4) + 0.02 * (k // 4), 1.5 * (k // 4)], axis=1)


def shown_as(view: str, log: Log, draw: np.random.Generator) -> tuple[Any, Any]:
    """The logs, and the target, in this view."""
    rows = {name: column for name, column in log.rows.items() if name not in {"state", "next"}}
    state, after = log.world.shown[log.rows["state"]], log.world.shown[log.rows["next"]]
    n = len(log.target)
    used = np.unique(np.concatenate([state, after]))
    if view == "ids":
        return mixope.read(rows | {"observation": state, "next_observation": after}), mixope.TabularPolicy(
            log.target[used], used
        )
    if view == "factors":
        for name, of in (("observation", state), ("next_observation", after)):
            rows |= {f"{name}.row": of // 3, f"{name}.place": of % 3}
        keys = np.stack([used // 3, used % 3], axis=1)
        return mixope.read(rows), mixope.TabularPolicy(log.target[used], keys.tolist(), factors=["row", "place"])
    places = points_of(n)
    still = n - 1 if "world" in log.truth else n  # padding is written again and again as it is
    here = places[state] + 0.1 * draw.normal(size=(len(state), 2)) * (state != still)[:, None]
    there = places[after] + 0.1 * draw.normal(size=(len(after), 2)) * (after != still)[:, None]
    goes_on = np.flatnonzero(rows["episode_id"][1:] == rows["episode_id"][:-1])
    there[goes_on] = here[goes_on + 1]

    def nearest(numbers: np.ndarray) -> np.ndarray:
        return ((numbers[:, None] - places[None]) ** 2).sum(axis=2).argmin(axis=1)

    actions = list(range(log.target.shape[1]))
    if view == "vectors":
        logs = mixope.Logs.from_arrays(observation=here, next_observation=there, **rows)
        return logs, CallablePolicy(lambda s: log.target[nearest(np.asarray(s))], actions)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz" * 40))

    def columns(numbers: np.ndarray, of: np.ndarray) -> dict[str, np.ndarray]:
        return {"x": numbers[:, 0], "size": numbers[:, 1], "kind": letters[of % 3]}

    logs = mixope.Logs.from_arrays(
        observation=columns(here, state), next_observation=columns(there, after), roles={"kind": "category"}, **rows
    )
    return logs, CallablePolicy(lambda s: log.target[nearest(np.stack([s["x"], s["size"]], axis=1))], actions)


def name_of(asked: Mapping[str, Any]) -> str:
    return str(asked.get("estimand", "average"))


def measured(name: str, view: str, asked: dict[str, Any], episodes: int, logs: int, seed: int) -> list[str]:
    """A line of the table."""
    case, tally, by = CASES[name], Counter[str](), Counter[str]()
    for repetition in range(logs):
        draw = np.random.default_rng([seed, zlib.crc32(name.encode()), episodes, repetition])
        log = case.make(episodes, draw)
        whole = log.world
        log = case.change(log, draw)
        kind = name_of(asked)
        of = whole if "world" in log.truth else log.world
        target = log.target[: len(log.target) - ("world" in log.truth)]
        law = target[of.shown]
        truth = log.truth.get(kind, None)
        truth = of.value(law, kind, asked.get("gamma", 1.0)) if truth is None else truth
        question = asked | ({"horizon": of.steps} if kind == "horizon" else {})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                logs_shown, policy = shown_as(view, log, draw)
                found = mixope.evaluate(logs_shown, policy, seed=repetition, **question)
        except MixopeError as error:
            tally["error"] += 1
            by[str(error).splitlines()[0][:60]] += 1
            continue
        holds = found.interval is not None and found.interval.low <= truth <= found.interval.high
        green, refused = str(found.verdict) == "trustworthy", str(found.verdict).startswith("not supported")
        tally.update({"right": holds, "green": green, "wrong": green and not holds, "refused": holds and refused})
        by.update(d.name for d in found.diagnostics if d.status == ("fail" if refused else "warn"))
    shares = (f"{100 * tally[key] / logs:.0f}" for key in ("right", "green", "wrong", "refused"))
    said = ", ".join(f"{reason} {count}" for reason, count in by.most_common(3)) or "–"
    return [case.item, name, view, name_of(asked), f"{episodes:,}", *shares, said]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--views", nargs="*", choices=VIEWS, default=["ids"])
    parser.add_argument("--sizes", nargs="*", type=int, default=[50, 200])
    parser.add_argument("--logs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(markdown(HEAD, []), flush=True)
    for name in given.only:
        for view in given.views:
            for asked in CASES[name].asked:
                for size in given.sizes:
                    line = measured(name, view, asked, size, given.logs, given.seed)
                    print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
