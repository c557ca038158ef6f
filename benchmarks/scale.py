"""Scale: the first scan of 10⁸ rows against the bare GROUP BY it needs, and the memory of a whole evaluation.

    python benchmarks/scale.py                           # 10⁸ rows, about 1 GB of temporary Parquet files
    python benchmarks/scale.py --rows 1e7                # a tenth of it, in a minute

Taxi logs of four loggers (recorded propensities, states as ids) are written as Parquet: simulated chunks are repeated
with new episode numbers, which changes neither the number of groups by much nor the work of a scan. Then, each in a
process of its own, with the same memory limit and number of threads for DuckDB:

    bare       SELECT keys, count, sums … GROUP BY keys, written by hand over the files
    engine     EmbeddedEngine.group_sums with the transition grouping (canonical rows, checks, compensated sums)
    evaluate   a whole evaluation with EMP: first scan, solve, score scan by episode, interval, diagnostics

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
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import mixope
from mixope import environments
from mixope.engines import EmbeddedEngine
from mixope.statistics.transitions import transition_grouping
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
    model = environments.make("taxi")
    loggers = environments.stages(model, LOGGERS, seed=seed)
    return [
        _small_types(pa.table(environments.simulate(model, loggers, CHUNK_EPISODES, HORIZON, seed=seed + i)))
        for i in range(CHUNKS)
    ]


def _renumbered(chunk: pa.Table, first: int) -> pa.Table:
    episodes = chunk.column("episode_id").to_numpy() + first
    return chunk.set_column(chunk.schema.get_field_index("episode_id"), "episode_id", pa.array(episodes))


def _small_types(table: pa.Table) -> pa.Table:
    """Integers as narrow as a careful writer would make them."""
    small = {"step": pa.int32(), "observation": pa.int32(), "next_observation": pa.int32(), "action": pa.int8()}
    return table.cast(pa.schema([(f.name, small.get(f.name, f.type)) for f in table.schema]))


def bare(folder: str, settings: Settings) -> str:
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(f"SET memory_limit = '{settings.memory_limit}'; SET threads = {settings.threads}")
    connection.execute("SET preserve_insertion_order = false")
    table = connection.sql(BARE.format(files=f"{folder}/*.parquet")).to_arrow_table()
    return f"{table.num_rows} groups"


def engine(folder: str, settings: Settings) -> str:
    logs = mixope.read(f"{folder}/*.parquet")
    sums = _engine(settings).group_sums(logs, transition_grouping(logs.schema))
    return f"{sums.n_groups} groups"


def evaluate(folder: str, settings: Settings) -> str:
    target = environments.target(environments.make("taxi"), seed=settings.seed)
    logs = mixope.read(f"{folder}/*.parquet")
    result = mixope.evaluate(logs, mixope.TabularPolicy(target), "emp", engine=_engine(settings))
    low, high = result.interval.low, result.interval.high
    return f"{result.value:.5f} [{low:.5f}, {high:.5f}] from {result.n_rows:,} rows"


def _engine(settings: Settings) -> EmbeddedEngine:
    return EmbeddedEngine(memory_limit=settings.memory_limit, threads=settings.threads)


TASKS: dict[str, Callable[[str, Settings], str]] = {"bare": bare, "engine": engine, "evaluate": evaluate}


def spend(task: str, folder: str, settings: Settings) -> None:
    """In the child: do one task, print its cost as JSON."""
    wall, processor = time.perf_counter(), time.process_time()
    said = TASKS[task](folder, settings)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(asdict(Cost(task, wall, processor, peak, said))))


def measure(task: str, folder: str, settings: Settings) -> Cost:
    """The cheapest of several runs, each in a fresh process."""
    command = [sys.executable, __file__, "--child", task, folder, json.dumps(asdict(settings))]
    repetitions = 1 if task == "evaluate" else settings.repetitions
    runs = []
    for _ in range(repetitions):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(Cost(**json.loads(done.stdout.splitlines()[-1])))
    return min(runs, key=lambda cost: cost.processor)


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
    parser.add_argument("--output", type=Path, default=None, help="write the figures as JSON")
    given = parser.parse_args()
    settings = Settings(
        rows=int(given.rows),
        memory_limit=given.memory_limit,
        threads=given.threads,
        repetitions=given.repetitions,
        seed=given.seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        rows = write_logs(Path(folder), settings)
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e9
        print(f"{rows:,} rows, {size:.2f} GB of Parquet, written in {time.perf_counter() - start:.0f} s", flush=True)
        costs = [measure(task, folder, settings) for task in given.tasks.split(",")]
    print(show(costs, rows))
    if given.output:
        record = {"settings": asdict(settings), "python": platform.python_version(), "gigabytes": size}
        record |= {"rows": rows, "costs": [asdict(cost) for cost in costs]}
        given.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
