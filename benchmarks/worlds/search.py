"""Find the policies of the worlds by random search, and their truths: ``python -m benchmarks.worlds.search``.

A climb keeps a random change of the weights when the discounted value of a few episodes rises. The loggers are what the
climb had found early on, half-way and near its end, a quarter of the way towards the target and with more noise.
Everything is fixed by the seed; the result is ``policies.json``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from benchmarks.worlds.policies import FILE, Linear, read
from benchmarks.worlds.rollouts import GAMMA, Law, average, discounted, environment

TRIED_EPISODES, TRIED_STEPS = 6, 300
AVERAGED = ("cartpole",)
"""The worlds whose long-run average is asked for too."""


@dataclass(frozen=True)
class Recipe:
    """A policy of the climb: where on its path, how far from there to the end, how much of its weights, its noise."""

    place: float
    towards: float
    noise: float
    gain: float = 1.0

    def made(self, path: Sequence[Linear]) -> Linear:
        """From the path of a climb."""
        start, end = path[int(self.place * (len(path) - 1))], path[-1]
        weights = np.round(start.weights + self.towards * (end.weights - start.weights), 5)
        offset = np.round(start.offset + self.towards * (end.offset - start.offset), 5)
        return replace(start, weights=self.gain * weights, offset=self.gain * offset, noise=self.noise)


@dataclass(frozen=True)
class Search:
    """Where to climb, in which steps, and what to take from the path; noise is in units of the largest action."""

    environment: str
    step: float
    target: Recipe
    loggers: tuple[Recipe, ...]
    others: tuple[Recipe, ...] = ()
    """To be ranked beside the target and the loggers."""
    tries: int = 150
    discrete: bool = False


def three(*noise: float) -> tuple[Recipe, ...]:
    """The usual loggers."""
    return tuple(Recipe(place, 0.25, sigma) for place, sigma in zip((0.3, 0.6, 0.85), noise, strict=True))


SEARCHES = {
    "cartpole": Search("CartPole-v1", 0.6, Recipe(1, 0, 1.0), three(3.0, 2.0, 2.0), discrete=True),
    "mountain-car": Search(
        "MountainCarContinuous-v0",
        1.0,
        Recipe(0.3, 0.25, 0.4),
        (Recipe(0.3, 0.25, 1.0, 0.1), Recipe(0.3, 0.25, 1.0, 0.2), Recipe(0.3, 0.25, 0.8, 0.3)),
    ),
    "inverted-pendulum": Search("InvertedPendulum-v5", 0.6, Recipe(1, 0, 0.4), three(0.6, 0.5, 0.5)),
    "swimmer": Search("Swimmer-v5", 0.6, Recipe(1, 0, 0.3), three(0.5, 0.5, 0.4)),
    "hopper": Search(
        "Hopper-v5",
        0.4,
        Recipe(1, 0, 0.3),
        three(0.5, 0.4, 0.4),
        tuple(Recipe(0.3, towards, 0.3) for towards in (0.3, 0.6, 0.8, 1.1)),
    ),
    "half-cheetah": Search(
        "HalfCheetah-v5",
        0.3,
        Recipe(1, 0, 0.3),
        (Recipe(0.18, 0.25, 0.5), Recipe(0.36, 0.25, 0.5), Recipe(0.53, 0.25, 0.4)),
        tuple(Recipe(place, 0, 0.3) for place in (0, 0.18, 0.48, 0.65)),
        tries=450,
    ),
}


def units(name: str, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of the states that random actions reach."""
    world, states = environment(name), []
    for _ in range(10):
        state, _ = world.reset(seed=int(generator.integers(2**31)))
        world.action_space.seed(int(generator.integers(2**31)))
        for _ in range(100):
            states.append(state)
            state, _, ended, _, _ = world.step(world.action_space.sample())
            if ended:
                break
    values = np.array(states)
    return np.round(values.mean(axis=0), 5), np.round(np.maximum(values.std(axis=0), 1e-2), 5)


def climb(search: Search, start: Linear, generator: np.random.Generator) -> list[Linear]:
    """The policies that were best so far, in the order in which they were found."""
    law, seed, size = Law(search.environment), int(generator.integers(2**31)), start.weights.shape

    def worth(policy: Linear) -> float:
        drawn, found = np.random.default_rng(seed), []
        for _ in range(TRIED_EPISODES):
            reward = law.episode(policy, drawn, TRIED_STEPS)["reward"]
            found.append(float(GAMMA ** np.arange(len(reward)) @ reward))
        return float(np.mean(found))

    path, best = [start], worth(start)
    for _ in range(search.tries):
        old = path[-1]
        change = search.step * generator.standard_normal(size) * (generator.random(size) < 0.5)
        offset = old.offset + 0.3 * search.step * generator.standard_normal(old.offset.shape)
        new = replace(old, weights=np.round(old.weights + change, 5), offset=np.round(offset, 5))
        if (value := worth(new)) > best:
            best = value
            path.append(new)
    return path


def found(name: str, seed: int) -> dict[str, Any]:
    """The policies of a world, as they are stored, without their truths."""
    search, generator = SEARCHES[name], np.random.default_rng([seed, 303])
    space = environment(search.environment).action_space
    centre, unit = units(search.environment, generator)
    actions = int(space.n) if search.discrete else int(space.shape[0])
    scale = 1.0 if search.discrete else float(space.high[0])
    weights, noise = np.zeros((actions, len(centre))), search.target.noise * scale
    blank = Linear(weights, np.zeros(actions), noise, centre, unit, scale, search.discrete)
    path = climb(search, blank, generator)

    def stored(*recipes: Recipe) -> list[dict[str, Any]]:
        return [replace(recipe, noise=round(scale * recipe.noise, 5)).made(path).to_json() for recipe in recipes]

    ranked = (search.target, *search.loggers, *search.others) if search.others else (search.target,)
    world = {"environment": search.environment, "discrete": search.discrete, "scale": scale}
    world |= {name: [round(float(x), 5) for x in values] for name, values in (("centre", centre), ("unit", unit))}
    return world | {"loggers": stored(*search.loggers), "targets": stored(*ranked)}


def with_truths(name: str, world: dict[str, Any], episodes: int, seed: int) -> dict[str, Any]:
    """The same with the value of every policy and its standard error: the target's from so many episodes.

    The others', which are only ranked or make the distance from the target, come from a quarter as many.
    """

    def told(policy: dict[str, Any], number: int) -> dict[str, Any]:
        plain, law, many = read(world, policy), Law(world["environment"]), episodes // (4 if number else 1)
        values = {"discounted": discounted(law, plain, many, seed + number)}
        if name in AVERAGED:
            values["average"] = average(replace(law, restarts=True), plain, many // 8, seed + number)
        return policy | {kind: [float(f"{mean:.6g}"), float(f"{error:.2g}")] for kind, (mean, error) in values.items()}

    target, others = world["targets"][0], world["targets"][1 + len(world["loggers"]) :]
    first, *loggers = (told(policy, k) for k, policy in enumerate([target, *world["loggers"]]))
    ranked = [told(policy, 1 + len(loggers) + k) for k, policy in enumerate(others)]
    return world | {"loggers": loggers, "targets": [first, *loggers, *ranked] if ranked else [first]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--truths", type=int, default=1000, help="episodes behind each truth")
    parser.add_argument("--worlds", nargs="+", choices=list(SEARCHES), default=list(SEARCHES))
    given = parser.parse_args()
    stored = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in given.worlds:
        stored[name] = with_truths(name, found(name, given.seed), given.truths, given.seed)
        text = json.dumps(stored, separators=(",", ":")).replace('},"', '},\n"').replace("},{", "},\n{")
        FILE.write_text(text + "\n")
        print(name, [policy["discounted"] for policy in stored[name]["targets"]], flush=True)


if __name__ == "__main__":
    main()
