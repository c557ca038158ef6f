"""The same answer on another processor: kernels of linear algebra round differently, and nothing may hang on that.

``OPENBLAS_CORETYPE`` makes OpenBLAS compute as another processor would. Logs of numbers and categories, where ties,
columns that say the same, and fits that are broken off turn the last digit into the second.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(platform.machine().lower() not in {"x86_64", "amd64"}, reason="kernels of one architecture"),
]
KERNELS = ("Haswell", "Sandybridge", "Prescott")
SCRIPT = """
import json, warnings
import numpy as np
import mixope
from mixope.policies import CallablePolicy
warnings.simplefilter("ignore")

def logs(n, steps, seed, skew, levels, sharp):
    draw = np.random.default_rng(seed)
    names, effect, rows = np.array([f"k{j}" for j in range(levels)]), draw.normal(size=levels), []
    for episode in range(n):
        x, y, z = np.exp(skew * draw.normal()), draw.integers(30), draw.normal()
        c, segment = min(int(draw.exponential(levels / 4)), levels - 1), draw.integers(3)
        for step in range(steps):
            chance = 1 / (1 + np.exp(-sharp * (z + 0.3 * effect[c] + 0.2 * np.log(x) - 0.05 * y)))
            a = int(draw.random() < chance)
            reward = 0.1 + 0.05 * z * a + 0.1 * (c == 1) - 0.02 * a + 0.05 * draw.normal()
            after = np.exp(0.8 * np.log(x) + 0.5 * draw.normal()), 0 if a else min(y + 1, 60)
            later = 0.7 * z + 0.2 * a + 0.5 * draw.normal()
            d = c if draw.random() < 0.9 else min(int(draw.exponential(levels / 4)), levels - 1)
            rows.append((episode, step, x, float(y), z, names[c], "xyz"[segment], a, reward, after[0], float(after[1]),
                         later, names[d], "xyz"[segment], step == steps - 1))
            x, y, z, c = *after, later, d
    parts = [np.array(column) for column in zip(*rows)]
    state = ("x", "y", "z", "kind", "segment")
    return mixope.Logs.from_arrays(
        observation=dict(zip(state, parts[2:7])), next_observation=dict(zip(state, parts[9:14])),
        action=parts[7], reward=parts[8], episode_id=parts[0], step=parts[1], truncated=parts[14],
        roles={"kind": "category", "segment": "category"},
    )

def law(states):
    chance = 1 / (1 + np.exp(-1.5 * (states["z"] - 0.03 * states["y"])))
    return np.stack([1 - chance, chance], axis=1)

found = []
asked = (0.99, (60, 25, 12, 3.0, 12, 3.0)), (0.99, (80, 20, 15, 2.0, 12, 0.5)), (0.9, (40, 30, 14, 1.0, 30, 2.0))
asked += ((0.99, (30, 20, 12, 3.0, 12, 3.0), "fqe"),)
for gamma, made, *estimator in asked:
    target = CallablePolicy(law, [0, 1])
    result = mixope.evaluate(logs(*made), target, *estimator, estimand="discounted", gamma=gamma)
    found.append([result.value, result.interval.high - result.interval.low, str(result.verdict), result.estimator])
from threadpoolctl import threadpool_info
print(json.dumps([sorted({pool.get("architecture", "") for pool in threadpool_info()}), found]))
"""


def asked(kernel: str) -> tuple[list[str], list[tuple[float, float, str, str]]]:
    """The kernels that computed; value, width, verdict and estimator of every log."""
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kernels, found = json.loads(done.stdout)
    return kernels, [tuple(each) for each in found]


def test_another_processor_has_the_same_value_verdict_and_estimator() -> None:
    kernels, answers = zip(*map(asked, KERNELS), strict=True)
    assert len({*map(str, kernels)}) > 1, "the same kernel computed all of them, and nothing was compared"
    first, *others = answers
    for other in others:
        for (value, width, *rest), (again, _, *same) in zip(first, other, strict=True):
            assert abs(again - value) < 1e-3 * width / 2
            assert same == rest
