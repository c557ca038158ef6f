"""Engines of several workers against the embedded one: processor time, memory of the driver, and what a second worker
is worth.

    python benchmarks/engines.py                    # 10⁸ rows on two workers, about 1 GB of temporary Parquet files
    python benchmarks/engines.py --rows 1e7 --engines embedded,processes,dask

Taxi logs of four loggers as in ``scale.py``. Each engine runs in a process of its own, which starts its workers, lets
them answer a small question first (imports, the start of a Java machine), and then evaluates the same target: one scan
for the transitions, one for the scores by episode. Measured are wall seconds, processor seconds of the driver and of
all processes that it started, the driver's peak of resident memory, and a digest of the whole answer, which must be the
same for all engines of several workers. With ``--scaling`` each of them runs on one worker as well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

import mixope
import scale
from mixope import worlds
from mixope.engines import ENGINES, EmbeddedEngine, Engine, make
from mixope.engines.workers import WorkersEngine
from tables import markdown

WORKERS = [name for name, made in ENGINES.items() if isinstance(made, type) and issubclass(made, WorkersEngine)]


@dataclass(frozen=True)
class Cost:
    engine: str
    workers: int
    wall: float
    processor: float
    driver: float
    peak_megabytes: float
    digest: str


class Clock:
    """Processor seconds of this process and of whatever it started, also of those that have ended meanwhile."""

    def __init__(self) -> None:
        self.spent: dict[int, float] = {}
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(0.2)

    def look(self) -> float:
        for process in psutil.Process().children(recursive=True):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            self.spent[process.pid] = times.user + times.system
        return sum(self.spent.values())


def engine_of(name: str, workers: int) -> Engine:
    if name == "embedded":
        return EmbeddedEngine(threads=workers, memory_limit="2GB")
    return make(name, workers=workers)


def spend(name: str, workers: int, folder: str) -> None:
    """In the child: one evaluation, and its cost as JSON."""
    engine, clock = engine_of(name, workers), Clock()
    target = mixope.TabularPolicy(worlds.target(worlds.make("taxi"), seed=0))
    if isinstance(engine, WorkersEngine):
        engine.ordered = False
        warm_up(engine, target)
    before, mine, began = clock.look(), time.process_time(), time.perf_counter()
    logs = mixope.read(f"{folder}/*.parquet")
    result = mixope.evaluate(logs, target, "emp", engine=engine)
    wall, driver = time.perf_counter() - began, time.process_time() - mine
    others = clock.look() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cost = Cost(name, workers, wall, driver + others, driver, peak, digest_of(result))
    print(json.dumps(asdict(cost)), flush=True)
    getattr(engine, "close", lambda: None)()


def warm_up(engine: Any, target: Any) -> None:
    """Every worker starts, imports what it needs, and answers once."""
    model = worlds.make("taxi")
    rows = worlds.simulate(model, worlds.stages(model, 2, seed=1), 40, 50, seed=9)
    engine.fragment_rows = 200
    mixope.evaluate(mixope.read(rows), target, "emp", engine=engine)
    engine.fragment_rows = None


def digest_of(result: Any) -> str:
    """Of everything that an evaluation says, but for where it ran."""
    record = json.loads(result.to_json())
    record["provenance"].pop("engine")
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()[:12]


def measure(name: str, workers: int, folder: str) -> Cost:
    command = [sys.executable, __file__, "--child", name, str(workers), folder]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def show(costs: list[Cost], rows: int) -> str:
    base = next((cost for cost in costs if cost.engine == "embedded"), costs[0])
    head = [f"{rows:,} rows", "workers", "processor s", "÷ embedded", "of it driver", "wall s", "driver MB", "digest"]
    return markdown(
        head,
        [
            [
                f"`{cost.engine}`",
                str(cost.workers),
                f"{cost.processor:.1f}",
                f"{cost.processor / base.processor:.2f}",
                f"{cost.driver:.1f}",
                f"{cost.wall:.1f}",
                f"{cost.peak_megabytes:.0f}",
                f"`{cost.digest}`",
            ]
            for cost in costs
        ],
    )


def main() -> None:
    if "--child" in sys.argv:
        name, workers, folder = sys.argv[2:5]
        spend(name, int(workers), folder)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--engines", default=",".join(["embedded", *WORKERS]))
    parser.add_argument("--scaling", action="store_true", help="each engine of several workers on one worker, too")
    parser.add_argument("--files", type=Path, default=None, help="Parquet files that an earlier run has left here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.files or Path(made)
        folder.mkdir(exist_ok=True)
        if not any(folder.iterdir()):
            scale.write_logs(folder, scale.Settings(rows=int(given.rows)))
        costs = []
        for name in given.engines.split(","):
            for workers in (1, 2) if given.scaling and name != "embedded" else (2,):
                costs.append(measure(name, workers, str(folder)))
                print(asdict(costs[-1]), file=sys.stderr, flush=True)
        rows = mixope.read(f"{folder}/*.parquet").total_rows()
    print(show(costs, rows))


if __name__ == "__main__":
    main()
