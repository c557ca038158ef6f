"""Claim: `auto` is right on worlds that nobody of the project wrote, or says that it may not be.

    python -m benchmarks.worlds.write                  # the logs: needs the extra `bench`
    python -m benchmarks.worlds.run                    # every estimator on every log
    python -m benchmarks.worlds.run --cells hopper half-cheetah --ranking --sizes 50
    python -m benchmarks.worlds.tables                 # what is in results/worlds.csv

Run from the repository root, with OMP_NUM_THREADS=1. Each evaluation is a process of its own: measured are the
processor seconds of it and of those that it starts, and the peak of memory of the largest, imports included. One that
takes longer than ``--limit`` processor seconds is stopped, and the table says so. A rerun runs what is not there yet.

The relative error is |value − truth| ÷ |what the loggers earn − truth|, both by simulation: 1 is no better than the
mean of the logs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.resuming import Results
from benchmarks.worlds.cells import CELLS, RANKED, Cell
from benchmarks.worlds.write import choices, path, read

ESTIMATORS = ("auto", "dr", "lstdq", "emp", "fqe")
KEYS = ("cell", "episodes", "seed", "estimator", "target")
FIELDS = (*KEYS, "value", "low", "high", "truth", "relative", "verdict", "chosen", "seconds", "megabytes", "said")
RESULTS = Results("worlds.csv", FIELDS)
LIMIT = 600


def relative(cell: Cell, value: float, truth: float) -> float:
    """The error in units of the distance between the cell's truth and what its loggers earn."""
    return abs(value - truth) / abs(cell.logged_value - cell.truths(cell.stored["targets"][0])[0])


def line(cell: Cell, episodes: int, seed: int, estimator: str, target: int, value: float | None) -> dict[str, object]:
    """The columns that every estimator fills, ours and those of others."""
    truth = cell.truths(cell.stored["targets"][target])[0]
    error = "" if value is None else round(relative(cell, value, truth), 4)
    keys = dict(zip(KEYS, (cell.name, episodes, seed, estimator, target), strict=True))
    return (
        dict.fromkeys(FIELDS, "") | keys | {"value": "" if value is None else value, "truth": truth, "relative": error}
    )


def evaluate(cell: Cell, file: Path, estimator: str, targets: list[int]) -> list[dict[str, object]]:
    """Some targets of a cell on one log, in this process."""
    import mixope

    _, episodes, seed = file.stem.rsplit("-", 2)
    columns, policies = read(file), cell.targets()
    logs = mixope.Logs.from_arrays(**columns)
    asked = {str(k): policies[k].mixope() for k in targets}
    found = mixope.compare(logs, asked, [estimator], **cell.question).estimates
    mine = [one for one in found if estimator in ("auto", one.estimator)]
    lines = []
    for k in targets:
        first = next(one for one in mine if one.target == str(k))  # `auto` shows what it did not choose after it
        interval = first.interval
        measured = {
            "low": interval.low if interval else "",
            "high": interval.high if interval else "",
            "verdict": str(first.verdict),
            "chosen": first.estimator,
        }
        lines.append(line(cell, int(episodes), int(seed), estimator, k, first.value) | measured)
    return lines


def elsewhere(cell: Cell, file: Path, estimator: str, targets: list[int], limit: int) -> list[dict[str, object]]:
    """The same in a process of its own; what could not be answered says why."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.worlds.run",
        "--one",
        cell.name,
        str(file),
        estimator,
        *map(str, targets),
    ]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said, text=True) as child,
    ):
        assert child.stdout is not None
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (limit, limit + 5))
        shown = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        complaint = said.read().strip()
    if child.returncode == 0:
        seconds = (used.ru_utime + used.ru_stime) / len(targets)
        cost = {"seconds": round(seconds, 2), "megabytes": used.ru_maxrss // 1024}
        return [line | cost for line in json.loads(shown.splitlines()[-1])]
    if child.returncode == -signal.SIGXCPU:
        why = f"stopped after {limit} processor seconds"
    else:
        why = complaint.splitlines()[-1] if complaint else f"ended with {child.returncode}"
    _, episodes, seed = file.stem.rsplit("-", 2)
    return [line(cell, int(episodes), int(seed), estimator, k, None) | {"said": why} for k in targets]


def one(words: list[str]) -> list[dict[str, object]]:
    """What a process of its own is asked."""
    name, file, estimator, *targets = words
    return evaluate(CELLS[name], Path(file), estimator, [int(k) for k in targets])


def jobs(given: argparse.Namespace) -> list[tuple[Cell, int, int, str, list[int]]]:
    """What is asked for and not there yet, the smaller logs first."""
    known = RESULTS.known(*KEYS)
    found = []
    for size in given.sizes:
        for seed in given.seeds:
            for name in given.cells:
                asked = range(1, len(CELLS[name].targets())) if given.ranking and name in RANKED else []
                for estimator in given.estimators:
                    missing = [k for k in (0, *asked) if (name, str(size), str(seed), estimator, str(k)) not in known]
                    found += [(CELLS[name], size, seed, estimator, [0])] if 0 in missing else []
                    others = [k for k in missing if k]
                    found += [(CELLS[name], size, seed, estimator, others)] if others else []
    return found


def check(estimator: str) -> None:
    """Refuse a name that nobody has: a misspelt one would fill the results with lines that say so."""
    from mixope.estimators.registry import make

    if estimator != "auto":
        make(estimator)


def options(words: list[str] | None = None) -> argparse.Namespace:
    """What is asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices(parser)
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS))
    parser.add_argument("--ranking", action="store_true", help="also the eight targets of hopper and half-cheetah")
    parser.add_argument("--limit", type=int, default=LIMIT, help="processor seconds for one evaluation")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main() -> None:
    given = options()
    if given.one:
        print(json.dumps(one(given.one)))
        return
    for name in given.estimators:
        check(name)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for cell, size, seed, estimator, targets in jobs(given):
        file = path(given.folder, cell.name, size, seed)
        read(file)
        lines = elsewhere(cell, file, estimator, targets, given.limit)
        RESULTS.append(lines)
        for row in lines:
            answer = row["said"] or f"{row['relative']} ({row['verdict']})"
            print(f"{cell.name} {size} {seed} {estimator} {row['target']}: {answer}", flush=True)


if __name__ == "__main__":
    main()
