"""Walk: six cells in a row whose two ends terminate the episode, the smallest environment in which episodes end.

Actions are left (0) and right (1); with probability ``stay`` the agent does not move. Arrival at the right end earns
+1, everything else 0. Episodes start in one of the two middle cells, with equal chance. The end cells are only ever
seen as a next state.
"""

from __future__ import annotations

import numpy as np

from mixope.environments.model import Model, from_outcomes
from mixope.errors import UsageError

N_STATES = 6
LEFT_END, RIGHT_END = 0, N_STATES - 1


def walk(stay: float = 0.1) -> Model:
    """Walk; ``stay`` is the probability that an action does nothing."""
    if not 0 <= stay < 1:
        raise UsageError(f"expected a probability to stay in [0, 1), got {stay}")
    state, action, moves = (index.ravel() for index in np.indices((N_STATES, 2, 2)))
    at_end = (state == LEFT_END) | (state == RIGHT_END)
    next_state = np.where(at_end | (moves == 0), state, state + 2 * action - 1)
    return from_outcomes(
        "walk",
        shape=(N_STATES, 2),
        state=state,
        action=action,
        next_state=next_state,
        probability=np.where(moves == 1, 1 - stay, stay),
        reward=np.where(~at_end & (next_state == RIGHT_END), 1.0, 0.0),
        terminated=(next_state == LEFT_END) | (next_state == RIGHT_END),
        start=np.array([0, 0, 0.5, 0.5, 0, 0]),
        factors={"cell": np.arange(N_STATES)},
    )
