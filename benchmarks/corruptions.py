"""Does the verdict warn of logs that were written down wrongly?

    python benchmarks/corruptions.py                  # the published size; resumes where it stopped
    python benchmarks/corruptions.py --summarise      # the tables again, from the results that are there
    python benchmarks/corruptions.py --seed 1 --repetitions 3 --slow-repetitions 0 --output corruptions-check.csv

Logs with a known truth are simulated, broken (:mod:`broken_rows`, :mod:`broken_values`, :mod:`broken_recorders`) and
evaluated with the defaults; broken propensities once more by an estimator that uses them.

    covered             an interval at 95 % that holds the truth, or a refusal
    flagged             any verdict but ``trustworthy``, or a refusal
    green and wrong     an interval that misses, without a warning

A corruption that does no harm may go unseen; one that makes intervals miss may not. Of healthy logs one in twenty
misses by chance, so that a kind counts as unseen where more than 5 % are green and wrong *and* this is more than chance
makes of so many logs (one-sided, 5 %). An error that is none of ours stops the run: it is a defect.
"""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

import broken_logs
import broken_recorders
import broken_rows
import broken_values
import mixope
from broken_rows import HARMLESS, INVISIBLE, Columns
from mixope.base.errors import MixopeError
from mixope.base.estimand import Estimand
from mixope.worlds import continuous, linear_quadratic
from resuming import Results, holds
from tables import markdown

LEVEL = 0.95
FIELDS = ("corruption", "world", "repetition", "truth", "value", "low", "high", "verdict", "reasons")
SIZES = {"gridworld-slip": 80, "machines-factors": 80, "sessions": 400, "queue": 200, "linear-quadratic": 40}
"""Episodes: ids and factors that go on, ids and factors that end, vectors."""
STATES = {"gridworld-slip": "ids", "machines-factors": "factors", "sessions": "sessions", "queue": "factors that end"}
STATES |= {"linear-quadratic": "vectors"}
SLOW = ("linear-quadratic",)
STEPS = 50
HEALTHY = {**broken_rows.HEALTHY, **broken_values.HEALTHY}
USED = "bch-pooled"
"""An estimator that rests on recorded propensities."""
BY_PROPENSITIES = {f"{name} ({USED})": broken for name, broken in broken_values.PROPENSITIES.items()}
KINDS = {
    "rows": broken_rows.BROKEN,
    "rewards": broken_values.REWARDS,
    "states": broken_values.STATES,
    "actions": broken_values.ACTIONS,
    "propensities": {**broken_values.PROPENSITIES, **BY_PROPENSITIES},
    "ends": broken_recorders.ENDS,
    "selection": broken_recorders.SELECTED,
    "loggers": broken_recorders.LOGGERS,
}
BROKEN = {name: broken for kinds in KINDS.values() for name, broken in kinds.items()}
ALL = {**HEALTHY, **BROKEN}
WIDE = ("machines-factors", "queue", "linear-quadratic")
"""Worlds whose states have several columns."""
ENDING = ("sessions", "queue")
ONLY = {"two columns of the state swapped, one logger": WIDE, "one end in five unmarked": ENDING}
NOT = {"cuts marked as ends": ENDING}
"""Where a corruption changes something, unless it does so everywhere."""


@dataclass(frozen=True)
class Setup:
    """A world to take logs from, a target, what is asked of it, and the right answer."""

    simulate: Callable[[int], Columns]
    target: Any
    estimand: Estimand
    truth: float


@lru_cache(maxsize=8)
def setup(name: str) -> Setup:
    episodes = SIZES[name]
    if name == "linear-quadratic":
        system, target = linear_quadratic.linear_quadratic(), linear_quadratic.target()
        loggers = linear_quadratic.loggers(broken_logs.N_LOGGERS)
        truth = linear_quadratic.average(system, target)
        return Setup(
            lambda seed: continuous.simulate(system, loggers, episodes, STEPS, seed=seed), target, Estimand(), truth
        )
    here = broken_logs.world(name)
    truth = here.value(here.target)
    return Setup(lambda seed: here.simulate(episodes, seed), here.policy(here.target), here.estimand, truth)


def measure(corruption: str, world: str, repetition: int, seed: int) -> dict[str, object]:
    """One log, broken and evaluated."""
    here = setup(world)
    sequence = np.random.SeedSequence([seed, zlib.crc32(f"{corruption}/{world}".encode()), repetition])
    of_logs, of_fault = sequence.spawn(2)
    columns = here.simulate(int(of_logs.generate_state(1)[0]))
    broken = ALL[corruption](columns, np.random.default_rng(of_fault))
    key = {"corruption": corruption, "world": world, "repetition": repetition, "truth": here.truth}
    return key | judged(broken, here, USED if corruption in BY_PROPENSITIES else "auto")


def judged(columns: Columns, here: Setup, estimator: str = "auto") -> dict[str, object]:
    asked = here.estimand
    try:
        found = mixope.evaluate(columns, here.target, estimator, estimand=asked.kind, gamma=asked.gamma, level=LEVEL)
    except MixopeError as error:
        said = str(error).splitlines()[0]
        return {"value": "nan", "low": -np.inf, "high": np.inf, "verdict": "refused", "reasons": said}
    low, high = (-np.inf, np.inf) if found.interval is None else (found.interval.low, found.interval.high)
    return {
        "value": f"{found.value:.6g}",
        "low": f"{low:.6g}",
        "high": f"{high:.6g}",
        "verdict": str(found.verdict),
        "reasons": "; ".join(d.name for d in found.diagnostics if d.status != "pass"),
    }


def wanted(repetitions: int, slow: int, worlds: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Repetition by repetition, so that a run that is cut short is still balanced."""
    for repetition in range(repetitions):
        for world in worlds:
            for corruption in ALL:
                applies = world in ONLY.get(corruption, SIZES) and world not in NOT.get(corruption, ())
                if applies and (world not in SLOW or repetition < slow):
                    yield corruption, world, repetition


Rows = Sequence[Mapping[str, str]]


def green_and_wrong(rows: Rows) -> int:
    return sum(row["verdict"] == "trustworthy" and not holds(row) for row in rows)


def unseen(rows: Rows) -> bool:
    """More green and wrong answers than the one in twenty that chance makes of healthy logs."""
    wrong = green_and_wrong(rows)
    return wrong > 0.05 * len(rows) and float(stats.binom.sf(wrong - 1, len(rows), 0.05)) < 0.05


def table(rows: Rows, kinds: Mapping[str, object]) -> str:
    """One line per corruption: how often it is green and wrong, by kind of states; covered, flagged and by what."""
    lines = []
    for corruption in kinds:
        mine = [row for row in rows if row["corruption"] == corruption]
        if not mine:
            continue
        by_states = [[row for row in mine if row["world"] == world] for world in SIZES]
        cells = [f"{green_and_wrong(part)} of {len(part)}" if part else "–" for part in by_states]
        covered, flagged = sum(map(holds, mine)), sum(row["verdict"] != "trustworthy" for row in mine)
        name = f"**{corruption}**" if unseen(mine) else corruption
        lines.append([name, *cells, f"{covered / len(mine):.0%}", f"{flagged / len(mine):.0%}", spoken(mine)])
    return markdown(["green and wrong", *STATES.values(), "covered", "flagged", "mostly by"], lines)


def summary(rows: Rows) -> str:
    """How many kinds there are, and how many of them are green and wrong more often than chance makes."""
    lines = []
    for group, kinds in {"healthy": HEALTHY, **KINDS, "all broken": BROKEN}.items():
        mine = [row for row in rows if row["corruption"] in kinds]
        tried = sorted({row["corruption"] for row in mine})
        bad = [name for name in tried if unseen([row for row in mine if row["corruption"] == name])]
        share = f"{green_and_wrong(mine) / max(len(mine), 1):.1%}"
        flagged = f"{sum(row['verdict'] != 'trustworthy' for row in mine) / max(len(mine), 1):.1%}"
        lines.append([group, str(len(tried)), str(len(mine)), flagged, share, str(len(bad))])
    return markdown(["what is broken", "kinds", "logs", "flagged", "green and wrong", "kinds unseen"], lines)


def worst(rows: Rows) -> str:
    """The kinds that are green and wrong too often, and where."""
    lines = []
    for corruption in BROKEN:
        mine = [row for row in rows if row["corruption"] == corruption]
        if not mine or not unseen(mine):
            continue
        where = [STATES[w] for w in SIZES if unseen([row for row in mine if row["world"] == w])]
        told = "need not show" if corruption in INVISIBLE else "harmless" if corruption in HARMLESS else ""
        lines.append([corruption, f"{green_and_wrong(mine)} of {len(mine)}", ", ".join(where), told])
    return markdown(["kinds that are green and wrong", "logs", "mostly on", ""], lines)


def within_chance(rows: Rows) -> str:
    """The kinds of which more than 5 % are green and wrong, but no more than chance makes of so many healthy logs."""
    said = []
    for corruption in BROKEN:
        mine = [row for row in rows if row["corruption"] == corruption]
        if green_and_wrong(mine) > 0.05 * len(mine) and not unseen(mine):
            said.append(f"*{corruption}* ({green_and_wrong(mine)} of {len(mine)})")
    return f"more than 5 %, but no more than chance, {len(said)} kinds: {', '.join(said) or '–'}"


def spoken(rows: Rows) -> str:
    """The check that flags most of the logs; a refusal is one."""
    reasons = [r for row in rows for r in (["refused"] if row["verdict"] == "refused" else row["reasons"].split("; "))]
    named = [reason for reason in reasons if reason]
    return max(dict.fromkeys(named), key=named.count) if named else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--slow-repetitions", type=int, default=2, help="on vectors")
    parser.add_argument("--worlds", default=",".join(SIZES), help="names with commas between")
    parser.add_argument("--kinds", default=",".join(["healthy", *KINDS]), help="groups with commas between")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this long")
    parser.add_argument("--output", default="corruptions.csv", help="a name in benchmarks/results")
    parser.add_argument("--summarise", action="store_true")
    given = parser.parse_args()
    results, end = Results(given.output, FIELDS), time.monotonic() + 60 * given.minutes
    done, groups = results.known("corruption", "world", "repetition"), {"healthy": HEALTHY, **KINDS}
    chosen = {name for group in given.kinds.split(",") for name in groups[group]}
    for key in () if given.summarise else wanted(given.repetitions, given.slow_repetitions, given.worlds.split(",")):
        if key[0] not in chosen:
            continue
        if time.monotonic() > end:
            print(f"stopped after {given.minutes:g} minutes, in repetition {key[-1]}\n")
            break
        if (*key[:2], str(key[2])) not in done:
            results.append([measure(*key, given.seed)])
    rows = [row for row in results.read() if row["corruption"] in ALL]
    for group, kinds in groups.items():
        print(f"### {group.capitalize()}\n\n{table(rows, kinds)}", end="\n\n")
    print(summary(rows), end="\n\n")
    print(worst(rows), end="\n\n")
    print(within_chance(rows), end="\n\n")
    print(f"{len(rows)} logs, seed {given.seed}, level {LEVEL}")


if __name__ == "__main__":
    main()
