"""Machines: a ring of machines that fail and are rebooted, a world of many states with few causes.

Every machine runs or is down; the state is all of them, 2ⁿ states with n binary factors. Action i reboots machine i,
which runs afterwards; the last action does nothing. In every step one machine, drawn at random, is put to the test: if
it runs it fails with probability ``fail``, or ``infected`` if its left neighbour is down. (SysAdmin of Guestrin et al.
2003, with one test per step instead of n at once, so that the model is sparse.) A step earns the share of machines that
run before it, less ``cost`` for a reboot. All machines run at the start.
"""

from __future__ import annotations

import numpy as np

from mixope.base.errors import UsageError
from mixope.worlds.model import Model, from_outcomes


def machines(n: int = 6, fail: float = 0.3, infected: float = 0.9, cost: float = 0.1) -> Model:
    """A ring of ``n`` machines: 2ⁿ states, n + 1 actions."""
    if not 2 <= n <= 16:
        raise UsageError(f"expected 2 to 16 machines, got {n}")
    if not 0 < fail <= infected < 1:
        raise UsageError(f"expected probabilities 0 < fail ≤ infected < 1, got {fail} and {infected}")
    n_states = 2**n
    state, action, tested, fails = (index.ravel() for index in np.indices((n_states, n + 1, n, 2)))
    runs, left_runs = state >> tested & 1, state >> ((tested - 1) % n) & 1
    chance = np.where(left_runs == 1, fail, infected) * runs
    after = np.where(fails & runs, state & ~(1 << tested), state)
    rebooted = np.where(action < n, after | (1 << np.minimum(action, n - 1)), after)
    running = sum(state >> i & 1 for i in range(n)) / n
    return from_outcomes(
        "machines",
        shape=(n_states, n + 1),
        state=state,
        action=action,
        next_state=rebooted,
        probability=np.where(fails == 1, chance, 1 - chance) / n,
        reward=running - cost * (action < n),
        start=(np.arange(n_states) == n_states - 1).astype(np.float64),
        factors={f"machine_{i}": np.arange(n_states) >> i & 1 for i in range(n)},
    )
