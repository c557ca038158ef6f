"""How often is an interval wrong at some time, if one looks all the time?

    python benchmarks/peeking.py                     # about four processor minutes
    python benchmarks/peeking.py --tests 400

A test of two arms is watched: after every day of 28 (all units are there from the first), or after every batch of 50
units with 14 days each. Units move between four levels of engagement. In ``null`` the arms are the same; in
``wear-out`` treatment earns at once and wears people out, so that it loses in the long run; ``engagement`` is the
setting ``wear-out`` of that environment, with many states. Printed, for the long-run
difference and (where its truth stays where it is) the naive one: how often *all* intervals of a test held the truth,
and in brackets half the width of the last. ``one look`` is the t interval; ``no plan`` a sequence that is narrowest
where nobody says, ``as planned`` one that is narrowest at the last look. The truth is exact.

Value and standard error are those of ``mixope.experiment``, written here for arrays because it is done 27 times per
test (``tests/experiments/test_watching.py`` holds one against the other).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.experiments.watching import PLANNED_ROWS
from mixope.uncertainty import quantile, sequence_reach
from mixope.worlds import engagement
from tables import markdown

LEVEL = 0.95
DAYS, UNITS = 28, 1_000
BATCHES, BATCH, SHORT = 40, 50, 14
FIRST = {"engagement": (7, 8)}
"""The first look, in days and in batches, where it is not the first possible: before, the verdict is mostly caution,
because most states of the long run were not seen yet, and an interval for all times is no help against that."""
START = np.array([0.1, 0.2, 0.3, 0.4])
STAY = np.array([[0.75, 0.25, 0, 0], [0.15, 0.6, 0.25, 0], [0, 0.15, 0.6, 0.25], [0, 0, 0.25, 0.75]])
WORN = np.array([[0.85, 0.15, 0, 0], [0.25, 0.6, 0.15, 0], [0, 0.25, 0.6, 0.15], [0, 0, 0.35, 0.65]])
EARNED = np.array([0.0, 0.3, 0.6, 1.0])
NOISE = 0.5
BONUS = 0.1
RETURN = 1e-5
"""Mass that starts again at every step, so that users who differ for ever have one long run."""


@dataclass(frozen=True)
class World:
    """Moves and mean earnings of the control and of treatment."""

    moves: tuple[np.ndarray, np.ndarray]
    earned: tuple[np.ndarray, np.ndarray]

    @property
    def truth(self) -> float:
        """Treatment less control in the long run."""
        values = []
        for moves, earned in zip(self.moves, self.earned, strict=True):
            system = np.vstack([moves.T - np.eye(4), np.ones(4)])
            values.append(np.linalg.lstsq(system, np.array([0, 0, 0, 0, 1.0]), rcond=None)[0] @ earned)
        return float(values[1] - values[0])


WORLDS = {
    "null": World((STAY, STAY), (EARNED, EARNED)),
    "wear-out": World((STAY, WORN), (EARNED, EARNED + BONUS)),
}


@dataclass(frozen=True)
class Test:
    """Arm by unit; state and reward by unit and day."""

    arm: np.ndarray
    state: np.ndarray
    reward: np.ndarray

    def part(self, units: int, days: int) -> Test:
        """What is there when one looks."""
        return Test(self.arm[:units], self.state[:units, :days], self.reward[:units, :days])


def simulate(world: World, units: int, days: int, generator: np.random.Generator) -> Test:
    """One test; every other unit is treated."""
    arm = np.arange(units) % 2
    steps = np.stack(world.moves).cumsum(axis=2)
    state = np.empty((units, days), dtype=np.int64)
    state[:, 0] = generator.choice(4, size=units, p=START)
    for day in range(1, days):
        draw = generator.random((units, 1))
        state[:, day] = np.minimum((draw > steps[arm, state[:, day - 1]]).sum(axis=1), 3)
    earned = np.stack(world.earned)[arm[:, None], state]
    return Test(arm, state, earned + NOISE * generator.standard_normal((units, days)))


def draw(name: str, units: int, days: int, generator: np.random.Generator) -> tuple[Test, float]:
    """A test of one of the worlds, and its truth."""
    if name != "engagement":
        return simulate(WORLDS[name], units, days, generator), WORLDS[name].truth
    table = engagement.draw("wear-out", users=units, days=days, seed=int(generator.integers(2**31))).sort_by(
        [("user", "ascending"), ("day", "ascending")]
    )
    level, fatigue = (table[name].to_numpy() for name in ("level", "fatigue"))
    paid = table["plan"].to_numpy(zero_copy_only=False) != "free"
    state = np.unique(100 * level + 10 * fatigue + paid, return_inverse=True)[1].reshape(units, days)
    arm = (table["variant"].to_numpy(zero_copy_only=False) == "B").astype(int).reshape(units, days)[:, 0]
    return Test(arm, state, table["revenue"].to_numpy().reshape(units, days)), engagement.effect("wear-out")


def long_run(test: Test) -> tuple[float, float]:
    """The long-run difference of the arms' chains, and its standard error from scores by unit."""
    total, scores, n = 0.0, np.zeros(len(test.arm)), int(test.state.max()) + 1
    start = np.bincount(test.state[:, 0], minlength=n) / len(test.arm)
    for arm, sign in ((1, 1.0), (0, -1.0)):
        mine = test.arm == arm
        before, after, reward = test.state[mine, :-1], test.state[mine, 1:], test.reward[mine, :-1]
        counts = np.bincount((n * before + after).ravel(), minlength=n * n).reshape(n, n).astype(float)
        seen = np.maximum(counts.sum(axis=1), 1.0)
        moves = np.where(counts.any(axis=1)[:, None], counts / seen[:, None], np.eye(n))
        earned = np.bincount(before.ravel(), reward.ravel(), minlength=n) / seen
        law = np.linalg.solve(np.eye(n) - (1 - RETURN) * moves.T, RETURN * start)
        law /= law.sum()
        worth = np.linalg.solve(np.eye(n) - (1 - RETURN) * moves, earned - law @ earned)
        total += sign * float(law @ earned)
        off = reward + worth[after] - (earned + moves @ worth)[before]
        scores[mine] = sign * ((law / seen)[before] * off).sum(axis=1)
        first = RETURN * worth[test.state[mine, 0]]  # who enters where is chance too
        scores[mine] += sign * (first - RETURN * start @ worth) / mine.sum()
    units = len(scores)
    return total, float(np.sqrt(units / (units - 1) * np.sum(scores**2)))


def naive(test: Test) -> tuple[float, float]:
    """The difference of means so far, and its standard error by unit."""
    means = test.reward.mean(axis=1)
    one, other = means[test.arm == 1], means[test.arm == 0]
    return float(one.mean() - other.mean()), float(np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other)))


def held(name: str, by: str, estimate: Any, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Whether each kind of interval held the truth at all looks, and how wide each was at the last one."""
    day, batch = FIRST.get(name, (2, 1))
    if by == "days":
        test, truth = draw(name, UNITS, DAYS, generator)
        looks = [test.part(UNITS, k) for k in range(day, DAYS + 1)]
    else:
        test, truth = draw(name, BATCHES * BATCH, SHORT, generator)
        looks = [test.part(BATCH * k, SHORT) for k in range(batch, BATCHES + 1)]
    last = test.state.size
    fine, widths = np.ones(3, dtype=bool), np.zeros(3)
    for look in looks:
        value, error = estimate(look)
        degrees, rows = len(look.arm) - 1.0, look.state.size
        reach = [quantile(LEVEL, degrees)]
        reach += [sequence_reach(rows / planned, LEVEL, degrees) for planned in (PLANNED_ROWS, last)]
        widths = error * np.array(reach)
        fine &= np.abs(value - truth) <= widths
    return fine, widths


def cell(name: str, by: str, what: str, tests: int, seed: int) -> list[str]:
    """One line of the table."""
    estimate = {"long run": long_run, "naive": naive}[what]
    generators = [np.random.default_rng([seed, k]) for k in range(tests)]
    found = [held(name, by, estimate, generator) for generator in generators]
    share, width = (np.mean([each[k] for each in found], axis=0) for k in (0, 1))
    return [name, by, what, *(f"{100 * s:.1f} % (± {w:.3f})" for s, w in zip(share, width, strict=True))]


CELLS = [
    ("null", "days", "long run"),
    ("null", "batches", "long run"),
    ("null", "days", "naive"),
    ("null", "batches", "naive"),
    ("wear-out", "days", "long run"),
    ("wear-out", "batches", "long run"),
    ("engagement", "days", "long run"),
    ("engagement", "batches", "long run"),
]
HEADINGS = ["arms", "a look after", "difference", "one look", "sequence, no plan", "sequence, as planned"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"truth: {', '.join(f'{name} {world.truth:+.4f}' for name, world in WORLDS.items())}\n")
    print(markdown(HEADINGS, [cell(*each, given.tests, given.seed) for each in CELLS]))


if __name__ == "__main__":
    main()
