"""Three worlds in which somebody comes and leaves again: a session in a shop, a stay in hospital, a queue that empties.

Ends are states of their own that are only ever seen as a next state. How long an episode is depends on the policy, so
that its reward per step and its total differ, and may rank policies differently (:func:`survival`).
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray
from mixope.worlds.model import Model, from_outcomes

HOME, LIST, ITEM, CART, BOUGHT, LEFT = range(6)
PLAIN, AD, SUGGESTION = range(3)
ONWARD, BACK, AWAY, STAY = range(4)
PRICE, AD_COST = 10.0, 0.1

WELL, WORST, DEAD = 0, 5, 6
WAIT, DRUG, SURGERY = range(3)
BETTER = ((0.2, 0.15), (0.36, 0.33), (0.0, 0.0))
WORSE = ((0.16, 0.2), (0.13, 0.165), (0.0, 0.0))
"""Of a stay in hospital, in every step: one row per action, one column per age group."""

LONGEST = 20
SLOW, FAST, CLOSED = range(3)
ARRIVAL, SERVICE = 0.3, (0.45, 0.7)


def sessions() -> Model:
    """Sessions: a visitor of a shop who goes on, goes back, stays, or leaves; a purchase ends the session too.

    The pages are home, list, item and cart (0 … 3), beyond which lie *bought* (4) and *left* (5); ``returning`` tells
    whether the visitor has been here before (four in ten have). In every step a visitor goes on with probability .4
    (.5 if returning), goes back with .1 (at home: stays), leaves with .1, or stays. The shop shows the page plain (0),
    with an advertisement (1) or with a suggestion (2). An advertisement moves .25 from staying to going on at home and
    in the list, but .2 to leaving later; a suggestion moves .2 to going on and .05 to going back at item and cart, and
    .15 to leaving before. A purchase, which is going on from the cart, earns 10; an advertisement costs .1.
    """
    page, returning, action, move = (index.ravel() for index in np.indices((6, 2, 3, 4)))
    after = np.select([move == ONWARD, move == BACK, move == AWAY], [page + 1, np.maximum(page - 1, HOME), LEFT], page)
    over = page >= BOUGHT
    after = np.where(over, page, after)
    buys = ~over & (after == BOUGHT)
    return from_outcomes(
        "sessions",
        shape=(12, 3),
        state=2 * page + returning,
        action=action,
        next_state=2 * after + returning,
        probability=_session_moves(page, returning, action, move),
        reward=np.where(over, 0.0, PRICE * buys - AD_COST * (action == AD)),
        terminated=after >= BOUGHT,
        start=np.array([0.6, 0.4, *[0.0] * 10]),
        factors={"page": np.arange(12) // 2, "returning": np.arange(12) % 2},
    )


def _session_moves(page: IntArray, returning: IntArray, action: IntArray, move: IntArray) -> FloatArray:
    early = page <= LIST
    onward = 0.4 + 0.1 * returning + 0.25 * ((action == AD) & early) + 0.2 * ((action == SUGGESTION) & ~early)
    back = 0.1 + 0.05 * ((action == SUGGESTION) & ~early)
    away = 0.1 + 0.2 * ((action == AD) & ~early) + 0.15 * ((action == SUGGESTION) & early)
    return np.choose(move, [onward, back, away, 1 - onward - back - away])


def survival() -> Model:
    """Survival: a patient who gets better or worse until discharge or death; one reward at the end, 1 for survival.

    The severity is 1 … 5, beyond which lie *well* (0) and *dead* (6); the age group is 0 or 1, with equal chance. A
    stay begins with severity 2, 3 or 4. In every step a patient gets one better or one worse with a probability that
    depends on age and on waiting (0) or the drug (1). Surgery (2) ends the stay at once: it kills with probability .5,
    and .05 more or less for every degree of severity above or below 3, and .05 more or less for the old or the young.

    Always operating saves 50 %, the drug 90 %; but per step, of a ward that fills its beds again, surgery earns .5 and
    the drug .07. That is the difference between the estimands ``episode`` and ``average``.
    """
    severity, age, action, outcome = (index.ravel() for index in np.indices((DEAD + 1, 2, 3, DEAD + 1)))
    over = (severity == WELL) | (severity == DEAD)
    return from_outcomes(
        "survival",
        shape=(2 * (DEAD + 1), 3),
        state=2 * severity + age,
        action=action,
        next_state=2 * outcome + age,
        probability=np.where(over, outcome == severity, _health_law(severity, age, action, outcome)),
        reward=np.where(~over & (outcome == WELL), 1.0, 0.0),
        terminated=(outcome == WELL) | (outcome == DEAD),
        start=np.repeat([0, 0, 1 / 6, 1 / 6, 1 / 6, 0, 0], 2),
        factors={"severity": np.arange(14) // 2, "old": np.arange(14) % 2},
    )


def _health_law(severity: IntArray, age: IntArray, action: IntArray, outcome: IntArray) -> FloatArray:
    better, worse = np.array(BETTER)[action, age], np.array(WORSE)[action, age]
    same = 1 - better - worse
    step = outcome - severity
    treated = np.select([step == -1, step == 1, step == 0], [better, worse, same], 0.0)
    deadly = 0.5 + 0.05 * (severity - 3) + 0.05 * (2 * age - 1)
    operated = np.select([outcome == DEAD, outcome == WELL], [deadly, 1 - deadly], 0.0)
    return np.where(action == SURGERY, operated, treated)


def emptying_queue() -> Model:
    """Queue: customers arrive and are served until nobody is left, which ends the episode.

    The length is 1 … 20 (0: empty, the end), the server's mode slow or fast. In every step one customer arrives with
    probability .3, unless the door is closed or the queue is full, and one is served with .45 (slow) or .7 (fast). The
    actions are to serve slowly (0) or fast (1), or to close the door for a step in the present mode (2). A step costs
    .05 per customer, .3 in fast mode, .5 for a change of mode and .9 for a closed door. An episode begins in slow mode
    with one to ten customers.
    """
    length, mode, action, arrives, served = (index.ravel() for index in np.indices((LONGEST + 1, 2, 3, 2, 2)))
    then = np.where(action == CLOSED, mode, action)
    empty, shut = length == 0, (action == CLOSED) | (length == LONGEST)
    after = np.where(empty, 0, length + arrives - served)
    cost = 0.05 * length + 0.3 * (then == FAST) + 0.5 * (then != mode) + 0.9 * (action == CLOSED)
    arriving, serving = np.where(shut, 0.0, ARRIVAL), np.array(SERVICE)[then]
    starts: AnyArray = np.where((np.arange(42) % 2 == SLOW) & (np.arange(42) // 2 <= 10), 0.1, 0.0)
    starts[0] = 0.0
    return from_outcomes(
        "queue",
        shape=(2 * (LONGEST + 1), 3),
        state=2 * length + mode,
        action=action,
        next_state=2 * np.minimum(after, LONGEST) + np.where(empty, mode, then),
        probability=np.choose(arrives, [1 - arriving, arriving]) * np.choose(served, [1 - serving, serving]),
        reward=np.where(empty, 0.0, -cost),
        terminated=after == 0,
        start=starts,
        factors={"length": np.arange(42) // 2, "fast": np.arange(42) % 2},
    )
