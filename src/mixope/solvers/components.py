"""Which states the long run can live on.

Episode ends make spurious closed classes (a state from which nothing was logged, a pair of states that only lead to
each other) and these capture a stationary vector. So the average reward is solved on the heaviest strongly connected
component of the flow graph, by logged rows; what lies outside is reported, never dropped in silence.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from mixope.arrays import BoolArray, FloatArray, IntArray, sum_by


def heaviest_component(source: IntArray, destination: IntArray, mass: FloatArray, n_states: int) -> BoolArray:
    """The states of the strongly connected component that holds the most logged rows.

    ``source`` and ``destination`` are the edges of the flow; ``mass`` the rows logged in each state.
    Components of one state without a self-loop cannot hold a long run and are passed over.
    """
    edges = sparse.csr_matrix((np.ones(len(source)), (source, destination)), shape=(n_states, n_states))
    n, label = csgraph.connected_components(edges, directed=True, connection="strong")
    inside = label[source] == label[destination]
    lives = np.zeros(n, dtype=bool)
    lives[label[source[inside]]] = True
    weight = np.where(lives, sum_by(label.astype(np.int64), mass, n), -1.0)
    best = int(np.argmax(weight))
    if not lives[best]:
        return np.zeros(n_states, dtype=np.bool_)
    return np.asarray(label == best, dtype=np.bool_)


def states_that_go_on(source: IntArray, destination: IntArray, leaves: BoolArray, n_states: int) -> BoolArray:
    """The largest set of states each of which has a logged way on inside the set, or a true end.

    ``leaves`` marks states with a terminated row. Used where time is finite or discounted and no component is needed:
    only dead ends (states seen only as the last one) are cut off. These are the states from which an end or a loop can
    be reached, found in time linear in the edges.
    """
    edges = sparse.csr_matrix((np.ones(len(source)), (source, destination)), shape=(n_states, n_states))
    n, label = csgraph.connected_components(edges, directed=True, connection="strong")
    turns = np.zeros(n, dtype=bool)
    turns[label[source[label[source] == label[destination]]]] = True
    goal = np.flatnonzero(leaves | turns[label])
    # one further node leads to every goal, and all edges are turned round: what it reaches can go on
    back = sparse.csr_matrix(
        (
            np.ones(len(source) + len(goal)),
            (np.concatenate([destination, np.full(len(goal), n_states)]), np.concatenate([source, goal])),
        ),
        shape=(n_states + 1, n_states + 1),
    )
    reached = csgraph.breadth_first_order(back, n_states, directed=True, return_predecessors=False)
    alive = np.zeros(n_states + 1, dtype=np.bool_)
    alive[reached] = True
    return alive[:n_states]
