"""Edges that lead nowhere are turned back to where they came from, and as far back as it takes."""

import numpy as np
import pytest

from mixope.solvers.frontier import ENOUGH, like_before, turned_back

NOWHERE = np.zeros(5, dtype=bool)


def edges(pairs, rows, n=5, known=()):
    source, destination = np.array(pairs).T
    counted = np.array(rows, dtype=float)
    somewhere = np.isin(np.arange(n), [*source, *known])
    return turned_back(
        source, destination, counted, np.bincount(source, counted, n), np.zeros(n, dtype=bool), somewhere
    )


def test_nothing_moves_where_every_state_was_left():
    found = edges([(0, 1), (1, 0)], [3, 3], n=2)
    assert found.destination.tolist() == [1, 0]
    assert not (found.turned | found.lost).any()


def test_an_edge_to_a_state_that_nobody_left_leads_back_to_its_own():
    found = edges([(0, 1), (1, 2), (1, 0)], [200, 150, 50])
    assert found.destination.tolist() == [1, 1, 0]
    assert found.turned.tolist() == [False, True, False]
    assert found.steps.tolist() == [1, 1, 1]


def test_what_leads_where_others_went_on_is_lost_and_not_at_a_frontier():
    found = edges([(0, 1), (1, 2)], [200, 150], known=[2])
    assert found.lost.tolist() == [False, True]
    assert not found.turned.any()


def test_few_rows_lead_back_until_there_are_enough():
    """90 + 80 rows at the states 1 and 2: together more than a hundred, and 2 alone fewer."""
    found = edges([(0, 1), (1, 2), (2, 3)], [95, 90, 80])
    assert 80 < ENOUGH < 170
    assert found.destination.tolist() == [1, 2, 1]
    assert found.steps.tolist() == [1, 1, 2]


def test_where_there_are_never_enough_the_first_state_is_taken():
    assert edges([(0, 1), (1, 2), (2, 3)], [20, 20, 20]).destination.tolist() == [1, 2, 0]


def test_states_that_go_nowhere_else_lead_back_to_the_way_they_were_reached_from():
    """0 goes round; of its rows some lead to 1 and from there to the frontier alone."""
    found = edges([(0, 0), (0, 1), (1, 2), (2, 3)], [500, 300, 300, 300])
    goal = np.array([True, False, False, False, False])
    settled = found.towards(goal)
    assert settled.destination.tolist() == [0, 1, 2, 0]
    assert settled.turned.tolist() == [False, False, False, True]
    assert settled.steps[3] == 3
    assert settled.towards(np.array([True, True, True, False, False])) is None


def test_what_goes_round_for_ever_though_it_leads_nowhere_is_lost():
    """Its own rows lead to nothing that could be turned back: what leads there stays where it came from."""
    found = edges([(0, 0), (0, 1), (1, 2), (2, 1)], [500, 3, 3, 3])
    settled = found.towards(np.array([True, False, False, False, False]))
    assert settled.destination.tolist() == [0, 0, 2, 1]
    assert settled.lost.tolist() == [False, True, False, False]


def test_a_state_that_is_not_known_is_like_the_one_it_was_most_likely_reached_from():
    source, destination = np.array([0, 1, 0]), np.array([3, 3, 1])
    unknown = np.array([False, False, False, True, True])
    rows = np.array([100.0, 300.0, 200.0])
    assert like_before(source, destination, rows, unknown, 5).tolist() == [-1, -1, -1, 1, -1]


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_names_of_states_do_not_matter(shift):
    def moved(state):
        return (state + shift) % 5

    pairs = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 2)]
    found = edges([(moved(a), moved(b)) for a, b in pairs], [60, 30, 40, 30, 30])
    plain = edges(pairs, [60, 30, 40, 30, 30])
    assert found.steps.tolist() == plain.steps.tolist()


def test_a_way_that_goes_round_is_gone_once():
    """2 was entered from 1, and 1 mostly from 2: there is nothing before them."""
    found = edges([(1, 2), (2, 1), (2, 3)], [20, 20, 10])
    assert found.destination.tolist() == [2, 1, 1]
    assert found.steps.tolist() == [1, 1, 2]
