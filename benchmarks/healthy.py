"""Healthy logs that the package did not simulate: do intervals hold, and is the verdict quiet?

    python benchmarks/healthy.py                      # the published size; resumes where it stopped
    python benchmarks/healthy.py --summarise          # the tables again, from the results that are there
    python benchmarks/healthy.py --seed 1 --repetitions 4 --output healthy-check.csv

Every log is of a new world (:mod:`healthy_worlds`): the seed draws policies and dynamics too. *Right and refused* is an
interval that holds the truth under ``not supported by these logs``, or an answer that was refused altogether.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

import mixope
from healthy_worlds import COUNTED, WORLDS
from mixope.base.errors import MixopeError
from resuming import Results, holds
from tables import markdown

SCANT = ("plant, 1,000 steps", "single requests")
"""Four to fifty long episodes, and as few as fifty rows in twenty states: so little that a warning is in place."""
FIELDS = ("world", "episodes", "repetition", "truth", "value", "low", "high", "verdict", "estimator", "reasons")
Rows = Sequence[Mapping[str, str]]


def measure(name: str, episodes: int, repetition: int, seed: int) -> dict[str, object]:
    """One log of one world, evaluated with the defaults."""
    drawn = np.random.SeedSequence([seed, zlib.crc32(name.encode()), episodes, repetition]).generate_state(2)
    world = WORLDS[name](int(drawn[0]) % 10**6)
    columns = world.simulate(max(4, episodes // 20) if "1,000 steps" in name else episodes, int(drawn[1]))
    key = {"world": name, "episodes": episodes, "repetition": repetition, "truth": f"{world.truth():.6g}"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = mixope.evaluate(columns, world.policy(), **world.asked)
    except MixopeError as error:
        said = str(error).splitlines()[0]
        return key | {
            "value": "nan",
            "low": -np.inf,
            "high": np.inf,
            "verdict": "refused",
            "estimator": "",
            "reasons": said,
        }
    low, high = (-np.inf, np.inf) if found.interval is None else (found.interval.low, found.interval.high)
    reasons = "; ".join(d.name for d in found.diagnostics if d.status != "pass")
    said = {"verdict": str(found.verdict), "estimator": found.estimator, "reasons": reasons}
    return key | {"value": f"{found.value:.6g}", "low": f"{low:.6g}", "high": f"{high:.6g}"} | said


def wanted(names: Sequence[str], sizes: Sequence[int], repetitions: int, slow: int) -> Iterator[tuple[str, int, int]]:
    for repetition in range(repetitions):
        for name in names:
            for size in sizes:
                if name in COUNTED or (repetition < slow and size <= 500):
                    yield name, size, repetition


def line(name: str, rows: Rows) -> list[str]:
    green = [row for row in rows if row["verdict"] == "trustworthy"]
    refused = [row for row in rows if row["verdict"] in ("refused", "not supported by these logs")]
    wrong, right = sum(not holds(row) for row in green), sum(holds(row) for row in refused)
    alarms = [row for row in rows if holds(row) and row["verdict"] != "trustworthy"]
    reasons = [reason for row in alarms for reason in (row["reasons"] or "–").split("; ")]
    common = sorted(set(reasons), key=lambda r: (-reasons.count(r), r))[:3]
    said = ", ".join(f"{reason[:40]} {reasons.count(reason)}" for reason in common) or "–"
    n = max(len(rows), 1)
    shares = (sum(map(holds, rows)), len(green), wrong, right, len(alarms))
    return [name, str(len(rows)), *(f"{share / n:.0%}" for share in shares), said]


def table(rows: Rows, key: str) -> str:
    names = list(dict.fromkeys(row[key] for row in rows))
    lines = [line(name, [row for row in rows if row[key] == name]) for name in names]
    head = [key, "logs", "covered", "trustworthy", "green and wrong", "right and refused", "right and flagged", "by"]
    enough = [row for row in rows if row["world"] not in SCANT]
    return markdown(head, [*lines, line("**all**", rows), line("**all but the scant**", enough)])


def alone(rows: Rows) -> str:
    """Right answers that one check alone flagged, by check."""
    flagged = [row["reasons"] for row in rows if holds(row) and row["verdict"] != "trustworthy"]
    by = Counter(reason for reason in flagged if reason and "; " not in reason)
    return ", ".join(f"{check} {n}" for check, n in sorted(by.items(), key=lambda found: (-found[1], found[0])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default=";".join(WORLDS), help="names with semicolons between")
    parser.add_argument("--sizes", default="50,200,1000", help="episodes")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--slow-repetitions", type=int, default=5, help="where states are numbers, up to 500 episodes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this long")
    parser.add_argument("--output", default="healthy.csv", help="a name in benchmarks/results")
    parser.add_argument("--summarise", action="store_true")
    given = parser.parse_args()
    results, end = Results(given.output, FIELDS), time.monotonic() + 60 * given.minutes
    done, sizes = results.known("world", "episodes", "repetition"), [int(n) for n in given.sizes.split(",")]
    keys = wanted(given.worlds.split(";"), sizes, given.repetitions, given.slow_repetitions)
    for key in () if given.summarise else keys:
        if time.monotonic() > end:
            print(f"stopped after {given.minutes:g} minutes, in repetition {key[-1]}\n")
            break
        if tuple(map(str, key)) not in done:
            results.append([measure(*key, given.seed)])
    rows = results.read()
    print(table(rows, "world"), end="\n\n")
    print(table(rows, "episodes"), end="\n\n")
    print(f"right, and flagged by one check alone: {alone(rows)}\n")
    print(f"{len(rows)} logs, seed {given.seed}")


if __name__ == "__main__":
    main()
