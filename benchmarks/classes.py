"""Units that differ for ever: the plain chain and ``latent-classes``, where the truth is known and on real customers.

    python -m benchmarks.classes                          # simulated units; about ten processor minutes
    python -m benchmarks.classes --logs 4 --sizes 60 --worlds paces
    python -m benchmarks.classes --customers CDNOW_master.txt   # what real customers do later, from their first weeks

*Simulated.* Units climb and fall on four steps; how fast (*pace*), how much an action helps them (*response*), what a
step is worth to them (*worth*, with the pace) or when they leave (*stay*) is their own and for ever. The truth is that
of the target for the mean unit, exact. Printed of every world and size: the bias in standard deviations of the plain
value, the coverage of 95 % intervals in per cent, root mean square error, and how many classes were found.

*Customers.* 23,570 customers of a shop, all of whom bought first in the first twelve weeks of 1997, until week 78
(the file CDNOW_master.txt of the package ``lifetimes``, which has it from Fader and Hardie). A customer is an episode,
a week a step; the state is the weeks since the last purchase × the number of weeks with one, each up to a limit. From
the first K weeks of each: the share of customers who buy in a later week, beside what they did; the error of the
prediction in per cent, and the interval of the mean over all weeks beside what was seen.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.tables import markdown
from scipy.special import betaincinv

import mixope
from mixope.base.arrays import FloatArray
from mixope.estimators.latent_classes import LatentClasses

TOP, LOGGED, WANTED = 3, 0.5, 0.9
GRID = 400


@dataclass(frozen=True)
class Units:
    """Traits that are equally frequent, and what they do: to climb and to leave by action, and what a step is worth."""

    trait: FloatArray
    climb: Callable[[FloatArray], FloatArray]
    leave: Callable[[FloatArray], FloatArray] = np.zeros_like
    worth: Callable[[FloatArray], FloatArray] = np.ones_like
    episodes: int = 1

    @property
    def asked(self) -> dict[str, Any]:
        """The estimand: the total of an episode where units leave."""
        return {"estimand": "episode"} if self.leave(self.trait).any() else {}

    def value(self) -> float:
        """Of the target, for the mean unit."""
        return float(np.mean([self._value(x) for x in self.trait[:, None]]))

    def _value(self, x: FloatArray) -> float:
        up, gone, worth = (float(f(x)[0]) for f in (self.climb, self.leave, self.worth))
        moves = np.zeros((TOP + 1, TOP + 1))
        for s in range(TOP + 1):
            for taken, share in ((0.0, 1 - WANTED), (1.0, WANTED)):
                chance = self.chance(up, taken, float(x[0]))
                moves[s, min(s + 1, TOP)] += share * chance
                moves[s, max(s - 1, 0)] += share * (1 - chance)
        reward, n = worth * np.arange(TOP + 1.0), TOP + 1
        if gone > 0:
            return float(np.linalg.solve(np.eye(n) - (1 - gone) * moves, reward)[0])
        law = np.linalg.lstsq(np.vstack([moves.T - np.eye(n), np.ones(n)]), np.eye(n + 1)[n], rcond=None)[0]
        return float(law @ reward)

    def chance(self, up: Any, taken: Any, trait: Any) -> Any:
        """To climb."""
        return np.clip(up + (trait if self is RESPONSE else 0.25) * taken, 0.0, 0.95)

    def write(self, n: int, seed: int, steps: int = 20) -> dict[str, Any]:
        """A log of n units."""
        draw = np.random.default_rng([seed, n])
        trait = np.repeat(self.trait[draw.integers(len(self.trait), size=n)], self.episodes)
        n_episodes = len(trait)
        up, gone, worth = self.climb(trait), self.leave(trait), self.worth(trait)
        here, there, rows = np.zeros(n_episodes, dtype=int), np.ones(n_episodes, dtype=bool), []
        for step in range(steps):
            taken = (draw.random(n_episodes) < LOGGED).astype(int)
            climbs = draw.random(n_episodes) < self.chance(up, taken, trait)
            after = np.clip(here + np.where(climbs, 1, -1), 0, TOP)
            ends = draw.random(n_episodes) < gone
            row = (np.arange(n_episodes), np.full(n_episodes, step), here, taken, worth * here, after, ends)
            rows.append([column[there] for column in row])
            here, there = after, there & ~ends
        names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated")
        found = dict(zip(names, (np.concatenate(parts) for parts in zip(*rows, strict=True)), strict=True))
        found["truncated"] = (found["step"] == steps - 1) & ~found["terminated"]
        if self.episodes > 1:
            found["unit"] = found["episode_id"] // self.episodes
        return found


def _beta(a: float, b: float) -> FloatArray:
    return np.asarray(betaincinv(a, b, (np.arange(GRID) + 0.5) / GRID))


def _fixed(value: float) -> Callable[[FloatArray], FloatArray]:
    return lambda trait: np.full(len(trait), value)


def _itself(trait: FloatArray) -> FloatArray:
    return trait


RESPONSE = Units(np.array([0.0, 0.0, 0.6]), _fixed(0.25))
WORLDS = {
    "alike": Units(np.array([0.35]), _itself),
    "alike, 5 episodes each": Units(np.array([0.35]), _itself, episodes=5),
    "two paces": Units(np.array([0.15, 0.6]), _itself),
    "paces": Units(_beta(1.0, 2.0), _itself),
    "paces, 5 episodes each": Units(_beta(1.0, 2.0), _itself, episodes=5),
    "responses": RESPONSE,
    "paces and worth": Units(_beta(1.0, 2.0), _itself, worth=lambda trait: 0.5 + 2.0 * trait),
    "stay": Units(_beta(1.0, 4.0), _fixed(0.35), leave=lambda trait: 0.02 + trait),
    "alike, leave": Units(np.array([0.35]), _itself, leave=_fixed(0.1)),
}


def simulated(worlds: list[str], sizes: list[int], logs: int, seed: int) -> str:
    """The table of simulated units."""
    target, lines = mixope.TabularPolicy(np.tile([1 - WANTED, WANTED], (TOP + 1, 1))), []
    for name in worlds:
        made = WORLDS[name]
        truth = made.value()
        for size in sizes:
            found: dict[str, list[Any]] = {"emp": [], "latent-classes": []}
            for repetition in range(logs):
                log = mixope.read(made.write(size, seed + 1000 * repetition))
                for estimator, estimates in found.items():
                    estimates.append(mixope.evaluate(log, target, estimator, **made.asked))
            spread = float(np.std([one.value for one in found["emp"]]))
            cells = []
            for estimates in found.values():
                value = np.array([one.value for one in estimates])
                held = [one.interval.low <= truth <= one.interval.high for one in estimates]
                error = np.sqrt(np.mean((value - truth) ** 2))
                cells.append(f"{(value.mean() - truth) / spread:+.1f} · {100 * np.mean(held):.0f} · {error:.3f}")
            number = np.array([one.measures.classes for one in found["latent-classes"]], dtype=int)
            counts = " ".join(f"{k}×{int((number == k).sum())}" for k in np.unique(number))
            lines.append([name, str(size), f"{truth:.3f}", *cells, counts])
            print("|", " | ".join(lines[-1]), "|", flush=True)
    return markdown(["units", "number", "truth", "emp: bias · held · error", "latent-classes", "classes"], lines)


WEEKS = 65
"""That all customers were followed for, after the one in which they came."""
LIMITS = 20, 2
"""Weeks since the last purchase, and weeks with one, beyond which no difference is made."""


def purchases(path: Path) -> Any:
    """Whether a customer (row) bought in a week (column), counted from the week of the first purchase."""
    customer, day = np.loadtxt(path, skiprows=1, usecols=(0, 1), dtype=np.int64, unpack=True)
    ordinal = {d: datetime.date(d // 10_000, d // 100 % 100, d % 100).toordinal() for d in np.unique(day).tolist()}
    days = np.array([ordinal[d] for d in day.tolist()])
    _, who = np.unique(customer, return_inverse=True)
    first = np.full(int(who.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, who, days)
    week = (days - first[who]) // 7
    bought = np.zeros((len(first), WEEKS + 1), dtype=bool)
    bought[who[week <= WEEKS], week[week <= WEEKS]] = True
    return bought


def customer_log(bought: Any, weeks: int, limits: tuple[int, int]) -> dict[str, Any]:
    """The first weeks after the first one, one row per customer and week."""
    n = len(bought)
    since, often = np.zeros(n, dtype=int), np.ones(n, dtype=int)
    rows = []
    for week in range(1, weeks + 1):
        buys = bought[:, week]
        later = np.where(buys, 0, np.minimum(since + 1, limits[0])), np.minimum(often + buys, limits[1])
        step = np.full(n, week - 1)
        rows.append((np.arange(n), step, since, often, np.zeros(n, dtype=int), buys.astype(float), *later))
        since, often = later
    names = ("episode_id", "step", "observation.since", "observation.often", "action", "reward")
    names += ("next_observation.since", "next_observation.often")
    found = dict(zip(names, (np.concatenate(parts) for parts in zip(*rows, strict=True)), strict=True))
    return {**found, "terminated": np.zeros(n * weeks, dtype=bool), "truncated": found["step"] == weeks - 1}


def customers(path: Path, classes: list[int | None], history: list[int], limits: tuple[int, int]) -> str:
    """The table of real customers."""
    bought, lines = purchases(path), []
    states = np.array([(since, often) for since in range(limits[0] + 1) for often in range(1, limits[1] + 1)])
    target = mixope.TabularPolicy(np.ones((len(states), 1)), states, np.zeros(1, dtype=int), factors=("since", "often"))
    for weeks in history:
        log = mixope.read(customer_log(bought, weeks, limits))
        later, whole = bought[:, weeks + 1 :].mean(), bought[:, 1:].mean()
        for number in classes:
            estimator = LatentClasses(number)
            far, near = (mixope.evaluate(log, target, estimator, horizon=steps) for steps in (WEEKS, weeks))
            level = (WEEKS * far.value - weeks * near.value) / (WEEKS - weeks)
            low, high = far.interval.low, far.interval.high
            lines.append(
                [
                    str(weeks),
                    f"{far.measures.classes:.0f}" + (" (chosen)" if number is None else ""),
                    f"{100 * later:.2f}",
                    f"{100 * level:.2f}",
                    f"{100 * (level / later - 1):+.0f}",
                    f"{100 * low:.2f} to {100 * high:.2f}",
                    f"{100 * whole:.2f}",
                    far.verdict,
                ]
            )
            print("|", " | ".join(lines[-1]), "|", flush=True)
    head = ["weeks", "classes", "buy later, %", "predicted", "error, %", "all weeks, %", "seen", "verdict"]
    return markdown(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 250])
    parser.add_argument("--logs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--customers", type=Path, help="CDNOW_master.txt; no simulation then")
    parser.add_argument("--classes", type=int, nargs="+", default=[1, 2, 3, 4, 0], help="of customers; 0: chosen")
    parser.add_argument(
        "--limits", type=int, nargs=2, default=LIMITS, help="of weeks since, and of weeks with a purchase"
    )
    parser.add_argument("--weeks", type=int, nargs="+", default=[13, 26, 39], help="K")
    given = parser.parse_args()
    if given.customers:
        print(
            customers(given.customers, [number or None for number in given.classes], given.weeks, tuple(given.limits))
        )
        return
    print(simulated(given.worlds, given.sizes, given.logs, given.seed))


if __name__ == "__main__":
    main()
