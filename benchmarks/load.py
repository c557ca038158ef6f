"""Load: what grows with what. One axis at a time, ten times larger at each step, in processor seconds and memory.

    python benchmarks/load.py                  # all axes to their full size: half a processor hour, 2 GB of disk
    python benchmarks/load.py --quick          # small sizes, two processor minutes
    python benchmarks/load.py --axes targets files-csv

Every measurement is one command in a process of its own, on a log that is written for it: a walk on a ring of states
that jumps somewhere else one time in ten, by four loggers unless the axis says otherwise. Measured are the processor
seconds and the peak of resident memory of that process, imports included. The column "÷" says how many times the
seconds of the size before: with sizes ten times larger, 10 is linear. Results are kept in results/load.csv, and a run
that was stopped goes on.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from resuming import Results
from tables import markdown

MEMORY = 6 << 30
"""The most that a command may take: beyond this it is stopped, and the table says so."""
RESULTS = Results(
    "load.csv", ("axis", "size", "limit", "seed", "date", "status", "processor", "wall", "megabytes", "output")
)


@dataclass(frozen=True)
class Log:
    """The walk that is written: so many rows in all, in episodes of so many steps."""

    rows: int = 100_000
    steps: int = 50
    states: int = 100
    actions: int = 2
    loggers: int = 4
    seed: int = 0

    def table(self, first: int = 0, rows: int | None = None, derived: bool = False) -> pa.Table:
        """Some whole episodes, from number ``first``; with ``derived`` only what cannot be derived."""
        n = (rows or self.rows) // self.steps
        random = np.random.default_rng([self.seed, first])
        logger = (first + np.arange(n)) % self.loggers
        lean = 0.3 + 0.4 * (logger + 0.5) / self.loggers
        high = random.random((n, self.steps)) < lean[:, None]
        action = random.integers(0, self.actions // 2, (n, self.steps)) + high * (self.actions // 2)
        move = np.where(random.random((n, self.steps)) < 0.8, np.where(high, 1, -1), 0)
        jump = random.random((n, self.steps)) < 0.1
        move = np.where(jump, random.integers(0, self.states, (n, self.steps)), move)
        after = (random.integers(0, self.states, (n, 1)) + np.cumsum(move, axis=1)) % self.states
        state = np.concatenate([(after[:, :1] - move[:, :1]) % self.states, after[:, :-1]], axis=1)
        reward = (state / self.states + 0.2 * high + random.random((n, self.steps))).round(3)
        number = np.repeat(first + np.arange(n), self.steps)
        names = pa.array([f"logger{j:04}" for j in range(self.loggers)])
        columns = {
            "policy_id": names.take(pa.array(logger.repeat(self.steps))),
            "episode_id": number,
            "observation": state.ravel(),
            "action": action.ravel(),
            "reward": reward.ravel(),
        }
        if not derived:
            columns["step"] = np.tile(np.arange(self.steps), n)
            columns["next_observation"] = after.ravel()
            columns["terminated"] = np.zeros(n * self.steps, dtype=bool)
        return pa.table(columns)

    def pieces(self, size: int = 1_000_000, derived: bool = False) -> Iterable[pa.Table]:
        """All rows, about so many at a time."""
        each = max(size // self.steps, 1)
        for first in range(0, self.rows // self.steps, each):
            yield self.table(first, min(each * self.steps, self.rows - first * self.steps), derived)

    def write(self, folder: Path, derived: bool = False) -> str:
        """One Parquet file."""
        path, writer = folder / "log.parquet", None
        for table in self.pieces(derived=derived):
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
        return str(path)

    def write_files(self, folder: Path, files: int, ending: str) -> str:
        """So many files of equal size."""
        write = {"csv": pc.write_csv, "parquet": pq.write_table}[ending]
        (folder / "logs").mkdir()
        for number, table in enumerate(self.pieces(self.rows // files)):
            write(table, folder / "logs" / f"part-{number:05}.{ending}")
        return str(folder / "logs")

    def write_target(self, folder: Path, lean: float = 0.6, name: str = "target") -> str:
        """A policy that goes up with some probability, as an array."""
        each = np.array([1 - lean, lean]) / (self.actions // 2)
        np.save(folder / f"{name}.npy", np.tile(each.repeat(self.actions // 2), (self.states, 1)))
        return str(folder / f"{name}.npy")


Command = Callable[[Path, Log], list[str]]


def evaluate(folder: Path, log: Log, derived: bool = False) -> list[str]:
    ends = ["--ends", "truncated"] if derived else []
    return ["evaluate", log.write(folder, derived), "--target", log.write_target(folder), *ends]


def evaluate_files(folder: Path, log: Log, files: int, ending: str) -> list[str]:
    return ["evaluate", log.write_files(folder, files, ending), "--target", log.write_target(folder)]


def backtest(folder: Path, log: Log) -> list[str]:
    return ["backtest", log.write(folder)]


def compare(folder: Path, log: Log, targets: int) -> list[str]:
    asked = [log.write_target(folder, 0.2 + 0.6 * (k + 1) / targets, f"target{k:04}") for k in range(targets)]
    named = [word for k, path in enumerate(asked) for word in ("--target", f"t{k:04}={path}")]
    return ["compare", log.write(folder), *named, "--html", str(folder / "page.html")]


@dataclass(frozen=True)
class Axis:
    """What grows, to which sizes, and how a size becomes a command."""

    sizes: Sequence[int]
    command: Callable[[Path, Log, int], list[str]]
    limit: str | None = None
    """Of memory, as the option says it."""


AXES: dict[str, Axis] = {
    "rows": Axis((10**5, 10**6, 10**7), lambda f, log, n: evaluate(f, replace(log, rows=n))),
    "rows-derived": Axis((10**5, 10**6, 10**7), lambda f, log, n: evaluate(f, replace(log, rows=n), derived=True)),
    "rows-derived-1GB": Axis(
        (10**5, 10**6, 10**7), lambda f, log, n: evaluate(f, replace(log, rows=n), derived=True), limit="1GB"
    ),
    "steps": Axis((10**5, 10**6, 10**7), lambda f, log, n: evaluate(f, replace(log, rows=n, steps=n, loggers=1))),
    "states": Axis(
        (2 * 10**4, 2 * 10**5, 10**6, 2 * 10**6), lambda f, log, n: evaluate(f, replace(log, rows=5 * n, states=n))
    ),
    "actions": Axis(
        (10**3, 10**4, 10**5), lambda f, log, n: evaluate(f, replace(log, rows=10**6, states=10, actions=n))
    ),
    "loggers": Axis((10, 100, 1000), lambda f, log, n: evaluate(f, replace(log, rows=10**6, steps=20, loggers=n))),
    "loggers-backtest": Axis(
        (10, 100, 1000), lambda f, log, n: backtest(f, replace(log, rows=10**6, steps=20, loggers=n))
    ),
    "episodes": Axis((10**4, 10**5, 10**6), lambda f, log, n: evaluate(f, replace(log, rows=10 * n, steps=10))),
    "files-csv": Axis((100, 1000, 10**4), lambda f, log, n: evaluate_files(f, replace(log, rows=100 * n), n, "csv")),
    "files-parquet": Axis(
        (100, 1000, 10**4), lambda f, log, n: evaluate_files(f, replace(log, rows=100 * n), n, "parquet")
    ),
    "targets": Axis((10, 100, 1000), compare),
}


def prepare(name: str, folder: str, size: int, seed: int) -> list[str]:
    """Write what a command reads; gives back its words."""
    axis = AXES[name]
    return [*axis.command(Path(folder), Log(seed=seed), size), *(["--memory-limit", axis.limit] if axis.limit else [])]


def measure(name: str, size: int, seed: int) -> dict[str, object]:
    """One command: its processor and wall seconds, its peak of memory, the bytes that it wrote."""
    axis = AXES[name]
    with tempfile.TemporaryDirectory() as folder:
        # Elsewhere: the peak of a process begins with what the one that started it holds.
        with ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:
            words = elsewhere.submit(prepare, name, folder, size, seed).result()
        began = time.perf_counter()
        with open(Path(folder) / "output", "wb") as output:
            child = subprocess.Popen([sys.executable, "-m", "mixope", *words], stdout=output, stderr=output)
            resource.prlimit(child.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
            _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        page = Path(folder) / "page.html"
        said = (Path(folder) / "output").read_text(errors="replace")
        if status:
            print(said[-2000:], file=sys.stderr)
        written = page.stat().st_size if page.exists() else len(said)
    return {
        "axis": name,
        "size": size,
        "limit": axis.limit or "",
        "seed": seed,
        "date": time.strftime("%Y-%m-%d"),
        "status": os.waitstatus_to_exitcode(status),
        "processor": round(used.ru_utime + used.ru_stime, 2),
        "wall": round(wall, 2),
        "megabytes": used.ru_maxrss // 1024,
        "output": written,
    }


def show(rows: Sequence[dict[str, str]]) -> str:
    """The table of the page, axis by axis; the last measurement of a size counts."""
    lines = []
    for name in AXES:
        mine = {int(row["size"]): row for row in rows if row["axis"] == name}
        before = None
        for size in sorted(mine):
            row = mine[size]
            seconds = float(row["processor"])
            times = "" if before is None else f"{seconds / before:.1f}"
            failed = "" if row["status"] == "0" else f" (ended with {row['status']})"
            lines.append([name, f"{size:,}", f"{seconds:.1f}{failed}", times, row["megabytes"], row["output"]])
            before = seconds
    return markdown(["axis", "size", "processor s", "÷", "peak MB", "bytes shown"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axes", nargs="+", default=list(AXES), choices=list(AXES))
    parser.add_argument("--quick", action="store_true", help="the two smaller sizes of each axis")
    parser.add_argument("--again", action="store_true", help="measure what is there already once more")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    known = set() if given.again else RESULTS.known("axis", "size", "seed")
    for name in given.axes:
        for size in AXES[name].sizes[: 2 if given.quick else None]:
            if (name, str(size), str(given.seed)) not in known:
                row = measure(name, size, given.seed)
                print(f"{name} {size:,}: {row['processor']} s, {row['megabytes']} MB", flush=True)
                RESULTS.append([row])
    print(show([row for row in RESULTS.read() if row["seed"] == str(given.seed)]))


if __name__ == "__main__":
    main()
