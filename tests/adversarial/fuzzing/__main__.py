"""``python -m tests.adversarial.fuzzing --inputs 1000000 --seed 0 --jobs 2``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from .cases import draw_case
from .corpus import FOLDER
from .judging import judge
from .running import PATIENCE, VARIABLE, fuzz


def main() -> int:
    """Run, or replay one input."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial.fuzzing", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="how many inputs to try")
    parser.add_argument("--seed", type=int, default=0, help="the inputs are those of this seed")
    parser.add_argument("--from", type=int, default=0, dest="begin", help="the number of the first input")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument("--only", type=int, help="show this input, and try it alone")
    parser.add_argument("--corpus", type=Path, default=FOLDER, help="the folder for inputs that failed")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which an input hangs")
    parser.add_argument("--watch", action="store_true", help="a file or socket that was not given is a failure")
    given = parser.parse_args()
    if given.watch:
        os.environ[VARIABLE] = "1"
    if given.only is not None:
        return _only(given.seed, given.only)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    run = fuzz(given.seed, given.begin, given.begin + given.inputs, given.jobs, given.corpus, given.patience)
    seconds = time.monotonic() - started
    print(f"seed {given.seed}: {run.done:,} inputs in {seconds:,.0f} s ({run.done / seconds:,.0f}/s)")
    print(", ".join(f"{kind} {n:,}" for kind, n in run.counts.items()))
    print(f"{sum(run.failures.values())} failed, at {len(run.failures)} places")
    for place, times in run.failures.most_common():
        print(f"  {times:6} {place}")
    return 1 if run.failures else 0


def _only(seed: int, number: int) -> int:
    case = draw_case(seed, number)
    print(case.kind, json.dumps(case.recipe, indent=1))
    failure = judge(case)
    print("nothing is wrong" if failure is None else f"{failure.words}\n{failure.trace}")
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
