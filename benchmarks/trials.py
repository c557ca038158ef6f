"""Simulated experiments whose truth is known: how often each method decides rightly, and whether intervals hold.

    python -m benchmarks.trials --tests 200 --users 2000 --days 14

For every setting: the bias of the naive difference, the surrogate index, differences in Q and the long run; how often
the 95 % interval of each holds the truth, and how often it decides rightly (better, worse, or unclear where there is no
effect); how often the verdict is trustworthy, and coverage there. With --hidden COLUMN the state misses a column.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mixope
from mixope.environments import engagement

WORDS = {"arm": "variant", "control": "A", "unit": "user", "time": "day", "metric": "revenue"}
BESIDE = ("naive", "surrogate", "dq")


@dataclass(frozen=True)
class Ask:
    """One simulated test."""

    setting: str
    hidden: str | None
    users: int
    days: int
    seed: int


def one(ask: Ask) -> dict[str, Any]:
    """All methods on one test."""
    table = engagement.draw(ask.setting, users=ask.users, days=ask.days, seed=ask.seed, hidden=ask.hidden or ())
    states = [name for name in table.column_names if name not in WORDS.values()]
    found = mixope.experiment(table, **WORDS, state=states).main
    lines = {
        line.name if line.name in ("naive", "surrogate", "dq") else "long run": line.effect for line in found.lines
    }
    return {
        "setting": ask.setting,
        "hidden": ask.hidden,
        "seed": ask.seed,
        "verdict": str(found.long_run.verdict),
        "flags": [check.name for check in found.long_run.checks if check.status != "pass"],
        **{name: (line.difference, line.interval.low, line.interval.high) for name, line in lines.items()},
    }


def summed(rows: list[dict[str, Any]], truth: float) -> dict[str, Any]:
    """Bias, coverage and right decisions of each method; and what the verdict says."""
    green = [row for row in rows if row["verdict"] == "trustworthy"]
    found: dict[str, Any] = {"truth": truth, "tests": len(rows), "trustworthy": len(green) / len(rows)}
    for name in (*BESIDE, "long run"):
        values = np.array([row[name] for row in rows])
        found[name] = {
            "bias": float(values[:, 0].mean() - truth),
            "rmse": float(np.sqrt(((values[:, 0] - truth) ** 2).mean())),
            "coverage": float(((values[:, 1] <= truth) & (truth <= values[:, 2])).mean()),
            "right": float(np.mean([_right(low, high, truth) for _, low, high in values])),
            "wrong": float(np.mean([_wrong(low, high, truth) for _, low, high in values])),
        }
    inside = [low <= truth <= high for _, low, high in (row["long run"] for row in green)]
    found["coverage where trustworthy"] = float(np.mean(inside)) if inside else None
    return found


def _right(low: float, high: float, truth: float) -> bool:
    if truth == 0:
        return low <= 0 <= high
    return low > 0 if truth > 0 else high < 0


def _wrong(low: float, high: float, truth: float) -> bool:
    return (low > 0 and truth <= 0) or (high < 0 and truth >= 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=int, default=20)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--settings", nargs="*", default=list(engagement.SETTINGS))
    parser.add_argument("--hidden", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    said = parser.parse_args()
    results = {}
    with ProcessPoolExecutor(said.jobs) as pool:
        for setting in said.settings:
            asks = [Ask(setting, said.hidden, said.users, said.days, said.seed + k) for k in range(said.tests)]
            rows = list(pool.map(one, asks))
            results[setting] = summed(rows, engagement.effect(setting))
            print(setting, json.dumps(results[setting]), flush=True)
            if said.out is not None:
                with said.out.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
