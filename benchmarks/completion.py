"""What completes a counted model best where actions were never logged: the ways tried, on Taxi, against the truth.

    python benchmarks/completion.py                      # the published size, about 12 minutes on one core
    python benchmarks/completion.py --repetitions 2      # to see that it runs

Printed is the mean squared error over the efficiency bound (bias over its root) of

    emp                 the target renormalised over the logged actions
    linear              dr with LSTD-Q on interactions of factors, ratio from counts
    measured            dr, kriging with a likeness measured by the variogram (the default)
    ρ = .5, .8, .9      the same with one likeness for all factors, noise 1 % of the sill
    noise 0, 0.3        measured, with another share of noise

on the logs of benchmarks/efficiency.py, so that all see the same ones.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

from efficiency import Case, policy, truth_and_bound, world
from mixope import worlds
from mixope.base.estimand import Estimand
from mixope.estimators import DoublyRobust, state_ratio
from mixope.estimators.counts.completed_part import part_to_complete
from mixope.estimators.counts.completion import complete
from mixope.estimators.counts.kriging import Likeness
from mixope.estimators.counts.solution import without_scores
from mixope.requests.problem import Problem
from mixope.session.session import count
from tables import markdown

CELLS = ((1, 50), (1, 200), (4, 50), (4, 200))
HORIZON, FACTORS = 200, 7


def alike(rho: float) -> Callable[[Problem], float]:
    return lambda problem: complete(part_to_complete(problem), Likeness((rho,) * FACTORS, 1.0, 0.01)).value


def noisy(share: float) -> Callable[[Problem], float]:
    def value(problem: Problem) -> float:
        part = part_to_complete(problem)
        found = complete(part).map.likeness
        return complete(part, replace(found, noise=max(share, 1e-6) * found.sill)).value

    return value


WAYS: dict[str, Callable[[Problem], float]] = {
    "emp": lambda problem: without_scores(partial(state_ratio.emp().solve, problem)).value,
    "linear": lambda problem: without_scores(partial(DoublyRobust(value="linear").solve, problem)).value,
    "measured": lambda problem: without_scores(partial(DoublyRobust().solve, problem)).value,
    "ρ = .5": alike(0.5),
    "ρ = .8": alike(0.8),
    "ρ = .9": alike(0.9),
    "noise 0": noisy(0.0),
    "noise .3": noisy(0.3),
}


def errors(loggers: int, episodes: int, repetition: int) -> dict[str, float]:
    """The error of every way on one log, over the root of the bound."""
    model, target, behaviours = world("taxi", loggers, 0)
    case = Case("taxi", loggers, episodes, HORIZON, 0, repetition)
    logs = worlds.simulate(model, behaviours, episodes, HORIZON, seed=case.simulation_seed, observed="factors")
    problem = Problem(count(logs).transitions, policy(model, target, False), Estimand("average"))
    truth, variance = truth_and_bound("taxi", loggers, HORIZON, 0)
    scale = np.sqrt(variance / (episodes * HORIZON))
    return {name: float(way(problem) - truth) / scale for name, way in WAYS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "completion.csv")
    given = parser.parse_args()
    lines = [["way", *(f"{n} logger{'s' * (n > 1)}, m = {m}" for n, m in CELLS)]]
    found = {cell: [errors(*cell, r) for r in range(given.repetitions)] for cell in CELLS}
    for name in WAYS:
        of = [np.array([e[name] for e in found[cell]]) for cell in CELLS]
        lines.append([name, *(f"{np.mean(e**2):.2f} ({np.mean(e):+.1f})" for e in of)])
    with given.output.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["loggers", "episodes", "repetition", *WAYS])
        for cell in CELLS:
            writer.writerows([*cell, r, *(f"{e[n]:.6g}" for n in WAYS)] for r, e in enumerate(found[cell]))
    print(markdown(lines[0], lines[1:]))


if __name__ == "__main__":
    main()
