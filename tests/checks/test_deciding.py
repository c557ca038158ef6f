"""Few events that decide: intervals reach farther, and a check says how few there are."""

import numpy as np
import pytest

import mixope
from mixope.checks.deciding import few_decide, rare_ends
from mixope.requests.skewness import deciding_events, skewness
from mixope.uncertainty import clustered_interval
from mixope.uncertainty.clustered import excess_skewness

STATES, ACTIONS = 4, 2
UNIFORM = mixope.TabularPolicy(np.full((STATES, ACTIONS), 1 / ACTIONS))


def log(episodes=200, steps=20, seed=0, pays=(), ends=()):
    """A coin decides where every step leads; ``pays`` are rows that earn 100, ``ends`` rows that end an episode."""
    draw, n = np.random.default_rng(seed), episodes * steps
    state = draw.integers(0, STATES, (episodes, steps + 1))
    reward, last = np.zeros(n), np.zeros(n, dtype=bool)
    reward[list(pays)] = 100.0
    last[list(ends)] = True
    step = np.tile(np.arange(steps), episodes)
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": step,
        "observation": state[:, :-1].ravel(),
        "action": draw.integers(0, ACTIONS, n),
        "reward": reward,
        "next_observation": state[:, 1:].ravel(),
        "terminated": last,
        "truncated": (step == steps - 1) & ~last,
    }


def checks(found):
    return {check.name: check for check in found.diagnostics}


@pytest.mark.parametrize(("events", "status"), [(1, "warn"), (2, "warn"), (8, "pass")])
def test_rare_rewards_on_ids_are_counted(events, status):
    found = mixope.evaluate(log(pays=[501 * k + 7 for k in range(events)]), UNIFORM)
    check = checks(found)["deciding episodes"]
    assert check.status == status
    assert check.value == pytest.approx(events, rel=0.25)


def test_an_interval_of_a_few_events_reaches_as_far_up_as_the_exact_one():
    """The exact upper ends of Poisson counts of 3 and 8 at 95 % are 8.77 and 15.76; t reaches 6.9 and 13.9."""
    for events, exact in ((3, 8.77), (8, 15.76)):
        found = mixope.evaluate(log(pays=[397 * k + 7 for k in range(events)]), UNIFORM)
        assert found.interval.high == pytest.approx(100 * exact / 4000, rel=0.1)


def test_symmetric_scores_keep_the_interval_they_had():
    draw = np.random.default_rng(1)
    for m in (5, 20, 200):
        scores = draw.normal(size=m) / m
        scores -= scores.mean()
        found = clustered_interval(0.0, scores, 0.95)
        assert excess_skewness(scores) == 0.0
        assert found.high == -found.low


def test_no_interval_is_narrower_for_skewness_and_the_long_side_is_the_skewed_one():
    scores = np.random.default_rng(2).exponential(size=100) - 1.0
    right, left = (clustered_interval(0.0, sign * (scores - scores.mean()) / 100, 0.95) for sign in (1, -1))
    plain = clustered_interval(0.0, (scores - scores.mean()) / 100, 0.95, law="normal")
    assert right.high > -right.low > 0
    assert (right.low, right.high) == pytest.approx((-left.high, -left.low))
    assert right.low <= plain.low
    assert right.high >= plain.high


def test_the_skewness_of_a_mean_counts_events_of_one_size():
    scores = np.zeros(1000)
    scores[:4] = 1.0
    assert deciding_events(scores) == pytest.approx(4.0, rel=0.02)
    assert skewness(7.5 * scores) == pytest.approx(skewness(scores))
    assert deciding_events(np.zeros(50)) == 50.0
    assert skewness(1e-200 * scores) == pytest.approx(skewness(scores))


@pytest.mark.parametrize(("ends", "status"), [(3, "warn"), (40, "pass")])
def test_rare_ends_are_counted_where_the_total_of_an_episode_is_asked_for(ends, status):
    columns = log(ends=[20 * k + 19 for k in range(ends)])
    columns["reward"][:] = 1.0
    found = mixope.evaluate(columns, UNIFORM, estimand="episode")
    assert checks(found)["rare ends"].status == status
    assert 0.8 * ends < checks(found)["rare ends"].value < 2 * ends
    assert "rare ends" not in checks(mixope.evaluate(columns, UNIFORM, estimand="discounted", gamma=0.9))


def test_ends_are_counted_on_vectors_too():
    columns = log(60, 10, ends=[10 * k + 9 for k in range(4)])
    draw = np.random.default_rng(3)
    columns["observation"] = draw.normal(size=(600, 2))
    columns["next_observation"] = draw.normal(size=(600, 2))
    columns["reward"] = 1.0 + draw.normal(size=600)
    target = mixope.CallablePolicy(lambda states: np.full((len(states), 2), 0.5), actions=[0, 1])
    found = mixope.evaluate(columns, target, "dr", estimand="episode")
    assert checks(found)["rare ends"].value <= 4.0
    assert checks(found)["rare ends"].status == "warn"


def test_checks_are_silent_where_nothing_is_left_to_chance_or_too_few_episodes_tell():
    certain = log()
    certain["reward"] = certain["observation"] * 0.0 + 2.0
    assert "deciding episodes" not in checks(mixope.evaluate(certain, UNIFORM))
    assert "deciding episodes" not in checks(mixope.evaluate(log(10, pays=[3, 90]), UNIFORM))
    assert few_decide.__doc__
    assert rare_ends.__doc__


@pytest.mark.long
def test_rare_rewards_are_seldom_green_and_wrong():
    """About ten of 20,000 rows pay; before, 8 of 60 such logs were green and missed the truth."""
    truth, green, wrong = 100 * 10 / 20_000, 0, 0
    for seed in range(60):
        draw = np.random.default_rng([seed, 9])
        found = mixope.evaluate(log(1000, seed=seed, pays=np.flatnonzero(draw.random(20_000) < 5e-4)), UNIFORM)
        green += found.verdict == "trustworthy"
        wrong += found.verdict == "trustworthy" and not found.interval.low <= truth <= found.interval.high
    assert green >= 40
    assert wrong <= 3
