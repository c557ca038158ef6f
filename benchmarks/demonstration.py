"""Claim: the interval of the demonstration holds the truth as often as it says, whatever the seed.

    python benchmarks/demonstration.py [--seeds 200]

The log of ``mixope demo`` (Taxi, four loggers, 200 episodes of 200 steps, states as factors) for the seeds 0, 1, …; the
seed moves the policies too, and so the truth. Every seed is appended to benchmarks/results/demonstration.csv as it
ends; a rerun goes on where it stopped.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import mixope
from mixope.worlds.datasets import Settings, write_dataset
from resuming import Results, holds

FIELDS = ("seed", "estimator", "value", "standard_error", "low", "high", "truth", "verdict")
RESULTS = Results("demonstration.csv", FIELDS)


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


def summary() -> str:
    """The table of docs/benchmarks.md."""
    lines = [
        "| estimator | seeds | interval holds the truth | trustworthy | of these hold | mean z | spread of z |",
        "|" + "---|" * 7,
    ]
    for name in dict.fromkeys(row["estimator"] for row in RESULTS.read()):
        rows = [row for row in RESULTS.read() if row["estimator"] == name]
        held = np.array([holds(row) for row in rows])
        green = np.array([row["verdict"] == "trustworthy" for row in rows])
        z = np.array([(float(r["value"]) - float(r["truth"])) / float(r["standard_error"]) for r in rows])
        kept = f"{held[green].mean():.1%}" if green.any() else "–"
        shares = f"{len(rows)} | {held.mean():.1%} | {green.mean():.1%} | {kept}"
        lines.append(f"| `{name}` | {shares} | {z.mean():+.2f} | {z.std():.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    arguments = parser.parse_args()
    known = RESULTS.known("seed")
    for seed in range(arguments.seeds):
        if (str(seed),) not in known:
            RESULTS.append(measure(seed))
    print(summary())


if __name__ == "__main__":
    main()
