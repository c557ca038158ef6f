"""What was never logged can move the value: by about as much as logged actions differ, against the interval."""

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.base.estimand import Estimand
from mixope.checks.coverage import action_spread, coverage_bias, coverage_shift
from mixope.requests.problem import Problem
from mixope.session.session import count


def problem(columns, target, estimand=None):
    return Problem(count(columns).transitions, mixope.TabularPolicy(target), estimand or Estimand())


def bandit(rows):
    """One state, an action a row: (action, reward)."""
    action, reward = (np.array(column) for column in zip(*rows, strict=True))
    zeros = np.zeros(len(action), dtype=int)
    return {
        "episode_id": np.arange(len(action)),
        "step": zeros,
        "observation": zeros,
        "action": action,
        "reward": reward.astype(float),
        "next_observation": zeros,
        "terminated": zeros.astype(bool),
    }


def test_the_shift_of_a_bandit_is_by_hand():
    """Logged actions earn 1 and 3, so they spread √2; a quarter of the target is a third action."""
    logs = bandit([(0, 1.0), (0, 1.0), (1, 3.0), (1, 3.0)])
    target = mixope.TabularPolicy([[0.5, 0.25, 0.25]], actions=[0, 1, 2])
    found = coverage_shift(Problem(count(logs).transitions, target, Estimand()))
    assert found == pytest.approx(0.25 * np.sqrt(2))


def test_without_two_actions_anywhere_the_range_of_rewards_stands_in():
    logs = bandit([(0, 1.0), (0, 3.0)])
    target = mixope.TabularPolicy([[0.5, 0.5]], actions=[0, 1])
    assert coverage_shift(Problem(count(logs).transitions, target, Estimand())) == 1.0


def test_where_all_is_covered_there_is_no_shift():
    model = worlds.make("singlepath")
    uniform = np.full((5, 2), 0.5)
    columns = worlds.simulate(model, [uniform], 40, 40, seed=0)
    for estimand in (Estimand(), Estimand("discounted", gamma=0.9), Estimand("horizon", horizon=10)):
        assert coverage_shift(problem(columns, worlds.target(model, seed=0), estimand)) == 0.0
    assert coverage_bias(0.0, 0.1).status == "pass"


def test_a_rare_gap_in_many_rows_is_caught_though_its_mass_is_small():
    """State 0's better action was never logged; the target takes it one time in forty, and the rows are many."""
    model = worlds.make("singlepath")
    logger = np.full((5, 2), 0.5)
    logger[0] = [0.0, 1.0]
    target = np.full((5, 2), 0.5)
    target[0] = [0.015, 0.985]
    columns = worlds.simulate(model, [logger], 400, 200, seed=0)
    estimate = mixope.evaluate(columns, mixope.TabularPolicy(target), "emp")
    assert estimate.uncovered_mass < 0.01
    shift = coverage_shift(problem(columns, target))
    found = coverage_bias(shift, (estimate.interval.high - estimate.interval.low) / 2)
    truth = worlds.truth.average(model, target)
    assert abs(estimate.value - truth) < 6 * shift
    assert found.value > 0.3


@pytest.mark.parametrize(("shift", "half", "status"), [(0.1, 1.0, "pass"), (2.0, 1.0, "warn"), (30.0, 1.0, "fail")])
def test_the_shift_is_judged_against_the_interval(shift, half, status):
    assert coverage_bias(shift, half).status == status


def test_an_interval_of_no_width_excuses_nothing():
    assert coverage_bias(0.1, 0.0).status == "fail"
    assert coverage_bias(0.1, None) is None


def test_the_spread_is_that_of_the_worth_of_actions():
    from mixope.behaviours import CountedMixture
    from mixope.estimators.counts.flow import follow
    from mixope.estimators.counts.occupancy import occupy

    logs = bandit([(0, 0.0), (1, 2.0), (2, 4.0)])
    asked = Problem(count(logs).transitions, mixope.TabularPolicy([[0.2, 0.3, 0.5]]), Estimand())
    flow = follow(asked, CountedMixture(), np.ones(3))
    assert action_spread(flow, occupy(flow)) == pytest.approx(2.0)
