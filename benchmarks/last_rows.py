"""What the last rows of cut episodes are worth in logs without next observations: totals and coverage.

A world of four states that ends by itself with a chance of .05 to .35 per step; the recorder stops after a number of
steps. Asked is the total of an episode of another policy, whose truth is known. A table as Markdown:

    python benchmarks/last_rows.py --episodes 200 --caps 3 10 --logs 40
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import mixope

STATES = 4
TARGET = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9]])


def world() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P(s′|s,a) of rows that go on, mean rewards, and the chance of an end."""
    rng = np.random.default_rng(5)
    moves = rng.dirichlet(np.full(STATES, 0.7), size=(STATES, 2))
    return moves, 2 * rng.normal(size=(STATES, 2)), 0.05 + 0.3 * rng.random((STATES, 2))


def truth() -> float:
    """The total of the target's episodes, from even starts."""
    moves, reward, ends = world()
    onward = np.einsum("sa,sa,sat->st", TARGET, 1 - ends, moves)
    return float(np.mean(np.linalg.solve(np.eye(STATES) - onward, (TARGET * reward).sum(axis=1))))


def log(seed: int, episodes: int, cap: int) -> dict[str, Any]:
    """Actions by even chance; episodes that go on after ``cap`` steps are marked as truncated."""
    moves, reward, ends = world()
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        state = int(rng.integers(STATES))
        for step in range(cap):
            action = int(rng.integers(2))
            end = bool(rng.random() < ends[state, action])
            rows.append(
                (episode, step, state, action, reward[state, action] + rng.normal(), end, not end and step == cap - 1)
            )
            if end:
                break
            state = int(rng.choice(STATES, p=moves[state, action]))
    names = ("episode_id", "step", "observation", "action", "reward", "terminated", "truncated")
    return {name: np.array([row[k] for row in rows]) for k, name in enumerate(names)}


def as_vectors(rows: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same log with four numbers for a state: 1 for the one that it is, 0 for the others, and a little noise."""
    state = rows.pop("observation")
    seen = np.eye(STATES)[state] + np.random.default_rng(seed).normal(scale=0.05, size=(len(state), STATES))
    return rows | {f"observation.{k}": seen[:, k] for k in range(STATES)}


def _law(observations: np.ndarray) -> np.ndarray:
    return np.asarray(TARGET[np.argmax(observations, axis=1)])


on_vectors = mixope.CallablePolicy(_law, actions=[0, 1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--caps", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--vectors", action="store_true", help="states as vectors: one number for each, with noise")
    parser.add_argument("--logs", type=int, default=40, help="logs for every cap, of seeds 0, 1, …")
    asked = parser.parse_args()
    target: Any = on_vectors if asked.vectors else mixope.TabularPolicy(TARGET)
    total = truth()
    print("| steps | truth | mean | spread | standard error | intervals that hold | trustworthy and wrong |")
    print(f"|{'---|' * 7}")
    for cap in asked.caps:
        found = [
            mixope.evaluate(
                as_vectors(log(seed, asked.episodes, cap), seed) if asked.vectors else log(seed, asked.episodes, cap),
                target,
                estimator="emp",
                estimand="episode",
            )
            for seed in range(asked.logs)
        ]
        values, errors = np.array([e.value for e in found]), np.array([e.standard_error for e in found])
        holds = np.array([e.interval is not None and e.interval.low <= total <= e.interval.high for e in found])
        green = np.array([str(e.verdict) == "trustworthy" for e in found])
        print(
            f"| {cap} | {total:.2f} | {values.mean():.2f} | {values.std(ddof=1):.2f} | {errors.mean():.2f} |"
            f" {holds.mean():.2f} | {(green & ~holds).mean():.2f} |"
        )


if __name__ == "__main__":
    main()
