"""Gridworld, 4 × 4 (Thomas & Brunskill 2016), made continuing: the terminal cell leads back to the first.

Cells are numbered row by row from the top left; actions are up, down, left, right; a wall keeps the agent in place::

    S  .  .  .       S start (0)          reward by the *current* cell, whatever the action:
    .  F  .  .       F fire (5)           −1 normal, −11 fire, +1 reward cell, +100 terminal
    .  R  .  .       R reward cell (9)
    .  .  .  T       T terminal (15): every action leads to S, as a transition and not as an end

With probability ``slip`` a move goes in a direction drawn uniformly from all four, the meant one among them.
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray, IntArray
from mixope.environments.model import Model, from_outcomes
from mixope.errors import UsageError

SIDE = 4
START, FIRE, REWARD, TERMINAL = 0, 5, 9, 15
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def gridworld(slip: float = 0.0) -> Model:
    """Gridworld; without slip its dynamics are deterministic and the efficiency bound is 0."""
    if not 0 <= slip <= 1:
        raise UsageError(f"expected a slip between 0 and 1, got {slip}")
    n_states, n_actions = SIDE * SIDE, len(MOVES)
    state, action, direction = (index.ravel() for index in np.indices((n_states, n_actions, n_actions)))
    return from_outcomes(
        "gridworld",
        shape=(n_states, n_actions),
        state=state,
        action=action,
        next_state=_moved(state, direction),
        probability=np.where(action == direction, 1 - slip, 0.0) + slip / n_actions,
        reward=_cell_rewards()[state],
        start=np.eye(n_states)[START],
        factors={"row": np.arange(n_states) // SIDE, "column": np.arange(n_states) % SIDE},
    )


def _moved(cell: IntArray, direction: IntArray) -> IntArray:
    step = np.array(MOVES)[direction]
    row = np.clip(cell // SIDE + step[:, 0], 0, SIDE - 1)
    column = np.clip(cell % SIDE + step[:, 1], 0, SIDE - 1)
    return np.where(cell == TERMINAL, START, row * SIDE + column)


def _cell_rewards() -> FloatArray:
    rewards = np.full(SIDE * SIDE, -1.0)
    rewards[[FIRE, REWARD, TERMINAL]] = -11.0, 1.0, 100.0
    return rewards
