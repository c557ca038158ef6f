"""Claim: `dr` does no better with recorded propensities than with an estimated behaviour, also where they are exact.

    python -m benchmarks.recorded [--repetitions 20] [--seed 0]                      # the worlds of the package
    python -m benchmarks.recorded --folder benchmarks/worlds/logs --episodes 50      # the logs of benchmarks.worlds

Run from the repository root, with OMP_NUM_THREADS=1. Each log has the exact propensity of every action under its own
logger. ``recorded`` divides by it; ``estimated`` is the default, the mixture of all loggers fitted to the actions. The
table gives the root mean squared error of both, and in how many logs the estimated one is nearer to the truth; errors
on the logs of benchmarks.worlds are in units of the distance between the truth and what the loggers earn. A line of
benchmarks/results/recorded.csv is one estimate; a rerun runs what is not there yet.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.resuming import Results
from benchmarks.worlds.cells import CELLS, Cell
from benchmarks.worlds.write import SEEDS, path, read

import mixope
from mixope.base.estimand import Estimand
from mixope.behaviours import Behaviour, Logged
from mixope.estimators.doubly_robust import DoublyRobust
from mixope.worlds import cartpole, continuous, linear_quadratic, pendulum

KEYS = ("world", "loggers", "episodes", "repetition", "behaviour")
FIELDS = (*KEYS, "value", "low", "high", "truth", "unit", "verdict")
RESULTS = Results("recorded.csv", FIELDS)
BEHAVIOURS: dict[str, Behaviour | None] = {"estimated": None, "recorded": Logged()}
PENDULUM_TRUTH = -1.4938
OWN = (("pendulum", 1, 25), ("pendulum", 4, 25), ("linear-quadratic", 1, 50), ("linear-quadratic", 4, 50))
OWN += (("cartpole", 1, 50), ("cartpole", 4, 50))


def own(world: str, n_loggers: int, episodes: int, seed: int) -> tuple[dict[str, Any], Any, dict[str, Any], float]:
    """Columns, target, question and truth of a world of the package."""
    if world == "cartpole":
        columns = continuous.simulate(cartpole.CartPole(), cartpole.loggers(n_loggers), episodes, 200, seed=seed)
        truth = cartpole.truth(cartpole.target(), Estimand("discounted", 0.98)).value
        return columns, cartpole.target(), {"estimand": "discounted", "gamma": 0.98}, truth
    if world == "pendulum":
        columns = continuous.simulate(pendulum.Pendulum(), pendulum.loggers(n_loggers), episodes, 200, seed=seed)
        return columns, pendulum.target(), {}, PENDULUM_TRUTH
    system, target = linear_quadratic.linear_quadratic(), linear_quadratic.target()
    columns = continuous.simulate(system, linear_quadratic.loggers(n_loggers), episodes, 100, seed=seed)
    return columns, target, {}, linear_quadratic.average(system, target)


def recorded(cell: Cell, columns: dict[str, Any]) -> np.ndarray:
    """log π_j(a|s) of every row of a log of benchmarks.worlds, j its own logger."""
    result, states = np.empty(len(columns["reward"])), columns["observation"].astype(np.float64)
    for j, stored in enumerate(cell.stored["loggers"]):
        mine = columns["policy_id"] == f"logger-{j}"
        result[mine] = cell.policy(stored).mixope().log_prob(states[mine], columns["action"][mine])
    return result


def problems(given: argparse.Namespace) -> Iterator[tuple[tuple[Any, ...], Any, Any, dict[str, Any], float, float]]:
    """Names, columns, target, question, truth and unit of every log."""
    if given.folder is None:
        for repetition in range(given.repetitions):
            for world, n_loggers, episodes in OWN:
                seed = 1000 * (given.seed + 1) + repetition
                yield (world, n_loggers, episodes, repetition), *own(world, n_loggers, episodes, seed), 1.0
        return
    for name in given.cells:
        cell = CELLS[name]
        truth = cell.truths(cell.stored["targets"][0])[0]
        for seed in SEEDS:
            columns = read(path(given.folder, name, given.episodes, seed))
            columns["action_logp"] = recorded(cell, columns)
            names = (f"{name}, Gymnasium", 3, given.episodes, seed)
            yield names, columns, cell.targets()[0].mixope(), cell.question, truth, abs(cell.logged_value - truth)


def summary() -> str:
    """The table."""
    cells: dict[tuple[str, ...], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in RESULTS.read():
        error = (float(row["value"]) - float(row["truth"])) / float(row["unit"])
        cells[row["world"], row["loggers"], row["episodes"]][row["behaviour"]][row["repetition"]] = error
    lines = ["| world | loggers | episodes | estimated | recorded | estimated nearer |", "|---|---|---|---|---|---|"]
    for key, found in cells.items():
        shared = [k for k in found["estimated"] if k in found["recorded"]]
        a, b = (np.abs([found[which][k] for k in shared]) for which in BEHAVIOURS)
        errors = " | ".join(f"{np.sqrt(np.mean(each**2)):.3g}" for each in (a, b))
        lines.append(f"| {' | '.join(key)} | {errors} | {np.sum(a < b)} of {len(shared)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where python -m benchmarks.worlds.write put its logs")
    parser.add_argument("--cells", nargs="+", choices=list(CELLS), default=list(CELLS))
    parser.add_argument("--episodes", type=int, default=50, help="of each log of the folder")
    known = RESULTS.known(*KEYS)
    for names, columns, target, question, truth, unit in problems(parser.parse_args()):
        for which, behaviour in BEHAVIOURS.items():
            keys = (*names, which)
            if tuple(map(str, keys)) in known:
                continue
            logs = mixope.Logs.from_arrays(**columns)
            found = mixope.evaluate(logs, target, DoublyRobust(behaviour=behaviour), **question)
            low, high = (found.interval.low, found.interval.high) if found.interval else ("", "")
            values = (*keys, found.value, low, high, truth, unit, str(found.verdict))
            RESULTS.append([dict(zip(FIELDS, values, strict=True))])
    print(summary())


if __name__ == "__main__":
    main()
