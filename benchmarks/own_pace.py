"""A/B tests of users who differ for ever: is the long run wrong, and does the check *history* say so?

    python benchmarks/own_pace.py                    # 30 tests of each kind, seeds 0, 1, …
    python benchmarks/own_pace.py --tests 5 --users 1000

Every user has a level from 0 to 4, and one around which it settles for good: p is lognormal, a level is gained with
.12 p a day and lost with .12/p. Treatment adds .05 to what is gained. Users have lived under control for 200 days when
the test begins, and what is recorded is the level alone, so that one chain stands for all of them. The truth is the
mean of every user's own. Beside it, the same where all are alike, and the settings of :mod:`mixope.worlds.engagement`
with all their columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import mixope
from mixope.worlds import engagement
from tables import markdown

LEVELS, MOVES, LIFT, LIVED = 5, 0.12, 0.05, 200
MOST = 0.45
WORDS = {"arm": "variant", "control": "A", "unit": "user", "time": "day", "metric": "revenue"}
SETTINGS = ("lift", "novelty", "habit", "investment", "wear-out", "opposite", "null")
NO_STATE = (*WORDS.values(), "visits", "complaints")
Rates = tuple[np.ndarray, np.ndarray]


def rates(p: np.ndarray, treated: np.ndarray | bool) -> Rates:
    """How likely a level is gained, and lost."""
    return np.clip(MOVES * p + LIFT * np.asarray(treated), 0, MOST), np.clip(MOVES / p, 0, MOST)


def paces(users: int, spread: float, generator: np.random.Generator) -> np.ndarray:
    return np.exp(spread * generator.normal(size=users))


def written(users: int, days: int, seed: int, spread: float = 1.0) -> pa.Table:
    """A test; half of the users are treated."""
    generator = np.random.default_rng(seed)
    treated, p = np.arange(users) % 2 == 1, paces(users, spread, generator)
    level, parts = np.zeros(users, dtype=np.int64), []
    for day in range(-LIVED, days):
        up, down = rates(p, treated & (day >= 0))
        drawn = generator.random(users)
        later = np.clip(level + (drawn < up) - (drawn > 1 - down), 0, LEVELS - 1)
        if day >= 0:
            earned = 0.2 * level + 0.3 * generator.normal(size=users)
            parts.append((np.arange(users), np.full(users, day), treated, level, earned))
        level = later
    user, when, arm, level, earned = (np.concatenate(part) for part in zip(*parts, strict=True))
    names = np.array(["A", "B"])[arm.astype(np.int64)]
    return pa.table({"user": user, "day": when, "variant": names, "level": level, "revenue": earned})


def truth(spread: float = 1.0, users: int = 200_000) -> float:
    """The difference in the long run: of every user by itself, and then the mean."""
    p = paces(users, spread, np.random.default_rng([0, 9]))

    def settled(treated: bool) -> float:
        up, down = rates(p, treated)
        law = (up / down)[:, None] ** np.arange(LEVELS)
        return float((0.2 * (law @ np.arange(LEVELS)) / law.sum(axis=1)).mean())

    return settled(True) - settled(False)


def line(name: str, made: Callable[[int], pa.Table], right: float, tests: int) -> list[str]:
    """Of some tests of one kind."""
    values, holds, history, green = [], 0, 0, 0
    for seed in range(tests):
        table = made(seed)
        state = [column for column in table.column_names if column not in NO_STATE]
        found = mixope.experiment(table, **WORDS, state=state).main.long_run
        sure = found.effect.interval
        values.append(found.effect.difference)
        holds += sure.low <= right <= sure.high
        history += any(check.name == "history" and check.status != "pass" for check in found.checks)
        green += found.verdict is mixope.Verdict.TRUSTWORTHY
    shares = (f"{100 * n / tests:.0f}" for n in (holds, history, green))
    return [name, f"{right:.3f}", f"{np.mean(values):.3f}", *shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=30)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--days", type=int, default=14)
    given = parser.parse_args()
    users, days, lines = given.users, given.days, []
    for name, spread in (
        ("users who settle where they like", 1.0),
        ("a little", 0.5),
        ("users who are all alike", 0.0),
    ):
        lines.append(
            line(name, lambda seed, spread=spread: written(users, days, seed, spread), truth(spread), given.tests)
        )
    for setting in SETTINGS:
        right = engagement.effect(setting)
        lines.append(
            line(setting, lambda seed, name=setting: engagement.draw(name, users, days, seed=seed), right, given.tests)
        )
    head = ["test", "truth", "mean estimate", "interval holds, %", "*history* warns, %", "trustworthy, %"]
    print(markdown(head, lines))


if __name__ == "__main__":
    main()
