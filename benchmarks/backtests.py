"""How often do predictions of loggers from the others' rows agree with what they earned?

    python benchmarks/backtests.py     # a minute

On healthy logs with known and with counted policies, and on logs in which two loggers' labels changed places while
their policies are relied upon.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from broken_logs import Case, world, wrong_labels
from mixope.backtesting import backtest
from tables import markdown

LEVEL = 0.95
ENVIRONMENTS = ("gridworld-slip", "singlepath", "walk")


def cases(name: str, repetition: int, seed: int) -> dict[str, Case]:
    here = replace(world(name, seed), horizon=50)
    logs = Case(here.simulate(80, 100 + seed + repetition), 0.0)
    return {
        "known": replace(logs, known=here.known),
        "counted": logs,
        "known, two labels swapped": wrong_labels(name, 80, 100 + seed + repetition),
    }


def table(seed: int, repetitions: int) -> str:
    found: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    flagged: dict[tuple[str, str], list[bool]] = {}
    for name in ENVIRONMENTS:
        for repetition in range(repetitions):
            for policies, case in cases(name, repetition, seed).items():
                tested = backtest(case.columns, loggers=case.known, estimator="emp", level=LEVEL)
                found.setdefault((name, policies), []).extend((row.z or 0.0, row.covered) for row in tested.supported)
                check = tested.check
                flagged.setdefault((name, policies), []).append(check is not None and check.status != "pass")
    rows = []
    for (name, policies), predictions in found.items():
        z, agree = np.array([p[0] for p in predictions]), sum(p[1] for p in predictions)
        share = f"{agree / len(z):.0%} ({agree} of {len(z)})"
        warned = flagged[name, policies]
        rows.append([name, policies, share, f"{z.std():.2f}", f"{sum(warned)} of {len(warned)}"])
    return markdown(["environment", "policies", "predictions that agree", "sd of z", "logs flagged"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(table(given.seed, given.repetitions))


if __name__ == "__main__":
    main()
