"""Where a step leads of which nobody has seen how it goes on: back.

A *frontier* state was reached but never left: the last state of a cut episode, the newest value of a counter. A row that
leads there is a row like any other; to drop it would be to choose rows by what came of them, and rewards would be
averaged over the rest. The least committal guess of how it goes on is: as in the state it was reached from, so that the
edge s → s′ becomes s → s.

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

from mixope.arrays import BoolArray, FloatArray, IntArray
from mixope.solvers.components import closed_classes


@dataclass(frozen=True)
class Edges:
    """Edges from state to state with the rows behind each; ``left`` are the states that something leaves.

    Some of those have an end among what leaves them: ``ending``. ``turned`` edges were turned back, because their end was never left; ``lost`` ones because it leads nowhere.
    """

    source: IntArray
    destination: IntArray
    rows: FloatArray
    left: BoolArray
    ending: BoolArray
    turned: BoolArray
    lost: BoolArray

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
        origin = reached_through(self, stuck & ~round_and_round, goal)
        returns = (back | into) & (stuck & ~round_and_round)[self.source] & (origin[self.source] >= 0)
        if not (into.any() or returns.any()):
            return None
        destination = np.where(into, self.source, self.destination)
        destination = np.where(returns, origin[self.source], destination)
        return replace(self, destination=destination, lost=self.lost | into)


def turned_back(
    source: IntArray, destination: IntArray, rows: FloatArray, left: BoolArray, ending: BoolArray, known: BoolArray
) -> Edges:
    """Every edge into a state that is not ``left`` leads back to where it came from.

    States that are ``known`` have rows, though perhaps none that count: what leads there is lost, not at a frontier.
    """
    back = ~left[destination]
    lost = back & known[destination]
    return Edges(source, np.where(back, source, destination), rows, left, ending, back & ~lost, lost)


def reached_through(edges: Edges, stuck: BoolArray, goal: BoolArray) -> IntArray:
    """For every stuck state the one with a way to the goal from which it was most likely reached; −1 where none is.

    A way back is as likely as the shares of its edges among the rows that enter a state.
    """
    n = edges.n_states
    origin = np.full(n, -1, dtype=np.int64)
    used = stuck[edges.destination] & (stuck | goal)[edges.source] & (edges.source != edges.destination)
    if not used.any():
        return origin
    source, destination = edges.source[used], edges.destination[used]
    entered = sparse.csr_matrix((edges.rows[used], (source, destination)), shape=(n + 1, n + 1)).tocoo()
    total = np.asarray(entered.sum(axis=0)).ravel()
    share = entered.data / total[entered.col]
    begin = np.unique(source[goal[source]])
    length = np.concatenate([1.0 - np.log(share), np.ones(len(begin))])
    ends = np.concatenate([entered.row, np.full(len(begin), n)]), np.concatenate([entered.col, begin])
    graph = sparse.csr_matrix((length, ends), shape=(n + 1, n + 1))
    _, before = csgraph.dijkstra(graph, indices=n, return_predecessors=True)
    place = np.arange(n + 1)
    found = np.where(before < 0, n, before)
    found = np.where(np.append(goal, True), place, found)
    while not np.array_equal(further := found[found], found):
        found = further
    origin[stuck] = np.where(found[:n] == n, -1, found[:n])[stuck]
    return origin
