"""Where minari is installed: for all spaces and storages, our rows are the steps that minari iterates over."""

import numpy as np
import pytest

import mixope

minari = pytest.importorskip("minari")
pytest.importorskip("jax")
pytest.importorskip("h5py")
import gymnasium  # noqa: E402
from gymnasium import spaces  # noqa: E402

NUMBERS, CLASSES = spaces.Box(-1, 1, (3,), np.float32), spaces.Discrete(3)
OBSERVATIONS = {
    "box": NUMBERS,
    "table": spaces.Box(0, 9, (2, 2), np.int64),
    "discrete": spaces.Discrete(5, start=-2),
    "multidiscrete": spaces.MultiDiscrete([3, 4]),
    "multibinary": spaces.MultiBinary(4),
    "text": spaces.Text(5),
    "dict": spaces.Dict({"pos": NUMBERS, "cell": CLASSES, "word": spaces.Text(3)}),
    "tuple": spaces.Tuple((NUMBERS, CLASSES, spaces.Dict({"x": spaces.Box(0, 1, (), np.float64)}))),
}
ACTIONS = {
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "multidiscrete": spaces.MultiDiscrete([2, 3]),
    "text": spaces.Text(2),
    "tuple": spaces.Tuple((CLASSES, CLASSES)),
    "dict": spaces.Dict({"f": spaces.Box(-1, 1, (1,), np.float32), "g": NUMBERS}),
}
CASES = [(name, "discrete", space, CLASSES) for name, space in OBSERVATIONS.items()]
CASES += [("box", name, NUMBERS, space) for name, space in ACTIONS.items()]


class Chance(gymnasium.Env):
    """Any observation, whatever is done; the reward counts the steps."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space
        self.episode = self.time = 0

    def reset(self, *, seed=None, options=None):
        self.episode, self.time = self.episode + 1, 0
        return self.observation_space.sample(), {"action_prob": -1.0, "prob": 0.3}

    def step(self, action):
        self.time += 1
        over, even = self.time == 2 + self.episode, self.episode % 2 == 0
        info = {"action_prob": self.time / 16, "prob": 0.3}
        return self.observation_space.sample(), 10.0 * self.episode + self.time, over and even, over and not even, info


def flat(value):
    """All that an observation or action of minari holds."""
    if isinstance(value, dict):
        return [each for key in sorted(value) for each in flat(value[key])]
    if isinstance(value, tuple):
        return [each for part in value for each in flat(part)]
    return np.ravel(value).tolist()


def at(values, step):
    if isinstance(values, dict):
        return {key: at(value, step) for key, value in values.items()}
    return tuple(at(value, step) for value in values) if isinstance(values, tuple) else values[step]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("storage", ["hdf5", "arrow", "parquet"])
@pytest.mark.parametrize(("state", "act", "observation_space", "action_space"), CASES, ids=lambda each: str(each)[:12])
def test_rows_are_the_steps_of_minari(storage, state, act, observation_space, action_space, monkeypatch, tmp_path):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(Chance(observation_space, action_space), record_infos=True, data_format=storage)
    for _ in range(3):
        env.reset()
        while True:
            _, _, terminated, truncated, _ = env.step(action_space.sample())
            if terminated or truncated:
                break
    found = env.create_dataset("chance/coin-v0", algorithm_name="coin", ref_min_score=0.0, ref_max_score=1.0)
    logs = mixope.read("minari:chance/coin-v0")
    rows = logs.table().to_pylist()
    assert len(rows) == found.total_steps == 12
    for episode in found.iterate_episodes():
        for step in range(len(episode)):
            row = rows.pop(0)
            assert (row["policy_id"], row["episode_id"], row["step"]) == ("coin", episode.id, step)
            assert (row["reward"], row["propensity"]) == (episode.rewards[step], (step + 1) / 16)
            assert (row["terminated"], row["truncated"]) == (episode.terminations[step], episode.truncations[step])
            assert [row[name] for name in logs.schema.observation] == flat(at(episode.observations, step))
            if not row["terminated"]:
                assert [row[name] for name in logs.schema.next_observation] == flat(at(episode.observations, step + 1))
            action, wanted = [row[name] for name in logs.schema.action], flat(at(episode.actions, step))
            assert action == (wanted if len(action) == len(wanted) else [",".join(map(str, wanted))])


@pytest.mark.filterwarnings("ignore")
def test_a_data_set_that_is_loaded_is_read_with_the_episodes_that_were_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(Chance(NUMBERS, CLASSES), data_format="parquet")
    for _ in range(3):
        env.reset()
        while not any(env.step(CLASSES.sample())[2:4]):
            pass
    data = env.create_dataset("chosen/some-v0", algorithm_name="random")
    whole = mixope.read(data)
    assert whole.table().equals(mixope.read("minari:chosen/some-v0").table())
    some = data.filter_episodes(lambda episode: bool(episode.truncations[-1]))
    rows = mixope.read(some).table()
    assert set(rows.column("episode_id").to_pylist()) == {int(number) for number in some.episode_indices}
    assert rows.column("reward").to_pylist() == [float(r) for episode in some for r in episode.rewards]
    assert set(rows.column("policy_id").to_pylist()) == {"random"}
    episodes = list(data.iterate_episodes())
    assert mixope.read(episodes).table().column("reward").equals(whole.table().column("reward"))
    assert mixope.read(episodes).table().num_rows == data.total_steps
