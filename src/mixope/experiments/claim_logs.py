"""One repetition of the claims by simulation: a log, and the error of every method asked for.

``change`` is what the last logger's recorder does to rewards: nothing, ``noise`` (an independent normal error of
SPREAD standard deviations of the logged rewards) or ``drift`` (a constant of one standard deviation).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from mixope import environments
from mixope.arrays import FloatArray
from mixope.environments import pendulum
from mixope.estimand import Estimand
from mixope.estimators import REGISTRY
from mixope.evaluation import answer, look
from mixope.experiments.experiment import Row
from mixope.experiments.worlds import PENDULUM, World, world
from mixope.features import NormalisedBumps

Change = Literal["", "noise", "drift"]
SPREAD = 3.0
PAPER = ":paper"
"""After the name of a method: the paper's form of it."""


@dataclass(frozen=True)
class ClaimLog:
    """``methods`` with commas between; ``gamma`` 0 is the average; ``bumps`` features for vectors (0: the default)."""

    environment: str
    loggers: int
    episodes: int
    horizon: int
    methods: str
    gamma: float
    change: Change
    bumps: int
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-15, one core."""
        rows, methods = self.episodes * self.horizon, self.methods.count(",") + 1
        if self.environment == PENDULUM:
            return methods * (0.3 + rows / 6000)
        return 0.01 + rows / 400_000 + methods * (0.004 + rows / 3_000_000)

    def measure(self) -> list[Row]:
        """One row a method: its error, and the least variance that there can be."""
        here = world(self.environment, self.loggers)
        name = zlib.crc32(f"{self.environment} {self.loggers} {self.episodes} {self.horizon} {self.change}".encode())
        seed = int(np.random.SeedSequence([self.seed, name, self.repetition]).generate_state(1)[0])
        logs = here.simulate(self.episodes, self.horizon, seed)
        if self.change:
            logs = {**logs, "reward": logs["reward"] + self._disturbance(here, logs, seed)}
        truth = true_value(self.environment, self.loggers, self.gamma)
        found = self._values(here, logs)
        return [{"method": name, "error": None if value is None else value - truth} for name, value in found.items()]

    def _values(self, here: World, logs: Any) -> dict[str, float | None]:
        seen = look(logs, features=NormalisedBumps(self.bumps) if self.bumps else None)
        estimand = Estimand("discounted", gamma=self.gamma) if self.gamma else Estimand("average")
        names = self.methods.split(",")
        values: dict[str, float | None] = dict.fromkeys(names)
        for forms in ([n for n in names if not n.endswith(PAPER)], [n for n in names if n.endswith(PAPER)]):
            made = [REGISTRY[n.removesuffix(PAPER)].make(form="paper") if n.endswith(PAPER) else n for n in forms]
            options = {"estimand": estimand, "level": 0.95, "loggers": here.loggers, "skipped": []}
            for estimate in answer(seen, {"target": here.target}, made, **options):
                (name,) = (n for n in forms if n.removesuffix(PAPER) == estimate.estimator)
                values[name] = estimate.value
        return values

    def _disturbance(self, here: World, logs: Any, seed: int) -> FloatArray:
        mine = logs["policy_id"] == f"logger-{self.loggers - 1}"
        scale = reward_spread(here, self.horizon)
        if self.change == "drift":
            return np.where(mine, scale, 0.0)
        return np.where(mine, SPREAD * scale * np.random.default_rng([seed, 1]).normal(size=len(mine)), 0.0)


@lru_cache(maxsize=64)
def true_value(environment: str, loggers: int, gamma: float) -> float:
    """The average (gamma 0) or the discounted value of the target."""
    here = world(environment, loggers)
    if not gamma:
        return here.truth
    if here.model is None:
        return pendulum.discounted_truth(here.target, gamma).value
    return environments.truth.discounted(here.model, here.target.probabilities, gamma)


def reward_spread(here: World, horizon: int) -> float:
    """The standard deviation of a logged reward, exact."""
    assert here.model is not None
    d0 = environments.logged_law(here.model, [policy.probabilities for policy in here.loggers.values()], horizon)
    first, second = ((d0 * here.model.expected(here.model.reward**k)).sum() for k in (1, 2))
    return float(np.sqrt(second - first**2))
