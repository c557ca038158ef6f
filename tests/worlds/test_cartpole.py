"""CartPole is Gymnasium's, its logs end as Gymnasium's do, and its truths are what whole episodes earn."""

import math

import numpy as np
import pytest

from mixope.base.errors import DataError, UsageError
from mixope.base.estimand import Estimand
from mixope.logs import Logs
from mixope.worlds import cartpole, continuous
from mixope.worlds.cartpole import CartPole

gymnasium = pytest.importorskip("gymnasium")


@pytest.fixture(scope="module")
def columns():
    return continuous.simulate(CartPole(), cartpole.loggers(4), episodes=42, horizon=60, seed=5)


def test_steps_are_gymnasiums_to_the_last_bits():
    generator = np.random.default_rng(0)
    states = generator.uniform((-2.6, -3, -0.25, -3), (2.6, 3, 0.25, 3), (500, 4))
    actions = generator.integers(0, 2, 500)
    following, reward = CartPole().step(states, actions, generator)
    ended = CartPole().ended(following)
    world = gymnasium.make("CartPole-v1").unwrapped
    for i in range(500):
        world.reset(seed=0)
        world.state = states[i]
        _, gained, terminated, _, _ = world.step(int(actions[i]))
        np.testing.assert_allclose(following[i], world.state, atol=1e-13, rtol=0)
        assert (reward[i], ended[i]) == (gained, terminated)
    assert 50 < ended.sum() < 450


def test_whole_episodes_are_gymnasiums(columns):
    world = gymnasium.make("CartPole-v1").unwrapped
    for episode in range(0, 42, 5):
        rows = np.flatnonzero(columns["episode_id"] == episode)
        world.reset(seed=0)
        world.state = columns["observation"][rows[0]]
        for row in rows:
            _, _, terminated, _, _ = world.step(int(columns["action"][row]))
            np.testing.assert_allclose(columns["next_observation"][row], world.state, atol=1e-10)
            assert terminated == columns["terminated"][row]


def test_episodes_start_near_upright():
    states = CartPole().start(5000, np.random.default_rng(0))
    np.testing.assert_allclose(np.abs(states).max(axis=0), 0.05, rtol=1e-2)
    np.testing.assert_allclose(states.std(axis=0), 0.05 / math.sqrt(3), rtol=0.05)


def test_logs_end_by_falling_or_are_truncated(columns):
    last = np.append(np.diff(columns["episode_id"]) > 0, True)
    assert ((columns["terminated"] | columns["truncated"]) == last).all()
    assert columns["terminated"].any()
    assert (columns["truncated"] == ((columns["step"] == 59) & ~columns["terminated"])).all()
    inner = np.flatnonzero(~last)
    np.testing.assert_array_equal(columns["next_observation"][inner], columns["observation"][inner + 1])
    assert columns["action"].dtype.kind == "i"
    assert Logs.from_arrays(**columns).total_rows() == len(last)


def test_actions_follow_their_own_logger(columns):
    for j, policy in enumerate(cartpole.loggers(4)):
        rows = columns["policy_id"] == f"logger-{j}"
        seen, action = columns["observation"][rows], columns["action"][rows]
        np.testing.assert_array_equal(columns["action_logp"][rows], policy.log_prob(seen, action))
        right = policy.probs(seen)[:, 1]
        assert abs((action - right).mean()) < 4 * math.sqrt((right * (1 - right)).mean() / len(right))


def test_without_a_horizon_every_pole_falls():
    logs = continuous.simulate(CartPole(), cartpole.loggers(4), episodes=40, seed=1)
    assert logs["terminated"].sum() == 40
    assert not logs["truncated"].any()


@pytest.mark.parametrize(
    ("estimand", "weight"),
    [
        (Estimand("discounted", gamma=0.99), lambda t: 0.01 * 0.99**t),
        (Estimand("horizon", horizon=80), lambda t: (t < 80) / 80),
        (Estimand("episode"), np.ones_like),
        (Estimand("episode", gamma=0.99), lambda t: 0.99**t),
    ],
)
def test_truths_are_what_whole_episodes_earn(estimand, weight):
    value, error = cartpole.truth(cartpole.target(), estimand, chains=1500, seed=0)
    logs = continuous.simulate(CartPole(), [cartpole.target()], 1500, seed=1)
    sums = np.bincount(logs["episode_id"], weights=weight(logs["step"]) * logs["reward"])
    assert error == pytest.approx(sums.std() / math.sqrt(1500), rel=0.2)
    assert abs(value - sums.mean()) < 4 * math.hypot(error, sums.std() / math.sqrt(1500))


def test_every_step_earns_one_so_the_average_is_one():
    assert cartpole.truth(cartpole.target(), Estimand()).value == 1.0
    found = continuous.average(CartPole(), cartpole.target(), chains=20, steps=50, burn_in=200, seed=0)
    assert found == (1.0, 0.0)


def test_controllers_get_better_with_their_gain():
    lengths = [cartpole.truth(p, Estimand("episode"), chains=300).value for p in cartpole.loggers(4)]
    assert lengths == sorted(lengths)
    assert lengths[0] < cartpole.truth(cartpole.target(), Estimand("episode"), chains=300).value < lengths[-1]


def test_wrong_questions_are_refused(monkeypatch):
    with pytest.raises(UsageError, match="1 or 4 loggers"):
        cartpole.loggers(2)
    with pytest.raises(DataError, match="not CartPole's"):
        cartpole.target().probs(np.zeros((3, 2)))
    monkeypatch.setattr(continuous, "MOST_STEPS", 50)
    with pytest.raises(UsageError, match="more than 50 steps"):
        continuous.simulate(CartPole(), [cartpole.target()], 50, seed=0)
    with pytest.raises(UsageError, match="more than 50 steps"):
        cartpole.truth(cartpole.target(), Estimand("episode"), chains=50)
    with pytest.raises(UsageError, match="burn-in"):
        continuous.value(CartPole(), cartpole.target(), Estimand(), chains=2, seed=0)
