"""Was an action chosen in the state that stands beside it, or in the next one?

A recorder that writes the state of the step before beside an action keeps rows (s₋₁, a, r, s): they hang together, and
no sum over rows sees that they are another world's. But two readings of them differ in what they take for independent,
both being laws of (a, s′) given (s, a₋₁), a₋₁ the action of the row before:

    own     P(a | s, a₋₁) P(s′ | s, a)          s′ does not depend on a₋₁ given (s, a)
    stale   P(s′ | s, a₋₁) P(a | s′, a₋₁)       a does not depend on s given (s′, a₋₁)

The first holds for any loggers, also several that nobody named, or one that remembers what it did: given a₋₁ it is
exact wherever states are Markov, so that no other law can tell (a, s′) better in the mean. Both have tables of
the same size, and each cell is predicted by the other rows of its kind, shrunk towards coarser ones. Two statistics:

    gain     Σ log stale − log own by episode: above zero only if the stale reading tells more
    history  Pearson's χ² of s′ against a₋₁ within every (s, a), the first being no more than chance

Rows that end an episode are left out, on either side: they have no next state. Where states are vectors, the four laws
are normal around quadratics, and the stale reading has to tell a margin more, because quadratics only approximate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, distinct, sum_by
from mixope.requests.rows import Rows
from mixope.requests.shifts import ROWS_PER_FEATURE, neighbours, parts_of_transitions, quadratic
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import Transitions

LEAST_ROWS = 5
"""Rows that a pair must have to be compared on it: χ² is not χ² on fewer."""
MARGIN = 0.02
"""On vectors: what the stale reading must tell more of every row, in nats."""
_FLOOR = 1e-9
"""The share of its variance below which what a regression leaves of a number is rounding."""


@dataclass(frozen=True)
class Staleness:
    """What the stale reading tells more, by episode; χ² of what the action before tells, and its degrees of freedom.

    ``chi_squared`` is None where states are vectors.
    """

    gain: FloatArray
    chi_squared: float | None = None
    degrees: float = 0.0


def stale_states(transitions: Transitions, ordered: OrderedRows) -> Staleness | None:
    """From rows in the order of their episodes; None where no row that goes on follows another."""
    episode, group = ordered.episodes.episode, ordered.group
    follows = np.flatnonzero(episode[1:] == episode[:-1]) + 1
    follows = follows[transitions.next_state[group[follows]] >= 0]
    if not len(follows):
        return None
    here, there = transitions.state[group[follows]], transitions.next_state[group[follows]]
    action, before = transitions.action[group[follows]], transitions.action[group[follows - 1]]
    pair, with_before, ahead = paired(here, action), paired(here, before), paired(there, before)
    arrives = predicted(here, there, 1.0 / (int(there.max()) + 1))
    acts = predicted(np.zeros_like(action), action, 1.0 / (int(action.max()) + 1))
    own = predicted(with_before, action, predicted(here, action, acts)) * predicted(pair, there, arrives)
    stale = predicted(ahead, action, predicted(there, action, acts)) * predicted(with_before, there, arrives)
    gain = sum_by(episode[follows], np.log(stale) - np.log(own), ordered.episodes.n_episodes)
    return Staleness(gain, *pearson_within(pair, there, before))


def paired(left: IntArray, right: IntArray) -> IntArray:
    """A number for every pair of numbers that occurs."""
    width = int(right.max(initial=0)) + 1
    return distinct(left * width + right, (int(left.max(initial=0)) + 1) * width)[1]


def predicted(given: IntArray, outcome: IntArray, prior: FloatArray | float) -> FloatArray:
    """The chance of every row's outcome, by all other rows with the same condition and one that follows the prior."""
    alike, all_ = (np.bincount(code)[code] for code in (paired(given, outcome), given))
    return np.asarray((alike - 1.0 + prior) / all_)


def pearson_within(stratum: IntArray, left: IntArray, right: IntArray) -> tuple[float, float]:
    """χ² of independence within strata of enough rows, and its degrees of freedom.

    With margins as they are, Σ (n − e)²/e of a stratum of N rows has the mean N/(N − 1) · degrees, hence (N − 1)/N.
    """
    enough = np.bincount(stratum)[stratum] >= LEAST_ROWS
    stratum, left, right = stratum[enough], left[enough], right[enough]
    if not len(stratum):
        return 0.0, 0.0
    rows = np.bincount(stratum).astype(np.float64)
    one, other = paired(stratum, left), paired(stratum, right)
    cell = paired(one, other)
    of_one, of_other, together = np.bincount(one), np.bincount(other), np.bincount(cell)
    last = np.zeros(len(together), dtype=np.int64)
    last[cell] = np.arange(len(cell))
    expected = of_one[one[last]] * of_other[other[last]] / rows[stratum[last]]
    statistic = sum_by(stratum[last], together**2 / expected, len(rows)) - rows
    degrees = np.maximum(_kinds(one, stratum, len(rows)) - 1.0, 0.0) * np.maximum(
        _kinds(other, stratum, len(rows)) - 1.0, 0.0
    )
    shrunk = statistic * (rows - 1.0) / np.maximum(rows, 1.0)
    return float(np.sum(np.where(degrees > 0, shrunk, 0.0))), float(degrees.sum())


def _kinds(kind: IntArray, stratum: IntArray, n: int) -> IntArray:
    """How many kinds every stratum has."""
    of_kind = np.zeros(int(kind.max()) + 1, dtype=np.int64)
    of_kind[kind] = stratum
    return np.bincount(of_kind, minlength=n)


def stale_vectors(rows: Rows) -> Staleness | None:
    """From a sample of the rows; None where states are no vectors, or where too few rows have a neighbour."""
    parts = parts_of_transitions(rows)
    if parts is None or rows.episode is None:
        return None
    before, after = neighbours(rows)
    goes_on = ~rows.terminated[after]
    before, after = before[goes_on], after[goes_on]
    if len(after) < 2:
        return None
    here, action, there = (part[after] for part in parts)
    earlier = parts[1][before]
    if len(after) < ROWS_PER_FEATURE * (1 + quadratic(here, action).shape[1]):
        return None
    with_earlier = quadratic(here, earlier)
    own = _told(there, quadratic(here, action)) + _told(action, with_earlier)
    stale = _told(there, with_earlier) + _told(action, quadratic(there, earlier))
    _, number = np.unique(rows.episode[after], return_inverse=True)
    return Staleness(sum_by(number, stale - own - MARGIN))


def _told(outcome: FloatArray, features: FloatArray) -> FloatArray:
    """The normal log-likelihood of every row around a regression on the features, but for a constant.

    Columns that do not vary, or only as others do (the last class of a category), are left out.
    """
    design = np.column_stack([np.ones(len(outcome)), features])
    off = outcome - design @ np.linalg.lstsq(design, outcome, rcond=1e-10)[0]
    spread = outcome.std(axis=0)
    off = off[:, spread > 0] / spread[spread > 0]
    covariance = off.T @ off / len(off) + _FLOOR * np.eye(off.shape[1])
    distance = np.einsum("ij,ij->i", off, np.linalg.solve(covariance, off.T).T)
    return np.asarray(-0.5 * distance - 0.5 * np.linalg.slogdet(covariance)[1])
