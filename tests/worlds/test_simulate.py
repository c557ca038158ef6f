"""Simulated logs follow the model's law, keep the log's form, and depend on the seed alone."""

import numpy as np
import pytest
from scipy import stats

from mixope.base.errors import UsageError
from mixope.worlds import make, simulate
from mixope.worlds.simulation import laws

from .worlds import random_model, random_policy


def p_value(counts, law):
    """Pearson's test of counts against a law over the same cells; cells of mass 0 must be empty."""
    assert (counts[law == 0] == 0).all()
    possible = law > 0
    return stats.chisquare(counts[possible], law[possible] * counts.sum()).pvalue


@pytest.mark.parametrize("seed", range(3))
def test_transitions_and_actions_follow_the_model(seed):
    model = random_model(seed, n_states=4, n_actions=2)
    policy = random_policy(model, seed)
    logs = simulate(model, [policy], 4000, 20, seed=seed)
    pair = logs["observation"] * 2 + logs["action"]
    for row in range(8):
        counts = np.bincount(logs["next_observation"][pair == row], minlength=4)
        assert p_value(counts, model.transition.toarray()[row]) > 1e-4
    for state in range(4):
        counts = np.bincount(logs["action"][logs["observation"] == state], minlength=2)
        assert p_value(counts, policy[state]) > 1e-4
    assert p_value(np.bincount(logs["observation"][logs["step"] == 0], minlength=4), model.start) > 1e-4


def test_rows_have_the_form_of_a_log():
    model = make("walk")
    policies = [random_policy(model, j) for j in range(3)]
    logs = simulate(model, policies, episodes=50, horizon=8, seed=0)
    episode, step, last = logs["episode_id"], logs["step"], np.append(np.diff(logs["episode_id"]) > 0, True)
    assert (np.lexsort((step, episode)) == np.arange(len(step))).all()
    assert (step[1:][~last[:-1]] == step[:-1][~last[:-1]] + 1).all()
    assert (logs["observation"][1:][~last[:-1]] == logs["next_observation"][:-1][~last[:-1]]).all()
    assert ((logs["terminated"] | logs["truncated"]) == last).all()
    assert not (logs["terminated"] & logs["truncated"]).any()
    assert logs["terminated"].any()
    assert logs["truncated"].any()
    logger = np.array([int(label.removeprefix("logger-")) for label in logs["policy_id"]])
    assert (logs["action_prob"] == np.stack(policies)[logger, logs["observation"], logs["action"]]).all()
    assert [len(np.unique(episode[logger == j])) for j in range(3)] == [17, 17, 16]


def test_rewards_are_those_of_the_transitions():
    model = make("gridworld-slip")
    logs = simulate(model, [random_policy(model, 0)], 20, 50, seed=0)
    by_cell = np.full(16, -1.0)
    by_cell[[5, 9, 15]] = -11, 1, 100
    assert (logs["reward"] == by_cell[logs["observation"]]).all()


def test_same_seed_same_bytes_other_seed_other_logs(taxi, taxi_target):
    first, again, other = (simulate(taxi, [taxi_target], 10, 30, seed=seed) for seed in (7, 7, 8))
    assert all(first[column].tobytes() == again[column].tobytes() for column in first)
    assert (first["observation"] != other["observation"]).any()


def test_factors_can_stand_for_or_beside_the_id(taxi, taxi_target):
    both = simulate(taxi, [taxi_target], 5, 10, seed=0, observed="both")
    factors = simulate(taxi, [taxi_target], 5, 10, seed=0, observed="factors")
    assert "observation" not in factors
    for name, values in taxi.factors.items():
        assert (both[f"observation.{name}"] == values[both["observation"]]).all()
        assert (factors[f"next_observation.{name}"] == both[f"next_observation.{name}"]).all()


def test_actions_of_probability_zero_are_never_drawn():
    drawn = laws(np.array([0.0, 1.0, 0.0, 0.5, 0.5, 0.0]), np.array([0, 3, 6]))
    uniforms = np.array([0.0, np.nextafter(1, 0), 0.0, np.nextafter(1, 0)])
    assert drawn.draw(np.array([0, 0, 1, 1]), uniforms).tolist() == [1, 1, 3, 4]


@pytest.mark.parametrize("bad", [{"episodes": 0}, {"horizon": 0}, {"policies": []}, {"observed": "all"}])
def test_a_simulation_without_sense_is_an_error(bad):
    model = make("singlepath")
    with pytest.raises(UsageError):
        simulate(model, **{"policies": [random_policy(model, 0)], "episodes": 1, "horizon": 1, "seed": 0, **bad})


def test_factors_of_opaque_states_are_an_error():
    model = make("singlepath")
    with pytest.raises(UsageError, match="no factors"):
        simulate(model, [random_policy(model, 0)], 1, 1, seed=0, observed="factors")
