"""What the check *state* costs beside ``evaluate``, on ids and on vectors: seconds of the processor.

    python benchmarks/state_cost.py                   # 200,000 rows of ids (as many as it looks at), 20,000 of vectors

Timed are what it does besides the scans: the rows laid out and their pasts, and on ids what is read off the flow.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import mixope
from hidden_worlds import MARKOV
from mixope.answers import answering
from mixope.checks import state
from mixope.session import session
from mixope.worlds import continuous, pendulum
from tables import markdown


class Clock:
    """Seconds of the processor in some functions."""

    def __init__(self) -> None:
        self.spent = 0.0

    def on(self, module: Any, name: str) -> None:
        """Time a function where a module calls it."""
        plain: Callable[..., Any] = getattr(module, name)

        def timed(*given: Any, **named: Any) -> Any:
            begun = time.process_time()
            try:
                return plain(*given, **named)
            finally:
                self.spent += time.process_time() - begun

        setattr(module, name, timed)


def measured(columns: Any, target: Any, clock: Clock) -> tuple[float, float]:
    """Seconds of one evaluation, and those of them that the check takes."""
    logs = mixope.read(columns)
    clock.spent, begun = 0.0, time.process_time()
    mixope.evaluate(logs, target)
    return time.process_time() - begun, clock.spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    clock = Clock()
    for module, name in ((answering, "pasts_of"), (answering, "step_path"), (session, "vector_pasts")):
        clock.on(module, name)
    for name in ("_residuals", "_moves", "_explained", "_strongest"):
        clock.on(state, name)
    worlds = [(name, MARKOV[name](0)) for name in ("chain", "chain of 300 states", "chain that ends")]
    logs = [(name, world.write(given.rows // 40, 0), world.policy()) for name, world in worlds]
    swings = continuous.simulate(pendulum.Pendulum(), pendulum.loggers(4), 100, 200, seed=0)
    lines = []
    for name, columns, target in [*logs, ("Pendulum", swings, pendulum.target())]:
        runs = [measured(columns, target, clock) for _ in range(given.times)]
        whole, check = min(runs)
        lines.append([name, f"{len(columns['reward']):,}", f"{whole:.2f}", f"{check:.2f}", f"{check / whole:.2f}"])
    print(markdown(["logs", "rows", "`evaluate`, s", "*state*, s", "share"], lines))


if __name__ == "__main__":
    main()
