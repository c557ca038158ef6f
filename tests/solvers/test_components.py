"""Components and living states against slow searches."""

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mixope.solvers.components import closed_classes, heaviest_component, reached_from, states_that_go_on


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 7))
    edges = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14))
    mass = np.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), dtype=float)
    source, destination = (np.array([e[k] for e in edges], dtype=np.int64) for k in (0, 1))
    return n, source, destination, mass


def reach(n, source, destination):
    """Which states are reached in one step or more, by Warshall's loops."""
    found = [[False] * n for _ in range(n)]
    for s, t in zip(source.tolist(), destination.tolist(), strict=True):
        found[s][t] = True
    for k in range(n):
        for i in range(n):
            for j in range(n):
                found[i][j] = found[i][j] or (found[i][k] and found[k][j])
    return found


@settings(max_examples=60)
@given(graph=graphs())
def test_the_heaviest_component_in_which_a_long_run_can_live(graph):
    n, source, destination, mass = graph
    inside, reached = heaviest_component(source, destination, mass, n), reach(n, source, destination)
    components = {
        frozenset(j for j in range(n) if j == i or (reached[i][j] and reached[j][i])) for i in range(n) if reached[i][i]
    }
    found = frozenset(np.flatnonzero(inside).tolist())
    if not components:
        assert not inside.any()
        return
    assert found in components
    assert mass[inside].sum() == max(sum(mass[i] for i in c) for c in components)


@settings(max_examples=60)
@given(graph=graphs(), ends=st.integers(0, 127))
def test_states_that_go_on_have_a_way_on_or_an_end(graph, ends):
    n, source, destination, _ = graph
    leaves = np.array([bool(ends >> i & 1) for i in range(n)])
    found = states_that_go_on(source, destination, leaves, n)
    alive = set(source.tolist()) | set(np.flatnonzero(leaves).tolist())
    while True:
        onward = {s for s, t in zip(source.tolist(), destination.tolist(), strict=True) if s in alive and t in alive}
        kept = alive & (onward | set(np.flatnonzero(leaves).tolist()))
        if kept == alive:
            break
        alive = kept
    assert set(np.flatnonzero(found).tolist()) == alive


@settings(max_examples=60)
@given(graph=graphs())
def test_a_closed_class_leads_to_itself_and_nowhere_else(graph):
    n, source, destination, _ = graph
    number, reached = closed_classes(source, destination, n), reach(n, source, destination)
    for i in range(n):
        closed = reached[i][i] and all(reached[j][i] for j in range(n) if reached[i][j])
        assert (number[i] >= 0) == closed
        assert not closed or all((number[j] == number[i]) == reached[i][j] for j in range(n))


@settings(max_examples=60)
@given(graph=graphs(), begins=st.integers(0, 127))
def test_what_is_reached_is_what_loops_reach(graph, begins):
    n, source, destination, _ = graph
    begin = np.array([i for i in range(n) if begins >> i & 1], dtype=np.int64)
    found, reached = reached_from(begin, source, destination, n), reach(n, source, destination)
    assert found.tolist() == [bool(i in begin or any(reached[b][i] for b in begin)) for i in range(n)]


def test_a_heavy_dead_end_does_not_capture_the_long_run():
    """State 2 has most rows and no way on: the pair 0, 1 is where the long run lives."""
    source, destination = np.array([0, 1, 1]), np.array([1, 0, 2])
    assert heaviest_component(source, destination, np.array([1.0, 1.0, 50.0]), 3).tolist() == [True, True, False]


def test_a_long_road_to_nowhere_is_cut_off_in_one_go():
    """A path of 200,000 states: peeled one dead end at a time it would take hours."""
    n = 200_000
    source, start = np.arange(n - 1), time.process_time()
    assert not states_that_go_on(source, source + 1, np.zeros(n, dtype=bool), n).any()
    assert states_that_go_on(source, source + 1, np.arange(n) == n - 1, n).all()
    assert time.process_time() - start < 5.0
