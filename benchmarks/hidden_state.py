"""Does the check *state* warn where the interval is wrong because the state is not all, and only there?

    python benchmarks/hidden_state.py                       # all worlds; resumes where it stopped
    python benchmarks/hidden_state.py --sizes 100 --logs 5 --worlds "a line"
    python benchmarks/hidden_state.py --summarise           # the table again, from the results that are there

Logs of worlds whose recorded state leaves something out, and of worlds where it is all (:mod:`hidden_worlds`), are
evaluated; the truth is exact. Kept of every log are the value, its interval, the verdict, what *state* says and the
other checks that warn. Printed by world and size: how often the interval at 95 % holds the truth, how often *state*
warns or fails, how often the verdict is another than ``trustworthy``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import mixope
from hidden_worlds import HIDDEN, MARKOV
from tables import markdown

RESULTS = Path(__file__).parent / "results" / "hidden_state.csv"
SIZES = (60, 250, 1000)
COLUMNS = ("world", "episodes", "seed", "truth", "value", "low", "high", "verdict", "state", "size", "others")
Row = dict[str, str]


def judged(world: str, episodes: int, seed: int) -> Row:
    """One log."""
    made = {**HIDDEN, **MARKOV}[world](seed)
    found = mixope.evaluate(made.write(episodes, seed), made.policy(), seed=seed, **made.asked)
    state = next((check for check in found.diagnostics if check.name == "state"), None)
    others = [check.name for check in found.diagnostics if check.status != "pass" and check.name != "state"]
    interval = found.interval
    return {
        "world": world,
        "episodes": str(episodes),
        "seed": str(seed),
        "truth": f"{made.value():.6g}",
        "value": f"{found.value:.6g}",
        "low": "" if interval is None else f"{interval.low:.6g}",
        "high": "" if interval is None else f"{interval.high:.6g}",
        "verdict": str(found.verdict),
        "state": "" if state is None else state.status,
        "size": "" if state is None else f"{state.value:.3g}",
        "others": "; ".join(others),
    }


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
                    if (world, str(size), str(seed)) not in there:
                        row = judged(world, size, seed)
                        writer.writerow(row)
                        file.flush()
                        yield row


def held(row: Row) -> bool:
    """Whether the interval holds the truth."""
    return bool(row["low"]) and float(row["low"]) <= float(row["truth"]) <= float(row["high"])


def summary(rows: Sequence[Row]) -> str:
    """By world and size."""
    lines = []
    for world in (*HIDDEN, *MARKOV):
        for size in sorted({int(row["episodes"]) for row in rows}):
            mine = [row for row in rows if row["world"] == world and int(row["episodes"]) == size]
            if mine:
                counts = (
                    sum(map(held, mine)),
                    sum(row["state"] in ("warn", "fail") for row in mine),
                    sum(row["state"] == "fail" for row in mine),
                    sum(row["verdict"] != "trustworthy" for row in mine),
                )
                shares = [f"{100 * n / len(mine):.0f}" for n in counts]
                lines.append([world, f"{size:,}", str(len(mine)), *shares])
    head = ["world", "episodes", "logs", "interval holds, %", "*state* warns, %", "fails, %", "any check, %"]
    return markdown(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=20, help="of every world and size; their seeds are 0, 1, …")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="episodes")
    parser.add_argument("--worlds", default="", help="only those whose name begins so")
    parser.add_argument("--summarise", action="store_true")
    given = parser.parse_args()
    if not given.summarise:
        chosen = [name for name in (*HIDDEN, *MARKOV) if name.startswith(given.worlds)]
        for row in run(chosen, given.sizes, given.logs):
            print(row["world"], row["episodes"], row["seed"], row["verdict"], row["state"] or "–", flush=True)
    print(summary(read()))


if __name__ == "__main__":
    main()
