"""Small experiments with known answers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

WORDS = {"arm": "variant", "control": "A", "unit": "user", "time": "day", "metric": "revenue"}


def two_states(users: int = 400, days: int = 8, seed: int = 0, effect: float = 0.0) -> pa.Table:
    """Users that are tired or not: B earns ``effect`` more at once and tires people, who earn 1 less."""
    rng = np.random.default_rng(seed)
    arm = np.arange(users) % 2
    tired = np.zeros(users, dtype=np.int64)
    parts = []
    for day in range(days):
        revenue = 1.0 - tired + effect * arm + rng.normal(0, 0.1, users)
        parts.append((np.arange(users), np.full(users, day), arm, tired.copy(), revenue))
        tires = rng.random(users) < np.where(arm == 1, 0.4, 0.2)
        tired = np.where(tired == 1, (rng.random(users) >= 0.5).astype(np.int64), tires.astype(np.int64))
    user, day, arm, tired, revenue = (np.concatenate(column) for column in zip(*parts, strict=True))
    return pa.table(
        {"user": user, "day": day, "variant": np.array(["A", "B"])[arm], "tired": tired, "revenue": revenue}
    )


def long_run(effect: float) -> float:
    """B less A: P(tired) is p/(p + .5) with p = .4 under B and .2 under A."""
    return effect - 0.4 / 0.9 + 0.2 / 0.7
