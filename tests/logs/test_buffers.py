"""Buffers of Stable-Baselines3 and d3rlpy: the rows are the steps that went in, in the units of the environment."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import DataError, MixopeWarning
from mixope.logs.schema import UNLABELLED

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
sb3 = pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install 'mixope[sb3]'")
d3rlpy = pytest.importorskip("d3rlpy", reason="needs d3rlpy: pip install 'mixope[d3rlpy]'")
gymnasium = pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install 'mixope[sb3]'")
import torch  # noqa: E402
from gymnasium import spaces  # noqa: E402
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer, RolloutBuffer  # noqa: E402

LOW, HIGH = np.array([-2.0, 0.0], dtype=np.float32), np.array([2.0, 0.5], dtype=np.float32)
BOX = spaces.Box(LOW, HIGH, dtype=np.float32)
SEEN = spaces.Box(-100.0, 100.0, (2,), np.float32)
CUT = [{"TimeLimit.truncated": True}, {}]


def fill(buffer, steps, envs=2, *, discrete=True):
    """Steps of two environments: observation (environment, time); episodes of 3 steps, those of the first one cut."""
    for t in range(steps):
        now = np.array([[e, t] for e in range(envs)], np.float32)
        done = np.full(envs, t % 3 == 2)
        action = np.array([(t + e) % 2 for e in range(envs)]) if discrete else np.tile([0.5, -1.0], (envs, 1))
        infos = [CUT[e % 2] if done[0] else {} for e in range(envs)]
        buffer.add(now, now + np.array([0, 1]), action, now[:, 1] / 10, done, infos)
    return buffer


def rows_of(given, **said):
    return mixope.read(given, **said).table().to_pylist()


def test_a_replay_buffer_is_a_stream_of_episodes_per_environment():
    rows = rows_of(fill(ReplayBuffer(100, SEEN, spaces.Discrete(2), "cpu", n_envs=2), 8))
    assert [row["observation.0"] for row in rows] == [0.0] * 8 + [1.0] * 8
    assert [row["observation.1"] for row in rows] == [*range(8)] * 2
    assert [row["action"] for row in rows] == [t % 2 for t in range(8)] + [(t + 1) % 2 for t in range(8)]
    assert [row["reward"] for row in rows] == pytest.approx([t / 10 for t in range(8)] * 2)
    assert [row["episode_id"] for row in rows] == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5]
    assert [row["step"] for row in rows] == [0, 1, 2, 0, 1, 2, 0, 1] * 2
    assert [row["truncated"] for row in rows[:8]] == [t in (2, 5, 7) for t in range(8)]
    assert not any(row["terminated"] for row in rows[:8])
    assert [row["terminated"] for row in rows[8:]] == [t in (2, 5) for t in range(8)]
    assert [row["next_observation.1"] for row in rows[:8]] == [t + 1 for t in range(8)]


def test_a_full_replay_buffer_begins_with_its_oldest_step_which_is_no_start():
    buffer = fill(ReplayBuffer(10, SEEN, spaces.Discrete(2), "cpu", n_envs=2), 8)
    with pytest.warns(MixopeWarning, match="it is full"):
        rows = rows_of(buffer)
    assert [row["observation.1"] for row in rows] == [3, 4, 5, 6, 7] * 2
    assert [row["step"] for row in rows] == [1, 2, 3, 0, 1] * 2
    assert [row["start"] for row in rows] == [False, False, False, True, False] * 2


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_without_timeouts_the_kind_of_end_is_asked_for():
    options = {"n_envs": 2, "optimize_memory_usage": True, "handle_timeout_termination": False}
    buffer = fill(ReplayBuffer(100, SEEN, spaces.Discrete(2), "cpu", **options), 8)
    with pytest.raises(DataError, match="ambiguous"):
        mixope.read(buffer)
    rows = rows_of(buffer, done="terminated")
    assert [row["observation.1"] for row in rows] == [*range(8)] * 2
    assert [row["unfollowed"] for row in rows] == [t == 7 for t in range(8)] * 2  # the newest has no next observation
    full = fill(ReplayBuffer(10, SEEN, spaces.Discrete(2), "cpu", **options), 8)
    assert [row["observation.1"] for row in rows_of(full, done="terminated")] == [4, 5, 6, 7] * 2


def test_actions_of_algorithms_are_read_in_the_units_of_their_space():
    buffer = fill(ReplayBuffer(100, SEEN, BOX, "cpu", n_envs=2), 3, discrete=False)
    with pytest.warns(MixopeWarning, match="units of the action space"):
        rows = rows_of(buffer)
    assert [rows[0]["action.0"], rows[0]["action.1"]] == [1.0, 0.0]


@pytest.mark.filterwarnings("ignore")
def test_what_an_algorithm_stored_is_what_the_environment_did():
    done = []

    class Watched(gymnasium.Env):
        observation_space, action_space = SEEN, BOX

        def reset(self, *, seed=None, options=None):
            self.time = 0
            return np.zeros(2, np.float32), {}

        def step(self, action):
            self.time += 1
            done.append(np.array(action, dtype=np.float64))
            return np.full(2, self.time, np.float32), 1.0, False, self.time == 5, {}

    model = sb3.SAC("MlpPolicy", Watched(), learning_starts=10, buffer_size=1000, device="cpu", seed=0)
    model.learn(12)
    table = mixope.read(model.replay_buffer).table()
    found = np.stack([table.column(f"action.{i}").to_numpy() for i in range(2)], axis=1)
    assert found == pytest.approx(np.array(done), abs=1e-5)
    assert table.column("step").to_pylist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    assert table.column("truncated").to_pylist() == [t in (4, 9, 11) for t in range(12)]
    assert table.column("next_observation.0").to_pylist() == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]


def test_dict_observations_and_several_classes():
    space = spaces.Dict({"pos": SEEN, "cell": spaces.Discrete(3)})
    buffer = DictReplayBuffer(20, space, spaces.MultiDiscrete([2, 3]), "cpu")
    for t in range(4):
        now = {"pos": np.full((1, 2), t, np.float32), "cell": np.array([[t % 3]])}
        buffer.add(now, now, np.array([[1, t % 3]]), np.ones(1), np.array([t == 3]), [{}])
    logs = mixope.read(buffer)
    assert logs.schema.observation_kind == "mixed"
    assert logs.table().column("action").to_pylist() == ["1,0", "1,1", "1,2", "1,0"]
    assert logs.table().column("observation.cell").to_pylist() == [0, 1, 2, 0]


def rollout(steps, size=8, envs=2, space=SEEN):
    buffer = RolloutBuffer(size, space, spaces.Discrete(2), "cpu", n_envs=envs)
    for t in range(steps):
        now = np.array([[e, t] for e in range(envs)], np.float32)
        logp = torch.tensor([-0.1 - t / 100 - e for e in range(envs)])
        start = np.array([t in (0, 3, 6), t in (2, 4)][:envs])
        buffer.add(now, np.array([t % 2] * envs), now[:, 1], start, torch.zeros(envs), logp)
    return buffer


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
@pytest.mark.parametrize("taken", [False, True])
def test_a_rollout_buffer_has_log_probabilities_and_starts(taken):
    buffer = rollout(8)
    if taken:
        next(iter(buffer.get(4)))
    with pytest.raises(DataError, match="ambiguous"):
        mixope.read(buffer)
    rows = rows_of(buffer, done="terminated")  # the newest step of each has no next observation
    assert [row["observation.1"] for row in rows] == [*range(8)] * 2
    assert [row["unfollowed"] for row in rows] == [t == 7 for t in range(8)] * 2
    assert np.log([row["propensity"] for row in rows]) == pytest.approx(
        [-0.1 - t / 100 - e for e in range(2) for t in range(8)], abs=1e-6
    )
    assert [row["terminated"] for row in rows] == [t in (2, 5) for t in range(8)] + [t in (1, 3) for t in range(8)]
    assert [row["step"] for row in rows] == [0, 1, 2, 0, 1, 2, 0, 1, 1, 2, 0, 1, 0, 1, 2, 3]
    assert [row["start"] for row in rows[8:]] == [False, False, True, False, True, False, False, False]


def test_a_rollout_buffer_that_is_not_full_has_the_steps_so_far():
    rows = rows_of(rollout(3, envs=1))
    assert [(row["observation.1"], row["unfollowed"]) for row in rows] == [(0, False), (1, False), (2, True)]


@pytest.mark.filterwarnings("ignore")
def test_log_probabilities_of_ppo_are_those_of_its_policy():
    options = {"n_steps": 64, "batch_size": 64, "n_epochs": 1, "learning_rate": 0.0, "seed": 0}
    model = sb3.PPO("MlpPolicy", gymnasium.make("Pendulum-v1"), **options).learn(64)
    logs = mixope.read(model.rollout_buffer)
    found = mixope.evaluate(logs, mixope.read_policy(model, law="plain"), "is")
    assert found.value == pytest.approx(np.mean(logs.table().column("reward").to_numpy()), rel=1e-4)


@pytest.mark.parametrize("make", [lambda: ReplayBuffer(5, SEEN, BOX, "cpu"), lambda: rollout(0)])
def test_an_empty_buffer_is_refused(make):
    with pytest.raises(DataError, match="no steps"):
        mixope.read(make())


def d3rlpy_set(discrete=True):
    draw = np.random.default_rng(0)
    steps, ends = 12, np.isin(np.arange(12), [3, 11]).astype(np.float32)
    return d3rlpy.dataset.MDPDataset(
        observations=draw.normal(size=(steps, 3)).astype(np.float32),
        actions=draw.integers(0, 2, steps) if discrete else draw.normal(size=(steps, 2)).astype(np.float32),
        rewards=np.arange(steps, dtype=np.float32),
        terminals=ends,
        timeouts=(np.arange(steps) == 7).astype(np.float32),
    )


@pytest.mark.parametrize("discrete", [True, False])
def test_the_steps_of_d3rlpy(discrete):
    data = d3rlpy_set(discrete)
    logs = mixope.read(data)
    rows = logs.table().to_pylist()
    assert logs.schema.action_kind == ("discrete" if discrete else "continuous")
    assert [row["reward"] for row in rows] == [*range(12)]
    assert [row["unfollowed"] for row in rows] == [t == 7 for t in range(12)]  # cut, and no next observation is kept
    assert [row["terminated"] for row in rows] == [t in (3, 11) for t in range(12)]
    seen = np.concatenate([episode.observations for episode in data.episodes])
    assert [row["observation.2"] for row in rows] == [float(seen[t, 2]) for t in range(12)]
    assert {row["policy_id"] for row in rows} == {UNLABELLED}
    assert len(rows_of(data.episodes)) == 12
    assert {row["policy_id"] for row in rows_of({"old": data})} == {"old"}


def test_a_buffer_that_d3rlpy_is_filling():
    buffer = d3rlpy.dataset.create_fifo_replay_buffer(100, env=gymnasium.make("CartPole-v1"))
    for t in range(5):
        buffer.append(np.full(4, t, np.float32), 1, float(t))
    buffer.clip_episode(True)
    rows = rows_of(buffer)
    assert [row["observation.0"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[-1]["terminated"]


def test_an_empty_buffer_of_d3rlpy_is_refused():
    with pytest.raises(DataError, match="no steps"):
        mixope.read(d3rlpy.dataset.create_fifo_replay_buffer(100, env=gymnasium.make("CartPole-v1")))
