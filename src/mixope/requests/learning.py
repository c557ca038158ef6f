"""Did the loggers learn from the very rows that they wrote?

An action that was unlucky at first is then avoided, and its mean reward stays too low; one that was lucky is taken
again, and its mean comes right. So means over rows of such loggers are biased, though every row is as it should be.
What gives it away is that luck is followed: with ε = r − r̄ within the rows of a logger, state and action, and g how
often the logger, when it next came to that state (up to five times), did the same again, counted less the more often
the action had been taken before,

    z = Σ ε g / √v,    v = Σ SS(ε) SS(g) / (n − 1)   over (logger, s, a)

with v the variance over all orders of the rewards. Whoever changes for reasons of its own, and be it for the better,
does not follow the luck of single rows, and then z is standard normal.
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.requests.stale import paired
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import Transitions

VISITS = 5
"""So many next visits of the state are looked at."""
LEAST = 100
"""Rows that are followed by a visit of their state, below which nothing is said."""


def luck_followed(transitions: Transitions, ordered: OrderedRows) -> float | None:
    """z, from rows in the order of their episodes; None where too few states are visited again, or no reward varies.

    Episodes are taken to be in the order of their ids, within every logger.
    """
    group, reward = ordered.group, ordered.episodes.reward
    logger, state, action = (each[group] for each in (transitions.logger, transitions.state, transitions.action))
    place = paired(logger, state)
    turn = np.argsort(place, kind="stable")
    place, action, reward = place[turn], action[turn], reward[turn]
    again, known = _repeated(place, action)
    if known.sum() < LEAST:
        return None
    kind = paired(place, action)
    weight = 1.0 / np.sqrt(1.0 + _earlier(kind))
    kind, again, reward, weight = kind[known], again[known], reward[known], weight[known]
    tends = _centred(_centred(again, kind) * weight, kind)
    luck = _centred(reward, kind)
    luck = np.where(np.abs(luck) > 1e-9 * np.abs(reward).max(initial=0.0), luck, 0.0)
    rows = sum_by(kind, np.ones(len(kind)))
    variance = float(np.sum(sum_by(kind, luck**2) * sum_by(kind, tends**2) / np.maximum(rows - 1.0, 1.0)))
    return float(luck @ tends) / np.sqrt(variance) if variance > 0 else None


def _repeated(place: IntArray, action: IntArray) -> tuple[FloatArray, BoolArray]:
    """The share of the next visits of the same place at which the action was the same, and where there are any."""
    same, visits = np.zeros(len(place)), np.zeros(len(place))
    for ahead in range(1, VISITS + 1):
        here = np.flatnonzero(place[ahead:] == place[:-ahead])
        visits[here] += 1.0
        same[here] += action[here + ahead] == action[here]
    return np.divide(same, visits, out=same, where=visits > 0), visits > 0


def _earlier(kind: IntArray) -> FloatArray:
    """How many rows of its kind come before every row."""
    turn = np.argsort(kind, kind="stable")
    first = np.searchsorted(kind[turn], np.arange(int(kind.max(initial=-1)) + 1))
    earlier = np.empty(len(kind))
    earlier[turn] = np.arange(len(kind)) - first[kind[turn]]
    return earlier


def _centred(values: FloatArray, kind: IntArray) -> FloatArray:
    rows = sum_by(kind, np.ones(len(kind)))
    return np.asarray(values - (sum_by(kind, values) / np.maximum(rows, 1.0))[kind])
