"""A hundred thousand states: EMP's flow is solved sparse, also where the chain mixes slowly.

    python benchmarks/large_state.py                     # three worlds of 100,000 states, 2 million rows each

A dense matrix of this size would take 80 GB. The worlds have two actions and opaque ids as states:

    random   three random successors for each state and action; mixes in a few steps
    grid     a torus of 316 × 316 cells, mostly to the right (action 0) or up (action 1); mixes in about 10⁵ steps
    ring     one step forward (mostly) or back; mixes in about 10¹⁰ steps, so that no iteration can solve it

Rows are drawn uniformly over states and actions, 20 a state, each an episode of one step. Each world runs in a process
of its own; printed are seconds of the first scan and of the solve, the peak of resident memory, the residual
‖dP − d‖₁, how the solve ended, and the estimate.
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
from pathlib import Path

import numpy as np

import mixope
from mixope.estimand import Estimand
from mixope.estimators import make
from mixope.problem import Problem
from mixope.tabular import count
from tables import markdown

Step = Callable[[np.ndarray, np.ndarray, int, np.random.Generator], np.ndarray]
ROWS_A_STATE = 20


@dataclass(frozen=True)
class Cost:
    world: str
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


WORLDS: dict[str, Step] = {"random": random_step, "grid": grid_step, "ring": ring_step}


def logs_of(world: str, n: int, seed: int) -> mixope.Logs:
    generator = np.random.default_rng(seed)
    n = int(np.sqrt(n)) ** 2 if world == "grid" else n
    rows = ROWS_A_STATE * n
    state, action = generator.permutation(rows) % n, generator.integers(0, 2, rows)
    return mixope.Logs.from_arrays(
        observation=state,
        action=action,
        reward=np.sin(2 * np.pi * state / n) + action,
        next_observation=WORLDS[world](state, action, n, generator),
        episode_id=np.arange(rows),
        step=np.zeros(rows, dtype=np.int64),
        truncated=np.ones(rows, dtype=bool),
    )


def solve(world: str, n: int, seed: int) -> Cost:
    """In the child: count, solve, and what it took."""
    logs = logs_of(world, n, seed)
    start = time.process_time()
    transitions = count(logs).transitions
    counted = time.process_time()
    target = mixope.TabularPolicy(np.tile([0.3, 0.7], (n, 1)))
    solution = make("emp").solve(Problem(transitions, target, Estimand("average")))
    done = time.process_time()
    return Cost(
        world=world,
        states=transitions.n_states,
        rows=int(transitions.n_rows),
        count_seconds=counted - start,
        solve_seconds=done - counted,
        peak_megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        residual=solution.solved.residual,
        outcome=solution.solved.outcome.value,
        value=solution.value,
    )


def show(costs: list[Cost]) -> str:
    head = ["world", "states", "count s", "solve s", "peak MB", "residual", "outcome", "value"]
    lines = [
        [
            cost.world,
            f"{cost.states:,}",
            f"{cost.count_seconds:.1f}",
            f"{cost.solve_seconds:.1f}",
            f"{cost.peak_megabytes:.0f}",
            f"{cost.residual:.0e}",
            cost.outcome,
            f"{cost.value:.4f}",
        ]
        for cost in costs
    ]
    return markdown(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, default=None, help="write the figures as JSON")
    given = parser.parse_args()
    if given.child:
        print(json.dumps(asdict(solve(given.worlds, given.states, given.seed))))
        return
    costs = []
    for world in given.worlds.split(","):
        command = [sys.executable, __file__, "--child", "--worlds", world]
        command += ["--states", str(given.states), "--seed", str(given.seed)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        costs.append(Cost(**json.loads(done.stdout.splitlines()[-1])))
    print(show(costs))
    if given.output:
        given.output.write_text(json.dumps([asdict(cost) for cost in costs], indent=2) + "\n")


if __name__ == "__main__":
    main()
