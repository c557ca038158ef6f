"""Commands that are killed at random moments: no process goes on, no piece of a file is left, no output is half a file.

    python -m tests.adversarial.kills --kills 500 --seed 0

Every command runs once to its end, which says how long it takes and what it writes. Then it is started again and again,
and stopped at a moment drawn over its whole time, or near its end, where files are written: by SIGKILL, by SIGTERM to
the command or to all its processes, by SIGINT to all of them as Ctrl-C in a terminal sends it, or by two of those.
What SIGKILL leaves behind is for the next run to remove: every command runs to its end once more at the last. Those
that keep a checkpoint are taken up again after some of the kills, and must print the same bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq

from mixope.base.files import LOCK

MARK = "MIXOPE_KILLED_RUN"
"""The variable by which the processes of a run are found, wherever they went."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
WAYS = ("SIGKILL", "SIGTERM", "SIGTERM to all", "SIGINT to all", "SIGINT to all", "SIGINT to all, twice")
"""How a run is stopped: SIGKILL and SIGTERM reach the command alone, unless said otherwise."""
EARLY = 0.6
"""An interruption before this share of a command's time cannot have come too late for it."""
RESUMED = 0.25
"""After so many of the kills a command with a checkpoint is taken up again."""
BOUND = 20.0
"""Seconds within which a command must end after an interruption."""
LATE = 0.4
"""So many of the moments are drawn from the last fifth of a command's time."""
PATIENCE = 20.0
"""Seconds in which the processes of a killed run must be gone."""
SHOWN = 1500
"""Characters of what was said that are shown from its beginning, and from its end."""
OLD = "an older file"
LOGS = ("logs.parquet", "--target", "target.csv")
KEPT = ("--checkpoint", "kept", "--json")
TEST = ("test.parquet", "--arm", "variant", "--control", "A", "--unit", "user", "--time", "day", "--metric", "revenue")
SHARED = ("--engine", "processes", "--threads", "2")
DASK = ("--engine", "dask", "--threads", "1")
COMMANDS: dict[str, tuple[str, ...]] = {
    "evaluate": ("evaluate", *LOGS, "--html", "evaluate.html"),
    "evaluate vectors": ("evaluate", "vectors.parquet", "--target", "policies:target", "--html", "vectors.html"),
    "bca": ("evaluate", *LOGS, "--interval", "bca", "--replicates", "40", "--jobs", "2", "--html", "bca.html"),
    "compare": ("compare", *LOGS, "--target", "other.csv", "--html", "compare.html"),
    "backtest": ("backtest", "logs.parquet", "--html", "backtest.html"),
    "inspect": ("inspect", "logs.csv", "--engine", "embedded", "--json"),
    "simulate": ("simulate", "walk", "--loggers", "2", "--episodes", "40", "--horizon", "20", "-o", "new", "--force"),
    "demo": ("demo", "--episodes", "8", "--horizon", "10", "-o", "demo"),
    "reproduce": ("reproduce", "figure1", "--jobs", "2", "-o", "figures"),
    "experiment": ("experiment", *TEST, "--html", "experiment.html"),
    "evaluate, kept": ("evaluate", *LOGS, "--engine", "embedded", *KEPT),
    "compare, kept": ("compare", *LOGS, "--target", "other.csv", "--engine", "embedded", *KEPT),
    "backtest, kept": ("backtest", "logs.parquet", "--engine", "embedded", *KEPT),
    "evaluate, processes": ("evaluate", *LOGS, *SHARED, *KEPT),
    "compare, processes": ("compare", *LOGS, "--target", "other.csv", *SHARED, *KEPT),
    "backtest, processes": ("backtest", "logs.parquet", *SHARED, *KEPT),
    "experiment, processes": ("experiment", *TEST, *SHARED, "--html", "experiment.html"),
}
if importlib.util.find_spec("distributed"):
    COMMANDS |= {
        "evaluate, dask": ("evaluate", *LOGS, *DASK, *KEPT),
        "compare, dask": ("compare", *LOGS, "--target", "other.csv", *DASK, *KEPT),
        "backtest, dask": ("backtest", "logs.parquet", *DASK, *KEPT),
        "experiment, dask": ("experiment", *TEST, *DASK, "--html", "experiment.html"),
    }
POLICIES = """
import numpy as np
def target(observations):
    return np.full((len(observations), 2), 0.5)
"""


@dataclass
class Found:
    """What went wrong, and how the runs ended."""

    kills: int = 0
    resumed: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, faults: Iterable[str]) -> None:
        """Keep what went wrong, and tell it at once."""
        for fault in faults:
            self.faults.append(fault)
            print(fault, file=sys.stderr, flush=True)

    def __str__(self) -> str:
        ends = ", ".join(f"{how} {count}" for how, count in sorted(self.ends.items()))
        said = f"{self.kills} kills ({ends}), {self.resumed} taken up again, {len(self.faults)} faults"
        return "\n".join([said, *self.faults])


def prepare(folder: Path) -> None:
    """Small logs of ids and of vectors, two policies."""
    folder.mkdir()
    _to_the_end(("simulate", "walk", "--loggers", "2", "--episodes", "60", "--horizon", "20", "-o", "made"), folder)
    for name, to in (("logs.parquet", "logs.parquet"), ("target.csv", "target.csv"), ("target.csv", "other.csv")):
        (folder / to).write_bytes((folder / "made" / name).read_bytes())
    table = pq.read_table(folder / "logs.parquet")
    table.to_pandas().to_csv(folder / "logs.csv", index=False)
    draw = np.random.default_rng(0)
    for name in ("observation", "next_observation"):
        position = table.column_names.index(name)
        column = table.column(name).to_numpy() + 0.1 * draw.normal(size=len(table))
        table = table.set_column(position, name, [np.where(np.isnan(column), 0.0, column)])
    pq.write_table(table, folder / "vectors.parquet")
    (folder / "policies.py").write_text(POLICIES)
    _to_the_end(("simulate", "engagement", "--users", "120", "--days", "6", "-o", "test"), folder)
    (folder / "test.parquet").write_bytes((folder / "test" / "test.parquet").read_bytes())


def _environment(folder: Path, mark: str) -> dict[str, str]:
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "JOBLIB_TEMP_FOLDER": str(temporary)}
    return {**os.environ, **quiet, "TMPDIR": str(temporary), "PYTHONFAULTHANDLER": "1", MARK: mark}


def _start(words: Sequence[str], folder: Path, mark: str) -> subprocess.Popen[bytes]:
    with (folder / "said").open("wb") as said, (folder / "printed").open("wb") as printed:
        return subprocess.Popen(
            [sys.executable, "-m", "mixope", *words],
            cwd=folder,
            env=_environment(folder, mark),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
            start_new_session=True,
            preexec_fn=_as_usual,  # noqa: PLW1509 (this process has no threads)
        )


def _stop(child: subprocess.Popen[bytes], way: str) -> signal.Signals:
    """Send what the way says; the signal is given back."""
    how = signal.Signals[way.split(maxsplit=1)[0]]
    with contextlib.suppress(ProcessLookupError):
        if "to all" not in way:
            child.send_signal(how)
            return how
        os.killpg(child.pid, how)
        if "twice" in way:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=1.0)
            os.killpg(child.pid, how)
    return how


def _is_answer(name: str) -> bool:
    """Whether it is an answer that is kept as a checkpoint: how many there are depends on the moment."""
    return name == "kept" or (name.startswith("kept/") and ".part" not in name)


def _without_times(printed: bytes) -> Any:
    """The result without what is about the run rather than about the logs."""
    return {name: value for name, value in json.loads(printed).items() if name not in {"provenance", "timing"}}


def _as_usual() -> None:
    """Signals as a shell hands them to a command in the foreground, also where this program runs in the background."""
    for number in SIGNALS[1:]:
        signal.signal(number, signal.SIG_DFL)


def _to_the_end(words: Sequence[str], folder: Path) -> float:
    began = time.monotonic()
    code = _start(words, folder, "whole").wait(timeout=300)
    assert code == 0, f"{words}: exit {code}: {(folder / 'said').read_text()}"
    return time.monotonic() - began


def files_of(folder: Path) -> set[str]:
    """All files and folders below, but for what the run of this program itself needs."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} - {"said", "printed", "temporary"}


def processes_of(mark: str) -> Iterator[psutil.Process]:
    """Those that carry the mark of a run."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def shared_memory_of(process: int) -> list[str]:
    """Semaphores and arrays that worker processes shared."""
    here = Path("/dev/shm")
    return [path.name for path in here.iterdir() if f"-{process}-" in path.name] if here.is_dir() else []


def is_whole(path: Path) -> bool:
    """Whether a file is all that it was to be, by its ending."""
    content = path.read_bytes()
    match path.suffix:
        case ".html":
            return content.rstrip().endswith(b"</html>")
        case ".svg":
            return content.rstrip().endswith(b"</svg>")
        case ".png":
            return content.endswith(b"IEND\xaeB`\x82")
        case ".json":
            return isinstance(json.loads(content), dict)
        case ".parquet":
            return pq.read_table(path).num_rows > 0
        case ".csv":
            return content.endswith(b"\n")
        case _:
            return True  # lines that are appended: the reader leaves out one that was cut short


class Trial:
    """One command in a folder of its own."""

    def __init__(self, name: str, folder: Path, inputs: Path) -> None:
        self.name, self.words, self.folder = name, COMMANDS[name], folder
        shutil.copytree(inputs, folder)
        self.inputs = files_of(folder)
        self.seconds = _to_the_end(self.words, folder)
        self.outputs = files_of(folder) - self.inputs
        self.printed = (folder / "printed").read_bytes()
        self.left: set[str] = set()  # by runs that were killed at once, until another run removes it
        self.keeps = "kept" in self.words
        self._forget()

    def kill(self, way: str, moment: float, found: Found) -> None:
        """Start the command, stop it in this way at this share of its time, and look at what is left."""
        self._put_old_files()
        mark = uuid.uuid4().hex
        child = _start(self.words, self.folder, mark)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=moment * self.seconds)
        early = child.poll() is None
        how = _stop(child, way)
        try:
            code = child.wait(timeout=BOUND + 2 * self.seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGABRT)  # Python shows where all its threads are
            code = child.wait()
            places = (self.folder / "said").read_text(errors="replace")[-3000:]
            found.add([f"{self.name}: goes on after {way} at {moment:.2f}: {places}"])
        found.kills += 1
        found.ends[f"{way} → {code}" if early else "was over already"] += 1
        faults = [*self._processes(mark, child.pid), *self._files(how), *self._said(how, code)]
        if code == 0 and early and moment < EARLY and not self.keeps:  # a run with answers at hand is soon over
            faults.append("the interruption is lost")
        found.add(f"{self.name}, {way} at {moment:.2f}: {fault}" for fault in faults)

    def resume(self, found: Found) -> None:
        """Where a checkpoint is kept, the next run prints what a run without interruption printed."""
        if self.keeps:
            found.resumed += 1
            _to_the_end(self.words, self.folder)
            if _without_times((self.folder / "printed").read_bytes()) != _without_times(self.printed):
                found.add([f"{self.name}: resumed, it prints something else"])
            self._forget()

    def _forget(self) -> None:
        if self.keeps:
            shutil.rmtree(self.folder / "kept", ignore_errors=True)

    def finish(self, found: Found) -> None:
        """The next run to the end: it goes well, writes everything, and leaves nothing else."""
        self.resume(found)
        _to_the_end(self.words, self.folder)
        left = files_of(self.folder)
        left = {name for name in left if not _is_answer(name)}
        wrong = sorted(left ^ {name for name in self.inputs | self.outputs if not _is_answer(name)}) + sorted(
            os.listdir(self.folder / "temporary")
        )
        broken = [name for name in self.outputs if not self._good(name)]
        if wrong or broken:
            found.faults.append(
                f"{self.name}, the run after all kills: {wrong} too many or too few, {broken} not whole"
            )

    def _put_old_files(self) -> None:
        for name in self.outputs:
            if name.endswith(".html") and "/" not in name:
                (self.folder / name).write_text(OLD)

    def _processes(self, mark: str, pid: int) -> Iterator[str]:
        until = time.monotonic() + PATIENCE
        while (alive := list(processes_of(mark))) and time.monotonic() < until:
            time.sleep(0.05)
        for process in alive:
            yield f"process {process.pid} goes on: {' '.join(process.cmdline())[:200]}"
        if left := shared_memory_of(pid):
            yield f"shared memory is left: {left}"

    def _files(self, how: signal.Signals) -> Iterator[str]:
        strays = {name for name in files_of(self.folder) - self.inputs - self.outputs if not _is_answer(name)}
        strays |= {f"temporary/{name}" for name in os.listdir(self.folder / "temporary")}
        if how is signal.SIGKILL:
            self.left |= {name for name in strays if ".part" in name or Path(name).name == LOCK}
        if strays := strays - self.left:
            yield f"left {sorted(strays)}"
        for name in sorted(name for name in self.outputs if not _is_answer(name)):
            if (self.folder / name).exists() and not self._good(name):
                yield f"{name} is neither old nor whole"

    def _good(self, name: str) -> bool:
        path = self.folder / name
        if path.is_dir():
            return True
        try:
            return path.is_file() and (path.read_bytes() == OLD.encode() or is_whole(path))
        except (ValueError, OSError):
            return False

    def _said(self, how: signal.Signals, code: int) -> Iterator[str]:
        said = (self.folder / "said").read_text(errors="replace")
        if code not in (0, 130, -how):
            yield f"exit {code}: {_both_ends(said)}"
        if "Traceback" in said and not (code == -how and "in main" not in said):  # Python's, before we begin
            yield f"a traceback: {_both_ends(said)}"


def _both_ends(said: str) -> str:
    """How a text begins and how it ends: of a process that aborts, the reason comes first."""
    return said if len(said) <= 2 * SHOWN else f"{said[:SHOWN]} … {said[-SHOWN:]}"


def run(kills: int, seed: int, folder: Path, names: Sequence[str] = tuple(COMMANDS)) -> Found:
    """So many kills, dealt over the commands."""
    draw, found = np.random.default_rng(seed), Found()
    prepare(folder / "inputs")
    for number, name in enumerate(names):
        trial = Trial(name, folder / name.replace(" ", "-"), folder / "inputs")
        for _ in range(kills // len(names) + (number < kills % len(names))):
            moment = draw.uniform(0.8, 1.05) if draw.random() < LATE else draw.uniform(0.0, 1.0)
            trial.kill(WAYS[draw.integers(len(WAYS))], float(moment), found)
            if draw.random() < RESUMED:
                trial.resume(found)
        trial.finish(found)
        said = f"{name}: {trial.seconds:.1f} s, {found.kills} kills, {len(found.faults)} faults"
        print(said, file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Run from the command line; 1 where anything went wrong."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--kills", type=int, default=200)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--commands", nargs="+", default=list(COMMANDS), choices=list(COMMANDS))
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(options.kills, options.seed, Path(folder), options.commands)
    print(found)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
