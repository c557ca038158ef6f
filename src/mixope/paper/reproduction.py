"""From the name of an experiment to its files: run what is missing, sum up, write, draw.

Summaries are CSV files: full precision, one form for every number, the same bytes for the same rows. Drawing reads the
CSV and nothing else, so :func:`draw` can be called again on results of another day.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mixope.base.cells import bare, marked
from mixope.base.errors import UsageError
from mixope.base.files import replacing, write_whole
from mixope.base.processes import all_cores
from mixope.paper import experiment as experiments
from mixope.paper.experiment import Cell, Exhibit, Row, Size
from mixope.paper.runner import FinishedRepetition, Tick, cost, missing, run
from mixope.version import __version__

DIGITS = 7
"""Significant digits of a number in a summary."""
Announce = Callable[[int, int, float], Tick | None]
"""Told before the start: repetitions in all, those left, seconds they will take; gives back who is told of each."""


def reproduce(
    name: str,
    *,
    size: Size = "quick",
    output: Path = Path("reproduction"),
    jobs: int | None = None,
    seed: int = 0,
    announce: Announce | None = None,
) -> list[Path]:
    """Run one experiment and write its files; what is in ``output`` already is not run again."""
    experiment = experiments.get(name)
    settings = experiment.sizes[size]
    plan, log, jobs = experiment.plan(settings, seed), output / f"{name}.jsonl", jobs or all_cores()
    _make_folder(output)
    left = missing(plan, output)
    tick = announce(len(plan), len(left), cost(left, output) / jobs) if announce else None
    records = run(plan, log, jobs=jobs, tick=tick)
    rows = [row for record in records for row in record.whole_rows()]
    write_lines(experiment.summarise(settings, rows), output / f"{name}.csv")
    described = describe(experiment, settings, size, seed, records)
    write_whole(output / f"{name}.json", f"{json.dumps(described, indent=1)}\n".encode())
    return [output / f"{name}.csv", output / f"{name}.json", *draw(experiment, output)]


def _make_folder(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{output} cannot be used as a folder: {error.strerror}. Give another with --output"
        ) from error


def describe(
    experiment: Exhibit, settings: Any, size: Size, seed: int, records: Sequence[FinishedRepetition]
) -> dict[str, Any]:
    """Where the results come from; what is not the same on every machine stands here and not in the CSV."""
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "command": f"mixope reproduce {experiment.name}{' --full' if size == 'full' else ''} --seed {seed}",
        "size": size,
        "seed": seed,
        "settings": asdict(settings),
        "repetitions": len(records),
        "seconds": round(sum(record.seconds for record in records), 1),
        "version": __version__,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def commit() -> str | None:
    """The commit of the source this runs from, where it runs from its own checkout; a + marks changed source files.

    Installed, the package may lie in a checkout of somebody else, which is left alone.
    """
    package = Path(__file__).resolve().parents[1]
    root = package.parents[1]
    if package != root / "src" / "mixope" or not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", str(package))
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def draw(experiment: Exhibit, folder: Path) -> list[Path]:
    """Picture and page from NAME.csv and NAME.json."""
    from mixope.paper.page import write_page
    from mixope.paper.style import save

    rows: list[Row] = read_lines(folder / f"{experiment.name}.csv")
    described = json.loads((folder / f"{experiment.name}.json").read_text(encoding="utf-8"))
    written, picture = [], None
    if experiment.draw is not None:
        written = save(experiment.draw, rows, folder / experiment.name)
        picture = (folder / f"{experiment.name}.svg").read_text(encoding="utf-8")
    table = experiment.show(rows) if experiment.show is not None else rows
    return [*written, write_page(experiment, table, described, picture, folder / f"{experiment.name}.html")]


def write_lines(rows: Sequence[Row], path: Path) -> None:
    """A header with the names of all rows, in the order in which they first appear; then a line per row."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _written(value) for name, value in row.items()} for row in rows)


def read_lines(path: Path) -> list[Row]:
    """The rows of such a file: whole numbers, numbers, words; nothing is None."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _parsed(text) for name, text in line.items()} for line in csv.DictReader(file)]


def _written(value: Cell) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else marked(str(value))


def _parsed(text: str) -> Cell:
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return bare(text)
