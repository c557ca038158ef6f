import gymnasium
import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.worlds import actor_critic, pendulum
from mixope.worlds.actor_critic import ActorTraining, Bumps

pytestmark = pytest.mark.long

SHORT = ActorTraining(rounds=4, chains=32, steps=10, measured_chains=20, measured_steps=20)


@pytest.fixture(scope="module")
def stages():
    return actor_critic.train(4, seed=0)


def test_skill_rises_clearly_from_stage_to_stage(stages):
    truths = [pendulum.truth(policy, chains=200, steps=300, burn_in=200, seed=99) for policy in stages]
    values, errors = np.array(truths).T
    assert (np.diff(values) > 1).all()
    assert (np.diff(values) > 5 * np.hypot(errors[1:], errors[:-1])).all()


def test_the_first_stage_ignores_the_state_and_the_last_is_far_better(stages):
    seen = pendulum.Pendulum().observe(pendulum.Pendulum().start(50, np.random.default_rng(0)))
    assert (stages[0].mean(seen) == 0).all()
    assert pendulum.truth(stages[-1], chains=100, steps=200, burn_in=200, seed=0).value > -1


def test_the_last_stage_swings_gymnasiums_pendulum_up(stages):
    world, generator = gymnasium.make("Pendulum-v1").unwrapped, np.random.default_rng(0)
    observation, _ = world.reset(seed=0)
    rewards = []
    for _ in range(400):
        action = stages[-1].sample(observation[None].astype(np.float64), generator)[0]
        observation, reward, *_ = world.step(action)
        rewards.append(reward)
    assert np.mean(rewards[200:]) > -1


def test_training_is_its_seed():
    first, again, other = (actor_critic.learn(seed, SHORT)[-1].weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_stages_have_fingerprints_of_their_own(stages):
    assert len({policy.fingerprint() for policy in stages}) == 4


def test_bumps_sum_to_one_and_are_periodic():
    generator = np.random.default_rng(0)
    states = generator.uniform((-np.pi, -8), (np.pi, 8), (100, 2))
    bumps, world = Bumps(15, 11), pendulum.Pendulum()
    features = bumps(world.observe(states))
    assert features.shape == (100, bumps.count)
    np.testing.assert_allclose(features.sum(axis=1), 1)
    np.testing.assert_allclose(bumps(world.observe(states + np.array([2 * np.pi, 0]))), features, atol=1e-12)


def test_stages_are_spread_evenly_by_average():
    averages = np.array([-6.0, -5.5, -4.1, -3, -2.2, -0.5, 0, -0.1])
    assert actor_critic.spread(averages, 4) == [0, 2, 4, 6]
    with pytest.raises(UsageError, match="distinct"):
        actor_critic.spread(averages, 9)
    with pytest.raises(UsageError, match="two stages"):
        actor_critic.train(1)
