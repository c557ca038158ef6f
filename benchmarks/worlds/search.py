"""Find the policies of the worlds by random search, and their truths: ``python -m benchmarks.worlds.search``.

A climb keeps a random change of the weights when the discounted value of a few episodes rises. The loggers are what the
climb had found early on, half-way and near its end, with more noise; the target is its end. Eight targets to be ranked
lie between and beyond them. Everything is fixed by the seed; the result is ``policies.json``.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from benchmarks.worlds.policies import FILE, Linear, read
from benchmarks.worlds.rollouts import discounted, environment, episode

WORLDS: dict[str, dict[str, Any]] = {
    "cartpole": {"environment": "CartPole-v1", "discrete": True, "noise": (1.0, 3.0, 2.0, 2.0), "step": 0.6},
    "mountain-car": {"environment": "MountainCarContinuous-v0", "noise": (0.4, 0.8, 0.7, 0.6), "step": 1.0},
    "inverted-pendulum": {"environment": "InvertedPendulum-v5", "noise": (0.4, 0.6, 0.5, 0.5), "step": 0.6},
    "swimmer": {"environment": "Swimmer-v5", "noise": (0.3, 0.5, 0.5, 0.4), "step": 0.6},
    "hopper": {"environment": "Hopper-v5", "noise": (0.3, 0.5, 0.4, 0.4), "step": 0.4},
    "half-cheetah": {"environment": "HalfCheetah-v5", "noise": (0.3, 0.5, 0.5, 0.4), "step": 0.4},
}
GAMMA = 0.99


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
    return values.mean(axis=0), np.maximum(values.std(axis=0), 1e-2)


def climb(name: str, start: Linear, step: float, generator: np.random.Generator, tries: int) -> list[Linear]:
    """The policies that were best so far, in the order in which they were found."""
    seed = int(generator.integers(2**31))

    def worth(policy: Linear) -> float:
        drawn, found = np.random.default_rng(seed), []
        for _ in range(6):
            reward = episode(name, policy, drawn, 300)["reward"]
            found.append(float(GAMMA ** np.arange(len(reward)) @ reward))
        return float(np.mean(found))

    path, best = [start], worth(start)
    for _ in range(tries):
        old = path[-1]
        weights = old.weights + step * generator.standard_normal(old.weights.shape) * (generator.random(old.weights.shape) < 0.5)
        offset = old.offset + 0.3 * step * generator.standard_normal(old.offset.shape)
        new = Linear(np.round(weights, 5), np.round(offset, 5), old.noise, old.centre, old.unit, old.scale, old.discrete)
        if (value := worth(new)) > best:
            best = value
            path.append(new)
    return path


def between(left: Linear, right: Linear, share: float, noise: float) -> Linear:
    """A policy on the line through two others."""
    weights = left.weights + share * (right.weights - left.weights)
    offset = left.offset + share * (right.offset - left.offset)
    return Linear(weights, offset, noise, left.centre, left.unit, left.scale, left.discrete)


def found(setting: dict[str, Any], seed: int, tries: int, truths: int) -> dict[str, Any]:
    """All that is to be stored of a world."""
    name, generator = setting["environment"], np.random.default_rng([seed, 303])
    space, discrete = environment(name).action_space, setting.get("discrete", False)
    centre, unit = (np.round(values, 5) for values in units(name, generator))
    actions = int(space.n) if discrete else int(space.shape[0])
    scale = 1.0 if discrete else float(space.high[0])
    noise = [scale * value if not discrete else value for value in setting["noise"]]
    blank = Linear(np.zeros((actions, len(centre))), np.zeros(actions), noise[0], centre, unit, scale, discrete)
    path = climb(name, blank, setting["step"], generator, tries)
    early, middle, late = (path[int(share * (len(path) - 1))] for share in (0.3, 0.6, 0.85))
    target = path[-1]
    loggers = [between(policy, target, 0.25, sigma) for policy, sigma in zip((early, middle, late), noise[1:], strict=True)]
    ranked = [target, *loggers, *(between(early, target, share, noise[0]) for share in (0.3, 0.6, 0.8, 1.1))]
    world = {"environment": name, "discrete": discrete, "scale": scale, "centre": centre.tolist(), "unit": unit.tolist()}
    plain = [read(world, policy.to_json()) for policy in ranked]  # as they will be read
    values = [discounted(name, policy, truths, GAMMA, seed + k) for k, policy in enumerate(plain)]
    return world | {
        "loggers": [policy.to_json() for policy in loggers],
        "targets": [policy.to_json() | {"truth": value, "error": error} for policy, (value, error) in zip(ranked, values, strict=True)],
    }


def main() -> None:
    """Search, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tries", type=int, default=150)
    parser.add_argument("--truths", type=int, default=300, help="episodes behind each truth")
    parser.add_argument("--only", default=",".join(WORLDS))
    options = parser.parse_args()
    stored = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in options.only.split(","):
        stored[name] = found(WORLDS[name], options.seed, options.tries, options.truths)
        FILE.write_text(json.dumps(stored, indent=None, separators=(",", ":")).replace('},"', '},\n"') + "\n")
        print(name, [(round(t["truth"], 4), round(t["error"], 4)) for t in stored[name]["targets"]], flush=True)


if __name__ == "__main__":
    main()
