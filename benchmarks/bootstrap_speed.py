"""How long 500 refits of EMP take on 80,000 rows of Taxi, by re-weighting counts.

    python benchmarks/bootstrap_speed.py                 # about a minute
    python benchmarks/bootstrap_speed.py --replicates 20

400 episodes of 200 steps from four loggers. Printed: the scans that come first, the seconds of all refits with each
number of processes, and what one refit costs; beside them one refit that reads resampled rows anew.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass

import numpy as np

import mixope
from mixope import worlds
from mixope.answers.resampling import prepare, resample
from mixope.session.session import count
from tables import markdown


@dataclass(frozen=True)
class Settings:
    episodes: int = 400
    horizon: int = 200
    loggers: int = 4
    replicates: int = 500
    estimator: str = "emp"
    jobs: tuple[int, ...] = (1, 2)
    seed: int = 0


def measure(settings: Settings) -> list[list[str]]:
    model = worlds.make("taxi")
    loggers, target = worlds.stages(model, settings.loggers), worlds.target(model)
    columns = worlds.simulate(model, loggers, settings.episodes, settings.horizon, seed=settings.seed)
    policy = mixope.TabularPolicy(target)
    clock = time.perf_counter()
    counted = count(columns)
    counting = time.perf_counter() - clock
    clock = time.perf_counter()
    refit = prepare(counted, policy, settings.estimator, seed=settings.seed)
    scanning = time.perf_counter() - clock
    weight = refit.weights(0)
    clock = time.perf_counter()
    refit.counts.reweighted(weight)
    lines = [
        ["rows", f"{counted.transitions.n_rows:,.0f}"],
        ["first scan (counts)", f"{counting:.2f} s"],
        ["scan by episode", f"{scanning:.2f} s"],
        ["re-weighting of the counts", f"{1e3 * (time.perf_counter() - clock):.1f} ms"],
    ]
    values = []
    for jobs in settings.jobs:
        clock, busy = time.perf_counter(), time.process_time()
        sample = resample(refit, settings.replicates, jobs=jobs)
        seconds = time.perf_counter() - clock
        used = f", {time.process_time() - busy:.1f} s of processor time" if jobs == 1 else ""
        lines.append(
            [
                f"{settings.replicates} refits, {jobs} process{'es' if jobs > 1 else ''}",
                f"{seconds:.1f} s ({1e3 * seconds / settings.replicates:.0f} ms each{used})",
            ]
        )
        values.append(sample.values)
    assert all(np.array_equal(values[0], other) for other in values)
    clock = time.perf_counter()
    options = {"interval": "bca", "replicates": settings.replicates, "jobs": max(settings.jobs), "seed": settings.seed}
    whole = mixope.evaluate(columns, policy, settings.estimator, **options).interval
    wanted = sample.interval(0.95, "bca")
    assert (whole.low, whole.high) == (wanted.low, wanted.high)
    lines.append(["evaluate(interval='bca'), arrays to interval", f"{time.perf_counter() - clock:.1f} s"])
    rows = np.concatenate(
        [np.flatnonzero(columns["episode_id"] == e) for e in np.repeat(np.arange(len(weight)), weight.astype(int))]
    )
    lengths = settings.horizon
    again = {name: column[rows] for name, column in columns.items()} | {"episode_id": np.arange(len(rows)) // lengths}
    clock = time.perf_counter()
    slow = mixope.evaluate(again, policy, settings.estimator).value
    lines.append(["one refit from rows read anew", f"{1e3 * (time.perf_counter() - clock):.0f} ms"])
    lines.append(["largest disagreement", f"{abs(slow - values[0][0]):.1e}"])
    return lines


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the worker processes: one core a job
    default = Settings()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=default.replicates)
    parser.add_argument("--estimator", default=default.estimator)
    given = parser.parse_args()
    print(markdown(["", "measured"], measure(Settings(replicates=given.replicates, estimator=given.estimator))))


if __name__ == "__main__":
    main()
