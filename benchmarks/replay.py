"""Does the replay of the logs warn where the state is not all, and only there?

    python benchmarks/replay.py                        # about ten processor minutes
    python benchmarks/replay.py --logs 5 --seed 7

Logs of many kinds, all of a world that is known by its state (*healthy*) or not (*broken*), of 20 to 320 episodes. Each
is counted and replayed, whole and out of time, and judged against the half-width of the interval of what the loggers
earn. Printed are the shares of the logs on which each of the checks warns or fails, and how far the level that is
foretold out of time is off (the median over logs).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np

from mixope import worlds
from mixope.backtesting.judging import earned
from mixope.checks.replay import farthest, judge_replays, replay_logs
from mixope.session.session import count
from mixope.uncertainty import clustered_interval
from tables import markdown

NAMES = ("replay", "replay, by logger", "replay, later steps", "replay, later episodes")
SIZES = (20, 80, 320)
COLUMNS = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
Columns = Mapping[str, np.ndarray]
Write = Callable[[int, int], Columns]
"""From a number of episodes and a seed to logs."""


def chain(
    states: int = 12,
    steps: int = 25,
    *,
    loggers: int = 2,
    stay: float = 0.0,
    ends: float = 0.0,
    lengths: Callable[[np.random.Generator, int], int] | None = None,
    shift: Callable[[int, int], float] = lambda t, e: 0.0,
    rare: bool = False,
    labelled: bool = True,
) -> Write:
    """A Markov chain of ids with three actions, and loggers that differ by much; ``shift`` moves its rewards."""

    def write(episodes: int, seed: int) -> Columns:
        world, generator = np.random.default_rng(states), np.random.default_rng([states, seed])
        moves = np.zeros((states, 3, states))
        for row in moves.reshape(-1, states):
            row[world.choice(states, 3, replace=False)] = (1 - stay) * world.dirichlet(np.ones(3))
        moves += stay * np.eye(states)[:, None, :]
        mean, end = world.normal(size=(states, 3)), ends * world.uniform(0, 2, size=(states, 3))
        laws = world.dirichlet(np.ones(3), size=(loggers, states))
        reach, act = moves.cumsum(axis=2), laws.cumsum(axis=2)
        rows = []
        for e in range(episodes):
            s, last = 0, (steps if lengths is None else lengths(generator, e)) - 1
            for t in range(last + 1):
                a = min(int(np.searchsorted(act[e % loggers, s], generator.random())), 2)
                reward = mean[s, a] + shift(t, e) + generator.normal()
                reward = float(generator.random() < 0.02 * np.exp(mean[s, a])) if rare else reward
                over = bool(generator.random() < end[s, a])
                later = min(int(np.searchsorted(reach[s, a], generator.random())), states - 1)
                rows.append((e, t, s, a, reward, later, over, t == last and not over))
                if over:
                    break
                s = later
        found = dict(zip(COLUMNS, map(np.array, zip(*rows, strict=True)), strict=True))
        return {**found, "policy_id": found["episode_id"] % loggers} if labelled else found

    return write


def customers(
    chances: tuple[float, ...] = (0.1,), *, fade: float = 0.0, longest: int = 10, staggered: bool = False
) -> Write:
    """Weekly customers who spend 30 when they buy; the state is the number of weeks since the last purchase."""

    def write(episodes: int, seed: int) -> Columns:
        generator, rows = np.random.default_rng([2, seed]), []
        for e in range(episodes):
            chance, s, weeks = generator.choice(chances), 0, 3 + int(generator.integers(24)) if staggered else 26
            for t in range(weeks):
                bought = generator.random() < chance * np.exp(-fade * t)
                later = 0 if bought else min(s + 1, longest)
                rows.append((e, t, s, 0, 30.0 * bought, later, False, t == weeks - 1))
                s = later
        return dict(zip(COLUMNS, map(np.array, zip(*rows, strict=True)), strict=True))

    return write


def simulated(name: str, horizon: int | None) -> Write:
    """Three loggers of a world of mixope's."""

    def write(episodes: int, seed: int) -> Columns:
        model = worlds.make(name)
        return worlds.simulate(model, worlds.stages(model, 3), episodes, horizon, seed=seed)

    return write


HEALTHY: Mapping[str, Write] = {
    "chain": chain(),
    "chain, short episodes": chain(steps=6),
    "chain, one logger": chain(loggers=1),
    "chain, loggers not named": chain(loggers=3, labelled=False),
    "chain that ends": chain(steps=60, ends=0.05),
    "chain cut anywhere": chain(lengths=lambda g, e: 3 + int(g.integers(24))),
    "chain, loggers of 5 and 40 steps": chain(lengths=lambda g, e: (5, 40)[e % 2]),
    "chain of 400 states": chain(states=400),
    "chain that moves slowly": chain(stay=0.95, steps=40),
    "chain, rare rewards": chain(rare=True),
    "customers who are alike": customers(),
    "the same, newest states never left": customers((0.05,), longest=100),
    "the same, cut anywhere": customers((0.05,), longest=100, staggered=True),
    "singlepath": simulated("singlepath", 30),
    "gridworld-slip": simulated("gridworld-slip", 30),
    "sessions": simulated("sessions", None),
    "queue": simulated("queue", None),
}
BROKEN: Mapping[str, Write] = {
    "customers who differ": customers((0.02, 0.3)),
    "customers who differ a little": customers((0.05, 0.15)),
    "customers who tire": customers(fade=0.05),
    "rewards drift over steps": chain(shift=lambda t, e: 0.04 * t),
    "rewards drift over episodes": chain(shift=lambda t, e: 0.01 * e),
    "one logger's rewards are others": chain(shift=lambda t, e: 1.0 * (e % 2)),
}


def judged(columns: Columns, level: float = 0.95) -> tuple[dict[str, bool], float]:
    """Whether each check is alarmed, and the level out of time against what was seen."""
    counted = count(columns)
    sums = counted.rounds().run(counted.structure())
    found = replay_logs(counted.transitions, sums)
    own = earned(sums.totals, sums.totals, None)
    around = clustered_interval(own.value, own.scores, level)
    half = None if around is None else around.width / 2
    reward = np.asarray(columns["reward"], dtype=np.float64)
    checks = judge_replays(found, half, 1.0, float(reward.min()), float(reward.max()))
    later = None if found is None or found.later_steps is None else farthest(found.later_steps)
    ratio = np.nan if later is None or later.seen == 0 else later.predicted / later.seen
    return {check.name: check.status != "pass" for check in checks}, ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=10, help="of every kind and size")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--kinds", choices=("healthy", "broken", "all"), default="all")
    given = parser.parse_args()
    for title, kinds in (("healthy", HEALTHY), ("broken", BROKEN)):
        if given.kinds not in (title, "all"):
            continue
        rows, alarms, total = [], dict.fromkeys(NAMES, 0), 0
        for kind, write in kinds.items():
            for episodes in SIZES:
                found = [judged(write(episodes, given.seed + k)) for k in range(given.logs)]
                total += len(found)
                shares = []
                for name in NAMES:
                    warned, told = sum(c.get(name, False) for c, _ in found), sum(name in c for c, _ in found)
                    alarms[name] += warned
                    shares.append(f"{warned} of {told}" if told else "–")
                ratio = float(np.median([r for _, r in found]))
                rows.append([kind, str(episodes), *shares, "–" if np.isnan(ratio) else f"{ratio:.2f}"])
        print(f"\n{title}: {total} logs; " + ", ".join(f"{name}: {n}" for name, n in alarms.items()) + "\n")
        print(markdown([title, "episodes", *NAMES, "predicted ÷ seen, later steps"], rows), flush=True)


if __name__ == "__main__":
    main()
