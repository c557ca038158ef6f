"""Taxi, 5 × 5, continuing, with 2000 states (Dietterich 2000, in the form of Liu et al. 2018).

A state is (row, column, four passenger bits, taxi): the cell of the taxi, whether somebody waits at each corner, and
whether the taxi is empty (4) or carries a passenger bound for corner 0 … 3. Its id is
``taxi + 5·(passengers + 16·(5·row + column))``, bit i of ``passengers`` being corner i. Corners 0 … 3 lie at
(row, column) = (0, 0), (0, 4), (4, 0), (4, 4); rows count northwards. There are no inner walls.

Within a step, in this order:

1. The action. North, east, south, west (0 … 3) move one cell, or nowhere at the border. *Pick up* (4) at a corner where
   somebody waits takes that passenger, whose destination is uniform over the other three corners; a passenger already
   aboard gets off there, unpaid. *Drop off* (5) empties the taxi wherever it is.
2. The reward: −1, but +20 *instead* for a drop-off at the destination (and for a pick-up, with ``pickup_bonus``: the
   paper's text has it, the public code of Liu et al. has not).
3. The passengers: at each corner, independently, a waiting one leaves with probability .05, .1, .1, .05, and an empty
   corner gets one with probability .3, .05, .1, .2. The corner just emptied by a pick-up may fill again at once.

Episodes start with an empty taxi, its cell and the passenger bits uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray
from mixope.worlds.model import Model, from_outcomes

SIDE = 5
CORNERS = ((0, 0), (0, SIDE - 1), (SIDE - 1, 0), (SIDE - 1, SIDE - 1))
APPEAR = (0.3, 0.05, 0.1, 0.2)
LEAVE = (0.05, 0.1, 0.1, 0.05)
MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1), (0, 0), (0, 0))
PICK, DROP = 4, 5
EMPTY, CROWDS, N_STATES, N_ACTIONS = 4, 16, 2000, 6
STEP_REWARD, FARE = -1.0, 20.0


@dataclass(frozen=True, eq=False)
class _States:
    """Factored states, one array per factor."""

    row: IntArray
    column: IntArray
    passengers: IntArray
    taxi: IntArray

    def ids(self) -> IntArray:
        cell: IntArray = SIDE * self.row + self.column
        return np.asarray(self.taxi + 5 * (self.passengers + CROWDS * cell), dtype=np.int64)

    def corner(self) -> IntArray:
        """The corner the taxi stands at, −1 elsewhere."""
        at = np.full(len(self.row), -1)
        for i, (row, column) in enumerate(CORNERS):
            at[(self.row == row) & (self.column == column)] = i
        return at


def taxi(pickup_bonus: bool = False) -> Model:
    """Taxi; with ``pickup_bonus`` a successful pick-up earns +20 instead of −1."""
    state, action, destination, crowd = (
        index.ravel() for index in np.indices((N_STATES, N_ACTIONS, len(CORNERS), CROWDS))
    )
    before = _decoded(state)
    picks, pays = _pick_up(before, action), _drop_off_pays(before, action)
    moved = _acted(before, action, picks, destination)
    after = _States(moved.row, moved.column, crowd, moved.taxi)
    return from_outcomes(
        "taxi",
        shape=(N_STATES, N_ACTIONS),
        state=state,
        action=action,
        next_state=after.ids(),
        probability=_destination_law(before, picks, destination) * crowd_law()[moved.passengers, crowd],
        reward=np.where(pays | (picks & pickup_bonus), FARE, STEP_REWARD),
        start=_start(),
        factors=_factors(),
    )


def crowd_law() -> FloatArray:
    """P(passenger bits after | bits before), the four corners being independent: shape (16, 16)."""
    before, after, corner = np.indices((CROWDS, CROWDS, len(CORNERS)))
    waits, will_wait = before >> corner & 1, after >> corner & 1
    chance_to_wait = np.where(waits == 1, 1 - np.array(LEAVE), np.array(APPEAR))
    chance: FloatArray = np.where(will_wait == 1, chance_to_wait, 1 - chance_to_wait).prod(axis=2)
    return chance


def _decoded(state: IntArray) -> _States:
    cell, passengers = state // (5 * CROWDS), state // 5 % CROWDS
    return _States(cell // SIDE, cell % SIDE, passengers, state % 5)


def _pick_up(before: _States, action: IntArray) -> BoolArray:
    corner = before.corner()
    waits = before.passengers >> np.maximum(corner, 0) & 1
    return np.asarray((action == PICK) & (corner >= 0) & (waits == 1), dtype=bool)


def _drop_off_pays(before: _States, action: IntArray) -> BoolArray:
    arrived = (before.taxi != EMPTY) & (before.corner() == before.taxi)
    return np.asarray((action == DROP) & arrived, dtype=bool)


def _acted(before: _States, action: IntArray, picks: BoolArray, destination: IntArray) -> _States:
    """The state after the action and before the passengers change."""
    step = np.array(MOVES)[action]
    left = before.passengers - np.where(picks, 1 << np.maximum(before.corner(), 0), 0)
    rider = np.where(picks, destination, np.where(action == DROP, EMPTY, before.taxi))
    row, column = np.clip(before.row + step[:, 0], 0, SIDE - 1), np.clip(before.column + step[:, 1], 0, SIDE - 1)
    return _States(row, column, left, rider)


def _destination_law(before: _States, picks: BoolArray, destination: IntArray) -> FloatArray:
    """Uniform over the other corners after a pick-up; without one, all mass on a dummy destination 0."""
    others = np.where(destination == before.corner(), 0.0, 1 / 3)
    return np.where(picks, others, np.where(destination == 0, 1.0, 0.0))


def _start() -> FloatArray:
    empty = np.arange(N_STATES) % 5 == EMPTY
    return np.asarray(empty / empty.sum(), dtype=np.float64)


def _factors() -> dict[str, IntArray]:
    states = _decoded(np.arange(N_STATES))
    bits = {f"passenger_{i}": states.passengers >> i & 1 for i in range(len(CORNERS))}
    return {"row": states.row, "column": states.column, **bits, "taxi": states.taxi}
