"""Claim: four ideas do not beat the default everywhere; what each of them is worth, on the same logs.

    python -m benchmarks.contenders.run [--worlds circle rare machines taxi other lq] [--summarise]

Run from the repository root, with OMP_NUM_THREADS=1. Contenders: a value fitted with stationary weights
(:mod:`benchmarks.contenders.weighted`), weights that are cut (``truncated``), OPERA's blend (``blend``), and
predictions of what changes (``anchored``); worlds and their exact truth are in ``worlds``. A line of
benchmarks/results/contenders.csv is one estimate; a rerun runs what is not there yet. Printed: mean squared error ÷
bound and its standard error, bias ÷ √bound, coverage of 95 % intervals, and the error of a contender over that of
``auto`` on the logs that both saw, with its jackknife error.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from benchmarks.contenders import worlds
from benchmarks.contenders.anchored import Anchored
from benchmarks.contenders.blend import blend, refits
from benchmarks.contenders.truncated import TruncatedWeights
from benchmarks.contenders.weighted import Networks, WeightedValue
from benchmarks.contenders.worlds import World
from benchmarks.resuming import Results, holds

from mixope.answers.answering import answer
from mixope.answers.choosing import answer_automatically
from mixope.base.estimand import Estimand
from mixope.estimators import Estimator, Solution, state_ratio
from mixope.estimators.asking import Asking
from mixope.estimators.doubly_robust import DoublyRobust
from mixope.requests.problem import Problem
from mixope.session.session import Session, look
from mixope.uncertainty import IntervalChoice

KEYS = ("world", "repetition", "estimator")
FIELDS = (*KEYS, "value", "low", "high", "truth", "bound", "unit", "seconds")
RESULTS = Results("contenders.csv", FIELDS)
AUTO = "auto"
GROUPS = ("circle", "rare", "machines", "taxi", "other", "lq")


@dataclass(frozen=True)
class StartsKnown:
    """``emp`` told that episodes begin anywhere with equal chance, which D2OPE knows too."""

    name: str = "emp, starts known"

    def solve(self, problem: Problem) -> Asking[Solution]:
        """With the law in place of the logged starts."""
        n = problem.transitions.n_states
        return state_ratio.emp().solve(replace(problem, start_law=np.full(n, 1.0 / n)))


@dataclass(frozen=True)
class Blend:
    """OPERA over some estimators."""

    parts: tuple[str, ...]
    replicates: int
    name: str = "opera"


Contender = str | Estimator | Blend
WEIGHTED = (WeightedValue(), WeightedValue("weighted lstdq", plug_in=True))
LINEAR = DoublyRobust("linear dr", value="linear")
ON_FACTORS = (AUTO, "emp", "lstdq", LINEAR, *WEIGHTED, TruncatedWeights(), Anchored())
ON_TAXI = tuple(each for each in ON_FACTORS if each not in ("lstdq", WEIGHTED[1]))
ON_VECTORS = (AUTO, "dr", "emp", "lstdq", *WEIGHTED, TruncatedWeights())
NETWORKS = (
    Networks("networks"),
    Networks("networks, corrected", corrected=True),
    Networks("weighted networks", seen_by_weight=True, corrected=True),
)


def plan() -> Iterator[tuple[str, World, Mapping[int, Sequence[Contender]]]]:
    """Group, world, and who is run on how many logs."""
    toy, factors, vectors = ("emp", "bch-pooled", "wis-step"), ("dr", "emp"), ("dr", "emp", "lstdq")
    for episodes in (50, 100, 200, 300):
        yield "circle", worlds.circle(episodes), {200: (AUTO, StartsKnown()), 100: (Blend(toy, 30),)}
    for episodes in (50, 200):
        yield "rare", worlds.rare(episodes), {100: (*ON_FACTORS, Blend(factors, 30))}
    for n in (6, 8):
        yield (
            "machines",
            worlds.machines(n, 50),
            {50: (AUTO, "emp", LINEAR, Anchored())},
        )
    for n_loggers, episodes in ((1, 50), (1, 200), (4, 50), (4, 200)):
        yield "taxi", worlds.taxi(n_loggers, episodes), {20: ON_TAXI, 6: (Blend(factors, 20),)}
    yield "other", worlds.taxi(4, 200, seed=1), {60: (AUTO, Anchored()), 20: ("emp", WEIGHTED[0])}
    for world in (worlds.lq(1), worlds.lq(4), worlds.lq(1, weak=True)):
        yield "lq", world, {20: (*ON_VECTORS, *NETWORKS), 6: (Blend(vectors, 15),)}


def evaluate(seen: Session, world: World, contender: Contender) -> tuple[str, float, float | str, float | str]:
    """Name, value and interval."""
    estimand = Estimand() if world.gamma is None else Estimand("discounted", gamma=world.gamma)
    if isinstance(contender, Blend):
        value, low, high, _ = blend(refits(seen, world.target, contender.parts, estimand), contender.replicates)
        return contender.name, value, low, high
    targets = {"target": world.target}
    if contender == AUTO:
        (found,) = answer_automatically(seen, targets, interval=IntervalChoice(), estimand=estimand, alone=True)
    else:
        (found,) = answer(seen, targets, [contender], estimand=estimand)
    name = AUTO if contender == AUTO else found.estimator
    return name, found.value, *((found.interval.low, found.interval.high) if found.interval else ("", ""))


def run(world: World, who: Mapping[int, Sequence[Contender]], known: set[tuple[str, ...]]) -> None:
    """All contenders on all logs of a world, log by log."""
    for repetition in range(max(who)):
        chosen = [each for logs, several in who.items() for each in several if repetition < logs]
        names = [each if isinstance(each, str) else each.name for each in chosen]
        missing = [e for e, n in zip(chosen, names, strict=True) if (world.name, str(repetition), n) not in known]
        if not missing:
            continue
        seen, rows = look(world.logs(repetition)), []
        for each in missing:
            begin = time.process_time()
            found = evaluate(seen, world, each)
            seconds = round(time.process_time() - begin, 3)
            name, *numbers = found
            written = [short(each) for each in (*numbers, world.truth, world.bound, world.unit)]
            rows.append(dict(zip(FIELDS, [world.name, repetition, name, *written, seconds], strict=True)))
        RESULTS.append(rows)


def short(number: float | str) -> str:
    """With seven digits."""
    return number if isinstance(number, str) else f"{number:.7g}"


def summary(group: str) -> str:
    """A table of each world of the group."""
    cells: dict[str, dict[str, dict[str, dict[str, str]]]] = defaultdict(lambda: defaultdict(dict))
    for row in RESULTS.read():
        if row["world"].startswith(group):
            cells[row["world"]][row["estimator"]][row["repetition"]] = row
    return "\n\n".join(f"{world}\n\n{table(found)}" for world, found in cells.items())


def table(found: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    """One line per estimator."""
    head = "| estimator | MSE ÷ bound | bias ÷ √bound | RMSE | coverage | MSE ÷ that of auto | logs | seconds |"
    lines = [head, "|---" * 8 + "|"]
    for name, rows in found.items():
        error = {k: relative_error(row) for k, row in rows.items()}
        square = np.array(list(error.values())) ** 2
        first = next(iter(rows.values()))
        size = float(np.sqrt(square.mean() * float(first["bound"]))) * float(first["unit"])
        held = [holds(row) for row in rows.values() if row["low"]]
        shared = [k for k in error if k in found[AUTO]]
        against = ratio(
            np.array([error[k] for k in shared]), np.array([relative_error(found[AUTO][k]) for k in shared])
        )
        cost = np.median([float(row["seconds"]) for row in rows.values()])
        lines.append(
            f"| {name} | {square.mean():.2f} ± {square.std(ddof=1) / np.sqrt(len(square)):.2f}"
            f" | {np.mean(list(error.values())):+.2f} | {size:.3g} | {f'{np.mean(held):.3f}' if held else '–'}"
            f" | {'' if name == AUTO else against} | {len(rows)} | {cost:.2f} |"
        )
    return "\n".join(lines)


def relative_error(row: Mapping[str, str]) -> float:
    """In units of the least standard error."""
    return (float(row["value"]) - float(row["truth"])) / float(row["bound"]) ** 0.5


def ratio(one: np.ndarray, other: np.ndarray) -> str:
    """Σ one² / Σ other² with its jackknife error."""
    a, b = one**2, other**2
    n, whole = len(a), a.sum() / b.sum()
    without = (a.sum() - a) / (b.sum() - b)
    return f"{whole:.2f} ± {np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=GROUPS, help="these only")
    parser.add_argument("--summarise", action="store_true", help="run nothing")
    given = parser.parse_args()
    chosen = given.worlds or GROUPS
    known = RESULTS.known(*KEYS)
    if not given.summarise:
        for group, world, who in plan():
            if group in chosen:
                run(world, who, known)
    print("\n\n".join(summary(group) for group in chosen))


if __name__ == "__main__":
    main()
