"""Which states the long run can live on.

A long run lives on a strongly connected component that is never left. But episode ends make spurious ones (a pair of
states that only lead to each other), and these would capture a stationary vector. So a component is believed to be
where the target ends if it has the most rows of all that are connected with it, or if it would hold the target most of
the time even if it were left as often as its rows allow: a component that was not left in n rows is left in at most
3/n of the steps (the rule of three), and entered in e/N, if e of the N rows of the heaviest one led towards it. Those
from which no other believed one can be reached are the long runs (:func:`long_runs`); what lies outside is reported,
never dropped in silence.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by

RULE_OF_THREE = 3.0
"""What happened in none of n rows happens in at most 3/n of them, at a level of 95 %."""


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


def long_runs(
    source: IntArray, destination: IntArray, rows: FloatArray, mass: FloatArray, n_states: int
) -> tuple[IntArray, FloatArray]:
    """The number of the long run that every state belongs to, −1 for states that are left for good; and the doubt.

    ``rows`` are those behind every edge, ``mass`` the rows logged in each state; the rule is that of the module. The
    doubt of a component is how often the target would be elsewhere if one row more had left it: N / (N + e n).
    """
    edges = sparse.csr_matrix((np.ones(len(source)), (source, destination)), shape=(n_states, n_states))
    n, label = csgraph.connected_components(edges, directed=True, connection="strong")
    n_worlds, world_of_state = csgraph.connected_components(edges, directed=False)
    stays = label[source] == label[destination]
    lives = np.zeros(n, dtype=bool)
    lives[label[source[stays]]] = True
    held = sum_by(label.astype(np.int64), mass, n)
    entered = sum_by(label[destination[~stays]].astype(np.int64), rows[~stays], n)
    world, most = np.zeros(n, dtype=np.int64), np.zeros(n_worlds)
    world[label] = world_of_state
    np.maximum.at(most, world[lives], held[lives])
    heaviest, stayed, left = held >= most[world], entered * held, most[world]
    believed = lives & (heaviest | (stayed >= RULE_OF_THREE * left))
    doubt = np.where(heaviest, 0.0, left / np.maximum(stayed + left, 1.0))
    towards = reached_from(np.flatnonzero(believed[label]), destination, source, n_states)
    believed[label[source[~stays & towards[destination]]]] = False  # another one can be reached
    return np.where(believed[label], label, -1).astype(np.int64), doubt[label]


def states_that_go_on(
    source: IntArray, destination: IntArray, leaves: BoolArray, n_states: int, *, loops: bool = True
) -> BoolArray:
    """The largest set of states each of which has a logged way on inside the set, or a true end.

    ``leaves`` marks states with a terminated row. Used where time is finite or discounted and no component is needed:
    only dead ends (states seen only as the last one) are cut off. These are the states from which an end or a loop can
    be reached, found in time linear in the edges. Without ``loops`` an end must be within reach: an undiscounted sum
    over states that go round for ever is not finite.
    """
    edges = sparse.csr_matrix((np.ones(len(source)), (source, destination)), shape=(n_states, n_states))
    n, label = csgraph.connected_components(edges, directed=True, connection="strong")
    turns = np.zeros(n, dtype=bool)
    turns[label[source[label[source] == label[destination]]]] = True
    goal = np.flatnonzero((leaves | turns[label]) if loops else leaves)
    return reached_from(goal, destination, source, n_states)  # all edges turned round: what is reached can go on


def closed_classes(source: IntArray, destination: IntArray, n_states: int) -> IntArray:
    """The number of every state's component if edges lead nowhere else, and somewhere; else −1."""
    edges = sparse.csr_matrix((np.ones(len(source)), (source, destination)), shape=(n_states, n_states))
    n, label = csgraph.connected_components(edges, directed=True, connection="strong")
    closed, stays = np.zeros(n, dtype=np.bool_), label[source] == label[destination]
    closed[label[source[stays]]] = True
    closed[label[source[~stays]]] = False
    return np.where(closed[label], label, -1).astype(np.int64)


def reached_from(begin: IntArray, source: IntArray, destination: IntArray, n_states: int) -> BoolArray:
    """The states that edges lead to from any of ``begin``, these included."""
    entries = np.concatenate([source, np.full(len(begin), n_states)]), np.concatenate([destination, begin])
    edges = sparse.csr_matrix((np.ones(len(entries[0])), entries), shape=(n_states + 1, n_states + 1))
    found = np.zeros(n_states + 1, dtype=np.bool_)
    found[csgraph.breadth_first_order(edges, n_states, directed=True, return_predecessors=False)] = True
    return found[:n_states]
