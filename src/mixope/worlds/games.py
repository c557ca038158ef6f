"""Two games that end with their one reward: FrozenLake and Blackjack, as Gymnasium has them."""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray
from mixope.worlds.model import Model, from_outcomes

SIDE = 4
LAKE = "SFFF FHFH FFFH HFFG"
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))

STICK, HIT = range(2)
CARDS = np.array([1 / 13] * 9 + [4 / 13])
"""Of an infinite deck: ace to nine, and ten with the pictures."""
HARD, SOFT = range(4, 22), range(12, 22)
LOST, DRAWN, WON = range(3)
ENOUGH, MOST = 17, 21


def frozenlake(slip: float = 2 / 3) -> Model:
    """FrozenLake, 4 × 4: from the start to the goal over ice with holes; 1 for the goal, which ends as a hole does.

    Cells are numbered row by row; actions are left, down, right, up. A move goes as meant with probability
    1 − ``slip``, else to either side of that direction with equal chance; a wall keeps the agent in place::

        S . . .
        . H . H
        . . . H
        H . . G
    """
    n_states, n_actions = SIDE * SIDE, len(MOVES)
    state, action, turn = (index.ravel() for index in np.indices((n_states, n_actions, 3)))
    ends = np.array([cell in "HG" for cell in LAKE.replace(" ", "")])
    step = np.array(MOVES)[(action + turn - 1) % n_actions]
    row, column = np.clip(state // SIDE + step[:, 0], 0, SIDE - 1), np.clip(state % SIDE + step[:, 1], 0, SIDE - 1)
    after = np.where(ends[state], state, SIDE * row + column)
    return from_outcomes(
        "frozenlake",
        shape=(n_states, n_actions),
        state=state,
        action=action,
        next_state=after,
        probability=np.where(turn == 1, 1 - slip, slip / 2),
        reward=np.where(~ends[state] & (after == n_states - 1), 1.0, 0.0),
        terminated=ends[after],
        start=np.eye(n_states)[0],
        factors={"row": np.arange(n_states) // SIDE, "column": np.arange(n_states) % SIDE},
    )


def blackjack() -> Model:
    """Blackjack against a dealer who draws to 17, from an infinite deck; +1, 0 or −1 at the end.

    A state is the sum of the player's cards, the dealer's open card (1 is an ace) and whether the player has an ace
    that counts 11 (``usable``). Actions are to stick (0), whereupon the dealer plays and the higher sum wins, and to
    hit (1); more than 21 loses. A first hand of 21 has no privilege. The three outcomes are states of their own, with
    the dealer's card 0 and the sum 0 (lost), 1 (drawn) or 2 (won).
    """
    hands = [*((total, 0) for total in HARD), *((total, 1) for total in SOFT)]
    place = {hand: k for k, hand in enumerate(hands)}
    first_end = 10 * len(hands)
    outcomes = [
        (10 * k + card - 1, *found)
        for k, hand in enumerate(hands)
        for card in range(1, 11)
        for found in (*_sticks(hand[0], card, first_end), *_hits(hand, card, place, first_end))
    ]
    outcomes += [(first_end + end, action, first_end + end, 1.0, 0.0) for end in range(3) for action in range(2)]
    state, action, after, probability, reward = (np.array(part) for part in zip(*outcomes, strict=True))
    return from_outcomes(
        "blackjack",
        shape=(first_end + 3, 2),
        state=state,
        action=action,
        next_state=after,
        probability=probability,
        reward=reward,
        terminated=after >= first_end,
        start=_dealt(place, first_end + 3),
        factors=_blackjack_factors(hands),
    )


Outcome = tuple[int, int, float, float]
"""Action, next state, probability, reward."""


def _sticks(total: int, card: int, first_end: int) -> list[Outcome]:
    dealer = dealer_law(card)
    sums = np.arange(len(dealer))
    beaten = (sums > MOST) | (sums < total)
    won, drawn = float(dealer[beaten].sum()), float(dealer[sums == total].sum())
    ends = ((LOST, 1 - won - drawn, -1.0), (DRAWN, drawn, 0.0), (WON, won, 1.0))
    return [(STICK, first_end + end, chance, reward) for end, chance, reward in ends]


def _hits(hand: tuple[int, int], card: int, place: dict[tuple[int, int], int], first_end: int) -> list[Outcome]:
    found = []
    for drawn, chance in enumerate(CARDS.tolist(), start=1):
        after = _with(hand, drawn)
        lost = after[0] > MOST
        state = first_end + LOST if lost else 10 * place[after] + card - 1
        found.append((HIT, state, chance, -1.0 if lost else 0.0))
    return found


def _with(hand: tuple[int, int], card: int) -> tuple[int, int]:
    """The sum and the usable ace after one card more."""
    total, usable = hand[0] + card, hand[1]
    if card == 1 and not usable and total + 10 <= MOST:
        return total + 10, 1
    if usable and total > MOST:
        return total - 10, 0
    return total, usable


def dealer_law(card: int) -> FloatArray:
    """The law of the dealer's last sum, 0 … 26, given the open card; more than 21 is bust."""
    law, going = np.zeros(27), {_with((0, 0), card): 1.0}
    while going:
        ahead: dict[tuple[int, int], float] = {}
        for hand, chance in going.items():
            for drawn, share in enumerate(CARDS.tolist(), start=1):
                after = _with(hand, drawn)
                if after[0] >= ENOUGH:
                    law[after[0]] += chance * share
                else:
                    ahead[after] = ahead.get(after, 0.0) + chance * share
        going = ahead
    return law


def _dealt(place: dict[tuple[int, int], int], n_states: int) -> FloatArray:
    """Two cards for the player, one open card for the dealer."""
    start = np.zeros(n_states)
    for (first, second), chance in np.ndenumerate(np.outer(CARDS, CARDS)):
        k = 10 * place[_with(_with((0, 0), first + 1), second + 1)]
        start[k : k + 10] += chance * CARDS
    return start


def _blackjack_factors(hands: list[tuple[int, int]]) -> dict[str, IntArray]:
    ends: AnyArray = np.arange(3)
    total, usable = (np.repeat(part, 10) for part in zip(*hands, strict=True))
    return {
        "sum": np.concatenate([total, ends]),
        "dealer": np.concatenate([np.tile(np.arange(1, 11), len(hands)), 0 * ends]),
        "usable": np.concatenate([usable, 0 * ends]),
    }
