"""Claim: on vector states `dr` and `emp` reach the reference with defaults, and `dr` the bound on a linear system.

    python benchmarks/continuous.py [--task pendulum|linear-quadratic|horizon] [--repetitions 20] [--seed 0]
                                    [--estimators dr emp …] [--episodes 25 50 100]

Pendulum: log10 MSE against the long-run average of the target (−1.4938 ± .0014, by simulation), one and four loggers of
the analytic family, n = 25, 50, 100 episodes of T = 200 steps; ``horizon`` sweeps T at n = 50. Linear–quadratic: MSE ÷
efficiency bound, exact truth.
Every repetition is appended to benchmarks/results/continuous.csv as it ends; a rerun runs the estimators that are not
there. ``approximation`` is the part of the standard error that is not chance, ``seconds`` are of the processor.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

import mixope
from mixope.worlds import continuous, linear_quadratic, pendulum

RESULTS = Path(__file__).parent / "results" / "continuous.csv"
FIELDS = (
    *("task", "loggers", "episodes", "horizon", "repetition"),
    *("estimator", "value", "low", "high", "truth", "bound", "seconds", "approximation"),
)
PENDULUM_TRUTH = -1.4938
ESTIMATORS = (
    *("dr", "emp", "lstdq", "bch-pooled", "mwl", "dualdice"),
    *("is", "wis", "wis-step", "logged-mean"),
)


def settings(task: str) -> list[tuple[str, int, int, int]]:
    if task == "pendulum":
        return [("pendulum", n_loggers, n, 200) for n in (25, 50, 100) for n_loggers in (1, 4)]
    if task == "horizon":
        return [("pendulum", 1, 50, horizon) for horizon in (50, 100, 400)]
    return [("linear-quadratic", n_loggers, 50, 100) for n_loggers in (1, 4)]


def logs_of(task: str, n_loggers: int, episodes: int, horizon: int, seed: int) -> mixope.Logs:
    world = pendulum if task == "pendulum" else linear_quadratic
    system = pendulum.Pendulum() if task == "pendulum" else linear_quadratic.linear_quadratic()
    columns = continuous.simulate(system, world.loggers(n_loggers), episodes, horizon, seed=seed)
    return mixope.Logs.from_arrays(**columns)


def truth_and_bound(task: str, n_loggers: int, episodes: int, horizon: int) -> tuple[float, float]:
    if task == "pendulum":
        return PENDULUM_TRUTH, float("nan")
    system, target = linear_quadratic.linear_quadratic(), linear_quadratic.target()
    bound = linear_quadratic.efficiency_bound(system, target, linear_quadratic.loggers(n_loggers), horizon=horizon)
    return linear_quadratic.average(system, target), bound.value / (episodes * horizon)


def repeat(
    setting: tuple[str, int, int, int], repetition: int, seed: int, estimators: list[str]
) -> list[dict[str, object]]:
    task, n_loggers, episodes, horizon = setting
    truth, bound = truth_and_bound(*setting)
    logs = logs_of(task, n_loggers, episodes, horizon, 1000 * (seed + 1) + repetition)
    target = (pendulum if task == "pendulum" else linear_quadratic).target()
    begin = time.process_time()
    found = mixope.compare(logs, {"target": target}, estimators)
    seconds = time.process_time() - begin
    keys = dict(zip(FIELDS[:5], (task, n_loggers, episodes, horizon, repetition), strict=True))
    return [
        {
            **keys,
            "estimator": e.estimator,
            "value": e.value,
            "low": e.interval.low if e.interval else "",
            "high": e.interval.high if e.interval else "",
            "truth": truth,
            "bound": bound,
            "seconds": round(seconds, 2),
            "approximation": "" if e.measures.approximation is None else e.measures.approximation,
        }
        for e in found
    ]


def done() -> set[tuple[str, ...]]:
    if not RESULTS.exists():
        return set()
    with RESULTS.open() as file:
        return {tuple(row[k] for k in FIELDS[:6]) for row in csv.DictReader(file)}


def append(rows: list[dict[str, object]]) -> None:
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerows(rows)


def summary() -> str:
    cells = defaultdict(list)
    with RESULTS.open() as file:
        for row in csv.DictReader(file):
            cells[(*(row[k] for k in FIELDS[:4]), row["estimator"])].append(row)
    lines = ["task, loggers, episodes, horizon: estimator  log10 MSE  MSE/bound  bias  coverage  width/2  repetitions"]
    for key, rows in cells.items():
        error = np.array([float(r["value"]) - float(r["truth"]) for r in rows])
        covered = [float(r["low"]) <= float(r["truth"]) <= float(r["high"]) for r in rows if r["low"]]
        ratio = np.mean(error**2) / float(rows[0]["bound"])
        coverage = f"{np.mean(covered):.2f}" if covered else "–"
        half = np.mean([(float(r["high"]) - float(r["low"])) / 2 for r in rows if r["low"]]) if covered else np.nan
        lines.append(
            f"{', '.join(key[:4])}: {key[4]:12s} {np.log10(np.mean(error**2)):6.2f} {ratio:8.2f} {error.mean():8.3f}"
            f" {coverage:>5s} {half:7.3f} {len(rows):4d}"
        )
    return "\n".join([*lines, *seen_by_dr()])


def seen_by_dr() -> list[str]:
    """How many intervals of ``emp`` do not hold the value of ``dr``, which makes the verdict ask for caution."""
    with RESULTS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["approximation"]]
    robust = {tuple(r[k] for k in FIELDS[:5]): float(r["value"]) for r in rows if r["estimator"] == "dr"}
    found = defaultdict(list)
    for row in rows:
        key = tuple(row[k] for k in FIELDS[:5])
        if row["estimator"] == "emp" and key in robust:
            low, high, truth = (float(row[k]) for k in ("low", "high", "truth"))
            found[row["task"], low <= truth <= high].append(not low <= robust[key] <= high)
    return [
        f"{task}: of {len(seen)} intervals of emp that {'hold' if holds else 'miss'} the truth,"
        f" {sum(seen)} do not hold the value of dr"
        for (task, holds), seen in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=("pendulum", "linear-quadratic", "horizon"), default="pendulum")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--episodes", nargs="+", type=int, help="these sizes only")
    options = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    for repetition in range(options.repetitions):
        for setting in settings(options.task):
            if options.episodes and setting[2] not in options.episodes:
                continue
            known, key = done(), tuple(map(str, (*setting, repetition)))
            missing = [name for name in options.estimators if (*key, name) not in known]
            if missing:
                append(repeat(setting, repetition, options.seed, missing))
    print(summary())


if __name__ == "__main__":
    main()
