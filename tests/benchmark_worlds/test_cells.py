"""The worlds of the benchmarks: stored policies, logs and columns of noise, without MuJoCo."""

import numpy as np
import pytest
from benchmarks.worlds.cells import CELLS, PERSISTENCE, RANKED, noise
from benchmarks.worlds.policies import Linear, read
from benchmarks.worlds.write import path, write
from benchmarks.worlds.write import read as read_log

pytest.importorskip("gymnasium")


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
class TestStored:
    def test_three_loggers_differ_clearly_from_the_target(self, cell):
        truth, error = cell.truths(cell.stored["targets"][0])
        assert len(cell.stored["loggers"]) == 3
        assert abs(cell.logged_value - truth) > 10 * error > 0

    def test_policies_fit_the_state(self, cell):
        states = np.zeros((2, len(cell.stored["centre"]) + cell.noise_columns))
        for policy in cell.targets():
            assert policy.level(states).shape == (2, len(policy.offset))

    def test_the_library_sees_the_same_law(self, cell):
        policy, generator = cell.targets()[0], np.random.default_rng(0)
        states = generator.standard_normal((5, policy.weights.shape[1]))
        if policy.discrete:
            actions, expected = np.arange(5) % 2, np.log(policy.probs(states)[np.arange(5), np.arange(5) % 2])
        else:
            actions = policy.level(states) + policy.noise * generator.standard_normal((5, len(policy.offset)))
            z = (actions - policy.level(states)) / policy.noise
            expected = np.sum(-0.5 * z**2 - np.log(policy.noise * np.sqrt(2 * np.pi)), axis=1)
        np.testing.assert_allclose(policy.mixope().log_prob(states, actions), expected, rtol=1e-6)


@pytest.mark.parametrize("name", RANKED)
def test_eight_targets_are_ranked(name):
    truths = [CELLS[name].truths(policy)[0] for policy in CELLS[name].stored["targets"]]
    assert len(truths) == 8
    assert np.ptp(truths) > abs(CELLS[name].logged_value - truths[0])


def test_a_policy_is_read_as_it_was_stored():
    policy = Linear(np.array([[0.5, -1.0]]), np.array([0.25]), 0.3, np.zeros(2), np.ones(2), 2.0)
    world = {"centre": [0, 0], "unit": [1, 1], "scale": 2.0, "discrete": False}
    again = read(world, policy.to_json())
    states = np.array([[1.0, 2.0], [-1.0, 0.5]])
    np.testing.assert_array_equal(again.level(states), policy.level(states))
    np.testing.assert_allclose(policy.level(states)[0], 2 * np.tanh(0.5 - 2.0 + 0.25))


class TestLogs:
    def test_an_episode_is_either_terminated_or_truncated_at_its_last_row(self):
        log = CELLS["cartpole"].log(9, 0)
        last = np.append(np.diff(log["episode_id"]) > 0, True)
        np.testing.assert_array_equal(log["terminated"] | log["truncated"], last)
        assert not np.any(log["terminated"] & log["truncated"])
        assert log["terminated"].any()
        inside = ~last
        np.testing.assert_array_equal(log["next_observation"][inside], log["observation"][1:][inside[:-1]])

    def test_loggers_take_turns(self):
        log = CELLS["cartpole"].log(6, 0)
        first = log["step"] == 0
        assert log["policy_id"][first].tolist() == ["logger-0", "logger-1", "logger-2"] * 2

    def test_a_pole_that_is_put_up_again_pays_for_each_fall(self):
        log = CELLS["cartpole-average"].log(3, 0)
        fell = log["reward"] == -1
        assert not log["terminated"].any()
        assert fell.any()
        assert set(np.unique(log["reward"])) == {-1.0, 0.0}
        assert np.abs(log["next_observation"][fell]).max() <= 0.05

    def test_the_seed_fixes_the_log_and_sizes_share_nothing(self):
        cell = CELLS["cartpole"]
        np.testing.assert_array_equal(cell.log(3, 1)["observation"], cell.log(3, 1)["observation"])
        assert not np.array_equal(cell.log(3, 1)["observation"][0], cell.log(4, 1)["observation"][0])

    def test_columns_of_noise_stand_beside_the_same_log(self):
        plain, noisy = CELLS["cartpole"].log(3, 0), CELLS["cartpole-noise"].log(3, 0)
        assert noisy["observation"].shape[1] == 50
        np.testing.assert_array_equal(noisy["observation"][:, :4], plain["observation"])
        policy, without = CELLS["cartpole-noise"].targets()[0], CELLS["cartpole"].targets()[0]
        np.testing.assert_allclose(policy.probs(noisy["observation"]), without.probs(plain["observation"]))

    def test_a_log_is_written_once(self, tmp_path):
        assert write(tmp_path, CELLS["cartpole"], 3, 0)
        assert not write(tmp_path, CELLS["cartpole"], 3, 0)
        again = read_log(path(tmp_path, "cartpole", 3, 0))
        np.testing.assert_array_equal(again["reward"], CELLS["cartpole"].log(3, 0)["reward"])

    def test_a_log_that_is_not_there_says_how_to_write_it(self, tmp_path):
        with pytest.raises(SystemExit, match=r"benchmarks\.worlds\.write"):
            read_log(path(tmp_path, "cartpole", 3, 0))


def test_noise_persists_within_an_episode_and_starts_anew():
    starts = np.arange(4000) % 2000 == 0
    now, after = noise(starts, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(after[:1999], now[1:2000])
    assert not np.array_equal(after[1999], now[2000])
    assert abs(now.std() - 1) < 0.15
    assert abs(np.mean(now * after) - PERSISTENCE) < 0.15
