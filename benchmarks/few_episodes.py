"""A few long episodes: the t interval over episodes, or blocks of their steps?

    python benchmarks/few_episodes.py                # about two processor minutes
    python benchmarks/few_episodes.py --logs 20

Logs of one to six episodes of one logger, `emp`, exact truth. Printed for each size: how often 95 % intervals hold
the truth, and their mean width. It is why ``interval="auto"`` cuts fewer than five episodes of at least 500 steps into
blocks, and nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import mixope
from mixope import worlds
from mixope.base.errors import MixopeError
from mixope.worlds import simulate, truth
from tables import markdown

WORLDS = ("singlepath", "gridworld-slip")
EPISODES = (1, 2, 3, 4, 6)
HORIZONS = (200, 1000)
NAMES = ("t", "blocks")


def cell(world: str, episodes: int, horizon: int, logs: int, seed: int) -> Iterator[str]:
    """Coverage in per cent and mean width of each interval."""
    model = worlds.make(world)
    loggers, law = worlds.stages(model, 1), worlds.target(model)
    wanted, target = truth.average(model, law), mixope.TabularPolicy(law)
    found: dict[str, list[tuple[bool, float]]] = {name: [] for name in NAMES}
    for repetition in range(logs):
        columns = simulate(model, loggers, episodes, horizon, seed=seed + 1000 * repetition)
        for name in NAMES:
            try:
                interval = mixope.evaluate(columns, target, "emp", interval=name).interval
            except MixopeError:  # one episode has no t
                continue
            if interval is not None:
                found[name].append((interval.low <= wanted <= interval.high, interval.width))
    for name in NAMES:
        if not found[name]:
            yield "–"
            continue
        held, width = np.mean(found[name], axis=0)
        yield f"{100 * held:.1f} ({width:.3g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = [
        [world, str(steps), str(episodes), *cell(world, episodes, steps, given.logs, given.seed)]
        for world in WORLDS
        for steps in HORIZONS
        for episodes in EPISODES
    ]
    print(markdown(["logs", "steps", "episodes", *(f"{name}, % (width)" for name in NAMES)], rows))


if __name__ == "__main__":
    main()
