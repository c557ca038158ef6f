"""The peak of memory of ``compare`` on vectors, with one target and with several.

    python -m benchmarks.many_targets --rows 40000 --targets 1,8

Every number is that of a process of its own. The logs are those of four loggers of a linear system, the targets
Gaussian, the estimator ``dr``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import mixope
from mixope.policies import LinearGaussianPolicy
from mixope.worlds import continuous, linear_quadratic


def measure(rows: int, targets: int, seed: int) -> dict[str, float]:
    """In this process: megabytes at the peak, before and during the comparison, and seconds of the processor."""
    steps = 50
    columns = continuous.simulate(
        linear_quadratic.linear_quadratic(), linear_quadratic.loggers(4), rows // (4 * steps), steps, seed=seed
    )
    leans = [0.05 * k for k in range(targets)]
    policies = {f"target {k}": LinearGaussianPolicy([-0.5 + lean, -0.6], 0.1, 0.6) for k, lean in enumerate(leans)}
    before, start = peak(), time.process_time()
    found = mixope.compare(columns, policies, ["dr"], engine="memory", seed=seed)
    assert len(found.estimates) == targets
    return {"before": before, "peak": peak(), "seconds": time.process_time() - start}


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """One line for each number of targets, and how many times the first it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--targets", default="1,8")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(measure(given.rows, given.alone, given.seed)))
        return
    first = None
    for targets in map(int, given.targets.split(",")):
        command = [sys.executable, "-m", "benchmarks.many_targets", "--rows", str(given.rows), "--alone", str(targets)]
        done = subprocess.run([*command, "--seed", str(given.seed)], check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        first = first or found["peak"]
        share = found["peak"] / first
        print(
            f"{targets:3d} targets  {found['peak']:6.0f} MB  {share:4.2f} ×  {found['seconds']:6.1f} CPU s", flush=True
        )


if __name__ == "__main__":
    main()
