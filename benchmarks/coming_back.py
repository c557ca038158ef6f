"""Users who stay away and come back more and more rarely: when does a test of 14 days tell of their long run?

    python -m benchmarks.coming_back                 # about ten processor minutes
    python -m benchmarks.coming_back --tests 10

As the setting ``churn`` of ``engagement``, with other probabilities that a user who is away comes back on a day. For
each: how often, in the arm where it is rarer, a user came back after three days or more (the median of the tests),
which is what the check *coming back* goes by; the bias of the long run, how often its 95 % interval holds, how many
tests are refused and how many called trustworthy, and how many of these hold.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from benchmarks.tables import markdown
from benchmarks.trials import WORDS

import mixope
from mixope.worlds import engagement

BACK = (0.0005, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
USERS, DAYS, TESTS = (800, 4000), 14, 40
STATE = ["level", "fatigue", "plan"]


@dataclass(frozen=True)
class Found:
    """One test."""

    off: float
    held: bool
    verdict: str
    returns: float


def world(back: float) -> engagement.World:
    """The setting with another probability of coming back."""
    return engagement.build("churn", replace(engagement.RECIPES["churn"], back=back))


def one(back: float, users: int, seed: int) -> Found:
    """One test, and how its long run came out."""
    found = mixope.experiment(
        engagement.draw(world(back), users=users, days=DAYS, seed=seed), **WORDS, state=STATE, absent="zero"
    ).main.long_run
    truth, sure = engagement.effect(world(back)), found.effect.interval
    returns = next(check.value for check in found.checks if check.name == "coming back")
    return Found(found.effect.difference - truth, sure.low <= truth <= sure.high, str(found.verdict), returns)


def line(back: float, users: int, tests: Sequence[Found]) -> list[str]:
    """All tests of one size."""
    green = [test for test in tests if test.verdict == "trustworthy"]
    trusted = f", {np.mean([test.held for test in green]):.0%} of {len(green)}" if green else ""
    return [
        f"{back:g}",
        f"{users:,}",
        f"{np.median([test.returns for test in tests]):g}",
        f"{np.mean([test.off for test in tests]):+.4f}",
        f"{np.mean([test.held for test in tests]):.0%}",
        f"{np.mean(['not supported' in test.verdict for test in tests]):.0%}",
        f"{len(green) / len(tests):.0%}{trusted}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=int, default=TESTS)
    parser.add_argument("--jobs", type=int, default=2)
    said = parser.parse_args()
    head = ["back", "users", "came back", "bias", "holds", "refused", "green, hold"]
    lines = []
    with ProcessPoolExecutor(said.jobs) as pool:
        for back in BACK:
            for users in USERS:
                tests = list(pool.map(one, [back] * said.tests, [users] * said.tests, range(said.tests)))
                lines.append(line(back, users, tests))
    print(markdown(head, lines))


if __name__ == "__main__":
    main()
