"""What does memory repair where the state is not all, what does it cost where it is, and is a green answer right?

    python benchmarks/hidden_memory.py                       # all worlds; resumes where it stopped
    python benchmarks/hidden_memory.py --sizes 100 --logs 5 --worlds "the action"
    python benchmarks/hidden_memory.py --summarise           # the table again, from the results that are there

Logs of the worlds of :mod:`hidden_worlds` are evaluated with ``emp`` and ``memory="auto"``; the truth is exact. Kept of
every log are the values at all k with their standard errors, the k that was chosen, the interval and the verdict.
Printed by world and size: the root mean square error at k = 1, 2, 3, 4, 8 and as chosen, how often k was above 1, how
often the interval holds the truth at k = 1 and as chosen, how many verdicts are ``trustworthy`` and how many of these
hold it.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import mixope
from hidden_worlds import HIDDEN, MARKOV
from tables import markdown

RESULTS = Path(__file__).parent / "results" / "hidden_memory.csv"
SIZES = (100, 250)
LENGTHS = 1, 2, 3, 4, 8
LEVEL = 1.96
COLUMNS = (
    *("world", "episodes", "seed", "truth", "used", "low", "high", "verdict"),
    *(f"{what} {k}" for k in LENGTHS for what in ("value", "error")),
)
Row = dict[str, str]


def judged(world: str, episodes: int, seed: int) -> Row | None:
    """One log; None where nobody says who wrote it and several did."""
    made = {**HIDDEN, **MARKOV}[world](seed)
    try:
        found = mixope.evaluate(made.write(episodes, seed), made.policy(), "emp", memory="auto", seed=seed)
    except mixope.UsageError:
        return None
    assert found.interval is not None
    assert found.memory is not None
    steps = {step.memory: step for step in found.memory.steps}
    row = {
        "world": world,
        "episodes": str(episodes),
        "seed": str(seed),
        "truth": f"{made.value():.6g}",
        "used": str(found.memory.used),
        "low": f"{found.interval.low:.6g}",
        "high": f"{found.interval.high:.6g}",
        "verdict": str(found.verdict),
    }
    for k in LENGTHS:
        row[f"value {k}"] = f"{steps[k].value:.6g}" if k in steps else ""
        row[f"error {k}"] = f"{steps[k].standard_error:.6g}" if k in steps else ""
    return row


def read() -> list[Row]:
    """What is there."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(worlds: Sequence[str], sizes: Sequence[int], logs: int) -> Iterator[Row]:
    """Those that are missing, one after the other."""
    there = {(row["world"], row["episodes"], row["seed"]) for row in read()}
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        for seed in range(logs):
            for world in worlds:
                for size in sizes:
                    row = None if (world, str(size), str(seed)) in there else judged(world, size, seed)
                    if row is not None:
                        writer.writerow(row)
                        file.flush()
                        yield row


def holds(row: Row) -> bool:
    """Whether the interval holds the truth."""
    return float(row["low"]) <= float(row["truth"]) <= float(row["high"])


def off(row: Row, k: int) -> float:
    """The error at k; NaN where no episode is that long."""
    return float(row[f"value {k}"]) - float(row["truth"]) if row[f"value {k}"] else float("nan")


def size_of(errors: Sequence[float]) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def summary(rows: Sequence[Row]) -> str:
    """By world and size."""
    lines, best, cost = [], [], []
    for world in (*HIDDEN, *MARKOV):
        for size in sorted({int(row["episodes"]) for row in rows}):
            mine = [row for row in rows if row["world"] == world and int(row["episodes"]) == size]
            if not mine:
                continue
            each = [size_of([off(row, k) for row in mine]) for k in LENGTHS]
            auto = size_of([off(row, int(row["used"])) for row in mine])
            (cost if world in MARKOV else best).append(auto / (each[0] if world in MARKOV else np.nanmin(each)))
            plain = np.mean([abs(off(row, 1)) <= LEVEL * float(row["error 1"]) for row in mine])
            green = [row for row in mine if row["verdict"] == "trustworthy"]
            shares = [np.mean([row["used"] != "1" for row in mine]), plain, np.mean([holds(row) for row in mine])]
            numbers = [*(f"{error:.3f}" for error in each), f"**{auto:.3f}**", *(f"{100 * x:.0f}" for x in shares)]
            lines.append([world, f"{size:,}", *numbers, f"{sum(map(holds, green))} of {len(green)}"])
    head = ["world", "episodes", *(f"k = {k}" for k in LENGTHS), "auto", "k > 1, %", "k = 1 holds, %", "auto holds, %"]
    said = (
        f"\n\nauto / the best k where something is hidden, median: {np.median(best):.2f}; auto / k = 1 where nothing"
        f" is: {np.median(cost):.2f}, at most {max(cost):.2f}"
    )
    return markdown([*head, "*trustworthy* that hold"], lines) + said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=12, help="of every world and size; their seeds are 0, 1, …")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="episodes")
    parser.add_argument("--worlds", default="", help="only those whose name begins so")
    parser.add_argument("--summarise", action="store_true")
    given = parser.parse_args()
    if not given.summarise:
        chosen = [name for name in (*HIDDEN, *MARKOV) if name.startswith(given.worlds)]
        for row in run(chosen, given.sizes, given.logs):
            print(row["world"], row["episodes"], row["seed"], row["verdict"], row["used"], flush=True)
    print(summary(read()))


if __name__ == "__main__":
    main()
