"""Small random logs of every kind, and questions to ask of them: what the soak and the tests of determinism run on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mixope
from mixope.logs.writing import write

KINDS = ("ids", "words", "factors", "vectors", "continuous")
"""Of states; the last one has actions that are numbers, too."""
FORMATS = ("memory", "parquet", "csv", "arrow")
ACTIONS = 2
NOISE = 0.5
"""Around the number of an action, where actions are numbers."""
Columns = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What a log is like."""

    kind: str = "ids"
    states: int = 5
    loggers: int = 2
    episodes: int = 30
    horizon: int = 12
    ends: bool = False
    labels: bool = True
    propensities: bool = True
    next_states: bool = True
    seed: int = 0

    @classmethod
    def drawn(cls, draw: np.random.Generator) -> Plan:
        """Any of them."""
        chances = {name: bool(draw.random() < 0.6) for name in ("ends", "labels", "propensities", "next_states")}
        sizes = {"states": int(draw.integers(2, 12)), "loggers": int(draw.integers(1, 4))}
        return cls(
            kind=str(draw.choice(KINDS)),
            episodes=int(draw.integers(6, 60)),
            horizon=int(draw.integers(3, 40)),
            seed=int(draw.integers(1 << 31)),
            **sizes,
            **chances,
        )


def columns(plan: Plan) -> Columns:
    """The rows: a random chain, walked by random loggers; states are then dressed as the plan says."""
    draw = np.random.default_rng(plan.seed)
    chain = draw.dirichlet(np.full(plan.states, 0.6), size=(plan.states, ACTIONS))
    laws = draw.dirichlet(np.full(ACTIONS, 2.0), size=(plan.loggers, plan.states))
    rows: dict[str, list[Any]] = {name: [] for name in ("e", "t", "s", "a", "r", "n", "end", "cut", "j", "p", "q")}
    for episode in range(plan.episodes):
        logger, state = episode % plan.loggers, int(draw.integers(plan.states))
        for step in range(plan.horizon):
            law = laws[logger, state]
            action = int(draw.choice(ACTIONS, p=law))
            after = int(draw.choice(plan.states, p=chain[state, action]))
            over = plan.ends and bool(draw.random() < 2 / plan.horizon)
            reward = state - 0.5 * action + 0.3 * draw.normal()
            last = over or step == plan.horizon - 1
            found = (episode, step, state, action, reward, after, over, last and not over, logger, law[action], law[1])
            for name, value in zip(rows, found, strict=True):
                rows[name].append(value)
            if over:
                break
            state = after
    return _dressed(plan, {name: np.array(values) for name, values in rows.items()}, draw)


def _dressed(plan: Plan, rows: dict[str, Any], draw: np.random.Generator) -> Columns:
    made: Columns = {"episode_id": rows["e"], "step": rows["t"], "action": rows["a"], "reward": rows["r"]}
    made |= _states(plan, rows)
    made |= {"terminated": rows["end"], "truncated": rows["cut"]}
    if plan.labels:
        made["policy_id"] = np.array([f"logger-{j}" for j in rows["j"]])
    if plan.kind == "continuous":
        taken = rows["a"] + NOISE * draw.normal(size=len(rows["a"]))
        made["action"] = taken[:, None]
        if plan.propensities:
            made["action_prob"] = (1 - rows["q"]) * _normal(taken) + rows["q"] * _normal(taken - 1)
    elif plan.propensities:
        made["action_prob"] = rows["p"]
    return made


def _normal(distance: Any) -> Any:
    return np.exp(-((distance / NOISE) ** 2) / 2) / (NOISE * np.sqrt(2 * np.pi))


def _states(plan: Plan, rows: dict[str, Any]) -> Columns:
    if plan.kind in ("vectors", "continuous"):
        return _points(plan, rows)
    names = {"observation": rows["s"]} | ({"next_observation": rows["n"]} if plan.next_states else {})
    if plan.kind == "words":
        return {name: np.array([f"state {k}" for k in ids]) for name, ids in names.items()}
    if plan.kind == "factors":
        return {f"{name}.{f}": part for name, ids in names.items() for f, part in (("x", ids % 3), ("y", ids // 3))}
    return names


def _points(plan: Plan, rows: dict[str, Any]) -> Columns:
    """A point near the state's own place, the same one for a next state and for the row that follows."""
    places = np.random.default_rng(plan.seed + 1).normal(size=(plan.states, 2))

    def point(state: Any, step: Any) -> Any:
        jitter = np.random.default_rng(plan.seed + 2).normal(size=(plan.episodes, plan.horizon + 1, 2))
        return places[state] + 0.2 * jitter[rows["e"], step]

    made = {"observation": point(rows["s"], rows["t"])}
    return made | ({"next_observation": point(rows["n"], rows["t"] + 1)} if plan.next_states else {})


def target(plan: Plan, seed: int = 7) -> Any:
    """A policy for the log."""
    law = np.random.default_rng(seed).dirichlet(np.full(ACTIONS, 2.0), size=plan.states)
    states: Any = np.arange(plan.states)
    if plan.kind == "continuous":
        return mixope.GaussianPolicy(mean, 0.6)
    if plan.kind == "vectors":
        return halves
    if plan.kind == "words":
        return mixope.TabularPolicy(law, [f"state {k}" for k in states], list(range(ACTIONS)))
    if plan.kind == "factors":
        return mixope.TabularPolicy(law, np.stack([states % 3, states // 3], axis=1), factors=("x", "y"))
    return mixope.TabularPolicy(law)


def halves(observations: Any) -> Any:
    """A policy on vectors."""
    chance = 1 / (1 + np.exp(-0.5 * observations[:, 0]))
    return np.stack([chance, 1 - chance], axis=1)


def mean(observations: Any) -> Any:
    """Of a policy whose actions are numbers."""
    return 0.5 + 0.1 * observations[:, :1]


def shuffled(rows: Columns, seed: int = 0) -> Columns:
    """The same rows in another order."""
    order = np.random.default_rng(seed).permutation(len(rows["reward"]))
    return {name: values[order] for name, values in rows.items()}


def stored(rows: Columns, kind: str, folder: Path, shards: int = 1) -> mixope.Logs:
    """The rows as logs: arrays, or so many files of a format."""
    if kind == "memory":
        return mixope.read(rows)
    folder.mkdir(parents=True, exist_ok=True)
    cuts = np.array_split(np.arange(len(rows["reward"])), shards)
    for number, cut in enumerate(cuts):
        write({name: values[cut] for name, values in rows.items()}, folder / f"part-{number:03}.{kind}")
    return mixope.read(folder)
