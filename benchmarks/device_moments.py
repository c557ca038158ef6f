"""Moments on a GPU: what the kernel costs beside its one matrix product, and how well it agrees with float64.

    python benchmarks/device_moments.py                                         # needs NumPy, SciPy and JAX
    python benchmarks/device_moments.py --size 64 --piece 1024 --steps 2 --device cpu       # a try without a GPU

The request is that of the value of those who wrote the logs: Σ φ(φ − γφ′)ᵀ, and four sums by row, on normalised bumps
of eight numbers. Rows lie on the device already; a line of JSON for each precision of products:

    bare        million rows per second of the bare product of two matrices (size, rows); of float32, of its three
    given       of the kernel with φ given: differences, product, sums by row, totals
    bumps       of the kernel from points: φ is computed too
    error       ‖A − A₆₄‖/‖A₆₄‖ against NumPy in float64, on a few thousand rows
    streamed    rows that lie in NumPy arrays on the processor: points, factors, transport and kernel (tf32 only)

With ``--evaluate 1e6``, which needs all of mixope, instead: a whole evaluation of so many rows in memory, on the GPU
and on all cores (``cpu``, and ``float64``, where features and products are in double precision too); seconds of every
scan, value and standard error, and by how many of these the value differs from the first one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixope.estimators.features.on_policy import ChainSums
from mixope.features import FittedBumps
from mixope.requests.device_kernel import FeaturePiece, FoldRows, Precision, bumps, product, programme, zeros
from mixope.requests.device_moments import LARGE_PIECE, DeviceMoments
from mixope.requests.device_plan import DevicePlan
from mixope.requests.moments import Moments
from mixope.requests.rows import Rows

NUMBERS, GAMMA, CHECKED, FRAGMENT = 8, 0.99, 4096, 1 << 16


def landmarks(size: int, seed: int = 0) -> FittedBumps:
    """Landmarks drawn like the states, with widths that make neighbours overlap."""
    draw = np.random.default_rng(seed)
    widths = 0.8 + 0.4 * draw.random(size)
    return FittedBumps(np.zeros(NUMBERS), np.ones(NUMBERS), draw.standard_normal((size, NUMBERS)), widths)


def chain(n: int, seed: int = 1) -> Rows:
    """An autoregression, in episodes of a thousand steps."""
    draw = np.random.default_rng(seed)
    state = draw.standard_normal((n + 1, NUMBERS))
    for k in range(1, 8):  # each number depends on the eight before it
        state[k:] += 0.5**k * state[:-k]
    state /= state.std(axis=0)
    start = np.arange(n) % 1000 == 0
    return Rows(
        observation=state[:-1],
        action=np.zeros((n, 1)),
        reward=draw.standard_normal(n),
        next_observation=state[1:],
        terminated=np.append(start[1:], True),
        start=start,
        propensity=np.full(n, np.nan),
        logger=np.full(n, "logger"),
        episode=np.arange(n) // 1000,
        draw=np.zeros(n, dtype=np.int64),
    )


def rate(step: Callable[[Any], Any], state: Any, rows: int, steps: int) -> float:
    """Million rows per second, the best of three runs of so many steps; each step takes what the last one gave."""
    state, best = jax.block_until_ready(step(state)), np.inf
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(steps):
            state = step(state)
        jax.block_until_ready(state)
        best = min(best, time.perf_counter() - begin)
    return rows * steps / best / 1e6


def bare(size: int, rows: int, precision: Precision, steps: int, device: Any) -> float:
    """The product alone, of numbers that are there; float32 is three in TF32."""
    kind = jnp.bfloat16 if precision == "bfloat16" else jnp.float32
    draw = np.random.default_rng(0)
    left, right = (jax.device_put(draw.random((size, rows), dtype=np.float32), device).astype(kind) for _ in range(2))

    @partial(jax.jit, donate_argnums=0)
    def step(total: Any, left: Any, right: Any) -> Any:
        return total + product(left, right)

    nothing = jax.device_put(np.zeros((size, size), dtype=np.float32), device)
    found = rate(lambda total: step(total, left, right), nothing, rows, steps)
    return found / 3 if precision == "float32" else found


def prepared(size: int, rows: int, precision: Precision, device: Any) -> tuple[DeviceMoments, DevicePlan, FoldRows]:
    """A full piece of rows, on the device."""
    request = DeviceMoments([ChainSums(landmarks(size), GAMMA)], device, rows, precision)
    sent: list[FoldRows] = []
    staged = request.staged(chain(rows))
    staged._add = lambda fold, lag, sheet: sent.append(sheet)  # type: ignore[method-assign]
    staged._sent((0, True), staged.sheets[0, True])
    assert staged.part is not None
    return request, staged.part.plan, request.put(FoldRows(*jax.tree_util.tree_map(np.float32, tuple(sent[0]))))


def given(size: int, rows: int, precision: Precision, steps: int, device: Any) -> float:
    """With φ given, in the precision of the products."""
    request, plan, sheet = prepared(size, rows, precision, device)
    on_chip, lag = device.platform != "cpu", request.lanes
    phi = jax.jit(bumps, static_argnums=(2, 3))(request.tables[0], sheet.points[0], on_chip, precision)

    @partial(jax.jit, donate_argnums=0)
    def step(totals: Any, phi: Any, factors: Any) -> Any:
        ahead = jnp.pad(phi[:, lag:], ((0, 0), (0, lag)))
        return FeaturePiece((phi,), (ahead,), (), factors, (), lag, precision).added(plan, totals, 0)

    return rate(lambda totals: step(totals, phi, sheet.factors), zeros(plan, device), rows, steps)


def from_points(size: int, rows: int, precision: Precision, steps: int, device: Any) -> float:
    """The kernel as an evaluation runs it."""
    request, plan, sheet = prepared(size, rows, precision, device)
    run = programme(plan, request.encodings, request.lanes, precision, device.platform != "cpu")
    fold = request.put(np.int32(0))
    return rate(lambda totals: run(totals, request.tables, (), sheet, fold), zeros(plan, device), rows, steps)


def error(size: int, precision: Precision, device: Any) -> float:
    """Of the product."""
    rows, request = chain(CHECKED), ChainSums(landmarks(size), GAMMA)
    total = Moments()
    request.accumulate(total, rows, 0)
    together = DeviceMoments([request], device, CHECKED, precision)
    (found,) = together.finish(together.staged(rows))
    return float(np.linalg.norm(found["gap0"] - total["gap0"]) / np.linalg.norm(total["gap0"]))


def streamed(size: int, piece: int, fragments: int, threads: int, device: Any) -> float:
    """Fragments prepared in threads, merged in order; the same one again and again."""
    rows = chain(FRAGMENT)
    together = DeviceMoments([ChainSums(landmarks(size), GAMMA)], device, piece, "tf32")

    def run() -> None:
        with ThreadPoolExecutor(threads) as pool:
            merged = together.staged(rows)
            for staged in pool.map(lambda _: together.staged(rows), range(fragments - 1)):
                merged = merged.merge(staged)
        together.finish(merged)

    run()
    begin = time.perf_counter()
    run()
    return fragments * FRAGMENT / (time.perf_counter() - begin) / 1e6


def logged(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Episodes of a thousand steps: eight numbers that an action moves, and a reward that depends on both."""
    draw, steps = np.random.default_rng(seed), 1000
    episodes = n // steps
    state, action = np.empty((episodes, steps + 1, NUMBERS)), np.empty((episodes, steps))
    state[:, 0] = draw.standard_normal((episodes, NUMBERS))
    for t in range(steps):
        action[:, t] = 0.1 * state[:, t].sum(axis=1) + 0.5 * draw.standard_normal(episodes)
        noise = 0.6 * draw.standard_normal((episodes, NUMBERS))
        state[:, t + 1] = 0.7 * state[:, t] + 0.1 * action[:, t, None] + noise
    here, ahead = (part.reshape(-1, NUMBERS) for part in (state[:, :-1], state[:, 1:]))
    taken = action.ravel()
    columns = {"episode_id": np.repeat(np.arange(episodes), steps), "step": np.tile(np.arange(steps), episodes)}
    columns |= {"action": taken, "reward": np.tanh(here[:, 0] + taken) - 0.1 * taken**2}
    columns |= {f"observation.{k}": here[:, k] for k in range(NUMBERS)}
    return columns | {f"next_observation.{k}": ahead[:, k] for k in range(NUMBERS)}


def evaluate(n: int, estimator: str, devices: Sequence[str]) -> None:
    """A whole evaluation from memory, on each device."""
    import mixope
    from mixope.engines import MemoryEngine
    from mixope.estimators.features import problem as feature_problem
    from mixope.policies import LinearGaussianPolicy

    logs, scans, plain = mixope.read(logged(n)), [], MemoryEngine.scan
    target = LinearGaussianPolicy(np.full((1, NUMBERS), 0.12), np.zeros(1), 0.5)

    def scan(self: MemoryEngine, *asked: Any) -> Any:
        begin = time.perf_counter()
        found = plain(self, *asked)
        scans.append(round(time.perf_counter() - begin, 1))
        return found

    MemoryEngine.scan = scan  # type: ignore[method-assign]
    first, single = None, feature_problem._SINGLE_FROM
    for device in devices:
        scans.clear()
        feature_problem._SINGLE_FROM = n + 1 if device == "float64" else single
        begin = time.perf_counter()
        found = mixope.evaluate(logs, target, estimator, device="gpu" if device == "gpu" else "cpu")
        seconds = round(time.perf_counter() - begin, 1)
        first = first or found
        off = abs(found.value - first.value) / first.standard_error
        record = {"rows": n, "estimator": found.estimator, "device": device, "seconds": seconds, "scans": list(scans)}
        record |= {"value": found.value, "standard_error": found.standard_error, "off_in_errors": off}
        print(json.dumps(record), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="bumps")
    parser.add_argument("--piece", type=int, default=LARGE_PIECE, help="rows of a piece")
    parser.add_argument("--steps", type=int, default=200, help="pieces that are timed")
    parser.add_argument("--fragments", type=int, default=200, help="fragments that are streamed")
    parser.add_argument("--threads", type=int, default=8, help="threads that prepare fragments")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu", help="cpu: JAX on the processor, for a try")
    parser.add_argument("--evaluate", type=float, default=None, metavar="ROWS", help="a whole evaluation")
    parser.add_argument("--estimator", default="dr", help="of the whole evaluation")
    parser.add_argument("--devices", nargs="+", default=["float64", "cpu", "gpu"], help="of the whole evaluation")
    said = parser.parse_args(arguments)
    if said.evaluate:
        evaluate(int(said.evaluate), said.estimator, said.devices)
        return
    device = jax.devices(said.device)[0]
    place: dict[str, Any] = {"device": device.device_kind, "jax": jax.__version__}
    place |= {"size": said.size, "piece": said.piece}
    modes: tuple[Precision, ...] = ("float32", "tf32", "bfloat16")
    for precision in modes:
        timed = {
            name: round(measure(said.size, said.piece, precision, said.steps, device), 1)
            for name, measure in (("bare", bare), ("given", given), ("bumps", from_points))
        }
        print(json.dumps({**place, "precision": precision, **timed, "error": error(said.size, precision, device)}))
    found = streamed(said.size, said.piece, said.fragments, said.threads, device)
    print(json.dumps({**place, "precision": "tf32", "threads": said.threads, "streamed": round(found, 2)}))


if __name__ == "__main__":
    main()
