"""Users with several episodes: how often intervals hold the truth, by episode and by unit.

    python -m benchmarks.units                 # about three processor minutes
    python -m benchmarks.units --logs 20

One unlabelled logger, four states; users differ in the *level* of their rewards, or in what the action is worth to them
(*response*). The truth is over all users that there could be: the same world without differences. Printed: coverage of
95 % intervals in per cent and their mean width, with episodes as clusters and with ``unit``.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from benchmarks.tables import markdown

import mixope

STATES, STEPS = 4, 20
TARGET = mixope.TabularPolicy(np.tile([0.3, 0.7], (STATES, 1)))
SIZES = {"20 of 5": (5,) * 20, "20 of 1 to 9": (1, 9) * 4 + (2, 8) * 4 + (5,) * 4, "4 of 25": (25,) * 4}
KINDS = ("level", "response")


def log(sizes: tuple[int, ...], kind: str, seed: int, spread: float = 0.5) -> dict[str, Any]:
    """The columns of one log; ``spread`` is how much users differ."""
    generator = np.random.default_rng([seed, *sizes])
    user = np.repeat(np.arange(len(sizes)), sizes)
    n = len(user)
    own = generator.normal(0.0, spread, len(sizes))[user]
    state, action, reward = np.zeros((n, STEPS + 1), int), np.zeros((n, STEPS), int), np.zeros((n, STEPS))
    state[:, 0] = generator.integers(STATES, size=n)
    for t in range(STEPS):
        action[:, t] = generator.random(n) < 0.5
        moves = generator.random(n) < np.where(action[:, t] == 1, 0.6, 0.3)
        state[:, t + 1] = (state[:, t] + moves) % STATES
        felt = own if kind == "level" else own * (2.0 * action[:, t] - 1.0)
        reward[:, t] = 0.3 * state[:, t] + 0.2 * action[:, t] + felt + generator.normal(0.0, 0.3, n)
    return {
        "observation": state[:, :-1].ravel(),
        "action": action.ravel(),
        "reward": reward.ravel(),
        "next_observation": state[:, 1:].ravel(),
        "episode_id": np.repeat(np.arange(n), STEPS),
        "step": np.tile(np.arange(STEPS), n),
        "truncated": np.tile(np.arange(STEPS) == STEPS - 1, n),
        "person": np.repeat(user, STEPS),
    }


def true_value() -> float:
    """Of the target, for the mean user: all states move alike, so that each has the same share of the steps."""
    return 0.3 * (STATES - 1) / 2 + 0.2 * 0.7


def held(sizes: tuple[int, ...], kind: str, unit: str | None, logs: int, seed: int) -> tuple[float, float]:
    """Coverage, and the mean width."""
    truth, found = true_value(), []
    for repetition in range(logs):
        interval = mixope.evaluate(log(sizes, kind, seed + 1000 * repetition), TARGET, "emp", unit=unit).interval
        assert interval is not None
        found.append((interval.low <= truth <= interval.high, interval.width))
    covered, width = np.mean(found, axis=0)
    return float(covered), float(width)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = []
    for name, sizes in SIZES.items():
        for kind in KINDS:
            both = [held(sizes, kind, unit, given.logs, given.seed) for unit in (None, "person")]
            rows.append([name, kind, *(f"{100 * covered:.1f} ({width:.2g})" for covered, width in both)])
    print(markdown(["users", "differ in", "by episode", "by unit"], rows))


if __name__ == "__main__":
    main()
