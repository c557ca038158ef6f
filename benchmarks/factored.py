"""Thousands of factored states, most of their actions never logged: does the interval of ``dr`` hold the truth?

    python benchmarks/factored.py                                  # rings of 11, 13 and 15 machines
    python benchmarks/factored.py --machines 13 --repetitions 40

A ring of n machines (``worlds.make("machines", n=n)``) has 2ⁿ states. Four loggers reboot machines that are
down, each with favourites of its own and more or less care; the target has no favourites. Every log is evaluated by
``auto`` in a process of its own. Written is one line per log; printed are, for every number of machines,

    coverage    the share of 95 % intervals that hold the exact truth, among logs that are not refused
    bias, rmse  of the estimate; ``emp`` is that of EMP, which takes the actions logged in a state for all there are
    half-width  of the interval, median
    seconds     of processor time for the whole evaluation, and the peak of resident memory, which includes the logs
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import mixope
from mixope import worlds
from tables import markdown

CARE, TARGET_CARE, ELSEWHERE = (0.08, 0.12, 0.15, 0.2), 0.15, 0.01
EPISODES, HORIZON = {11: 400, 13: 1000, 15: 2000}, 200


@dataclass(frozen=True)
class Outcome:
    machines: int
    repetition: int
    rows: int
    states: int
    truth: float
    value: float
    low: float
    high: float
    approximation: float
    uncovered: float
    emp: float
    verdict: str
    seconds: float
    megabytes: float


def preferring(model: worlds.Model, care: float, favour: np.ndarray) -> np.ndarray:
    """Reboot a machine that is down by e^favour · care, one that runs by a little, nothing by 1."""
    down = 1 - np.stack(list(model.factors.values()), 1)
    weight = np.concatenate([care * np.exp(favour) * down + ELSEWHERE, np.ones((len(down), 1))], axis=1)
    return weight / weight.sum(axis=1, keepdims=True)


@lru_cache(maxsize=1)
def world(machines: int, seed: int) -> tuple[worlds.Model, np.ndarray, list[np.ndarray], float]:
    """The model, the target, the loggers and the exact truth."""
    model = worlds.make("machines", n=machines)
    generator = np.random.default_rng(seed)
    loggers = [preferring(model, care, 0.7 * generator.normal(size=machines)) for care in CARE]
    target = preferring(model, TARGET_CARE, np.zeros(machines))
    return model, target, loggers, worlds.truth.average(model, target)


def simulated(machines: int, repetition: int, seed: int) -> tuple[dict[str, np.ndarray], mixope.TabularPolicy, float]:
    """One log, the target as a policy, and the truth."""
    model, target, loggers, truth = world(machines, seed)
    drawn = np.random.SeedSequence([seed, machines, repetition]).generate_state(1)[0]
    episodes = EPISODES.get(machines, 200)
    logs = worlds.simulate(model, loggers, episodes, HORIZON, seed=int(drawn), observed="factors")
    states = np.stack(list(model.factors.values()), 1)
    return logs, mixope.TabularPolicy(target, states, factors=list(model.factors)), truth


def evaluated(
    machines: int, repetition: int, logs: dict[str, np.ndarray], target: mixope.TabularPolicy, truth: float
) -> Outcome:
    """In a process of its own: what ``auto`` says, and what it took."""
    start = time.process_time()
    found = mixope.evaluate(logs, target)
    seconds = time.process_time() - start
    interval = found.interval
    return Outcome(
        machines=machines,
        repetition=repetition,
        rows=len(logs["reward"]),
        states=len(np.unique(np.stack([v for k, v in logs.items() if k.startswith("observation.")], 1), axis=0)),
        truth=truth,
        value=found.value,
        low=interval.low if interval else float("nan"),
        high=interval.high if interval else float("nan"),
        approximation=float(found.measures.approximation or float("nan")),
        uncovered=found.uncovered_mass,
        emp=found.beside[0].value,
        verdict=str(found.verdict),
        seconds=seconds,
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def line(machines: int, outcomes: list[Outcome]) -> list[str]:
    """One line of the table."""
    kept = [o for o in outcomes if "refuse" not in o.verdict.lower() and np.isfinite(o.low)]
    error = np.array([o.value - o.truth for o in kept])
    held = [o.low <= o.truth <= o.high for o in kept]
    return [
        f"{machines} ({2**machines:,})",
        f"{np.median([o.states for o in outcomes]):,.0f}",
        f"{outcomes[0].rows:,}",
        f"{np.mean([o.uncovered for o in outcomes]):.0%}",
        f"{sum(held)} of {len(kept)}",
        f"{error.mean():+.4f}",
        f"{np.sqrt(np.mean(error**2)):.4f}",
        f"{np.median([(o.high - o.low) / 2 for o in kept]):.4f}",
        f"{np.sqrt(np.mean([(o.emp - o.truth) ** 2 for o in outcomes])):.4f}",
        f"{np.median([o.seconds for o in outcomes]):.1f}",
        f"{max(o.megabytes for o in outcomes):.0f}",
    ]


HEAD = ["machines (states)", "states logged", "rows", "uncovered", "coverage", "bias", "rmse", "half-width"]
HEAD += ["rmse of `emp`", "seconds", "peak MB"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default="11,13,15")
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "factored.csv")
    given = parser.parse_args()
    lines = []
    with given.output.open("a", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Outcome)], lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        for machines in map(int, given.machines.split(",")):
            outcomes = []
            for repetition in range(given.repetitions):
                logs, target, truth = simulated(machines, repetition, given.seed)
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    outcomes.append(pool.submit(evaluated, machines, repetition, logs, target, truth).result())
                kept = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in asdict(outcomes[-1]).items()}
                writer.writerow(kept)
                file.flush()
            lines.append(line(machines, outcomes))
    print(markdown(HEAD, lines))


if __name__ == "__main__":
    main()
