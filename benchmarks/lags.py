"""What the past beside the state repairs: how often intervals hold the truth, plain, with ``lags``, with ``history``.

    python benchmarks/lags.py                                            # about ten processor minutes
    python benchmarks/lags.py --sizes 100 --logs 5 --worlds "the action before"

Worlds whose recorded state is not all, with exact truths (:mod:`hidden_worlds`). Printed by world and number
of episodes: for the state as it was logged and with each past beside it, in per cent, how often the 95 % interval holds
the truth and how often the verdict is ``trustworthy``; the root mean squared error; and, of the logs that are
``trustworthy``, how many intervals hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

import mixope
from hidden_worlds import HIDDEN, MARKOV, HiddenWorld
from tables import markdown

PASTS: Mapping[str, dict[str, Any]] = {
    "as logged": {},
    "lags=1": {"lags": 1},
    "history='action'": {"history": "action"},
    "history='reward'": {"history": "reward"},
}
CHOSEN = ("the action before matters", "wear that actions drive", "a line in bins of 3", "chain")


def asked(world: HiddenWorld, episodes: int, seed: int) -> dict[str, tuple[bool, bool, float]]:
    """For every past: whether the interval holds, whether the verdict is trustworthy, and the error."""
    logs, target, truth = mixope.read(world.write(episodes, seed)), world.policy(), world.value()
    found = {}
    for name, past in PASTS.items():
        result = mixope.evaluate(logs, target, seed=seed, **past)
        inside = result.interval is not None and result.interval.low <= truth <= result.interval.high
        found[name] = (inside, str(result.verdict) == "trustworthy", result.value - truth)
    return found


def cell(of: list[tuple[bool, bool, float]]) -> str:
    """Holds, trustworthy, error; of those that are trustworthy, how many hold."""
    inside, green, error = (np.array(column) for column in zip(*of, strict=True))
    right = f", {inside[green].sum():.0f} of {green.sum():.0f} hold" if green.any() else ""
    rms = float(np.sqrt(np.mean(error**2)))
    return f"{100 * inside.mean():.0f} ({rms:.3f}); {100 * green.mean():.0f}{right}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=20, help="of every world and size; their seeds are 0, 1, …")
    parser.add_argument("--sizes", type=int, nargs="+", default=(60, 250, 1000), help="episodes of 40 steps")
    parser.add_argument("--worlds", default="", help="those whose name begins so; by default four of them")
    given = parser.parse_args()
    every = {**HIDDEN, **MARKOV}
    chosen = [name for name in every if name.startswith(given.worlds)] if given.worlds else list(CHOSEN)
    rows = []
    for name in chosen:
        for size in given.sizes:
            found = [asked(every[name](seed), size, seed) for seed in range(given.logs)]
            rows.append([name, f"{size:,}", *(cell([one[past] for one in found]) for past in PASTS)])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    print(markdown(["world", "episodes", *PASTS], rows))


if __name__ == "__main__":
    main()
