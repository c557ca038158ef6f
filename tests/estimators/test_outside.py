"""The mass outside is what the target may lose, not what the loggers did and it would not."""

from dataclasses import replace

import numpy as np
import pytest

import mixope
from mixope.base.estimand import Estimand
from mixope.behaviours import CountedMixture
from mixope.estimators import make
from mixope.estimators.paper_form import solve_paper_form
from mixope.requests.problem import Problem
from mixope.session.session import count
from solving import solved

HOME, OUT, FAR, CORNER = 0, 1, 2, 3
STAY, GO = 0, 1
NEXT = {(HOME, STAY): OUT, (HOME, GO): FAR, (OUT, STAY): HOME, (OUT, GO): HOME, (FAR, STAY): FAR, (FAR, GO): HOME}


def logs(episodes=40, steps=30, seed=0, law=0.5):
    """HOME and OUT alternate; loggers also wander to FAR, where half of them stay; rewards 1, 0 and −1."""
    generator = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        state = HOME
        for step in range(steps):
            action = int(generator.random() < law)
            reward = {HOME: 1.0, OUT: 0.0, FAR: -1.0}[state] + 0.1 * generator.normal()
            rows.append((episode, step, state, action, reward, NEXT[state, action], False))
            state = NEXT[state, action]
    return table(rows)


def table(rows):
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def policy(far):
    """Never to FAR; there it would do ``far``."""
    return mixope.TabularPolicy([[1.0, 0.0], [0.5, 0.5], np.eye(2)[far]])


OPTIONS = [{}, {"estimand": "discounted", "gamma": 0.9}, {"estimand": "horizon", "horizon": 9}]


def check(estimate, name="mass outside"):
    return next(d for d in estimate.diagnostics if d.name == name)


@pytest.mark.parametrize("far", [STAY, GO])
@pytest.mark.parametrize(
    "options", [{}, {"estimand": "discounted", "gamma": 0.9}, {"estimand": "horizon", "horizon": 9}]
)
@pytest.mark.parametrize("estimator", ["emp", "bch", "sadl", "model"])
def test_states_that_the_target_avoids_are_no_loss(far, options, estimator):
    """Half of the rows are at FAR, where the target never goes, whatever its table says of it."""
    if estimator == "sadl" and "horizon" in options:
        pytest.skip("not for a horizon")
    columns = {**logs(), "action_prob": np.full(1200, 0.5)}
    assert np.mean(columns["observation"] == FAR) > 0.3
    found = mixope.evaluate(columns, policy(far), estimator, **options)
    assert found.outside_mass == pytest.approx(0.0, abs=1e-12)
    assert check(found).status == "pass"


def test_states_that_the_target_avoids_are_no_loss_with_factors():
    columns = logs()
    columns["observation.x"], columns["observation.y"] = columns["observation"] // 2, columns["observation"] % 2
    columns["next_observation.x"] = columns["next_observation"] // 2
    columns["next_observation.y"] = columns["next_observation"] % 2
    del columns["observation"], columns["next_observation"]
    rare = (columns["observation.x"] == 0) & (columns["observation.y"] == 1) & (columns["action"] == 1)
    keys = [[0, 0], [0, 1], [1, 0]]
    columns = {name: values[~rare] for name, values in columns.items()}  # something is left to predict
    columns["episode_id"], columns["step"] = np.arange(len(columns["step"])), np.zeros(len(columns["step"]), dtype=int)
    target = mixope.TabularPolicy([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]], keys, factors=["x", "y"])
    found = mixope.evaluate(columns, target, "dr")
    assert found.measures.approximation is not None
    assert found.outside_mass < 0.05


def test_what_leads_out_of_the_part_is_counted_where_the_target_is():
    """One row in ten at HOME led to a place that the target was not seen to leave; it is at HOME every second step."""
    rows = []
    for episode in range(100):
        end = CORNER if episode % 10 == 0 else OUT
        rows += [(episode, 0, HOME, STAY, 1.0, end, False)]
        rows += [(episode, 1, end, STAY if end == OUT else GO, 0.0, HOME, False)]
    target = mixope.TabularPolicy([[1.0, 0.0]] * 4)
    found = mixope.evaluate(table(rows), target, "emp")
    at_home = 1 / 1.9  # one time in ten it stays there for another step
    assert found.value == pytest.approx(at_home)
    assert found.outside_mass == pytest.approx(at_home * 0.1)
    assert found.measures.frontier_mass == 0.0
    paper = Problem(count(table(rows)).transitions, target)
    assert solve_paper_form(paper, CountedMixture(), np.ones(4), calibrate=True).solution.outside_mass == 0.0


def test_a_step_to_a_state_that_nobody_left_is_not_lost():
    """It is guessed how it goes on, and what hangs on the guess is another check."""
    rows = []
    for episode in range(100):
        end = CORNER if episode % 10 == 0 else OUT
        rows += [(episode, 0, HOME, STAY, 1.0, end, False)]
        rows += [(episode, 1, OUT, STAY, 0.0, HOME, False)] if end == OUT else []
    found = mixope.evaluate(table(rows), mixope.TabularPolicy([[1.0]] * 4), "emp")
    assert found.outside_mass == 0.0
    assert found.value == pytest.approx(1 / 1.9)
    assert found.measures.frontier_mass == pytest.approx(0.1 / 1.9)


def test_a_start_from_which_nothing_goes_on_is_outside_where_ends_are_final():
    rows = [(episode, 0, HOME, STAY, 1.0, HOME, episode % 2 == 0) for episode in range(60)]
    rows += [(episode, 0, FAR, GO, 1.0, CORNER, False) for episode in range(60, 80)]
    options = {"estimand": "discounted", "gamma": 0.9}
    found = mixope.evaluate(table(rows), mixope.TabularPolicy([[1.0, 0.0]] * 4), "emp", **options)
    assert found.outside_mass == pytest.approx(0.25)
    assert check(found).status == "warn"


def two_worlds(share):
    """Nobody ever goes from HOME and OUT to FAR and CORNER, or back."""
    rows = []
    for episode in range(100):
        first = HOME if episode < 100 * (1 - share) else FAR
        rows += [
            (episode, step, first + step % 2, STAY, float(first), first + (step + 1) % 2, False) for step in range(6)
        ]
    return table(rows)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_another_world_that_the_rows_do_not_connect_counts_by_its_starts(share):
    found = mixope.evaluate(two_worlds(share), mixope.TabularPolicy([[1.0]] * 4), "emp")
    assert found.value == pytest.approx(share * FAR)
    assert found.outside_mass == pytest.approx(0.0)
    assert check(found).status == "pass"


def test_where_no_start_is_known_every_other_long_run_counts():
    rows = count(two_worlds(0.4)).transitions
    late = replace(rows, starts=np.zeros_like(rows.starts))
    found = solved(make("emp"), Problem(late, mixope.TabularPolicy([[1.0]] * 4)))
    assert found.value == pytest.approx(HOME)
    assert found.outside_mass == pytest.approx(0.4)


def lost_ends(wander):
    """A path of three steps to a goal whose end was not marked, and a corner in which some loggers stay for a while."""
    rows = []
    for episode in range(100):
        rows += [(episode, step, HOME + step, STAY, 1.0, HOME + step + 1, False) for step in range(3)]
        if episode < wander:
            rows[-1] = (episode, 2, FAR, GO, 0.0, 9, False)
            rows += [(episode, 3 + step, 9, STAY, 0.0, 9, False) for step in range(20)]
    return table(rows)


@pytest.mark.parametrize("estimator", ["emp", "model"])
def test_a_corner_that_is_all_that_is_left_of_lost_ends_is_no_support(estimator):
    """The target walks to the goal, where nothing goes on; the only long run in the logs is one that it never meets.

    So it is taken to stay where it earned 1: all hangs on that.
    """
    target = mixope.TabularPolicy([[1.0, 0.0]] * 3 + [[1.0, 0.0]], [0, 1, 2, 9], default=[1.0, 0.0])
    found = mixope.evaluate(lost_ends(30), target, estimator)
    assert found.value == pytest.approx(1.0)
    assert check(found, "edge of the logs").status == "fail"
    assert str(found.verdict) == "not supported by these logs"


def test_a_first_action_that_was_never_logged_does_not_lose_all_starts():
    """One long episode begins with an action that the target never takes: that is uncovered, and soon forgotten."""
    columns = logs(episodes=1, steps=400, law=0.3)
    columns["observation"][0], columns["action"][0] = CORNER, GO
    target = mixope.TabularPolicy([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8], [1.0, 0.0]])
    solution = solved(make("emp"), Problem(count(columns).transitions, target, Estimand()))
    assert solution.outside_mass == pytest.approx(0.0, abs=1e-12)
