"""Claim: the interval of the demonstration holds the truth as often as it says, whatever the seed.

    python benchmarks/demonstration.py [--seeds 200]

The log of ``mixope demo`` (Taxi, four loggers, 200 episodes of 200 steps, states as factors) for the seeds 0, 1, …; the
seed moves the policies too, and so the truth. Every seed is appended to benchmarks/results/demonstration.csv as it
ends; a rerun goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import mixope
from mixope.environments.datasets import Settings, write_dataset

RESULTS = Path(__file__).parent / "results" / "demonstration.csv"
FIELDS = ("seed", "estimator", "value", "standard_error", "low", "high", "truth", "verdict")


def measure(seed: int) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        made = write_dataset(Settings("taxi", 4, 200, 200, "factors", "parquet", seed), Path(folder) / "log")
        found = mixope.evaluate(str(made.logs), str(made.target), seed=seed)
    return [
        {
            "seed": seed,
            "estimator": e.estimator,
            "value": e.value,
            "standard_error": e.standard_error,
            "low": e.interval.low if e.interval else "",
            "high": e.interval.high if e.interval else "",
            "truth": made.truth["average"],
            "verdict": str(e.verdict),
        }
        for e in (found, *found.beside)
    ]


def read() -> list[dict[str, str]]:
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def summary() -> str:
    lines = ["estimator  seeds  holds  green  green holds  mean z  spread of z"]
    for name in dict.fromkeys(row["estimator"] for row in read()):
        rows = [row for row in read() if row["estimator"] == name]
        holds = np.array([float(r["low"]) <= float(r["truth"]) <= float(r["high"]) for r in rows])
        green = np.array([r["verdict"] == "trustworthy" for r in rows])
        z = np.array([(float(r["value"]) - float(r["truth"])) / float(r["standard_error"]) for r in rows])
        kept = f"{holds[green].mean():.3f}" if green.any() else "–"
        shown = f"{name:9s} {len(rows):6d} {holds.mean():6.3f} {green.mean():6.3f} {kept:>12s}"
        lines.append(f"{shown} {z.mean():7.2f} {z.std():12.2f}")
    verdicts = Counter((row["estimator"], row["verdict"]) for row in read())
    return "\n".join([*lines, *(f"{name}: {verdict} {n}" for (name, verdict), n in sorted(verdicts.items()))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    arguments = parser.parse_args()
    known = {int(row["seed"]) for row in read()}
    for seed in range(arguments.seeds):
        if seed in known:
            continue
        new = not RESULTS.exists()
        with RESULTS.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if new:
                writer.writeheader()
            writer.writerows(measure(seed))
    print(summary())


if __name__ == "__main__":
    main()
