"""Does the verdict warn of logs whose rows were written down wrongly?

    python benchmarks/corruptions.py                  # the published size; resumes where it stopped
    python benchmarks/corruptions.py --summarise      # the table again, from the results that are there
    python benchmarks/corruptions.py --seed 1 --repetitions 3 --slow-repetitions 0 --output corruptions-check.csv

Logs with a known truth are simulated, broken (:mod:`broken_rows`) and evaluated with the defaults. A *miss* is an
interval at 95 % that does not hold the truth; *flagged* is any verdict but ``trustworthy``, or a refusal. A corruption
that does no harm may go unseen; one that makes intervals miss may not.
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

import broken_logs
import mixope
from broken_rows import BROKEN, HARMLESS, HEALTHY, INVISIBLE, Columns
from mixope.environments import continuous, linear_quadratic
from mixope.errors import MixopeError
from mixope.estimand import Estimand
from resuming import Results, holds
from tables import markdown

LEVEL = 0.95
FIELDS = ("corruption", "world", "repetition", "truth", "value", "low", "high", "verdict", "reasons", "checks")
SIZES = {"gridworld-slip": 80, "machines-factors": 80, "sessions": 400, "queue": 200, "linear-quadratic": 40}
"""Episodes: ids and factors that go on, ids and factors that end, vectors."""
SLOW = ("linear-quadratic",)
STEPS = 50
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
    return key | judged(broken, here)


def judged(columns: Columns, here: Setup) -> dict[str, object]:
    asked = here.estimand
    try:
        found = mixope.evaluate(columns, here.target, estimand=asked.kind, gamma=asked.gamma, level=LEVEL)
    except MixopeError as error:
        said = str(error).splitlines()[0]
        return {"value": "nan", "low": -np.inf, "high": np.inf, "verdict": "refused", "reasons": said, "checks": ""}
    low, high = (-np.inf, np.inf) if found.interval is None else (found.interval.low, found.interval.high)
    return {
        "value": f"{found.value:.6g}",
        "low": f"{low:.6g}",
        "high": f"{high:.6g}",
        "verdict": str(found.verdict),
        "reasons": "; ".join(d.name for d in found.diagnostics if d.status != "pass"),
        "checks": "; ".join(f"{d.name}={d.value:.3g}" for d in found.diagnostics),
    }


def wanted(repetitions: int, slow: int, worlds: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Repetition by repetition, so that a run that is cut short is still balanced."""
    for repetition in range(repetitions):
        for world in worlds:
            for corruption in ALL:
                applies = world in ONLY.get(corruption, SIZES) and world not in NOT.get(corruption, ())
                if applies and (world not in SLOW or repetition < slow):
                    yield corruption, world, repetition


def table(rows: Sequence[Mapping[str, str]], kinds: Mapping[str, object]) -> str:
    """One line per corruption: on counted states and on vectors."""
    lines = []
    for corruption in kinds:
        mine = [row for row in rows if row["corruption"] == corruption]
        parts = [[r for r in mine if r["world"] not in SLOW], [r for r in mine if r["world"] in SLOW]]
        lines.append([corruption, *(cell for part in parts for cell in shares(part)), spoken(mine)])
    head = ["misses", "misses flagged", "flagged"]
    return markdown(["corruption", *head, *(f"vectors: {name}" for name in head), "mostly by"], lines)


def by_visibility() -> tuple[dict[str, object], ...]:
    """What logs can tell, what does no harm, and what they need not tell."""
    told = {name: broken for name, broken in BROKEN.items() if name not in (*HARMLESS, *INVISIBLE)}
    return told, {name: BROKEN[name] for name in HARMLESS}, {name: BROKEN[name] for name in INVISIBLE}


def totals(rows: Sequence[Mapping[str, str]]) -> str:
    """The misses that are flagged among logs that can tell, and the healthy logs that are flagged though they hold."""
    lines = []
    for name, mine in (("counted", lambda world: world not in SLOW), ("vectors", lambda world: world in SLOW)):
        here = [row for row in rows if mine(row["world"])]
        missed = [row for row in here if row["corruption"] in by_visibility()[0] and not holds(row)]
        held = [row for row in here if row["corruption"] in HEALTHY and holds(row)]
        flagged = (sum(row["verdict"] != "trustworthy" for row in part) for part in (missed, held))
        lines.append([name, *(share(n, len(part)) for n, part in zip(flagged, (missed, held), strict=True))])
    return markdown(["states", "misses flagged that logs can tell", "healthy logs flagged though they hold"], lines)


def shares(rows: Sequence[Mapping[str, str]]) -> tuple[str, str, str]:
    missed = [row for row in rows if not holds(row)]
    flagged = sum(row["verdict"] != "trustworthy" for row in rows)
    among = sum(row["verdict"] != "trustworthy" for row in missed)
    return share(len(missed), len(rows)), share(among, len(missed)), share(flagged, len(rows))


def spoken(rows: Sequence[Mapping[str, str]]) -> str:
    """The check that flags most of the logs; a refusal is one."""
    reasons = [r for row in rows for r in (["refused"] if row["verdict"] == "refused" else row["reasons"].split("; "))]
    named = [reason for reason in reasons if reason]
    return max(dict.fromkeys(named), key=named.count) if named else "–"


def share(part: int, whole: int) -> str:
    return f"{part / whole:.0%} ({part} of {whole})" if whole else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument("--slow-repetitions", type=int, default=2, help="on vectors")
    parser.add_argument("--worlds", default=",".join(SIZES), help="names with commas between")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=20.0, help="stop after this long")
    parser.add_argument("--output", default="corruptions.csv", help="a name in benchmarks/results")
    parser.add_argument("--summarise", action="store_true")
    given = parser.parse_args()
    results, end = Results(given.output, FIELDS), time.monotonic() + 60 * given.minutes
    done = results.known("corruption", "world", "repetition")
    for key in () if given.summarise else wanted(given.repetitions, given.slow_repetitions, given.worlds.split(",")):
        if time.monotonic() > end:
            print(f"stopped after {given.minutes:g} minutes, in repetition {key[-1]}\n")
            break
        if (*key[:2], str(key[2])) not in done:
            results.append([measure(*key, given.seed)])
    rows = results.read()
    for kinds in (HEALTHY, *by_visibility()):
        print(table(rows, kinds), end="\n\n")
    print(totals(rows), end="\n\n")
    print(f"{len(rows)} logs, seed {given.seed}, level {LEVEL}")


if __name__ == "__main__":
    main()
