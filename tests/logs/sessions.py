"""Web sessions as shops log them: a purchase ends a session, and no column says so."""

from __future__ import annotations

from typing import Any

import numpy as np

COLUMNS = ("session_id", "step", "state", "action", "reward")


def sessions(n: int = 3000, seed: int = 0) -> dict[str, list[Any]]:
    """States home and cart; an ad costs 0.1 and helps; a session ends with a purchase (10) or without one."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for session in range(n):
        state, step, over = "home", 0, False
        while not over:
            action = "ad" if rng.random() < 0.5 else "none"
            bought = state == "cart" and rng.random() < (0.6 if action == "ad" else 0.3)
            cost = -0.1 if action == "ad" else 0.0
            rows.append((session, step, state, action, 10.0 if bought else cost))
            over, step = bought or rng.random() < 0.1, step + 1
            state = "cart" if rng.random() < (0.6 if action == "ad" else 0.4) else "home"
    return {name: list(values) for name, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)}


def last_rows(log: dict[str, list[Any]]) -> list[bool]:
    """By a loop: whether a row is the last of its session."""
    ids = log["session_id"]
    return [row + 1 == len(ids) or ids[row + 1] != ids[row] for row in range(len(ids))]
