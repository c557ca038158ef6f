"""Claim: checks of behaviour, parts and copies are quiet on healthy logs, and answers that are right are not refused.

    python benchmarks/alarms.py [--repetitions 10] [--seed 0] [--only NAME …]

Run with OMP_NUM_THREADS=1. Worlds of this file's own: a ring of ids (counted), its states as two factors, and three
floats (vectors) on which loggers act in waves that a model of their actions follows badly. Each log is healthy, or has
propensities that are wrong: of the other action, the target's, or one in every row. *Right, changing* are those of
loggers whose favourite action in a state changes now and then. A line of the table is one kind of
log and one estimator: how often the interval holds the truth, how often a right answer is refused, how often a wrong
one is green, and which of the checks *behaviour fit*, *loggers agree*, *episodes agree*, *repeated episodes* and
*interval width* warn.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mixope
from tables import markdown

CHECKS = ("behaviour fit", "loggers agree", "episodes agree", "repeated episodes", "interval width")
RING = np.array([[0.3, 0.5, 0.6, 0.8], [0.7, 0.6, 0.5, 0.4]])
GOAL = np.array([0.6, 0.6, 0.7, 0.5])
STEPS = 20
Law = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""The chance of going up, from states and the number of the logger."""


def ring(law: Law, episodes: int, steps: int, seed: int, loggers: int = 2) -> dict[str, np.ndarray]:
    """Four ids in a ring; going on pays a little, and the last state pays more."""
    generator = np.random.default_rng(seed)
    who, state, rows = np.arange(episodes) % loggers, np.zeros(episodes, dtype=int), []
    for t in range(steps):
        up = law(state, who)
        action = (generator.random(episodes) < up).astype(int)
        following = (state + np.where(generator.random(episodes) < 0.2, 0, action)) % 4
        reward = (state == 3) + 0.3 * action + generator.normal(size=episodes)
        rows.append((np.arange(episodes), np.full(episodes, t), who, state, action, reward, following, up))
        state = following
    return _columns(rows)


def waves(law: Law, episodes: int, steps: int, seed: int, loggers: int = 2) -> dict[str, np.ndarray]:
    """Three floats that wander; going up moves the first, which pays."""
    generator = np.random.default_rng(seed)
    who, state, rows = np.arange(episodes) % loggers, 0.5 * generator.normal(size=(episodes, 3)), []
    for t in range(steps):
        up = law(state, who)
        action = (generator.random(episodes) < up).astype(int)
        moved = 0.7 * state + 0.3 * generator.normal(size=state.shape)
        moved[:, 0] += 0.4 * action - 0.2
        reward = np.tanh(state[:, 0]) + 0.2 * action - 0.3 * state[:, 1] ** 2 + 0.2 * generator.normal(size=episodes)
        rows.append((np.arange(episodes), np.full(episodes, t), who, state, action, reward, moved, up))
        state = moved
    return _columns(rows)


def _columns(rows: list[tuple[np.ndarray, ...]]) -> dict[str, np.ndarray]:
    names = ("episode_id", "step", "policy_id", "observation", "action", "reward", "next_observation", "up")
    return dict(zip(names, (np.concatenate(column) for column in zip(*rows, strict=True)), strict=True))


def ring_law(state: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Of the two loggers."""
    return RING[who, state]


FAVOURITES = np.random.default_rng(11).random((8, 2, 4)) < 0.5


def ring_changing(state: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Of two loggers that change their minds seven times."""
    when = np.arange(len(state)) * len(FAVOURITES) // len(state)
    return np.where(FAVOURITES[when, who, state], 0.93, 0.07)


def ring_goal(state: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Of the target."""
    return GOAL[state]


def waves_law(state: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Of the two loggers: it rises and falls with the first column, and drifts with the second."""
    return 1 / (1 + np.exp(-1.5 * np.sin(5 * state[:, 0]) - np.where(who == 0, 0.5, -0.5) * state[:, 1]))


def waves_goal(state: np.ndarray, who: np.ndarray) -> np.ndarray:
    """Of the target: the other way round."""
    return 1 / (1 + np.exp(0.8 * np.sin(5 * state[:, 0]) - 0.5))


WORLDS: dict[str, tuple[Any, Law, Law]] = {
    "ids": (ring, ring_law, ring_goal),
    "factors": (ring, ring_law, ring_goal),
    "vectors": (waves, waves_law, waves_goal),
    "mixed": (waves, waves_law, waves_goal),
}
CHANGING = "right, changing"
PROPENSITIES = ("none", "right", "other action", "target's", "one")
PLAN = (
    *(("ids", n, kind, "emp") for n in (50, 500, 2_000) for kind in PROPENSITIES),
    *(("ids", n, kind, e) for n in (50, 500, 2_000) for kind in PROPENSITIES[1:] for e in ("bch", "wis-step")),
    *(("factors", n, kind, "dr") for n in (50, 500, 2_000) for kind in PROPENSITIES),
    *((name, n, CHANGING, e) for name, e in (("ids", "emp"), ("factors", "dr")) for n in (50, 500, 2_000)),
    *(("vectors", n, "none", "dr") for n in (50, 200)),
    *(("mixed", n, "none", "dr") for n in (50, 200)),
    *(("vectors", 200, kind, e) for kind in PROPENSITIES[1:] for e in ("bch", "wis-step")),
)


def log(name: str, kind: str, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """As mixope reads it."""
    _, _, goal = WORLDS[name]
    given, up = dict(columns), columns["up"]
    del given["up"]
    taken = np.where(columns["action"] == 1, up, 1 - up)
    wanted = goal(columns["observation"], columns["policy_id"])
    recorded = {
        "right": taken,
        CHANGING: taken,
        "other action": 1 - taken,
        "target's": np.where(columns["action"] == 1, wanted, 1 - wanted),
        "one": np.ones(len(up)),
    }
    if kind in recorded:
        given["action_prob"] = recorded[kind]
    given["policy_id"] = np.array(["a", "b"])[columns["policy_id"]]
    if name == "factors":
        for column in ("observation", "next_observation"):
            state = given.pop(column)
            given |= {f"{column}.high": state // 2, f"{column}.low": state % 2}
    if name == "mixed":
        for column in ("observation", "next_observation"):
            state = given.pop(column)
            given |= {f"{column}.x": state[:, 0], f"{column}.y": state[:, 1]}
            given[f"{column}.z"] = np.array(["low", "middle", "high"])[np.digitize(state[:, 2], (-0.2, 0.2))]
    return given


def target(name: str) -> Any:
    """As mixope takes it."""
    if name == "ids":
        return mixope.TabularPolicy(np.stack([1 - GOAL, GOAL], axis=1))
    if name == "factors":
        return mixope.read_policy(
            {
                "observation.high": np.repeat([0, 0, 1, 1], 2),
                "observation.low": np.repeat([0, 1, 0, 1], 2),
                "action": np.tile([0, 1], 4),
                "prob": np.stack([1 - GOAL, GOAL], axis=1).ravel(),
            }
        )

    def probs(observations: np.ndarray) -> np.ndarray:
        first = np.array([[float(row[0])] for row in observations])
        up = waves_goal(first, np.zeros(len(first)))
        return np.stack([1 - up, up], axis=1)

    return mixope.CallablePolicy(probs, actions=np.arange(2))


def truth(name: str, horizon: int | None) -> float:
    """By simulation: the long run, or the mean of the first steps."""
    simulate, _, goal = WORLDS[name]
    columns = simulate(goal, 8_000, horizon or 120, 987, 1)
    return float(columns["reward"][columns["step"] >= (0 if horizon else 40)].mean())


def lines(given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One for each kind of log and estimator."""
    truths: dict[tuple[str, int | None], float] = {}
    for name, episodes, kind, estimator in PLAN:
        if given.only and name not in given.only:
            continue
        horizon = STEPS if estimator == "wis-step" else None
        if (name, horizon) not in truths:
            truths[name, horizon] = truth(name, horizon)
        simulate, law, _ = WORLDS[name]
        held, refused, green, warned = 0, 0, 0, Counter[str]()
        for repetition in range(given.repetitions):
            acting = ring_changing if kind == CHANGING else law
            columns = simulate(acting, episodes, STEPS, 1_000 * (given.seed + 1) + repetition)
            asked = {"estimand": "horizon", "horizon": STEPS} if horizon else {}
            found = mixope.evaluate(log(name, kind, columns), target(name), estimator, **asked)
            interval = found.interval
            right = interval is not None and interval.low <= truths[name, horizon] <= interval.high
            held += right
            refused += right and str(found.verdict) == "not supported by these logs"
            green += not right and str(found.verdict) == "trustworthy"
            warned.update(c.name for c in found.diagnostics if c.name in CHECKS and c.status != "pass")
        yield {
            "states": name,
            "episodes": episodes,
            "propensities": kind,
            "estimator": estimator,
            "holds": f"{held} of {given.repetitions}",
            "right and refused": refused,
            "green and wrong": green,
            "warned": ", ".join(f"{check} {n}" for check, n in warned.items()) or "–",
        }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=sorted(WORLDS))
    for number, line in enumerate(lines(parser.parse_args())):
        row = markdown(list(line), [[str(value) for value in line.values()]]).split("\n")
        print("\n".join(row if number == 0 else row[-1:]), flush=True)


if __name__ == "__main__":
    main()
