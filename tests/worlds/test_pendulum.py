import math

import gymnasium
import numpy as np
import pytest

from mixope.base.errors import DataError, UnknownName, UsageError
from mixope.logs import Logs
from mixope.worlds import continuous, make_continuous, pendulum
from mixope.worlds.pendulum import Pendulum

# Two runs of 4,000 chains × 20,000 steps after 1,000: −1.4938 ± .0010 and −1.4922 ± .0010.
AVERAGE, ERROR = -1.4930, 0.0007


@pytest.fixture(scope="module")
def columns():
    return continuous.simulate(Pendulum(), pendulum.loggers(4), episodes=42, horizon=30, seed=5)


def test_steps_are_gymnasiums_to_the_last_bits():
    generator = np.random.default_rng(0)
    states = generator.uniform((-20, -8), (20, 8), (500, 2))
    actions = generator.normal(0, 2, (500, 1))
    following, reward = Pendulum().step(states, actions, generator)
    world = gymnasium.make("Pendulum-v1").unwrapped
    world.reset(seed=0)
    for i in range(500):
        world.state = states[i]
        observation, gained, *_ = world.step(actions[i])
        np.testing.assert_allclose(following[i], world.state, atol=1e-12, rtol=0)
        assert reward[i] == pytest.approx(gained, abs=1e-12)
        np.testing.assert_allclose(Pendulum().observe(following[i : i + 1])[0], observation, atol=1e-6)


def test_long_paths_stay_with_gymnasium():
    generator = np.random.default_rng(1)
    states = np.array([[3.0, 0.5]])
    world = gymnasium.make("Pendulum-v1").unwrapped
    world.reset(seed=0)
    world.state = states[0]
    for torque in generator.normal(0, 1.5, 200):
        states, _ = Pendulum().step(states, np.array([[torque]]), generator)
        world.step(np.array([torque]))
        np.testing.assert_allclose(states[0], world.state, atol=1e-9)


def test_episodes_start_anywhere_on_the_circle_and_slowly():
    states = Pendulum().start(20_000, np.random.default_rng(0))
    edges = np.abs(states).max(axis=0)
    assert (edges <= (np.pi, 1)).all()
    np.testing.assert_allclose(edges, (np.pi, 1), rtol=1e-3)
    np.testing.assert_allclose(states.std(axis=0), np.array([np.pi, 1]) / np.sqrt(3), rtol=0.02)


@pytest.mark.parametrize(("theta", "speed"), [(0.1, -0.5), (3.0, 2.0), (-1.2, 6.0)])
def test_the_analytic_mean_is_the_formula(theta, speed):
    g = 0.7
    k = 1 / (1 + math.exp(-8 * (math.cos(theta) - 0.8)))
    energy = 15 - 0.5 * speed**2 - 15 * math.cos(theta)
    m = -k * (8 * math.sin(theta) + 1.5 * speed) + (1 - k) * 0.05 * energy * speed
    policy = pendulum.analytic_policy(g, 0.9)
    seen = Pendulum().observe(np.array([[theta, speed]]))
    assert policy.mean(seen)[0, 0] == pytest.approx(2 * math.tanh(0.5 * g * m), rel=1e-12)
    assert policy.scale(seen)[0, 0] == 0.9


def test_logs_have_canonical_columns_by_episode_then_step(columns):
    rows = 42 * 30
    assert {name: array.shape for name, array in columns.items()} == {
        "policy_id": (rows,),
        "episode_id": (rows,),
        "step": (rows,),
        "observation": (rows, 3),
        "action": (rows, 1),
        "reward": (rows,),
        "next_observation": (rows, 3),
        "terminated": (rows,),
        "truncated": (rows,),
        "action_logp": (rows,),
    }
    np.testing.assert_array_equal(columns["episode_id"], np.repeat(np.arange(42), 30))
    np.testing.assert_array_equal(columns["step"], np.tile(np.arange(30), 42))
    episodes = np.unique(columns["policy_id"], return_counts=True)
    assert dict(zip(*episodes, strict=True)) == {
        "logger-0": 330,
        "logger-1": 330,
        "logger-2": 300,
        "logger-3": 300,
    }
    assert not columns["terminated"].any()
    np.testing.assert_array_equal(columns["truncated"], columns["step"] == 29)


def test_logged_transitions_follow_the_dynamics(columns):
    cosine, sine, speed = columns["observation"].T
    states = np.stack([np.arctan2(sine, cosine), speed], axis=1)
    following, reward = Pendulum().step(states, columns["action"], np.random.default_rng(0))
    np.testing.assert_allclose(reward, columns["reward"], atol=1e-10)
    np.testing.assert_allclose(Pendulum().observe(following), columns["next_observation"], atol=1e-10)
    inner = ~columns["truncated"]
    np.testing.assert_array_equal(columns["next_observation"][inner], columns["observation"][np.flatnonzero(inner) + 1])


def test_actions_are_raw_draws_with_their_own_loggers_density(columns):
    assert np.abs(columns["action"]).max() > 2
    for j, policy in enumerate(pendulum.loggers(4)):
        rows = columns["policy_id"] == f"logger-{j}"
        expected = policy.log_prob(columns["observation"][rows], columns["action"][rows])
        np.testing.assert_array_equal(columns["action_logp"][rows], expected)
        noise = columns["action"][rows] - policy.mean(columns["observation"][rows])
        assert noise.std() == pytest.approx(policy.scale(columns["observation"])[0, 0], rel=0.15)


def test_simulation_is_its_seed(columns):
    again = continuous.simulate(Pendulum(), pendulum.loggers(4), episodes=42, horizon=30, seed=5)
    other = continuous.simulate(Pendulum(), pendulum.loggers(4), episodes=42, horizon=30, seed=6)
    assert all((again[name] == columns[name]).all() for name in columns)
    assert not (other["action"] == columns["action"]).any()


def test_the_columns_are_logs(columns):
    logs = Logs.from_arrays(**columns)
    assert logs.total_rows() == 42 * 30


def test_the_target_earns_what_long_simulation_says():
    value, error = pendulum.truth(pendulum.target(), chains=500, steps=1000, burn_in=500, seed=0)
    assert error < 0.02
    assert abs(value - AVERAGE) < 4 * math.hypot(error, ERROR)


def test_loggers_go_from_poor_to_good():
    averages = [pendulum.truth(p, chains=100, steps=400, burn_in=300, seed=0).value for p in pendulum.loggers(4)]
    assert averages == sorted(averages)


def test_the_standard_error_is_what_repetitions_scatter_by():
    runs = [pendulum.truth(pendulum.target(), chains=40, steps=100, burn_in=50, seed=seed) for seed in range(60)]
    scatter = np.std([run.value for run in runs], ddof=1)
    assert np.sqrt(np.mean([run.standard_error**2 for run in runs])) == pytest.approx(scatter, rel=0.3)


def test_the_discounted_truth_is_the_discounted_mean_of_episodes():
    value, error = pendulum.discounted_truth(pendulum.target(), 0.9, chains=1000, seed=0)
    rows = continuous.simulate(Pendulum(), [pendulum.target()], 1000, 150, seed=1)
    sums = 0.1 * rows["reward"].reshape(1000, 150) @ 0.9 ** np.arange(150)
    assert abs(value - sums.mean()) < 4 * math.hypot(error, sums.std() / math.sqrt(1000))
    first = continuous.discounted(Pendulum(), pendulum.target(), 0.0, chains=1000, seed=0)
    start = rows["reward"].reshape(1000, 150)[:, 0]
    assert abs(first.value - start.mean()) < 4 * math.hypot(first.standard_error, start.std() / math.sqrt(1000))


def test_wrong_questions_are_refused():
    policy = pendulum.target()
    with pytest.raises(UsageError, match="1 or 4 loggers"):
        pendulum.loggers(2)
    with pytest.raises(UsageError, match="at least one policy"):
        continuous.simulate(Pendulum(), [], 1, 1, seed=0)
    with pytest.raises(UsageError, match="at least 2 chains"):
        pendulum.truth(policy, chains=1, steps=1, burn_in=0, seed=0)
    with pytest.raises(UsageError, match="discount"):
        pendulum.discounted_truth(policy, 1.0)
    with pytest.raises(UnknownName, match="Did you mean 'pendulum'"):
        make_continuous("pendulums")
    assert make_continuous("pendulum") == Pendulum()


@pytest.mark.parametrize("shape", [(5, 2), (5, 4), (3,)])
def test_observations_of_another_world_are_refused_with_words(shape):
    with pytest.raises(DataError, match="not Pendulum's") as caught:
        pendulum.target().log_prob(np.zeros(shape), np.zeros((shape[0], 1)))
    assert "three columns" in caught.value.expected
    assert str(shape) in caught.value.got
