"""Three small environments, the cases that tests and figures turn to first: a grid, a ring, and a walk that ends."""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.worlds.model import Model, from_outcomes

SIDE = 4
START, FIRE, REWARD, TERMINAL = 0, 5, 9, 15
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
RING = 5
FORWARD = ((0.9, 0.3), (0.24, 0.72))
"""SinglePath's probability of going forward: one row for even states, one for odd ones; one column per action."""
CELLS = 6
LEFT_END, RIGHT_END = 0, CELLS - 1


def gridworld(slip: float = 0.0) -> Model:
    """Gridworld, 4 × 4 (Thomas & Brunskill 2016), made continuing: the terminal cell leads back to the first.

    Cells are numbered row by row from the top left; actions are up, down, left, right; a wall keeps the agent in
    place::

        S  .  .  .       S start (0)          reward by the *current* cell, whatever the action:
        .  F  .  .       F fire (5)           −1 normal, −11 fire, +1 reward cell, +100 terminal
        .  R  .  .       R reward cell (9)
        .  .  .  T       T terminal (15): every action leads to S, as a transition and not as an end

    With probability ``slip`` a move goes in a direction drawn uniformly from all four, the meant one among them;
    without slip the dynamics are deterministic and the efficiency bound is 0.
    """
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


def singlepath() -> Model:
    """SinglePath: a ring of five states in which an action goes one state forward or stays.

    The paper leaves the probabilities open. Ours: action 0 goes forward with probability .9 in even states and .24 in
    odd ones, action 1 with .3 and .72, so that neither action is best everywhere. Arrival at a new state earns +1,
    staying −1. After state 4 comes state 0 again; episodes start in state 0 and never end.
    """
    state, action, forward = (index.ravel() for index in np.indices((RING, 2, 2)))
    chance = np.array(FORWARD)[state % 2, action]
    return from_outcomes(
        "singlepath",
        shape=(RING, 2),
        state=state,
        action=action,
        next_state=(state + forward) % RING,
        probability=np.where(forward == 1, chance, 1 - chance),
        reward=np.where(forward == 1, 1.0, -1.0),
        start=np.eye(RING)[0],
    )


def walk(stay: float = 0.1) -> Model:
    """Walk: six cells in a row whose two ends terminate the episode, the smallest environment in which episodes end.

    Actions are left (0) and right (1); with probability ``stay`` the agent does not move. Arrival at the right end
    earns +1, everything else 0. Episodes start in one of the two middle cells, with equal chance. The end cells are
    only ever seen as a next state.
    """
    if not 0 <= stay < 1:
        raise UsageError(f"expected a probability to stay in [0, 1), got {stay}")
    state, action, moves = (index.ravel() for index in np.indices((CELLS, 2, 2)))
    at_end = (state == LEFT_END) | (state == RIGHT_END)
    next_state = np.where(at_end | (moves == 0), state, state + 2 * action - 1)
    return from_outcomes(
        "walk",
        shape=(CELLS, 2),
        state=state,
        action=action,
        next_state=next_state,
        probability=np.where(moves == 1, 1 - stay, stay),
        reward=np.where(~at_end & (next_state == RIGHT_END), 1.0, 0.0),
        terminated=(next_state == LEFT_END) | (next_state == RIGHT_END),
        start=np.array([0, 0, 0.5, 0.5, 0, 0]),
        factors={"cell": np.arange(CELLS)},
    )
