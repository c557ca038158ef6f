"""Speed: the sparse flow against the dense quadratic program, and a hundred targets against one.

    python benchmarks/speed.py                           # both claims, about a minute

All ratios come from one run on one machine, on one Taxi log of 80,000 rows held in memory (400 episodes of 200 steps
by four loggers, states as opaque ids). Times are processor seconds, the least of several runs: other work then shows
least. Set ``OMP_NUM_THREADS=1`` to compare one core with one core.

1. EMP from raw rows (count and solve; and with the score scan, interval and diagnostics) against ``form="paper"``, the
   quadratic program of Liu et al. on the same rows.
2. One target against a hundred on the same log: scans of the rows and time.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mixope
from mixope import worlds
from mixope.answers.answering import answer as run
from mixope.base.estimand import Estimand
from mixope.engines import MemoryEngine
from mixope.estimators import state_ratio
from mixope.estimators.counts.solution import without_scores
from mixope.requests.problem import Problem
from mixope.session.session import count
from tables import markdown

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Settings:
    episodes: int = 400
    horizon: int = 200
    loggers: int = 4
    targets: int = 100
    repetitions: int = 9
    program_repetitions: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Report:
    """Seconds, and the ratios that are claimed."""

    rows: int
    count_and_solve: float
    whole_evaluation: float
    quadratic_program: float
    program_over_solve: float
    program_over_evaluation: float
    one_target: float
    one_target_scans: int
    many_targets: float
    many_targets_scans: int
    targets: int
    many_over_one: float


class CountingEngine:
    """The in-memory engine, counting its passes over the rows."""

    name = "memory"

    def __init__(self) -> None:
        self.inner, self.scans = MemoryEngine(), 0

    def group_sums(self, *arguments: Any, **options: Any) -> Any:
        self.scans += 1
        return self.inner.group_sums(*arguments, **options)

    def scan(self, *arguments: Any, **options: Any) -> Any:
        self.scans += 1
        return self.inner.scan(*arguments, **options)


def seconds(function: Callable[[], object], repetitions: int) -> float:
    """Processor time of a call, the least of several."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def softened(target: np.ndarray, n: int) -> dict[str, mixope.TabularPolicy]:
    """``n`` targets between the target and uniform, the target first."""
    uniform = np.full_like(target, 1 / target.shape[1])
    return {
        f"target-{i}": mixope.TabularPolicy((1 - share) * target + share * uniform)
        for i, share in enumerate(np.linspace(0, 0.5, n))
    }


def measure(settings: Settings) -> Report:
    model = worlds.make("taxi")
    target = worlds.target(model, seed=settings.seed)
    columns = worlds.simulate(
        model,
        worlds.stages(model, settings.loggers, seed=settings.seed),
        settings.episodes,
        settings.horizon,
        seed=settings.seed,
    )
    logs = mixope.Logs.from_arrays(**columns)
    estimand, targets = Estimand("average"), softened(target, settings.targets)
    new = targets["target-0"]

    def solve(form: str) -> None:
        without_scores(partial(state_ratio.emp(form=form).solve, Problem(count(logs).transitions, new, estimand)))

    def evaluate(some: Sequence[str]) -> int:
        engine = CountingEngine()
        run(count(logs, engine), {name: targets[name] for name in some}, ["emp"], estimand=estimand)
        return engine.scans

    solve("general")
    quick = seconds(lambda: solve("general"), settings.repetitions)
    program = seconds(lambda: solve("paper"), settings.program_repetitions)
    one = seconds(lambda: evaluate(["target-0"]), settings.repetitions)
    many = seconds(lambda: evaluate(list(targets)), max(1, settings.program_repetitions))
    return Report(
        rows=len(columns["reward"]),
        count_and_solve=quick,
        whole_evaluation=one,
        quadratic_program=program,
        program_over_solve=program / quick,
        program_over_evaluation=program / one,
        one_target=one,
        one_target_scans=evaluate(["target-0"]),
        many_targets=many,
        many_targets_scans=evaluate(list(targets)),
        targets=settings.targets,
        many_over_one=many / one,
    )


def show(report: Report) -> str:
    first = markdown(
        [f"EMP on {report.rows:,} rows", "seconds", "the quadratic program takes"],
        [
            ["count + solve", f"{report.count_and_solve:.3f}", f"{report.program_over_solve:.0f} ×"],
            [
                "with interval and diagnostics",
                f"{report.whole_evaluation:.3f}",
                f"{report.program_over_evaluation:.0f} ×",
            ],
            ['`form="paper"` (quadratic program)', f"{report.quadratic_program:.2f}", ""],
        ],
    )
    second = markdown(
        ["targets on one log", "scans of the rows", "seconds", "against one"],
        [
            ["1", str(report.one_target_scans), f"{report.one_target:.2f}", ""],
            [
                str(report.targets),
                str(report.many_targets_scans),
                f"{report.many_targets:.2f}",
                f"{report.many_over_one:.1f} ×",
            ],
        ],
    )
    return f"{first}\n\n{second}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--targets", type=int, default=Settings.targets)
    parser.add_argument("--output", type=Path, default=None, help="write the figures as JSON")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, 10 targets")
    given = parser.parse_args()
    settings = Settings(seed=given.seed, targets=given.targets)
    if given.quick:
        settings = replace(settings, targets=10, repetitions=3, program_repetitions=1)
    report = measure(settings)
    print(show(report))
    if given.output:
        record = {"settings": asdict(settings), "python": platform.python_version(), **asdict(report)}
        given.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
