"""A learned value on a GPU against the processor: the same networks, in which time.

    python benchmarks/learned_device.py                  # needs NumPy, SciPy and JAX, and mixope on the path
    python benchmarks/learned_device.py --rows 500 --width 16 --renewals 4 --device cpu    # a try without a GPU

Rows are made from a seed: 17 numbers of the state and 6 of the action move as an autoregression, eight pairs are ahead
of every row. Eight networks are trained by each trainer with the default settings, the value discounted by .99. Of the
trainer on the processor, as many networks as ``--networks-on-processor`` says, one after the other on one core: a
network takes it the same time whoever is beside it. One line of JSON per size and question:

    processor_seconds_per_network      one core; eight cores take as long for all
    device_seconds, compile_seconds    all networks, programmes compiled; and what the first run took longer
    same_bits                          whether the second run gave the bits of the first
    value, device_value, off           the mean of V over the first rows by the networks that both trained, and by how
                                       much it differs, in shares of the range of values
    off_each, spread                   the same for single states: the largest difference, and the networks' spread
    off_each_nudged                    the same between two runs on the processor whose rewards differ by 1e-5 of their
                                       spread: training magnifies whatever differs, and this is by how much
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core against one device; must be said before NumPy is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from mixope.solvers.fitted_q import Fitted, FittedQSettings, FittedRows, Units, train_network
from mixope.solvers.fitted_q_device import fit_networks_on

STATE, ACTION, PAIRS, GAMMA, NETWORKS, LOOKED_AT = 17, 6, 8, 0.99, 8, 2000


def rows_from_seed(n: int, average: bool, seed: int = 0) -> FittedRows:
    """s′ = .7 s + B a + noise, r a smooth function of both; the target's actions lie around a linear one."""
    draw = np.random.default_rng(seed)
    through, gain = 0.1 * draw.standard_normal((ACTION, STATE)), 0.1 * draw.standard_normal((STATE, ACTION))
    state, action = draw.standard_normal((n, STATE)), draw.standard_normal((n, ACTION))
    following = 0.7 * state + action @ through + 0.6 * draw.standard_normal((n, STATE))
    reward = np.tanh(state[:, :4].sum(axis=1) + action[:, 0]) - 0.05 * (action**2).sum(axis=1)
    going = np.where(draw.random(n) < 0.002, 0.0, 1.0)

    def ahead_of(states: np.ndarray) -> np.ndarray:
        chosen = (states @ gain)[:, None, :] + 0.5 * draw.standard_normal((len(states), PAIRS, ACTION))
        repeated = np.broadcast_to(states[:, None, :], (len(states), PAIRS, STATE))
        return np.concatenate([repeated, chosen], axis=2).astype(np.float32)

    pairs = np.concatenate([state, action], axis=1).astype(np.float32)
    shares = np.full((n, PAIRS), 1.0 / PAIRS, dtype=np.float32)
    low, high = min(float(reward.min()), 0.0), max(float(reward.max()), 0.0)
    if not average:
        return FittedRows(pairs, ahead_of(following), shares, (1 - GAMMA) * reward, GAMMA * going, low, high)
    starts, at_start = ahead_of(state[:200]), shares[:200]
    rows = FittedRows(pairs, ahead_of(following), shares, reward, going, -np.inf, np.inf)
    return replace(rows, starts=starts, start_shares=at_start)


def without_each(n: int) -> np.ndarray:
    """Weights of rows by network: each leaves out an eighth."""
    return (np.arange(n)[None, :] * NETWORKS // n != np.arange(NETWORKS)[:, None]).astype(float)


def on_processor(rows: FittedRows, weights: np.ndarray, settings: FittedQSettings, networks: int) -> Fitted:
    """The first networks, one after the other, in this process."""
    units, settings = Units.of(rows), settings.for_rows(len(rows))
    found = [train_network(units.inside(rows), weights, settings, 0, number) for number in range(networks)]
    return units.fitted(rows, [parameters for parameters, _ in found], [eta for _, eta in found])


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    return work(), time.perf_counter() - begin


def measure(n: int, average: bool, device: Any, settings: FittedQSettings, networks: int) -> dict[str, Any]:
    rows, weights = rows_from_seed(n, average), without_each(n)
    first, slow = timed(lambda: fit_networks_on(device, rows, weights, settings, 0))
    found, quick = timed(lambda: fit_networks_on(device, rows, weights, settings, 0))
    plain, seconds = timed(lambda: on_processor(rows, weights, settings, networks))
    nudges = 1e-5 * rows.reward.std() * np.random.default_rng(1).standard_normal(n)
    nudged = on_processor(replace(rows, reward=rows.reward + nudges), weights, settings, networks)
    looked_at = rows.inputs[:LOOKED_AT].astype(np.float64)
    values, plain_values, other = (each.networks.values(looked_at) for each in (found, plain, nudged))
    both = values[:networks]
    reach = float(np.ptp(plain_values)) if average else rows.high - rows.low
    value, device_value = (
        (fitted.averages[:networks].mean() if fitted.averages is not None else each.mean())
        for fitted, each in ((plain, plain_values), (found, both))
    )
    return {
        "rows": n,
        "question": "average" if average else "discounted",
        "device": f"{device.platform}: {device.device_kind}",
        "jax": jax.__version__,
        "processor_seconds_per_network": round(seconds / networks, 3),
        "device_seconds": round(quick, 3),
        "compile_seconds": round(slow - quick, 3),
        "same_bits": bool(np.array_equal(first.networks.values(looked_at), values)),
        "value": float(value),
        "device_value": float(device_value),
        "off": float(abs(value - device_value) / reach),
        "off_each": float(np.abs(both - plain_values).max() / reach),
        "off_each_nudged": float(np.abs(other - plain_values).max() / reach),
        "spread": float(values.std(axis=0).mean() / reach),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 40_000])
    parser.add_argument("--question", nargs="+", choices=["discounted", "average"], default=["discounted"])
    parser.add_argument("--networks-on-processor", type=int, default=1)
    parser.add_argument("--width", type=int, default=FittedQSettings.width)
    parser.add_argument("--renewals", type=int, default=FittedQSettings.renewals)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu", help="cpu: JAX on the processor, for a try")
    said = parser.parse_args(arguments)
    settings = FittedQSettings(width=said.width, renewals=said.renewals)
    for n in said.rows:
        for question in said.question:
            device = jax.devices(said.device)[0]
            found = measure(n, question == "average", device, settings, said.networks_on_processor)
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
