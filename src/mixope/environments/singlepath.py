"""SinglePath: a ring of five states in which an action goes one state forward or stays.

The paper leaves the probabilities open. Ours: action 0 goes forward with probability .9 in even states and .24 in odd
ones, action 1 with .3 and .72, so that neither action is best everywhere. Arrival at a new state earns +1, staying −1.
After state 4 comes state 0 again; episodes start in state 0 and never end.
"""

from __future__ import annotations

import numpy as np

from mixope.environments.model import Model, from_outcomes

N_STATES = 5
FORWARD = ((0.9, 0.3), (0.24, 0.72))
"""Probability of going forward: one row for even states, one for odd ones; one column an action."""


def singlepath() -> Model:
    """SinglePath with the forward probabilities above."""
    state, action, forward = (index.ravel() for index in np.indices((N_STATES, 2, 2)))
    chance = np.array(FORWARD)[state % 2, action]
    return from_outcomes(
        "singlepath",
        shape=(N_STATES, 2),
        state=state,
        action=action,
        next_state=(state + forward) % N_STATES,
        probability=np.where(forward == 1, chance, 1 - chance),
        reward=np.where(forward == 1, 1.0, -1.0),
        start=np.eye(N_STATES)[0],
    )
