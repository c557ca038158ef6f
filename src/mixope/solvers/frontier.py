"""Where a step leads of which nobody has seen how it goes on: back.

A *frontier* state was reached but never left: the last state of a cut episode, the newest value of a counter. A row
that leads there is a row like any other; to drop it would be to choose rows by what came of them, and rewards would be
averaged over the rest. The least committal guess of how it goes on is: as in the state it was reached from, so that the
edge s → s′ becomes s → s. Where that state has few rows, a chance of theirs would go on for ever (ten customers of whom
none bought; the newest age, which one user had): the edge leads further back, to the first state of the likeliest way
that together with those after it has :data:`ENOUGH` rows, and these all take turns.

A state that was left for the frontier alone is no better known, and a loop s → s would hold a long run for ever. So
states from which no way leads to the *goal* (a long run, an end) lead back to the state of the way from which they were
most likely reached (:func:`reached_through`). A class of states that leads nowhere, though its rows go round in it, has
no such rows; its own are left out, and what leads into it is turned back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.solvers.components import closed_classes

ENOUGH = 100.0
"""Rows that tell how it goes on; fewer behind an estimate ask for caution too (*effective sample size*)."""


@dataclass(frozen=True)
class Edges:
    """Edges from state to state with the rows behind each; ``left`` are the states that something leaves.

    Some of those have an end among what leaves them: ``ending``. ``turned`` edges were turned back because their end
    was never left, ``lost`` ones because it leads nowhere. Such an edge stands for ``steps`` of which nothing is known:
    so many are taken until it can come to its end once more.
    """

    source: IntArray
    destination: IntArray
    rows: FloatArray
    left: BoolArray
    ending: BoolArray
    turned: BoolArray
    lost: BoolArray
    steps: FloatArray

    @property
    def n_states(self) -> int:
        """How many states."""
        return len(self.left)

    def towards(self, goal: BoolArray) -> Edges | None:
        """Edges with which more states come to the goal; None where no more can be done.

        ``goal`` are the states that come there already.
        """
        stuck = self.left & ~goal
        if not stuck.any():
            return None
        back = self.turned | self.lost
        number = closed_classes(self.source, self.destination, self.n_states)
        turns = np.zeros(self.n_states + 1, dtype=np.bool_)
        turns[number[self.source[back]]] = True
        turns[number[self.ending]] = True
        round_and_round = stuck & (number >= 0) & ~turns[number]
        into = round_and_round[self.destination] & ~round_and_round[self.source]
        origin, steps = reached_through(self, stuck & ~round_and_round, goal)
        returns = (back | into) & (stuck & ~round_and_round)[self.source] & (origin[self.source] >= 0)
        if not (into.any() or returns.any()):
            return None
        destination = np.where(into, self.source, self.destination)
        destination = np.where(returns, origin[self.source], destination)
        length = np.where(returns, np.maximum(steps[self.source], self.steps), self.steps)
        return replace(self, destination=destination, lost=self.lost | into, steps=length)


def turned_back(
    source: IntArray, destination: IntArray, rows: FloatArray, mass: FloatArray, ending: BoolArray, known: BoolArray
) -> Edges:
    """Every edge into a state that nothing leaves leads back to where it came from; ``mass`` are the rows of a state.

    States that are ``known`` have rows, though perhaps none that count: what leads there is lost, not at a frontier.
    """
    left = mass > 0
    back = ~left[destination]
    lost = back & known[destination]
    steps = np.ones(len(source))
    if back.any():
        came, way = _before(source[~back], destination[~back], rows[~back], mass, np.unique(source[back]))
        destination = np.where(back, came[source], destination)
        steps[back] = way[source[back]]
    return Edges(source, destination, rows, left, ending, back & ~lost, lost, steps)


def like_before(
    source: IntArray, destination: IntArray, rows: FloatArray, unknown: BoolArray, n_states: int
) -> IntArray:
    """For every state of which it is ``unknown`` how it goes on, one that is known and like it; −1 where none.

    The one from which it was most likely reached, or one before it where that has few rows.
    """
    nothing, never = np.zeros(len(source)), np.zeros(len(source), dtype=np.bool_)
    mass = sum_by(source, rows, n_states)
    edges = Edges(source, destination, rows, mass > 0, np.zeros(n_states, dtype=np.bool_), never, never, nothing)
    origin, _ = reached_through(edges, unknown, ~unknown)
    asked = origin[origin >= 0]
    if not len(asked):
        return origin
    known = ~unknown[source] & ~unknown[destination]
    place, _ = _before(source[known], destination[known], rows[known], mass, np.unique(asked))
    return np.where(origin >= 0, place[origin], -1)


def _before(
    source: IntArray, destination: IntArray, rows: FloatArray, mass: FloatArray, states: IntArray
) -> tuple[IntArray, FloatArray]:
    """Where the way to each of ``states`` has enough rows, going back on it, and how many states it then has.

    Others are their own. The way back is that of most rows; of as many, that from the state with most rows.
    """
    n = len(mass)
    place, steps = np.arange(n), np.ones(n)
    few = states[mass[states] < ENOUGH]
    if not len(few):
        return place, steps
    earlier = _likeliest(source, destination, rows, mass)
    known = np.flatnonzero(earlier >= 0)
    ways = sparse.csr_matrix((np.ones(len(known)), (known, earlier[known])), shape=(n, n))
    label = csgraph.connected_components(ways, directed=True, connection="strong")[1]
    round_and_round = np.bincount(label)[label] > 1
    walks, held = few, mass[few]
    entered = np.where(round_and_round[few], few, -1)  # a way that goes round is gone once
    while len(walks):
        ahead = earlier[place[walks]]
        goes = (held < ENOUGH) & (ahead >= 0) & (ahead != entered)
        walks, held, ahead, entered = (values[goes] for values in (walks, held, ahead, entered))
        place[walks] = ahead
        steps[walks] += 1.0
        held = held + mass[ahead]
        entered = np.where((entered < 0) & round_and_round[ahead], ahead, entered)
    return place, steps


def _likeliest(source: IntArray, destination: IntArray, rows: FloatArray, mass: FloatArray) -> IntArray:
    """The state that most rows enter each state from; of as many the one with most rows itself. −1 where none does."""
    n = len(mass)
    moves = source != destination
    entries = sparse.csc_matrix((rows[moves], (source[moves], destination[moves])), shape=(n, n))
    entries.sum_duplicates()
    froms, into = entries.indices.astype(np.int64), np.repeat(np.arange(n), np.diff(entries.indptr))
    best = _heaviest(into, entries.data, n)
    froms, into = froms[best], into[best]
    best = _heaviest(into, mass[froms], n)
    froms, into = froms[best], into[best]
    found = np.full(n, -1, dtype=np.int64)
    found[into[::-1]] = froms[::-1]
    return found


def _heaviest(group: IntArray, weight: FloatArray, n_groups: int) -> BoolArray:
    """Which members have the largest weight of their group."""
    most = np.full(n_groups, -np.inf)
    np.maximum.at(most, group, weight)
    return np.asarray(weight == most[group], dtype=np.bool_)


def reached_through(edges: Edges, stuck: BoolArray, goal: BoolArray) -> tuple[IntArray, FloatArray]:
    """For every stuck state the one with a way to the goal from which it was most likely reached, −1 where none is.

    And how many states that way has. It is as likely as the shares of its edges among the rows that enter a state.
    """
    n = edges.n_states
    origin = np.full(n, -1, dtype=np.int64)
    used = stuck[edges.destination] & (stuck | goal)[edges.source] & (edges.source != edges.destination)
    if not used.any():
        return origin, np.ones(n)
    source, destination = edges.source[used], edges.destination[used]
    entered = sparse.csr_matrix((edges.rows[used], (source, destination)), shape=(n + 1, n + 1)).tocoo()
    total = np.asarray(entered.sum(axis=0)).ravel()
    share = entered.data / total[entered.col]
    begin = np.unique(source[goal[source]])
    length = np.concatenate([1.0 - np.log(share), np.ones(len(begin))])
    ends = np.concatenate([entered.row, np.full(len(begin), n)]), np.concatenate([entered.col, begin])
    graph = sparse.csr_matrix((length, ends), shape=(n + 1, n + 1))
    before = csgraph.dijkstra(graph, indices=np.array([n]), return_predecessors=True)[1][0]
    place = np.arange(n + 1)
    found = np.where(before < 0, n, before)
    found = np.where(np.append(goal, True), place, found)
    far = np.where(found == place, 0.0, 1.0)
    while not np.array_equal(further := found[found], found):
        found, far = further, far + far[found]
    origin[stuck] = np.where(found[:n] == n, -1, found[:n])[stuck]
    return origin, far[:n] + 1.0
