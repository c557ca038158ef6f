"""One repetition of the error figures: a simulated log, and what every method makes of it.

Squared errors are against the long-run average of the target, also those of trajectory weights, which see only the
first ``horizon`` steps: that is what the paper compares. The log depends on everything here but the form, so that both
forms see the same one.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np

from mixope.estimand import Estimand
from mixope.evaluation import answer, look
from mixope.experiments.experiment import Row
from mixope.experiments.methods import SEVERAL, SINGLE, Form, make
from mixope.experiments.worlds import PENDULUM, TRAINED, world
from mixope.features import NormalisedBumps


@dataclass(frozen=True)
class Evaluated:
    """``episodes`` trajectories in all of ``horizon`` steps; ``bumps`` features for vectors (0: the default)."""

    environment: str
    loggers: int
    episodes: int
    horizon: int
    form: Form
    bumps: int
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-15, one core: proportional to rows, with a start; the paper's program on Taxi is dense."""
        rows, several = self.episodes * self.horizon, self.loggers > 1
        if self.environment in (PENDULUM, TRAINED):
            base = 16.0 * math.pow(rows / 5000, 1.1) if several else 2.8 * math.pow(rows / 5000, 1.55)
            return base if self.bumps == 0 else min(base, 0.5 + rows / 5000)
        if self.form == "paper" and self.environment == "taxi":
            return (7.0 if several else 2.0) * math.sqrt(rows / 40_000)
        return (0.02 + rows / 200_000) * (1.6 if several else 1.0)

    def simulation_seed(self) -> int:
        """Of everything but the form."""
        name = zlib.crc32(f"{self.environment} {self.loggers} {self.episodes} {self.horizon}".encode())
        return int(np.random.SeedSequence([self.seed, name, self.repetition]).generate_state(1)[0])

    def measure(self) -> list[Row]:
        """One row a method: its value, or why it gave none."""
        here = world(self.environment, self.loggers)
        logs = here.simulate(self.episodes, self.horizon, self.simulation_seed())
        seen = look(logs, features=NormalisedBumps(self.bumps) if self.bumps else None)
        methods = (SEVERAL if self.loggers > 1 else SINGLE)[self.form]
        bound, rows = here.bound(self.horizon), self.episodes * self.horizon
        known = {"truth": here.truth, "bound": None if bound is None else bound / rows}
        refused: list[tuple[str, str]] = []
        found = answer(
            seen,
            {"target": here.target},
            [make(name, self.form) for name in methods],
            estimand=Estimand("average"),
            level=0.95,
            loggers=here.loggers,
            skipped=refused,
        )
        values = {estimate.estimator: estimate.value for estimate in found}
        reasons = dict(refused)
        return [{"method": name, "value": values.get(name), "refusal": reasons.get(name), **known} for name in methods]
