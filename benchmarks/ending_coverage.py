"""Claim: where episodes end, intervals hold the truth as often as they say, per step and per episode.

    python benchmarks/ending_coverage.py [--logs 100] [--vectors 10] [--seed 0]

The cells of ``mixope reproduce coverage --full`` whose episodes end (sessions, survival, queue, FrozenLake, blackjack,
CartPole; ids, factors and vectors; discounted, first steps, total of an episode), with fewer logs per cell; t.
Every log is appended to benchmarks/results/ending_coverage.csv as it ends; a rerun goes on where it stopped.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace

from mixope.base.processes import one_thread
from mixope.paper.coverage import CoverageSettings, _ending, plan
from mixope.paper.coverage_logs import CoveredLog
from resuming import Results, holds

CELL = ("environment", "observed", "episodes", "estimand", "estimator")
FIELDS = (*CELL, "repetition", "value", "low", "high", "truth", "verdict")
RESULTS = Results("ending_coverage.csv", FIELDS)


def key_of(log: CoveredLog) -> tuple[str, ...]:
    return tuple(map(str, (log.environment, log.observed, log.episodes, log.estimand, log.repetition)))


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
    """The table of docs/coverage.md, and above it the shares over all lines of `emp` and `dr`."""
    cells: dict[tuple[str, ...], dict[int, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    green: dict[str, list[bool]] = defaultdict(list)
    for row in RESULTS.read():
        cells[row["environment"], row["observed"], row["estimand"], row["estimator"]][int(row["episodes"])].append(row)
    lines = [
        "| world, states | estimand | estimator | fewer episodes | of these green | more episodes | of these green |",
        "|" + "---|" * 7,
    ]
    for (world, observed, estimand, estimator), by_size in sorted(cells.items()):
        shares = []
        for number, (_, rows) in enumerate(sorted(by_size.items())):
            held = [(holds(row), row["verdict"] == "trustworthy") for row in rows if row["low"]]
            shares += [_share([one for one, _ in held]), _share([one for one, is_green in held if is_green])]
            if estimator in ("emp", "dr"):
                kind = "vectors" if observed == "vector" else ("fewer episodes", "more episodes")[number]
                green[kind] += [one for one, is_green in held if is_green]
        shares += ["–"] * (4 - len(shares))
        lines.append(f"| {world}, {observed} | {estimand} | `{estimator}` | {' | '.join(shares)} |")
    overall = [f"green, {kind}: {sum(held) / len(held):.1%} of {len(held):,}" for kind, held in green.items()]
    return "\n".join([*overall, "", *lines])


def _share(held: list[bool]) -> str:
    return f"{sum(held) / len(held):.0%} of {len(held)}" if held else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--vectors", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    batches = _ending((100, 400), arguments.logs, arguments.vectors)
    small = tuple(replace(b, sizes=b.sizes[:1]) if b.observed == "vector" else b for b in batches)
    known = RESULTS.known(*CELL[:4], "repetition")
    with one_thread():
        for log in plan(CoverageSettings(small), arguments.seed):
            if key_of(log) not in known:
                RESULTS.append(measure(log))
    print(summary())


if __name__ == "__main__":
    main()
