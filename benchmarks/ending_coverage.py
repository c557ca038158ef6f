"""Claim: where episodes end, intervals hold the truth as often as they say, per step and per episode.

    python benchmarks/ending_coverage.py [--logs 100] [--vectors 10] [--seed 0]

The cells of ``mixope reproduce coverage --full`` whose episodes end (sessions, survival, queue, FrozenLake, blackjack,
CartPole; ids, factors and vectors; discounted, first steps, total of an episode), with fewer logs per cell; t.
Every log is appended to benchmarks/results/ending_coverage.csv as it ends; a rerun goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from mixope.experiments.coverage import Settings, _ending, plan
from mixope.experiments.coverage_logs import CoveredLog
from mixope.processes import one_thread

RESULTS = Path(__file__).parent / "results" / "ending_coverage.csv"
CELL = ("environment", "observed", "episodes", "estimand", "estimator")
FIELDS = (*CELL, "repetition", "value", "low", "high", "truth", "verdict")


def key_of(log: CoveredLog) -> tuple[str, ...]:
    return tuple(map(str, (log.environment, log.observed, log.episodes, log.estimand, log.repetition)))


def read() -> list[dict[str, str]]:
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def measure(log: CoveredLog) -> list[dict[str, object]]:
    return [
        {
            **{name: row.get(name) for name in FIELDS},
            **dict(zip((*CELL[:4], "repetition"), key_of(log), strict=True)),
        }
        for row in log.measure()
        if row["interval"] == "t"
    ]


def summary() -> str:
    cells = defaultdict(list)
    for row in read():
        cells[tuple(row[name] for name in CELL)].append(row)
    lines = [
        "| world, states | estimand | episodes | estimator | logs | holds | green | green holds |",
        "|" + "---|" * 8,
    ]
    for (world, observed, episodes, estimand, estimator), rows in sorted(cells.items()):
        made = [row for row in rows if row["low"]]
        held = [float(r["low"]) <= float(r["truth"]) <= float(r["high"]) for r in made]
        green = [h for h, r in zip(held, made, strict=True) if r["verdict"] == "trustworthy"]
        share = f"{sum(held) / len(held):.1%}" if held else "–"
        kept = f"{sum(green) / len(green):.1%}" if green else "–"
        cell = (f"{world}, {observed}", estimand, episodes, f"`{estimator}`", len(rows), share, len(green), kept)
        lines.append("| " + " | ".join(map(str, cell)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--vectors", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    batches = _ending((100, 400), arguments.logs, arguments.vectors)
    small = tuple(replace(b, sizes=b.sizes[:1]) if b.observed == "vector" else b for b in batches)
    known = {tuple(row[name] for name in (*CELL[:4], "repetition")) for row in read()}
    with one_thread():
        for log in plan(Settings(small), arguments.seed):
            if key_of(log) in known:
                continue
            new = not RESULTS.exists()
            with RESULTS.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                if new:
                    writer.writeheader()
                writer.writerows(measure(log))
    print(summary())


if __name__ == "__main__":
    main()
