"""The environments are what their docstrings say."""

import numpy as np
import pytest

from mixope.base.errors import UnknownName, UsageError
from mixope.worlds import BUILDERS, from_outcomes, make


@pytest.mark.parametrize("name", BUILDERS)
def test_rows_are_laws_and_factors_tell_states_apart(name):
    model = make(name)
    assert np.abs(model.transition.sum(axis=1) - 1).max() < 1e-12
    assert model.start.sum() == pytest.approx(1)
    if model.factors:
        assert len(np.unique(np.column_stack(list(model.factors.values())), axis=0)) == model.n_states
    assert model.name in repr(model)


def test_unknown_names_and_options_are_errors():
    with pytest.raises(UnknownName, match="Did you mean 'taxi'"):
        make("taxis")
    with pytest.raises(UsageError, match="options"):
        make("taxi", speed=3)
    with pytest.raises(UsageError, match="slip"):
        make("gridworld", slip=2)
    with pytest.raises(UsageError, match="stay"):
        make("walk", stay=1.0)


def test_outcomes_that_disagree_are_an_error():
    with pytest.raises(UsageError, match="one reward"):
        from_outcomes(
            "torn",
            shape=(1, 1),
            state=np.zeros(2, dtype=int),
            action=np.zeros(2, dtype=int),
            next_state=np.zeros(2, dtype=int),
            probability=np.array([0.5, 0.5]),
            reward=np.array([0.0, 1.0]),
            start=np.ones(1),
        )


def taxi_id(row, column, passengers, taxi):
    return taxi + 5 * (passengers + 16 * (5 * row + column))


def outcomes(model, state, action):
    row = state * model.n_actions + action
    span = slice(model.transition.indptr[row], model.transition.indptr[row + 1])
    following = model.transition.indices[span]
    factors = {name: values[following] for name, values in model.factors.items()}
    return model.transition.data[span], set(model.reward[span]), factors


def test_taxi_has_2000_states_and_six_actions(taxi):
    assert (taxi.n_states, taxi.n_actions, taxi.ends) == (2000, 6, False)
    assert taxi.start[taxi.factors["taxi"] == 4].sum() == pytest.approx(1)


@pytest.mark.parametrize(("action", "cell"), [(0, (3, 1)), (1, (2, 2)), (2, (1, 1)), (3, (2, 0))])
def test_taxi_moves(taxi, action, cell):
    _, reward, factors = outcomes(taxi, taxi_id(2, 1, 0, 4), action)
    assert (set(factors["row"]), set(factors["column"]), reward) == ({cell[0]}, {cell[1]}, {-1.0})


def test_taxi_stays_at_the_border(taxi):
    _, _, factors = outcomes(taxi, taxi_id(0, 0, 0, 4), 2)
    assert (set(factors["row"]), set(factors["column"])) == ({0}, {0})


def test_taxi_pick_up_draws_another_corner_and_the_place_may_fill_again(taxi):
    mass, reward, factors = outcomes(taxi, taxi_id(0, 4, 0b0010, 4), 4)
    assert reward == {-1.0}
    for destination, chance in [(0, 1 / 3), (1, 0), (2, 1 / 3), (3, 1 / 3), (4, 0)]:
        assert mass[factors["taxi"] == destination].sum() == pytest.approx(chance)
    assert mass[factors["passenger_1"] == 1].sum() == pytest.approx(0.05)


def test_taxi_pick_up_where_nobody_waits_does_nothing(taxi):
    _, _, factors = outcomes(taxi, taxi_id(0, 4, 0b1101, 4), 4)
    assert set(factors["taxi"]) == {4}


def test_taxi_is_paid_for_the_right_drop_off_only(taxi):
    for row, column, reward in [(4, 0, 20.0), (0, 0, -1.0), (2, 2, -1.0)]:
        _, got, factors = outcomes(taxi, taxi_id(row, column, 0, 2), 5)
        assert (got, set(factors["taxi"])) == ({reward}, {4})


def test_taxi_passengers_come_and_go_independently(taxi):
    mass, _, factors = outcomes(taxi, taxi_id(2, 2, 0b0101, 4), 0)
    waiting = [mass[factors[f"passenger_{i}"] == 1].sum() for i in range(4)]
    assert waiting == pytest.approx([0.95, 0.05, 0.9, 0.2])
    both = mass[(factors["passenger_0"] == 1) & (factors["passenger_3"] == 1)].sum()
    assert both == pytest.approx(0.95 * 0.2)


def test_taxi_pick_up_bonus():
    model = make("taxi", pickup_bonus=True)
    assert outcomes(model, taxi_id(0, 0, 1, 4), 4)[1] == {20.0}
    assert outcomes(model, taxi_id(0, 0, 0, 4), 4)[1] == {-1.0}
