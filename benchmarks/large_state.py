"""A hundred thousand states: every estimator that works from counts answers, or says at once what does not fit.

    python benchmarks/large_state.py                     # three worlds of 100,000 states, 600,000 rows each

A dense matrix of this size would take 80 GB. The worlds have two actions and opaque ids as states (in ``grid factors``
a row and a column):

    random   three random successors for each state and action; mixes in a few steps
    grid     a torus of 316 × 316 cells, mostly to the right (action 0) or up (action 1); mixes in about 10⁵ steps
    ring     one step forward (mostly) or back; mixes in about 10¹⁰ steps, so that no iteration can solve it

Rows are drawn uniformly over states and actions, 6 per state, each an episode of one step: in three states of a hundred
one action was never logged, so that mass leaks from the state–action family. Each world and estimator runs in a process
of its own; printed are processor seconds of the first scan and of the solve, the peak of resident memory, the residual,
how the solve ended (or the refusal), and the estimate.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

import mixope
from mixope.base.errors import MixopeError
from mixope.base.estimand import Estimand
from mixope.estimators import REGISTRY, make
from mixope.estimators.counts.solution import without_scores
from mixope.requests.problem import Problem
from mixope.session.session import count
from tables import markdown

Step = Callable[[np.ndarray, np.ndarray, int, np.random.Generator], np.ndarray]
ROWS_PER_STATE = 6
LIMIT = 300
"""Seconds after which a solve is given up."""


@dataclass(frozen=True)
class Cost:
    world: str
    estimator: str
    states: int
    rows: int
    count_seconds: float
    solve_seconds: float
    peak_megabytes: float
    residual: float
    outcome: str
    value: float


def random_step(state: np.ndarray, action: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    """Three successors of every pair, found by a multiplicative hash."""
    choice = generator.integers(0, 3, len(state))
    return ((6 * state + 3 * action + choice) * 2654435761 % 4294967291) % n


def grid_step(state: np.ndarray, action: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    side = int(np.sqrt(n))
    row, column = np.divmod(state, side)
    move = np.where(generator.random(len(state)) < 0.6, 1, -1)
    return np.where(action == 0, row * side + (column + move) % side, (row + move) % side * side + column)


def ring_step(state: np.ndarray, action: np.ndarray, n: int, generator: np.random.Generator) -> np.ndarray:
    forward = generator.random(len(state)) < np.where(action == 0, 0.9, 0.7)
    return (state + np.where(forward, 1, -1)) % n


FACTORS = "grid factors"
WORLDS: dict[str, Step] = {"random": random_step, "grid": grid_step, "ring": ring_step, FACTORS: grid_step}
WHOLE_EPISODES = {"opt-emp", *(name for name, entry in REGISTRY.items() if entry.family == "trajectory weights")}
NAMES = tuple(name for name, entry in REGISTRY.items() if "counts" in entry.takes and name not in WHOLE_EPISODES)
SHOWN = {"ring": ("emp", "model", "mwl"), FACTORS: ("emp", "lstdq", "dr")}


def logs_of(world: str, n: int, seed: int) -> mixope.Logs:
    generator = np.random.default_rng(seed)
    n = int(np.sqrt(n)) ** 2 if "grid" in world else n
    rows = ROWS_PER_STATE * n
    state, action = generator.permutation(rows) % n, generator.integers(0, 2, rows)
    following = WORLDS[world](state, action, n, generator)
    side = int(np.sqrt(n))
    columns = {"observation": state, "next_observation": following}
    if world == FACTORS:
        columns = {"observation.row": state // side, "observation.column": state % side}
        columns |= {"next_observation.row": following // side, "next_observation.column": following % side}
    return mixope.read(
        {
            **columns,
            "action": action,
            "reward": np.sin(2 * np.pi * state / n) + action,
            "propensity": np.full(rows, 0.5),
            "policy_id": np.full(rows, "even"),
            "episode_id": np.arange(rows),
            "step": np.zeros(rows, dtype=np.int64),
            "truncated": np.ones(rows, dtype=bool),
        }
    )


class Constant:
    """The same law in every state."""

    actions = np.arange(2)

    def __init__(self, right: float) -> None:
        self.law = np.array([right, 1 - right])

    def probs(self, observations: np.ndarray) -> np.ndarray:
        return np.tile(self.law, (len(observations), 1))

    def log_prob(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return np.log(self.law)[actions]

    def fingerprint(self) -> str:
        return str(self.law)


def solve(world: str, name: str, n: int, seed: int) -> Cost:
    """In the child: count, solve, and what it took."""
    logs = logs_of(world, n, seed)
    start = time.process_time()
    transitions = count(logs).transitions
    counted = time.process_time()
    problem = Problem(transitions, Constant(0.3), Estimand("average"), {"even": Constant(0.5)})
    residual, value = float("nan"), float("nan")
    try:
        solution = without_scores(partial(make(name).solve, problem))
    except MixopeError as error:
        outcome = f"refuses: {error}"
    else:
        residual, value, outcome = solution.solved.residual, solution.value, solution.solved.outcome.value
    done = time.process_time()
    return Cost(
        world=world,
        estimator=name,
        states=transitions.n_states,
        rows=int(transitions.n_rows),
        count_seconds=counted - start,
        solve_seconds=done - counted,
        peak_megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        residual=residual,
        outcome=outcome,
        value=value,
    )


def show(costs: list[Cost]) -> str:
    head = ["world", "estimator", "states", "count s", "solve s", "peak MB", "residual", "outcome", "value"]
    lines = [
        [
            cost.world,
            f"`{cost.estimator}`",
            f"{cost.states:,}",
            f"{cost.count_seconds:.1f}",
            f"{cost.solve_seconds:.1f}",
            f"{cost.peak_megabytes:.0f}",
            "" if np.isnan(cost.residual) else f"{cost.residual:.0e}",
            cost.outcome,
            "" if np.isnan(cost.value) else f"{cost.value:.4f}",
        ]
        for cost in costs
    ]
    return markdown(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--estimators", default=",".join(NAMES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=None, help="write the figures as JSON")
    given = parser.parse_args()
    if given.child:
        print(json.dumps(asdict(solve(given.worlds, given.estimators, given.states, given.seed))))
        return
    costs = []
    for world in given.worlds.split(","):
        for name in given.estimators.split(","):
            if name not in SHOWN.get(world, NAMES):
                continue
            command = [sys.executable, __file__, "--child", "--worlds", world, "--estimators", name]
            command += ["--states", str(given.states), "--seed", str(given.seed)]
            try:
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                print(f"{world}, {name}: no answer in {LIMIT} s", flush=True)
                continue
            costs.append(Cost(**json.loads(done.stdout.splitlines()[-1])))
            print(show(costs[-1:]).splitlines()[-1], flush=True)
    print(show(costs))
    if given.output:
        given.output.write_text(json.dumps([asdict(cost) for cost in costs], indent=2) + "\n")


if __name__ == "__main__":
    main()
