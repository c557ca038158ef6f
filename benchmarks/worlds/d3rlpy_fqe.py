"""The peer: d3rlpy's fitted Q evaluation on the same logs, as ``d3rlpy-fqe`` in results/worlds.csv.

    python -m benchmarks.worlds.d3rlpy_fqe --sizes 50      # in an environment that has d3rlpy, torch and NumPy

Networks, optimiser, batches and learning rate are its defaults. States are standardised, actions are those that were
executed, and next actions are drawn from the target anew at every step. The target network is copied every
``--interval`` steps, so that steps ÷ interval iterations of the Bellman equation are made: with the default of 100 and
few steps these are too few for γ = .99. The library discounts only: the cell of the long-run average is left out.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.worlds.cells import CELLS, Cell
from benchmarks.worlds.policies import Linear
from benchmarks.worlds.rollouts import GAMMA
from benchmarks.worlds.run import KEYS, RESULTS, line
from benchmarks.worlds.write import choices, path, read

NAME = "d3rlpy-fqe"
DRAWS = 100


@dataclass(frozen=True)
class Target:
    """The target in the place of d3rlpy's algorithm and of its implementation; it sees standardised states."""

    policy: Linear
    centre: np.ndarray
    unit: np.ndarray
    generator: np.random.Generator

    @property
    def impl(self) -> Target:
        """Itself."""
        return self

    def actions(self, states: np.ndarray) -> np.ndarray:
        """Drawn, and clipped as they are executed."""
        raw = states * self.unit + self.centre
        if self.policy.discrete:
            reached = np.cumsum(self.policy.probs(raw), axis=1) < self.generator.random((len(raw), 1))
            return np.minimum(reached.sum(axis=1), len(self.policy.offset) - 1)
        mean = self.policy.level(raw)
        drawn = mean + self.policy.noise * self.generator.standard_normal(mean.shape)
        return np.clip(drawn, -self.policy.scale, self.policy.scale)

    def predict_best_action(self, states: Any) -> Any:
        """What d3rlpy asks for the next action."""
        import torch

        drawn = self.actions(states.numpy().astype(np.float64))
        return torch.as_tensor(drawn, dtype=torch.int64 if self.policy.discrete else torch.float32)


def dataset(columns: dict[str, np.ndarray], target: Target) -> Any:
    """The log as d3rlpy reads it."""
    import d3rlpy

    policy, states = target.policy, (columns["observation"] - target.centre) / target.unit
    actions = columns["action"] if policy.discrete else np.clip(columns["action"], -policy.scale, policy.scale)
    actions = actions.reshape(len(actions), -1)
    kind = d3rlpy.constants.ActionSpace.DISCRETE if policy.discrete else d3rlpy.constants.ActionSpace.CONTINUOUS
    return d3rlpy.dataset.MDPDataset(
        states.astype(np.float32),
        actions.astype(np.int64 if policy.discrete else np.float32),
        columns["reward"].astype(np.float32),
        columns["terminated"].astype(np.float32),
        columns["truncated"].astype(np.float32),
        action_space=kind,
        action_size=len(policy.offset),
    )


def value(columns: dict[str, np.ndarray], policy: Linear, given: argparse.Namespace, seed: int) -> float:
    """(1 − γ) times the mean of the fitted Q over first states and actions of the target."""
    import d3rlpy

    d3rlpy.seed(seed)
    states = columns["observation"]
    target = Target(policy, states.mean(axis=0), states.std(axis=0) + 1e-6, np.random.default_rng([seed, 505]))
    config = d3rlpy.ope.FQEConfig(gamma=GAMMA, batch_size=given.batch, target_update_interval=given.interval)
    fitted = (d3rlpy.ope.DiscreteFQE if policy.discrete else d3rlpy.ope.FQE)(algo=target, config=config)
    quiet = d3rlpy.logging.NoopAdapterFactory()
    options = {
        "n_steps": given.steps,
        "n_steps_per_epoch": given.steps,
        "logger_adapter": quiet,
        "show_progress": False,
    }
    fitted.fit(dataset(columns, target), **options)
    first = np.repeat((states[columns["step"] == 0] - target.centre) / target.unit, DRAWS, axis=0)
    drawn = target.actions(first)
    return (1 - GAMMA) * float(fitted.predict_value(first.astype(np.float32), drawn.astype(np.float32)).mean())


def measure(cell: Cell, size: int, seed: int, given: argparse.Namespace) -> dict[str, object]:
    """One log: its line."""
    columns, policy = read(path(given.folder, cell.name, size, seed)), cell.targets()[0]
    begin = time.process_time()
    found = value(columns, policy, given, seed)
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    said = f"{given.steps} steps, batch {given.batch}, target network every {given.interval} steps"
    return line(cell, size, seed, given.name, 0, found) | {
        "seconds": round(seconds, 2),
        "megabytes": peak,
        "said": said,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices(parser)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--interval", type=int, default=20)
    parser.add_argument("--name", default=NAME, help="in the results, for another setting")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    known = RESULTS.known(*KEYS)
    for size in given.sizes:
        for seed in given.seeds:
            for cell in (CELLS[name] for name in given.cells if CELLS[name].estimand == "discounted"):
                if (cell.name, str(size), str(seed), given.name, "0") not in known:
                    found = measure(cell, size, seed, given)
                    RESULTS.append([found])
                    print(f"{cell.name} {size} {seed}: {found['relative']} in {found['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
