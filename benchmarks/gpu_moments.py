"""The moment pass on an accelerator: rows a second at 1024 × 1024, against the bare matrix product of the same run.

    PYTHONPATH=src python benchmarks/gpu_moments.py                 # NumPy and JAX are enough

Claim: at least 50 million rows a second in TF32 on one H200, and the moments of 262,144 rows within 1e-4 (relative,
Frobenius) of float64 on the host.

    floor        the bare product Xᵀ Y of two resident arrays, rows along the last axis, and along the first
    given        DeviceMoments on resident features (M, n): difference, product, vector sums, pairs of float32
    bumps        DeviceMoments on resident 3-d states: 1024 normalised bumps of s and of s′ besides

Arrays are drawn on the device before the clock starts and are many times its cache; compilation and a first run are not
timed; a time is the median of several runs, each ended by ``block_until_ready``.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixope.features.bumps import FittedBumps
from mixope.statistics.device_moments import DeviceBatch, DeviceMoments, Precision, joined, product

GAMMA = 0.99
CHECKED, PIECE = 1 << 18, 1 << 16


@dataclass(frozen=True)
class Settings:
    size: int = 1024
    rows: int = 1 << 21
    state_rows: int = 1 << 24
    chunks: tuple[int, ...] = (1 << 15, 1 << 16)
    precisions: tuple[Precision, ...] = ("tf32", "bf16", "bf16x3", "float32")
    repetitions: int = 7
    seed: int = 0


@dataclass(frozen=True)
class Line:
    """One measured case."""

    case: str
    precision: str
    chunk: int
    rows_per_second: float
    error: float | None = None


def seconds(function: Callable[[], Any], repetitions: int) -> float:
    """The median of several runs after two that are not counted."""
    times = []
    for k in range(repetitions + 2):
        start = time.perf_counter()
        jax.block_until_ready(function())
        if k >= 2:
            times.append(time.perf_counter() - start)
    return float(np.median(times))


def bumps(size: int, seed: int) -> FittedBumps:
    """Centres drawn from the law of the states; widths by the third neighbour."""
    centres = np.random.default_rng(seed).normal(size=(size, 3))
    distance = np.sqrt(((centres[:, None] - centres[None]) ** 2).sum(axis=2))
    return FittedBumps(np.zeros(3), np.ones(3), centres, np.sort(distance, axis=1)[:, 3])


@partial(jax.jit, static_argnums=1)
def draw_states(key: Any, rows: int) -> DeviceBatch:
    """States, next states nearby, ratios around 1, rewards: on the device."""
    keys = jax.random.split(key, 5)
    states = jax.random.normal(keys[0], (rows, 3))
    following = 0.95 * states + 0.3 * jax.random.normal(keys[1], (rows, 3))
    ratio = jnp.exp(0.3 * jax.random.normal(keys[2], (rows,)) - 0.045)
    weight = jax.random.uniform(keys[4], (rows,), minval=0.5, maxval=1.5)
    return DeviceBatch(states, following, ratio, jax.random.normal(keys[3], (rows,)), weight, jnp.zeros(rows))


def features_of(batch: DeviceBatch, features: FittedBumps, kind: str) -> DeviceBatch:
    """The same rows with features (M, n) for states, made piece by piece."""
    pass_ = DeviceMoments(features)
    make = jax.jit(lambda states: pass_._features(states).astype(kind))
    pieces = [slice(k, k + PIECE) for k in range(0, batch.ratio.shape[0], PIECE)]
    return batch._replace(
        **{
            name: jnp.concatenate([make(getattr(batch, name)[piece]) for piece in pieces], axis=1)
            for name in ("states", "following")
        }
    )


def floor(precision: Precision, chunk: int, settings: Settings, axis: int) -> Line:
    """The bare product on resident random arrays in the precision's own type, one call a chunk."""
    kind = jnp.bfloat16 if precision == "bf16" else jnp.float32
    count = max(2, settings.rows // (4 * chunk))
    shape = (settings.size, chunk) if axis == 1 else (chunk, settings.size)
    keys = jax.random.split(jax.random.key(settings.seed), 2 * count)
    draw = jax.jit(lambda key: jax.lax.reduce_precision(jax.random.uniform(key, shape), 8, 10).astype(kind))
    pairs = [(draw(keys[2 * k]), draw(keys[2 * k + 1])) for k in range(count)]
    multiply = jax.jit(
        lambda x, y: bare(x, y, precision) if axis == 1 else bare(x.T, y.T, precision),
    )
    taken = seconds(lambda: [multiply(x, y) for x, y in pairs], settings.repetitions)
    name = "floor, rows last" if axis == 1 else "floor, rows first"
    return Line(name, precision, chunk, count * chunk / taken)


def bare(x: Any, y: Any, precision: Precision) -> Any:
    """The product without rounding of operands (they are rounded already)."""
    if precision != "tf32":
        return product(x, y, precision)
    how = jax.lax.DotAlgorithmPreset.TF32_TF32_F32 if jax.default_backend() == "gpu" else None
    return jax.lax.dot_general(x, y, (((1,), (1,)), ((), ())), precision=how)


def timed(case: str, pass_: DeviceMoments, batch: DeviceBatch, error: float, repetitions: int) -> Line:
    """Rows a second of adding the batch to running sums."""
    sums = pass_.zero(batch)

    def run() -> Any:
        nonlocal sums
        sums = pass_.add(sums, batch)
        return sums

    taken = seconds(run, repetitions)
    return Line(case, pass_.precision, pass_.chunk, batch.ratio.shape[0] / taken, error)


def reference(features: FittedBumps, batch: DeviceBatch) -> np.ndarray:
    """A in float64 by NumPy, from the states."""
    states, following, ratio, _, weight, _ = (np.asarray(a, dtype=np.float64) for a in batch)
    total = np.zeros((features.size, features.size))
    for k in range(0, len(ratio), 1 << 14):
        piece = slice(k, k + (1 << 14))
        phi, ahead = features.transform(states[piece]), features.transform(following[piece])
        c = weight[piece][:, None]
        total += (c * phi - GAMMA * c * ratio[piece][:, None] * ahead).T @ phi
    return total


def error_of(pass_: DeviceMoments, some: DeviceBatch, exact: np.ndarray) -> float:
    a = joined(pass_.add(None, some))["a"]
    return float(np.linalg.norm(a - exact) / np.linalg.norm(exact))


def measure(settings: Settings) -> list[Line]:
    features = bumps(settings.size, settings.seed)
    key = jax.random.key(settings.seed + 1)
    some = draw_states(key, min(CHECKED, settings.rows))
    exact = reference(features, some)
    lines = []
    for precision in settings.precisions:
        for chunk in settings.chunks:
            lines += [floor(precision, chunk, settings, axis) for axis in (1, 0)]
            print(lines[-2], lines[-1], sep="\n", flush=True)
    states = draw_states(jax.random.key(settings.seed + 2), settings.state_rows)
    for precision in settings.precisions:
        for chunk in settings.chunks:
            pass_ = DeviceMoments(features, GAMMA, precision, chunk=chunk)
            start = time.perf_counter()
            error = error_of(pass_, some, exact)
            print(f"compiled and checked in {time.perf_counter() - start:.1f} s")
            lines.append(timed("bumps", pass_, states, error, settings.repetitions))
            print(lines[-1], flush=True)
    del states
    resident = draw_states(jax.random.key(settings.seed + 3), settings.rows)
    for kind in ("float32", "bfloat16"):
        given, given_some = (features_of(b, features, kind) for b in (resident, some))
        for precision in settings.precisions:
            if (precision == "bf16") != (kind == "bfloat16"):
                continue
            for chunk in settings.chunks:
                pass_ = DeviceMoments(None, GAMMA, precision, chunk=chunk)
                error = error_of(pass_, given_some, exact)
                lines.append(timed("given", pass_, given, error, settings.repetitions))
                print(lines[-1], flush=True)
        del given, given_some
    return lines


def show(lines: list[Line]) -> str:
    """A Markdown table: best chunk of every case and precision."""
    table = ["| case | precision | rows a product | million rows/s | ÷ floor | error |", "|---|---|---|---|---|---|"]
    for precision in dict.fromkeys(line.precision for line in lines):
        mine = [line for line in lines if line.precision == precision]
        base = max(line.rows_per_second for line in mine if line.case.startswith("floor"))
        for case in dict.fromkeys(line.case for line in mine):
            best = max((line for line in mine if line.case == case), key=lambda line: line.rows_per_second)
            error = "" if best.error is None else f"{best.error:.1e}"
            rate = f"{best.rows_per_second / 1e6:.1f} | {best.rows_per_second / base:.2f}"
            table.append(f"| {case} | {precision} | {best.chunk:,} | {rate} | {error} |")
    return "\n".join(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=Settings.size)
    parser.add_argument("--rows", type=int, default=Settings.rows, help="rows of resident features")
    parser.add_argument("--state-rows", type=int, default=Settings.state_rows, help="rows of resident states")
    parser.add_argument("--chunks", default=",".join(map(str, Settings.chunks)), help="rows a product, several tried")
    parser.add_argument("--precisions", default=",".join(Settings.precisions))
    parser.add_argument("--output", type=Path, default=None, help="write the figures as JSON")
    given = parser.parse_args()
    precisions = tuple(p for p in Settings.precisions if p in given.precisions.split(","))
    chunks = tuple(int(c) for c in given.chunks.split(","))
    settings = Settings(given.size, given.rows, given.state_rows, chunks, precisions)
    lines = measure(settings)
    device = jax.devices()[0]
    print(f"\n{device.device_kind}, JAX {jax.__version__}\n\n{show(lines)}")
    if given.output:
        record = {"settings": asdict(settings), "python": platform.python_version(), "device": device.device_kind}
        given.output.write_text(json.dumps({**record, "lines": [asdict(line) for line in lines]}, indent=2) + "\n")


if __name__ == "__main__":
    main()
