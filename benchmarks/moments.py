"""The moment pass on one core: what it costs beside its one matrix product, and that its memory does not grow.

    OMP_NUM_THREADS=1 python benchmarks/moments.py                  # about five minutes
    OMP_NUM_THREADS=1 python benchmarks/moments.py --rows 1e5,1e6   # a smaller memory part

Claims, of the requests that ``evaluate`` makes: the moments of a value (bumps of s and of s′ crossed with three action
features, difference, product, vector sums, totals in float64) take less than 1.5 × the processor time of the bare
float32 product on as many rows; and the memory of a pass over Parquet files levels off: 10⁷ rows take at most 10 % more
than 10⁶ (peak of a process of its own, embedded engine; 10⁵ rows do not yet fill the buffers of the reader).
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

from mixope.estimators.features.value import PairDesign, ValueDesign, ValueSums
from mixope.features import NormalisedBumps
from mixope.features.actions import QuadraticActions
from mixope.policies import GaussianPolicy
from mixope.requests.moments import Moments
from mixope.requests.rows import Rows
from tables import markdown

DIMENSIONS = 3
TARGET = GaussianPolicy(lambda states: 0.5 * states[:, :1], 0.8)
WRITTEN = 100_000


@dataclass(frozen=True)
class Settings:
    size: int = 400
    timed_rows: int = 1 << 15
    batch: int = 4096
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
    """States that move a little, and Gaussian actions."""
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(n, DIMENSIONS))
    following = 0.95 * states + 0.3 * generator.normal(size=(n, DIMENSIONS))
    action = 0.5 * states[:, :1] + generator.normal(size=(n, 1))
    return {"states": states, "following": following, "action": action, "reward": generator.normal(size=n)}


def microseconds(function: Callable[[], object], n: int) -> float:
    start = time.process_time()
    function()
    return (time.process_time() - start) / n * 1e6


def compare(settings: Settings) -> tuple[float, float, float]:
    """Bare product and whole pass by turns, the least of each; and the error against float64."""
    data = rows(settings.timed_rows, settings.seed)
    request = request_of(settings.size, data)
    n, m, batch = settings.timed_rows, request.design.size, settings.batch
    generator = np.random.default_rng(settings.seed)
    left, right = (generator.random((batch, m), dtype=np.float32) for _ in range(2))
    out = np.empty((m, m), np.float32)
    pieces = [slice(low, low + batch) for low in range(0, n, batch)]

    def bare() -> None:
        for _ in pieces:
            np.matmul(left.T, right, out=out)

    def whole() -> Moments:
        total = Moments()
        for piece in pieces:
            request.accumulate(total, as_batch(data, piece), 0)
        return total

    pairs = [(microseconds(bare, n), microseconds(whole, n)) for _ in range(settings.repetitions + 1)]
    first, second = (min(column) for column in zip(*pairs[1:], strict=True))
    return first, second, error_of(settings.size, data, batch)


def request_of(size: int, data: dict[str, np.ndarray], single: bool = True) -> ValueSums:
    """LSTD-Q on bumps, as an evaluation of logs with continuous actions asks for it."""
    features = NormalisedBumps(size, single=single).fit(data["states"][:20_000])
    return ValueSums(ValueDesign(PairDesign(features, QuadraticActions(np.zeros(1), np.ones(1))), TARGET, 1.0))


def as_batch(data: dict[str, np.ndarray], piece: slice) -> Rows:
    n = len(data["reward"][piece])
    return Rows(
        observation=data["states"][piece],
        action=data["action"][piece],
        reward=data["reward"][piece],
        next_observation=data["following"][piece],
        terminated=np.zeros(n, dtype=bool),
        start=np.zeros(n, dtype=bool),
        propensity=np.full(n, np.nan),
        logger=np.full(n, "logger"),
    )


def error_of(size: int, data: dict[str, np.ndarray], batch: int) -> float:
    """Of the float32 product, against the same features in float64."""
    found = []
    for single in (True, False):
        total = Moments()
        request_of(size, data, single).accumulate(total, as_batch(data, slice(0, batch)), 0)
        found.append(total["a"][0])
    return float(np.linalg.norm(found[0] - found[1]) / np.linalg.norm(found[1]))


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
            "action": data["action"][:, 0],
        }
        for k in range(DIMENSIONS):
            columns[f"observation.{k}"] = data["states"][:, k]
            columns[f"next_observation.{k}"] = data["following"][:, k]
        pq.write_table(pa.table(columns), folder / f"part-{number:05d}.parquet")


def spend(folder: str, settings: Settings) -> None:
    """In the child: one pass over the files, then the peak of resident memory."""
    import mixope
    from mixope.engines import EmbeddedEngine

    logs = mixope.read(f"{folder}/*.parquet")
    request = request_of(settings.memory_size, rows(20_000, settings.seed))
    (sums,) = EmbeddedEngine(memory_limit="500MB", threads=1).scan(logs, [request])
    print(json.dumps({"rows": sums.n_rows, "peak": peak_megabytes()}))


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
        [f"{3 * settings.size} columns, one core", "µs per row", "÷ bare", "error against float64"],
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
