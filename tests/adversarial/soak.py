"""Random questions on random logs of all kinds, in one process, for as long as is asked; and what must hold throughout.

    python -m tests.adversarial.soak --minutes 60 --seed 0

An answer's interval holds its value, and no green verdict stands on a check that did not pass; an error has words. No
file, no process and no open file descriptor is left, and memory is as large at the end as it was near the beginning.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import mixope
from mixope.base.errors import MixopeError, MixopeWarning
from mixope.checks import Verdict
from mixope.engines import EmbeddedEngine, MemoryEngine
from mixope.estimators import REGISTRY

from .random_logs import FORMATS, Plan, columns, shuffled, stored, target

CEILING = 1500.0
"""Megabytes that the process may hold."""
DRIFT = 60.0
"""Megabytes by which the last quarter of the run may hold more than the second."""
WARM = 150
"""Questions after which all libraries are loaded and all caches are filled; shorter runs say nothing about growth."""
HANDLES = 8
"""So many more file descriptors may be open at the end than near the beginning."""
REFITS = ("bca", "percentile")
INTERVALS = ("auto", "auto", "auto", "t", "normal", "likelihood", "blocks", *REFITS)
ESTIMANDS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"estimand": "discounted", "gamma": 0.9},
    {"estimand": "horizon", "horizon": 5},
    {"estimand": "episode"},
    {"estimand": "episode", "gamma": 0.95},
)


@dataclass
class Ran:
    """How a run went."""

    asked: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        asked = ", ".join(f"{count} {what}" for what, count in sorted(self.asked.items()))
        early, late = self.quarters(self.memory)
        held = f"{early:.0f} MB in the second quarter, {late:.0f} MB in the last, {max(self.memory):.0f} MB at most"
        open_, now = self.quarters(self.handles)
        said = f"memory: {held}; open descriptors: {open_:.0f}, then {now:.0f}"
        return "\n".join([f"{asked}; {len(self.faults)} faults", said, *self.faults])

    @staticmethod
    def quarters(values: list[Any]) -> tuple[float, float]:
        """The medians of the second quarter and of the last."""
        n = max(len(values), 4)
        return float(np.median(values[n // 4 : n // 2])), float(np.median(values[-n // 4 :]))


def question(draw: np.random.Generator, folder: Path) -> tuple[str, Any]:
    """One of the four commands on one log: what is asked, and the result."""
    plan = Plan.drawn(draw)
    rows = columns(plan)
    rows = shuffled(rows, plan.seed) if plan.next_states and draw.random() < 0.5 else rows
    form = str(draw.choice(FORMATS))
    shards = 1 if form == "memory" else int(draw.integers(1, 4))
    engine = (None, MemoryEngine(), EmbeddedEngine(threads=2, memory_limit="300MB"))[draw.integers(3)]
    what = str(draw.choice(["evaluate", "evaluate", "evaluate", "compare", "backtest", "inspect"]))
    options = options_of(what, draw)
    said = f"{what} {plan} {form} {shards} {getattr(engine, 'name', None)} {options}"
    return said, lambda: ask(what, plan, stored(rows, form, folder, shards), engine, options)


def options_of(what: str, draw: np.random.Generator) -> dict[str, Any]:
    """Estimators, estimand and interval, where there is a choice."""
    if what in ("inspect", "backtest"):
        return {}
    names = [str(name) for name in draw.choice([name for name in REGISTRY if not name.startswith("neural")], 2)]
    names = ["auto"] if draw.random() < 0.5 else names
    chosen = {"estimator": names[0]} if what == "evaluate" else {"estimators": names}
    interval = str(draw.choice(INTERVALS))
    refits = {"replicates": 20, "jobs": 1} if interval in REFITS else {}
    return {**chosen, **ESTIMANDS[draw.integers(len(ESTIMANDS))], "interval": interval, **refits}


def ask(what: str, plan: Plan, logs: mixope.Logs, engine: Any, options: dict[str, Any]) -> Any:
    """The answer to a question."""
    match what:
        case "evaluate":
            return mixope.evaluate(logs, target(plan), engine=engine, **options)
        case "compare":
            return mixope.compare(logs, {"a": target(plan), "b": target(plan, 8)}, engine=engine, **options)
        case "backtest":
            return mixope.backtest(logs, engine=engine)
        case _:
            return mixope.inspect(logs, target(plan), engine=engine)


def complaints(result: Any, refits: bool) -> Iterator[str]:
    """What no answer may be."""
    for estimate in getattr(result, "estimates", [result] if isinstance(result, mixope.Estimate) else []):
        interval, green = estimate.interval, estimate.verdict is Verdict.TRUSTWORTHY
        if interval is not None and not refits and not interval.low <= estimate.value <= interval.high:
            yield f"{estimate.estimator}: {estimate.value} lies outside {interval}"
        if green and any(check.status != "pass" for check in estimate.diagnostics):
            yield f"{estimate.estimator}: green, though a check did not pass"
        if green and (interval is None or not math.isfinite(interval.high - interval.low + estimate.value)):
            yield f"{estimate.estimator}: green without a finite interval"
    str(result)
    if "NaN" in result.to_json() or "Infinity" in result.to_json():
        yield "its JSON is none"


def run(minutes: float, seed: int, folder: Path, most: int | None = None) -> Ran:
    """Ask until the time is over, or so many times."""
    draw, ran, me = np.random.default_rng(seed), Ran(), psutil.Process()
    before = _children(me)
    until, number = time.monotonic() + 60 * minutes, 0
    temporary, logs = folder / "temporary", folder / "logs"
    temporary.mkdir()
    tempfile.tempdir = str(temporary)
    try:
        while time.monotonic() < until and (most is None or number < most) and len(ran.faults) < 20:
            _once(number, draw, logs, ran)
            ran.faults += _left(folder, number, me, before)
            ran.memory.append(me.memory_info().rss / 2**20)
            ran.handles.append(me.num_fds())
            number += 1
    finally:
        tempfile.tempdir = None
    ran.faults += _grown(ran)
    return ran


def _once(number: int, draw: np.random.Generator, logs: Path, ran: Ran) -> None:
    said, asked = question(draw, logs / str(number))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", MixopeWarning)
            result = asked()
            found = list(complaints(result, any(name in said for name in REFITS)))
        ran.faults += [f"{number}: {said}: {fault}" for fault in found]
        ran.asked[said.split()[0]] += 1
    except MixopeError as refused:
        ran.asked["refused"] += 1
        if not str(refused).strip():
            ran.faults.append(f"{number}: {said}: an error without words")
    except Exception:  # whichever it is, it is a fault: that is what is looked for
        ran.faults.append(f"{number}: {said}: {traceback.format_exc()}")
    for path in sorted((logs / str(number)).glob("*")):
        path.unlink()


def _children(me: psutil.Process) -> list[psutil.Process]:
    return [child for child in me.children() if "resource_tracker" not in " ".join(child.cmdline())]


def _left(folder: Path, number: int, me: psutil.Process, before: list[psutil.Process]) -> Iterator[str]:
    """Files and processes that outlived an answer; those that were there ``before`` the first belong to others."""
    files = [str(path) for path in folder.rglob("*") if path.is_file()]
    files += [name for name in os.listdir(folder / "temporary") if "joblib" not in name]
    if files:
        yield f"{number}: left {files[:3]}"
    children = [child for child in _children(me) if child not in before]
    if children:
        yield f"{number}: left processes {children}"


def _grown(ran: Ran) -> Iterator[str]:
    """Memory and open files that grow from answer to answer."""
    if max(ran.memory) > CEILING:
        yield f"{max(ran.memory):.0f} MB of memory, above the ceiling of {CEILING:.0f}"
    if len(ran.memory) < 2 * WARM:
        return
    early, late = ran.quarters(ran.memory[WARM:])
    if late - early > DRIFT:
        yield f"memory grew from {early:.0f} to {late:.0f} MB"
    early, late = ran.quarters(ran.handles)
    if late - early > HANDLES:
        yield f"open file descriptors grew from {early:.0f} to {late:.0f}"


def main() -> int:
    """Run from the command line; 1 where anything went wrong."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--minutes", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=0)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ran = run(options.minutes, options.seed, Path(folder))
    print(ran)
    return 1 if ran.faults else 0


if __name__ == "__main__":
    sys.exit(main())
