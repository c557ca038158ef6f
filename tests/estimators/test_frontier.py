"""Rows that lead to a state which nobody left count like all others; what hangs on how it goes on is a check."""

import numpy as np
import pytest

import mixope
from mixope.base.estimand import Estimand
from mixope.behaviours import CountedMixture
from mixope.estimators.counts.flow import follow
from mixope.policies import uniform
from mixope.requests.problem import Problem
from mixope.session.session import count

OPTIONS = [{}, {"estimand": "discounted", "gamma": 0.95}, {"estimand": "horizon", "horizon": 26}]
ONE_ACTION = ["emp", "emp-single", "kl-emp", "model", "sadl", "mwl", "dualdice", "dr", "lstdq"]


def counters(episodes, steps, chance=0.05, seed=0, earns=None, resets=True, ends=0.0):
    """A counter of steps since the last event, which earns 30; without events to reset it, of steps."""
    draw = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        state = 0
        for step in range(steps):
            event, ended = resets and draw.random() < chance, draw.random() < ends
            reward = 30.0 * event if earns is None else earns(state, draw)
            following = 0 if event else state + 1
            rows.append((episode, step, state, 0, reward, following, ended, step == steps - 1 and not ended))
            state = following
            if ended:
                break
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def always(states=40):
    return mixope.TabularPolicy(np.ones((states, 1)))


def check(estimate, name="edge of the logs"):
    return next((d for d in estimate.diagnostics if d.name == name), None)


def noisy(mean):
    return lambda state, draw: mean(state) + draw.normal()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("estimator", ["emp", "model"])
def test_a_customer_who_buys_every_twenty_weeks_earns_that_whatever_the_weeks_that_were_seen(options, estimator):
    """1.50 in every state. Rows to the newest week were dropped: of those who had not bought, so that 2.04 was left."""
    found = mixope.evaluate(counters(400, 26, seed=1), always(), estimator, **options)
    assert found.interval.low < 1.5 < found.interval.high
    assert found.value == pytest.approx(1.5, abs=0.4)
    assert found.outside_mass == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("options", OPTIONS[:2])
def test_the_logs_earn_what_their_own_chain_says(options):
    """One action: the target is who wrote the logs."""
    found = mixope.evaluate(counters(200, 12, seed=1), always(), "emp", **options)
    assert found.against_logs.value == pytest.approx(found.value, rel=1e-9)
    assert found.loggers[0].earned.value == pytest.approx(found.value, rel=1e-9)


@pytest.mark.parametrize("estimator", ["emp", "dr", "model", "lstdq", "kl-emp"])
@pytest.mark.parametrize("ends", [0.0, 0.1])
def test_the_first_steps_of_episodes_that_have_no_more_are_their_mean(estimator, ends):
    """The state says the step, so that what was predicted of a step is what was seen in it; the frontier is beyond."""
    columns = counters(50, 15, earns=noisy(lambda k: 0.1 * k), resets=False, ends=ends, seed=2)
    found = mixope.evaluate(columns, always(), estimator, estimand="horizon", horizon=15)
    assert found.value == pytest.approx(columns["reward"].sum() / (50 * 15), rel=1e-9)
    assert found.measures.frontier_mass == pytest.approx(0.0, abs=1e-12)
    assert check(found) is None


def test_two_actions_of_which_the_target_is_their_own_mixture_earn_the_mean_of_the_steps():
    draw = np.random.default_rng(0)
    columns = counters(60, 10, earns=noisy(lambda k: k), resets=False)
    columns["action"] = draw.integers(0, 2, len(columns["reward"]))
    share = np.array([columns["action"][columns["observation"] == k].mean() for k in range(10)])
    target = mixope.TabularPolicy(np.stack([1 - share, share], axis=1))
    found = mixope.evaluate(columns, target, "emp", estimand="horizon", horizon=10)
    assert found.value == pytest.approx(columns["reward"].mean(), rel=1e-9)


def test_all_rows_count_in_the_reward_of_a_state():
    columns = counters(30, 6, seed=5)
    transitions = count(columns).transitions
    problem = Problem(transitions, uniform([0]), Estimand("discounted", 0.9))
    flow = follow(problem, CountedMixture(), np.ones(transitions.n_groups))
    assert len(flow.groups) == transitions.n_groups
    means = [columns["reward"][columns["observation"] == s].mean() for s in range(6)]
    assert flow.state_reward() == pytest.approx(means)
    assert np.asarray(flow.chain().transition.sum(axis=1)).ravel() == pytest.approx(np.ones(6))


@pytest.mark.parametrize("estimator", ONE_ACTION)
@pytest.mark.parametrize("options", [{}, {"estimand": "discounted", "gamma": 0.9}])
def test_all_estimators_on_counts_take_it_alike(estimator, options):
    columns = counters(150, 8, seed=4)
    plain = mixope.evaluate(columns, always(), "emp", **options)
    found = mixope.evaluate(columns, always(), estimator, **options)
    assert found.value == pytest.approx(plain.value, rel=1e-6)
    assert found.measures.frontier_mass == pytest.approx(plain.measures.frontier_mass, rel=1e-6)


def test_the_error_is_that_of_leaving_out_a_group_of_episodes_at_a_time():
    columns = counters(400, 8, seed=6)
    found = mixope.evaluate(columns, always(), "emp")
    groups = np.array_split(np.random.default_rng(0).permutation(400), 40)

    def without(group):
        kept = ~np.isin(columns["episode_id"], group)
        return mixope.evaluate({name: values[kept] for name, values in columns.items()}, always(), "emp").value

    values = np.array([without(group) for group in groups])
    jackknife = np.sqrt((len(groups) - 1) * np.mean((values - values.mean()) ** 2))
    assert found.standard_error == pytest.approx(jackknife, rel=0.2)


@pytest.mark.parametrize("options", [{}, {"estimand": "discounted", "gamma": 0.95}])
def test_where_states_differ_and_the_answer_lies_beyond_the_logs_it_is_refused(options):
    columns = counters(300, 15, earns=noisy(lambda k: 0.2 * k), resets=False)
    found = mixope.evaluate(columns, always(), "emp", **options)
    assert check(found).status == "fail"
    assert found.verdict == "not supported by these logs"
    assert found.measures.frontier_span > 2.0 * 0.4
    assert found.band is not None


def test_the_newest_age_is_where_a_counter_that_nothing_resets_goes_on():
    columns = counters(300, 15, earns=noisy(lambda k: 1.0), resets=False)
    found = mixope.evaluate(columns, always(), "emp")
    last = columns["reward"][columns["observation"] == 14].mean()
    assert found.value == pytest.approx(last, rel=1e-9)
    assert found.measures.frontier_mass == pytest.approx(1.0)
    assert found.verdict != "not supported by these logs"


def test_episodes_that_go_on_to_an_end_end_as_often_as_those_before():
    """The total of 1 per step until an end, one time in ten."""
    columns = counters(400, 12, earns=lambda k, draw: 1.0, resets=False, ends=0.1, seed=1)
    found = mixope.evaluate(columns, always(), "emp", estimand="episode")
    assert found.interval.low < 10.0 < found.interval.high
    assert found.outside_mass == pytest.approx(0.0, abs=1e-12)


def test_the_last_states_from_which_nobody_came_back_do_not_hold_the_long_run():
    """30 episodes: none of the few rows of the newest weeks has an event; they take turns with those before."""
    columns = counters(30, 26, seed=1)
    at_last = columns["observation"] == 25
    assert at_last.sum() < 20
    columns["reward"][at_last], columns["next_observation"][at_last] = 0.0, 26
    found = mixope.evaluate(columns, always(), "emp")
    assert found.value > 0.5
    assert found.interval.low < 1.5 < found.interval.high


def ring(episodes=40, steps=25, seed=0):
    """Four states round which everybody goes: each was left, and some episodes end."""
    draw, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        state = int(draw.integers(4))
        for step in range(steps):
            action = int(draw.random() < 0.4)
            following = (state + 1 + action) % 4 if draw.random() < 0.8 else state
            ended = bool(draw.random() < 0.04)
            reward = state + 0.5 * action + draw.normal()
            rows.append((episode, step, state, action, reward, following, ended, step == steps - 1 and not ended))
            state = following
            if ended:
                break
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@pytest.mark.parametrize(
    ("options", "value", "error"),
    [
        ({}, 1.8635021893064372, 0.045469197689738124),
        ({"estimand": "discounted", "gamma": 0.9}, 1.2577370644383539, 0.11236897560041673),
        ({"estimand": "horizon", "horizon": 12}, 1.3936831908723688, 0.10978437938057689),
        ({"estimand": "episode"}, 33.558825048373194, 8.0243060171718),
    ],
)
def test_logs_in_which_every_state_was_left_have_the_values_they_had(options, value, error):
    found = mixope.evaluate(ring(), mixope.TabularPolicy([[0.2, 0.8]] * 4), "emp", **options)
    assert found.value == pytest.approx(value, rel=1e-11)
    assert found.standard_error == pytest.approx(error, rel=1e-11)
    assert found.measures.frontier_mass == 0.0
    assert check(found) is None


@pytest.mark.long
@pytest.mark.parametrize("options", OPTIONS)
def test_intervals_hold_what_customers_earn(options):
    found = [mixope.evaluate(counters(100, 26, seed=seed), always(), "emp", **options) for seed in range(30)]
    assert np.mean([each.interval.low < 1.5 < each.interval.high for each in found]) >= 0.85
