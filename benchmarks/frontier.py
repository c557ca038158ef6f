"""Claim: where the logs reach states that nobody left, intervals hold, or the verdict says that they may not.

    python -m benchmarks.frontier [--seeds 20] [--first 0] [--sizes 50 200 800 2000] [--worlds recency …]

Run from the repository root, with OMP_NUM_THREADS=1. Every state is a counter, and every episode is cut: the newest
value of the counter was reached, and never left. A line of the table is one world and estimand; truth is exact (the
counter goes on to 3,000). *holds* is the share of the intervals that hold the truth, *green and wrong* that of all
answers that are called trustworthy and do not hold it, *right and refused* that of all that hold it and are called not
supported.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

import mixope
from mixope.base.errors import MixopeError

LAST = 3_000
ESTIMANDS: dict[str, dict[str, Any]] = {
    "average": {},
    "discounted": {"estimand": "discounted", "gamma": 0.95},
    "horizon": {"estimand": "horizon"},
    "episode": {"estimand": "episode"},
}
HEAD = ("world", "asked for", "episodes", "mean error", "holds", "green and wrong", "right and refused")
HEAD += ("green", "refused")
Rate = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class World:
    """A counter; ``event`` is the chance of an event in a state under an action, which earns and may reset it.

    ``noise`` is that of all rewards, ``earns`` what a step earns without an event, ``ends`` the chance of an end.
    """

    steps: int
    event: Rate = lambda k, a: 0.0 * k
    prize: float = 30.0
    resets: bool = True
    earns: Rate = lambda k, a: 0.0 * k
    noise: float = 0.0
    ends: Rate = lambda k, a: 0.0 * k
    late: bool = False
    """Whether episodes enter at different times, and are shorter then."""
    actions: int = 1
    asked: tuple[str, ...] = ("average", "discounted", "horizon")
    kinds: int = 1
    """More than one: a second factor, of which nothing depends; states then have factors."""

    @property
    def target(self) -> np.ndarray:
        """π(a), the same in every state."""
        return np.array([1.0]) if self.actions == 1 else np.array([0.2, 0.8])

    def log(self, episodes: int, seed: int) -> dict[str, Any]:
        """Columns."""
        draw = np.random.default_rng(seed)
        state, alive = np.zeros(episodes, dtype=np.int64), np.ones(episodes, dtype=bool)
        length = draw.integers(3, self.steps + 1, episodes) if self.late else np.full(episodes, self.steps)
        kind = draw.integers(0, self.kinds, episodes)
        parts = []
        for step in range(self.steps):
            action = draw.integers(0, self.actions, episodes)
            event = draw.random(episodes) < self.event(state, action)
            reward = self.earns(state, action) + self.prize * event + self.noise * draw.normal(size=episodes)
            following = np.where(event & self.resets, 0, state + 1)
            ended = draw.random(episodes) < self.ends(state, action)
            rows = np.flatnonzero(alive)
            columns = (np.arange(episodes), np.full(episodes, step), state, action, reward, following, ended)
            cut = ~ended & (step + 1 >= length)
            parts.append([values[rows] for values in (*columns, cut, kind)])
            alive, state = alive & ~ended & ~cut, following
        names = ("episode_id", "step", "state", "action", "reward", "next", "terminated", "truncated", "kind")
        found = {name: np.concatenate(column) for name, column in zip(names, zip(*parts, strict=True), strict=True)}
        state, following, kind = found.pop("state"), found.pop("next"), found.pop("kind")
        if self.kinds == 1:
            return {**found, "observation": state, "next_observation": following}
        factors = {"observation.counter": state, "observation.kind": kind}
        return {**found, **factors, "next_observation.counter": following, "next_observation.kind": kind}

    def truth(self, estimand: str, horizon: int) -> float:
        """Exact, from the start of the counter."""
        k = np.arange(LAST)
        moves, earned = sparse.csr_matrix((LAST, LAST)), np.zeros(LAST)
        for action, chance in enumerate(self.target):
            a = np.full(LAST, action)
            event, goes = self.event(k, a) + np.zeros(LAST), 1.0 - (self.ends(k, a) + np.zeros(LAST))
            earned += chance * (self.earns(k, a) + self.prize * event)
            onward = np.minimum(k + 1, LAST - 1)
            back = np.zeros(LAST, dtype=int) if self.resets else onward
            ended = (1.0 - goes) * (estimand == "average")  # which begins again
            entries = np.concatenate([event * goes, (1 - event) * goes, ended]) * chance
            later = np.concatenate([back, onward, np.zeros(LAST, dtype=int)])
            moves = moves + sparse.csr_matrix((entries, (np.tile(k, 3), later)), (LAST, LAST))
        if estimand == "horizon":
            law, total = np.eye(1, LAST)[0], 0.0
            for _ in range(horizon):
                total, law = total + float(law @ earned), moves.T @ law
            return total / horizon
        gamma = {"average": 1 - 1e-9, "discounted": 0.95, "episode": 1.0}[estimand]
        value = linalg.spsolve((sparse.eye_array(LAST) - gamma * moves).tocsc(), earned)[0]
        return float(value * (1.0 if estimand == "episode" else 1.0 - gamma))

    def policy(self, columns: dict[str, Any]) -> mixope.TabularPolicy:
        """The target as a table."""
        top = max(int(np.max(values)) for name, values in columns.items() if "observation" in name) + 1
        if self.kinds == 1:
            return mixope.TabularPolicy(np.tile(self.target, (top, 1)))
        keys = [[counter, kind] for counter in range(top) for kind in range(self.kinds)]
        return mixope.TabularPolicy(np.tile(self.target, (len(keys), 1)), keys, factors=["counter", "kind"])


def _by_action(low: float, high: float) -> Rate:
    return lambda k, a: np.where(a == 1, high, low)


WORLDS: dict[str, World] = {
    "recency, 26 weeks": World(26, event=lambda k, a: 0.05),
    "recency, 8 weeks": World(8, event=lambda k, a: 0.05),
    "recency, two actions": World(20, event=_by_action(0.05, 0.1), actions=2),
    "recency, entering late": World(26, event=lambda k, a: 0.08, late=True),
    "recency and kind (factors)": World(15, event=_by_action(0.08, 0.12), actions=2, kinds=2),
    "visit number": World(15, resets=False, earns=lambda k, a: 1.5, noise=1.0),
    "visit number, two actions": World(15, resets=False, earns=_by_action(1.0, 2.0), noise=1.0, actions=2),
    "age, entering late": World(20, resets=False, earns=lambda k, a: 1.0, noise=2.0, late=True),
    "progress, with ends": World(
        20, resets=False, earns=lambda k, a: 1.0, noise=1.0, ends=lambda k, a: 0.08, asked=("episode", "discounted")
    ),
    "progress, two actions": World(
        12,
        resets=False,
        earns=_by_action(0.5, 1.0),
        noise=1.0,
        ends=_by_action(0.15, 0.1),
        actions=2,
        asked=("episode", "average"),
    ),
    "recency, fading": World(20, event=lambda k, a: 0.02 + 0.2 * np.exp(-k / 4)),
    "visit number, rising": World(15, resets=False, earns=lambda k, a: 2.0 * (1 - np.exp(-k / 8)), noise=1.0),
}
"""In the last two the states differ, and with them what the newest value of the counter may earn."""


def judged(world: World, asked: str, size: int, seed: int, estimator: str) -> tuple[float, bool, str]:
    """The error, whether the interval holds the truth, and the verdict; what has no answer is refused."""
    columns = world.log(size, seed)
    question = {**ESTIMANDS[asked], **({"horizon": world.steps} if asked == "horizon" else {})}
    try:
        found = mixope.evaluate(columns, world.policy(columns), estimator, **question)
    except MixopeError:
        return np.nan, False, "not supported by these logs"
    truth = world.truth(asked, world.steps)
    holds = found.interval is not None and found.interval.low <= truth <= found.interval.high
    return found.value - truth, holds, str(found.verdict)


def line(world: World, asked: str, size: int, given: argparse.Namespace) -> list[float]:
    """Mean error, and the shares of the table."""
    found = [
        judged(world, asked, size, 1_000 * seed + size, given.estimator)
        for seed in range(given.first, given.first + given.seeds)
    ]
    error, holds = np.array([f[0] for f in found]), np.array([f[1] for f in found])
    verdicts = np.array([f[2] for f in found])
    green, refused = verdicts == "trustworthy", verdicts == "not supported by these logs"
    shares = (holds, green & ~holds, holds & refused, green, refused)
    off = float(np.nanmean(error)) if np.isfinite(error).any() else np.nan
    return [off, *(float(share.mean()) for share in shares)]


def main() -> None:
    """Print the table, by size and in all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="logs of every world and size")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 800, 2000], help="episodes")
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), help="names, or their beginnings")
    parser.add_argument("--estimator", default="auto")
    given = parser.parse_args()
    chosen = [name for name in WORLDS if any(name.startswith(begin) for begin in given.worlds)]
    print(
        "| world | asked for | episodes | mean error | holds | green and wrong | right and refused | green | refused |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    found: dict[int, list[list[float]]] = {}
    for name in chosen:
        for asked in WORLDS[name].asked:
            for size in given.sizes:
                shares = line(WORLDS[name], asked, size, given)
                found.setdefault(size, []).append(shares)
                print(_row(name, asked, size, shares), flush=True)
    for size, lines in found.items():
        print(_row("**all**", "", size, np.nanmean(lines, axis=0).tolist()))


def _row(name: str, asked: str, size: int, shares: list[float]) -> str:
    error, *rest = shares
    return f"| {name} | {asked} | {size:,} | {error:+.3f} | " + " | ".join(f"{share:.0%}" for share in rest) + " |"


if __name__ == "__main__":
    main()
