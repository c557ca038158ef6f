"""Scale: both scans of 10⁸ or 10⁹ rows against the bare GROUP BY they need, and the memory of a whole evaluation.

    python benchmarks/scale.py                                       # 10⁸ rows, half a GB of temporary Parquet files
    python benchmarks/scale.py --rows 1e7                            # a tenth of it, in a minute
    python benchmarks/scale.py --rows 1e9 --folder F --tasks bare,engine,evaluate --memory-limit 6GB
                                                                     # 5.4 GB in F, which are kept for the next run

Taxi logs of four loggers (recorded propensities, states as ids) are written as Parquet: simulated chunks are repeated
with new episode numbers, which changes neither the number of groups by much nor the work of a scan. Then, each in a
process of its own, with the same memory limit and number of threads for DuckDB:

    bare         SELECT keys, count, sums … GROUP BY keys, written by hand over the files
    engine       EmbeddedEngine.group_sums with the transition grouping (canonical rows, checks, compensated sums)
    evaluate     a whole evaluation with EMP; its two scans are shown apart: transitions, and scores by episode
    bare scores  the second scan written by hand: the files joined with the score table, GROUP BY episode

Measured are wall and processor seconds, and the peak of resident memory of the process.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

import mixope
from mixope import worlds
from mixope.engines import EmbeddedEngine
from mixope.logs import Logs
from mixope.requests.grouping import Grouping, GroupSums, Lookup
from mixope.requests.transitions import transition_grouping
from tables import markdown

HORIZON, LOGGERS = 200, 4
CHUNK_EPISODES, CHUNKS = 2500, 4
"""Rows are made of four simulated chunks of half a million rows."""
LEAST_FILES, FILE_CHUNKS = 8, 25
"""As many files, each of at most so many chunks."""

BARE = """
SELECT policy_id, observation, action, next_observation, terminated,
       count(*), sum(reward), min(reward), max(reward), sum(CAST(step = 0 AS INTEGER)),
       sum(1 / action_prob), sum(reward / action_prob), sum(1 / (action_prob * action_prob))
FROM read_parquet('{files}')
GROUP BY policy_id, observation, action, next_observation, terminated
"""


SCORES = "scores.arrow"
BARE_FACTORS = {
    "start": "CAST(step = 0 AS DOUBLE)",
    "step": "CAST(step AS DOUBLE)",
    "mark": "floor((sqrt(step + 1.0) * 314.1592653589793 - floor(sqrt(step + 1.0) * 314.1592653589793)) * 65536.0)",
}
"""How a row has what the second scan multiplies, where that is no column."""


@dataclass(frozen=True)
class Settings:
    rows: int = 100_000_000
    memory_limit: str = "600MB"
    threads: int = 2
    repetitions: int = 2
    seed: int = 0


@dataclass(frozen=True)
class Cost:
    """What one process spent on its task (imports not counted in the seconds)."""

    task: str
    wall: float
    processor: float
    peak_megabytes: float
    said: str


def write_logs(folder: Path, settings: Settings) -> int:
    """Parquet files of about ``rows`` rows in all; gives back their number. Files that are there are not written again.

    A file has a name of its own until it is whole, so a run that was stopped goes on where it stopped.
    """
    size = CHUNK_EPISODES * HORIZON
    chunks = -(-settings.rows // size)
    per_file = min(-(-chunks // LEAST_FILES), FILE_CHUNKS)
    made: list[pa.Table] = []
    for number, first in enumerate(range(0, chunks, per_file)):
        path = folder / f"part-{number:05}.parquet"
        if path.exists():
            continue
        made = made or _simulated(settings.seed)
        unfinished = path.with_suffix(".part")
        with pq.ParquetWriter(unfinished, made[0].schema, compression="zstd") as writer:
            for chunk in range(first, min(first + per_file, chunks)):
                writer.write_table(_renumbered(made[chunk % CHUNKS], chunk * CHUNK_EPISODES))
        unfinished.rename(path)
    return chunks * size


def _simulated(seed: int) -> list[pa.Table]:
    """The chunks that all files are made of."""
    model = worlds.make("taxi")
    loggers = worlds.stages(model, LOGGERS, seed=seed)
    return [
        _small_types(pa.table(worlds.simulate(model, loggers, CHUNK_EPISODES, HORIZON, seed=seed + i)))
        for i in range(CHUNKS)
    ]


def _renumbered(chunk: pa.Table, first: int) -> pa.Table:
    episodes = chunk.column("episode_id").to_numpy() + first
    return chunk.set_column(chunk.schema.get_field_index("episode_id"), "episode_id", pa.array(episodes))


def _small_types(table: pa.Table) -> pa.Table:
    """Integers as narrow as a careful writer would make them."""
    small = {"step": pa.int32(), "observation": pa.int32(), "next_observation": pa.int32(), "action": pa.int8()}
    return table.cast(pa.schema([(f.name, small.get(f.name, f.type)) for f in table.schema]))


def _bare_connection(settings: Settings) -> Any:
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(f"SET memory_limit = '{settings.memory_limit}'; SET threads = {settings.threads}")
    connection.execute("SET preserve_insertion_order = false")
    return connection


def bare(folder: str, settings: Settings) -> str:
    connection = _bare_connection(settings)
    table = connection.sql(BARE.format(files=f"{folder}/*.parquet")).to_arrow_table()
    return f"{table.num_rows} groups"


def engine(folder: str, settings: Settings) -> str:
    logs = mixope.read(f"{folder}/*.parquet")
    sums = _engine(settings).group_sums(logs, transition_grouping(logs.schema))
    return f"{sums.n_groups} groups"


def evaluate(folder: str, settings: Settings) -> str:
    target = worlds.target(worlds.make("taxi"), seed=settings.seed)
    logs = mixope.read(f"{folder}/*.parquet")
    engine = Watched(memory_limit=settings.memory_limit, threads=settings.threads)
    result = mixope.evaluate(logs, mixope.TabularPolicy(target), "emp", engine=engine)
    engine.keep_scores(Path(folder))
    low, high = result.interval.low, result.interval.high
    return f"{result.value:.5f} [{low:.5f}, {high:.5f}] from {result.n_rows:,} rows"


class Watched(EmbeddedEngine):
    """Prints what each of its scans cost, and keeps what the last one asked for."""

    scans = 0

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        self.scans += 1
        self.last = grouping, lookup
        with spending(f"scan {self.scans}") as told:
            found = super().group_sums(logs, grouping, lookup)
            told.append(f"{found.n_groups} groups, {len(grouping.aggregates)} sums")
        return found

    def keep_scores(self, folder: Path) -> None:
        """The last request, for ``bare scores``; a name that no pattern of logs matches."""
        grouping, lookup = self.last
        assert lookup is not None
        feather.write_feather(lookup.table, folder / SCORES)
        asked = [(a.operation, a.factors) for a in grouping.aggregates]
        (folder / SCORES).with_suffix(".json").write_text(json.dumps([lookup.keys, asked]))


def bare_scores(folder: str, settings: Settings) -> str:
    keys, asked = json.loads((Path(folder) / SCORES).with_suffix(".json").read_text())
    scores = feather.read_table(Path(folder) / SCORES)
    products = (" * ".join(BARE_FACTORS.get(factor, factor) for factor in factors) for _, factors in asked)
    sums = [f"{how}({product or '*'})" for (how, _), product in zip(asked, products, strict=True)]
    connection = _bare_connection(settings)
    connection.register("scores", scores)
    table = connection.sql(
        f"SELECT policy_id, episode_id, {', '.join(sums)} FROM read_parquet('{folder}/*.parquet')"
        f" JOIN scores USING ({', '.join(keys)}) GROUP BY policy_id, episode_id"
    ).to_arrow_table()
    return f"{table.num_rows} groups"


def _engine(settings: Settings) -> EmbeddedEngine:
    return EmbeddedEngine(memory_limit=settings.memory_limit, threads=settings.threads)


TASKS: dict[str, Callable[[str, Settings], str]] = {
    "bare": bare,
    "engine": engine,
    "evaluate": evaluate,
    "bare scores": bare_scores,
}


@contextmanager
def spending(task: str) -> Iterator[list[str]]:
    """Print what the body costs as JSON, with the words that it leaves."""
    wall, processor, told = time.perf_counter(), time.process_time(), list[str]()
    yield told
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(asdict(Cost(task, wall, processor, peak, " ".join(told)))), flush=True)


def spend(task: str, folder: str, settings: Settings) -> None:
    """In the child: do one task."""
    with spending(task) as told:
        told.append(TASKS[task](folder, settings))


def measure(task: str, folder: str, settings: Settings) -> list[Cost]:
    """The cheapest of several runs, each in a fresh process; first the parts of it that were measured apart."""
    command = [sys.executable, __file__, "--child", task, folder, json.dumps(asdict(settings))]
    repetitions = 1 if task == "evaluate" else settings.repetitions
    runs = []
    for _ in range(repetitions):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        runs.append([Cost(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")])
        print(f"{task}: {runs[-1][-1].processor:.1f} s", flush=True)
    return min(runs, key=lambda costs: costs[-1].processor)


def show(costs: list[Cost], rows: int) -> str:
    base = costs[0]
    head = [f"{rows:,} rows", "processor s", "÷ bare", "wall s", "peak MB", "result"]
    return markdown(
        head,
        [
            [
                f"`{cost.task}`",
                f"{cost.processor:.1f}",
                f"{cost.processor / base.processor:.2f}",
                f"{cost.wall:.1f}",
                f"{cost.peak_megabytes:.0f}",
                cost.said,
            ]
            for cost in costs
        ],
    )


def main() -> None:
    if "--child" in sys.argv:
        task, folder, settings = sys.argv[2:5]
        spend(task, folder, Settings(**json.loads(settings)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=Settings.rows)
    parser.add_argument("--memory-limit", default=Settings.memory_limit)
    parser.add_argument("--threads", type=int, default=Settings.threads)
    parser.add_argument("--repetitions", type=int, default=Settings.repetitions)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--folder", type=Path, default=None, help="keep the files there, and use those that are there")
    parser.add_argument("--output", type=Path, default=None, help="write the figures as JSON")
    given = parser.parse_args()
    settings = Settings(
        rows=int(given.rows),
        memory_limit=given.memory_limit,
        threads=given.threads,
        repetitions=given.repetitions,
        seed=given.seed,
    )
    with ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        rows = write_logs(folder, settings)
        size = sum(path.stat().st_size for path in folder.glob("*.parquet")) / 1e9
        print(f"{rows:,} rows, {size:.2f} GB of Parquet, written in {time.perf_counter() - start:.0f} s", flush=True)
        costs = [cost for task in given.tasks.split(",") for cost in measure(task, str(folder), settings)]
    print(show(costs, rows))
    if given.output:
        record = {"settings": asdict(settings), "python": platform.python_version(), "gigabytes": size}
        record |= {"rows": rows, "costs": [asdict(cost) for cost in costs]}
        given.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
