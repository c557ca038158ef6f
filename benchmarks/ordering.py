"""Do the checks see states, rewards and marks that stand in the wrong row, and are they quiet when all is well?

    python benchmarks/ordering.py --healthy 1000   # false alarms on logs of worlds drawn at random
    python benchmarks/ordering.py --broken 8       # broken logs of known worlds: misses, green before and after

*Before* is the verdict without the checks that are measured here: rewards of others, states in step, ends at cuts.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import mixope
import worlds_of_chance
from broken_rows import Columns, first_of, following, renumbered, states, taken
from mixope import worlds
from mixope.base.errors import MixopeError
from mixope.checks import check_logs
from mixope.session.session import count
from mixope.worlds import continuous, linear_quadratic
from tables import markdown

NEW = ("rewards of others", "states in step", "ends at cuts")
Corruption = Callable[[Columns, np.random.Generator], Columns]


def stale(columns: Columns, generator: np.random.Generator, *, keep: bool) -> Columns:
    """Beside every action stands the state of the step before; a first row keeps its own, or is lost."""
    first, moved = first_of(columns), dict(columns)
    for now, after in zip(states(columns), following(columns), strict=True):
        before = np.roll(columns[now], 1, axis=0)
        before[first] = columns[now][first]
        moved |= {now: before, after: columns[now].copy()}
    return moved if keep else renumbered(taken(moved, ~first))


def some_late(columns: Columns, generator: np.random.Generator, *, share: float, early: bool = False) -> Columns:
    """In some episodes rewards stand in the next row (the row before); what is empty is 0."""
    first = first_of(columns)
    edge = np.roll(first, -1) if early else first
    moved = np.where(edge, 0.0, np.roll(columns["reward"], -1 if early else 1))
    chosen = generator.random(int(first.sum())) < share
    return {**columns, "reward": np.where(chosen[np.cumsum(first) - 1], moved, columns["reward"])}


def cuts_as_ends(columns: Columns, generator: np.random.Generator, *, share: float) -> Columns:
    """Some of the episodes that the recorder cut are marked as ended."""
    chosen = columns["truncated"] & (generator.random(len(columns["reward"])) < share)
    return {**columns, "terminated": columns["terminated"] | chosen, "truncated": columns["truncated"] & ~chosen}


def cut_anywhere(columns: Columns, generator: np.random.Generator, *, share: float) -> Columns:
    """Every episode is cut by a geometric clock (one step in ten); some of these cuts are marked as ends."""
    first = first_of(columns)
    limit = generator.geometric(0.1, int(first.sum()))[np.cumsum(first) - 1]
    kept = taken(
        {**columns, "truncated": columns["truncated"] | (columns["step"] == limit - 1)}, columns["step"] < limit
    )
    kept["truncated"] &= ~kept["terminated"]
    return cuts_as_ends(kept, generator, share=share)


def first_lost(columns: Columns, generator: np.random.Generator) -> Columns:
    return taken(columns, ~first_of(columns))


BROKEN: dict[str, Corruption] = {
    "nothing": lambda columns, generator: columns,
    "states one step late, first rows kept": partial(stale, keep=True),
    "states one step late, first rows lost": partial(stale, keep=False),
    "a third of the episodes: rewards late": partial(some_late, share=1 / 3),
    "a third of the episodes: rewards early": partial(some_late, share=1 / 3, early=True),
    "three cuts in ten marked as ends": partial(cuts_as_ends, share=0.3),
    "cut anywhere, marked as cut": partial(cut_anywhere, share=0.0),
    "cut anywhere, three in ten marked as ends": partial(cut_anywhere, share=0.3),
    "first rows lost": first_lost,
}


@dataclass(frozen=True)
class Setup:
    """Logs by seed, a target, what is asked of it, and the truth."""

    simulate: Callable[[int], Columns]
    target: Any
    options: dict[str, Any]
    truth: float


def counted(name: str, episodes: int, horizon: int | None, kind: str, observed: str = "id") -> Setup:
    model = worlds.make(name)
    loggers, law = worlds.stages(model, 3, seed=0), worlds.target(model, seed=0)
    policy = model.policy(law) if observed == "factors" else mixope.TabularPolicy(law)
    options: dict[str, Any] = {"estimand": kind} | ({"gamma": 0.9} if kind == "discounted" else {})
    values = {
        "average": lambda: worlds.truth.average(model, law),
        "episode": lambda: worlds.truth.episode_value(model, law)[model.start > 0] @ model.start[model.start > 0],
        "discounted": lambda: worlds.truth.discounted(model, law, 0.9),
    }
    simulate = partial(worlds.simulate, model, loggers, episodes, horizon, observed=observed)
    return Setup(lambda seed: simulate(seed=seed), policy, options, float(values[kind]()))


def vectors() -> Setup:
    system, target = linear_quadratic.linear_quadratic(), linear_quadratic.target()
    simulate = partial(continuous.simulate, system, linear_quadratic.loggers(4), 60, 40)
    return Setup(lambda seed: simulate(seed=seed), target, {}, linear_quadratic.average(system, target))


SETUPS: dict[str, Callable[[], Setup]] = {
    "sessions, per episode": lambda: counted("sessions", 800, 8, "episode"),
    "sessions, average": lambda: counted("sessions", 800, 8, "average"),
    "survival, per episode": lambda: counted("survival", 600, 8, "episode"),
    "queue, discounted": lambda: counted("queue", 300, 40, "discounted"),
    "gridworld-slip": lambda: counted("gridworld-slip", 120, 50, "average"),
    "singlepath": lambda: counted("singlepath", 150, 25, "average"),
    "linear-quadratic": vectors,
}


def healthy(logs: int, seed: int) -> str:
    """How often each new check warns on logs of worlds drawn at random, and its largest values."""
    values: dict[str, list[float]] = {name: [] for name in NEW}
    alarms: Counter[str] = Counter()
    for number in range(logs):
        generator = np.random.default_rng([seed, number])
        found = checks_of(worlds_of_chance.simulate(worlds_of_chance.draw(generator), generator))
        for check in found:
            if check.name in values:
                values[check.name].append(check.value)
                alarms[check.name] += check.status != "pass"
    lines = [
        [
            name,
            str(len(z)),
            str(alarms[name]),
            f"{alarms[name] / logs:.2%}",
            *(f"{np.quantile(z, q):.2f}" for q in (0.5, 0.99, 1.0)),
        ]
        for name, z in values.items()
    ]
    return markdown(["check", "logs where it applies", "alarms", "of all logs", "median", "99 %", "largest"], lines)


def checks_of(columns: Columns) -> tuple[Any, ...]:
    """The checks of the logs alone: no target is asked about."""
    seen = count(columns)
    sums = seen.rounds().run(seen.structure())
    return check_logs(seen.transitions, sums)


def broken(repetitions: int, seed: int, worlds: list[str]) -> str:
    """Misses, and how many of them no check flags: without the new checks, and with them."""
    lines = []
    for name, corrupt in BROKEN.items():
        for world in worlds:
            here, rows = SETUPS[world](), []
            for repetition in range(repetitions):
                generator = np.random.default_rng([seed, repetition, len(world)])
                columns = corrupt(here.simulate(int(generator.integers(1 << 30))), generator)
                rows.append(judged(columns, here))
            missed, before, after, reasons = (list(part) for part in zip(*rows, strict=True))
            wrong = [sum(m and green for m, green in zip(missed, part, strict=True)) for part in (before, after)]
            named = Counter(reason for part in reasons for reason in part).most_common(2)
            lines.append(
                [
                    name,
                    world,
                    str(repetitions),
                    str(sum(missed)),
                    *map(str, wrong),
                    str(repetitions - sum(after)),
                    ", ".join(f"{n} {k}" for n, k in named),
                ]
            )
    head = [
        "corruption",
        "world",
        "logs",
        "misses",
        "green and wrong before",
        "green and wrong after",
        "flagged",
        "mostly by",
    ]
    return markdown(head, lines)


def judged(columns: Columns, here: Setup) -> tuple[bool, bool, bool, list[str]]:
    """Whether the interval misses, whether the verdict is green without the new checks and with them, and why not."""
    try:
        found = mixope.evaluate(columns, here.target, **here.options)
    except MixopeError:
        return True, False, False, ["refused"]
    reasons = [check.name for check in found.diagnostics if check.status != "pass"]
    interval = found.interval
    holds = interval is None or interval.low <= here.truth <= interval.high
    return not holds, not set(reasons) - set(NEW), not reasons, reasons


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--healthy", type=int, default=0, help="healthy logs of worlds drawn at random")
    parser.add_argument("--broken", type=int, default=0, help="logs of every known world for every corruption")
    parser.add_argument("--worlds", default=";".join(SETUPS), help="names with semicolons between")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.healthy:
        print(healthy(given.healthy, given.seed), end="\n\n")
    if given.broken:
        print(broken(given.broken, given.seed, given.worlds.split(";")))


if __name__ == "__main__":
    main()
