"""The moment pass on one core: what it costs beside its one matrix product, and that its memory does not grow.

    OMP_NUM_THREADS=1 python benchmarks/moments.py                  # about five minutes
    OMP_NUM_THREADS=1 python benchmarks/moments.py --rows 1e5,1e6   # a smaller memory part

Claims: at 512 features the pass (bumps of s and of s′, difference, product, vector sums, totals in float64) takes less
than 1.35 × the processor time of the bare float32 products on as many rows; and the memory of a pass over Parquet files
levels off: 10⁷ rows take at most 10 % more than 10⁶ (peak of a process of its own, embedded engine; 10⁵ rows do not yet
fill the buffers of the reader).
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixope.features import FittedBumps, NormalisedBumps
from mixope.statistics.batch_products import BatchProducts
from tables import markdown

DIMENSIONS = 3
WRITTEN = 100_000


@dataclass(frozen=True)
class Settings:
    size: int = 512
    timed_rows: int = 1 << 17
    batch: int = 8192
    repetitions: int = 5
    memory_rows: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    memory_size: int = 64
    seed: int = 0


@dataclass(frozen=True)
class Report:
    """Microseconds of a row, and megabytes by rows."""

    bare: float
    whole: float
    over_bare: float
    error: float
    peaks: dict[int, float]


def rows(n: int, seed: int) -> dict[str, np.ndarray]:
    """States that move a little, ratios around 1."""
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(n, DIMENSIONS))
    following = 0.95 * states + 0.3 * generator.normal(size=(n, DIMENSIONS))
    ratio = np.exp(0.3 * generator.normal(size=n) - 0.045)
    return {"states": states, "following": following, "ratio": ratio, "reward": generator.normal(size=n)}


def microseconds(function: Callable[[], object], n: int) -> float:
    start = time.process_time()
    function()
    return (time.process_time() - start) / n * 1e6


def compare(settings: Settings) -> tuple[float, float, float]:
    """Bare product and whole pass by turns, the least of each; and the error against float64."""
    data = rows(settings.timed_rows, settings.seed)
    features = NormalisedBumps(settings.size).fit(data["states"][:20_000])
    n, m, batch = settings.timed_rows, settings.size, settings.batch
    generator = np.random.default_rng(settings.seed)
    left, right = (generator.random((batch, m), dtype=np.float32) for _ in range(2))
    out = np.empty((m, m), np.float32)
    sums = BatchProducts(features, rows=batch)

    def bare() -> None:
        for _ in range(n // batch):
            np.matmul(left.T, right, out=out)

    pairs = [
        (microseconds(bare, n), microseconds(lambda: sums.add(**data), n)) for _ in range(settings.repetitions + 1)
    ]
    first, second = (min(column) for column in zip(*pairs[1:], strict=True))
    return first, second, error_of(features, {name: array[:batch] for name, array in data.items()})


def error_of(features: FittedBumps, some: dict[str, np.ndarray]) -> float:
    sums = BatchProducts(features)
    sums.add(**some)
    phi, ahead = features.transform(some["states"]), features.transform(some["following"])
    exact = (phi - some["ratio"][:, None] * ahead).T @ phi
    return float(np.linalg.norm(sums.moments()["a"] - exact) / np.linalg.norm(exact))


def write_logs(folder: Path, n: int, settings: Settings) -> None:
    """Episodes of a thousand steps, a file every hundred thousand rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number in range(n // WRITTEN):
        data = rows(WRITTEN, settings.seed + number)
        columns: dict[str, Any] = {
            "episode_id": number * (WRITTEN // 1000) + np.arange(WRITTEN) // 1000,
            "step": np.arange(WRITTEN) % 1000,
            "reward": data["reward"],
            "action": np.zeros(WRITTEN, dtype=np.int64),
        }
        for k in range(DIMENSIONS):
            columns[f"observation.{k}"] = data["states"][:, k]
            columns[f"next_observation.{k}"] = data["following"][:, k]
        pq.write_table(pa.table(columns), folder / f"part-{number:05d}.parquet")


def spend(folder: str, settings: Settings) -> None:
    """In the child: one pass over the files, then the peak of resident memory."""
    import mixope
    from mixope.engines import EmbeddedEngine
    from mixope.estimators.vector import Scan
    from mixope.statistics.rows import Rows

    features = NormalisedBumps(settings.memory_size).fit(rows(20_000, settings.seed)["states"])
    logs = mixope.read(f"{folder}/*.parquet")
    sums = BatchProducts(features)

    def batch(some: Rows) -> dict[str, np.ndarray]:
        sums.add(some.observation, some.next_observation, np.ones(len(some)), some.reward)
        return {"n": np.asarray(float(len(some)))}

    Scan(logs, EmbeddedEngine(memory_limit="500MB", threads=1)).total("moments", batch)
    print(json.dumps({"rows": sums.moments().n_rows, "peak": peak_megabytes()}))


def peak_megabytes() -> float:
    """Of this program alone: ``ru_maxrss`` would count what its parent held when it was started."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def peak_of(n: int, settings: Settings) -> float:
    with tempfile.TemporaryDirectory() as folder:
        write_logs(Path(folder), n, settings)
        command = [sys.executable, __file__, "--child", folder, json.dumps(asdict(settings))]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["rows"] == n, answer
    return float(answer["peak"])


def show(report: Report, settings: Settings) -> str:
    first = markdown(
        [f"{settings.size} features, one core", "µs a row", "÷ bare", "error against float64"],
        [
            ["bare float32 product", f"{report.bare:.2f}", "1", ""],
            ["moment pass", f"{report.whole:.2f}", f"{report.over_bare:.2f}", f"{report.error:.0e}"],
        ],
    )
    second = markdown(["rows", "peak MB"], [[f"{n:,}", f"{peak:.0f}"] for n, peak in report.peaks.items()])
    return f"{first}\n\n{second}"


def main() -> None:
    if "--child" in sys.argv:
        folder, settings = sys.argv[2:4]
        spend(folder, Settings(**json.loads(settings)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=Settings.size)
    parser.add_argument("--rows", default=",".join(map(str, Settings.memory_rows)), help="sizes of the memory part")
    parser.add_argument("--output", type=Path, default=None, help="write the figures as JSON")
    given = parser.parse_args()
    sizes = tuple(int(float(n)) for n in given.rows.split(",") if n)
    settings = Settings(size=given.size, memory_rows=sizes)
    bare, whole, error = compare(settings)
    report = Report(bare, whole, whole / bare, error, {n: peak_of(n, settings) for n in sizes})
    print(show(report, settings))
    if given.output:
        record = {"settings": asdict(settings), "python": platform.python_version(), **asdict(report)}
        given.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
