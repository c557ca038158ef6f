"""``record``: the log has what happened, with the probabilities of what was done, and evaluates to what was earned."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.base.errors import DataError, MixopeWarning, UsageError

gymnasium = pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install 'mixope[gym]'")
from gymnasium import spaces  # noqa: E402

from .chance import CLASSES, NUMBERS, Broken, Chance, flat  # noqa: E402

EVEN = mixope.read_policy(lambda states: np.full((len(states), 3), 1 / 3), actions=[0, 1, 2])
SLIP = "mixope.worlds.gymnasium_adapter:mixope/GridworldSlip-v0"


def grid_policy():
    return mixope.TabularPolicy(worlds.target(worlds.make("gridworld-slip")))


def normal(width, to):
    return mixope.LinearGaussianPolicy(np.zeros((to, width)), np.full(to, 0.2), np.full(to, 1.5))


def test_ids_are_recorded_as_a_loop_sees_them():
    policy, env = grid_policy(), gymnasium.make(SLIP)
    logs = mixope.record(env, policy, steps=300, horizon=40, seed=3)
    rows = logs.table().to_pylist()
    assert len(rows) == 300
    draw, state = np.random.default_rng(3), None
    again, first = gymnasium.make(SLIP), 3
    for row in rows:
        if row["step"] == 0:
            state, _ = again.reset(seed=first)
            first = None
        law = policy.probs(np.array([state]))[0]
        action = int(np.searchsorted(np.cumsum(law), draw.random() * law.sum(), side="right"))
        assert (row["observation"], row["action"], row["propensity"]) == (state, action, pytest.approx(law[action]))
        state, reward, terminated, _, _ = again.step(action)
        assert (row["reward"], row["terminated"]) == (reward, terminated)
        assert row["next_observation"] == (None if terminated else state)
    assert logs.notes == ()


@pytest.mark.parametrize("path", [None, "recorded"])
def test_the_policy_that_wrote_the_log_has_the_value_of_the_log(path, tmp_path):
    policy = grid_policy()
    logs = mixope.record(gymnasium.make(SLIP), policy, episodes=20, horizon=50, path=path and tmp_path / path)
    for name in ("is", "wis"):
        found = mixope.evaluate(logs, policy, name)
        assert found.value == pytest.approx(found.logged_mean, abs=1e-9)
        assert found.n_dropped == 0
    earned = np.mean(logs.table().column("reward").to_numpy())
    assert found.logged_mean == pytest.approx(earned, abs=1e-9)
    if path:
        again = mixope.read(tmp_path / path)
        assert again.table().equals(logs.table())


def test_real_actions_have_their_density_and_are_carried_out_within_bounds():
    env = Chance(NUMBERS, spaces.Box(-1, 1, (2,), np.float32))  # which asserts that actions are of its space
    policy = normal(3, 2)
    logs = mixope.record(env, policy, episodes=40, horizon=2, seed=1)
    table = logs.table()
    states = np.stack([table.column(f"observation.{i}").to_numpy() for i in range(3)], axis=1)
    actions = np.stack([table.column(f"action.{i}").to_numpy() for i in range(2)], axis=1)
    assert np.abs(actions).max() > 1.5
    assert np.log(table.column("propensity").to_numpy()) == pytest.approx(policy.log_prob(states, actions), abs=1e-12)
    assert mixope.evaluate(logs, policy, "is").value == pytest.approx(np.mean(table.column("reward").to_numpy()))


def test_ends_and_cuts_are_told_apart():
    env = Chance()
    rows = mixope.record(env, EVEN, episodes=4).table().to_pylist()
    last = [row for row, after in zip(rows, [*rows[1:], None], strict=True) if not after or after["step"] == 0]
    assert [row["terminated"] for row in last] == [True, False, True, False]
    assert [row["truncated"] for row in last] == [False, True, False, True]
    assert [row["next_observation.0"] is None for row in last] == [True, False, True, False]


def test_the_horizon_and_the_number_of_steps_cut_episodes():
    table = mixope.record(Chance(), EVEN, steps=8, horizon=1).table()
    assert table.column("truncated").to_pylist() == [True] * 8
    table = mixope.record(Chance(), EVEN, steps=3).table()
    assert table.column("episode_id").to_pylist() == [0, 0, 1]
    assert table.column("truncated").to_pylist() == [False, False, True]
    assert table.column("next_observation.0").to_pylist()[2] is not None


SEEN = {
    "box": NUMBERS,
    "square": spaces.Box(0, 9, (2, 2), np.int64),
    "discrete": spaces.Discrete(5, start=-2),
    "multidiscrete": spaces.MultiDiscrete([3, 4]),
    "multibinary": spaces.MultiBinary(4),
    "text": spaces.Text(5),
    "dict": spaces.Dict({"pos": NUMBERS, "cell": CLASSES}),
    "tuple": spaces.Tuple((NUMBERS, spaces.Dict({"x": spaces.Box(0, 1, (), np.float64)}))),
}


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
@pytest.mark.parametrize("name", SEEN)
def test_observations_of_all_spaces_are_those_of_the_environment(name):
    env = Chance(SEEN[name])
    uniform = mixope.read_policy(lambda states: np.full((len(states), 3), 1 / 3), actions=[0, 1, 2])
    logs = mixope.record(env, uniform, episodes=3, seed=5)
    table = logs.table(logs.schema.observation).to_pydict()
    rows = [[each] for each in table["observation"]] if name == "text" else list(zip(*table.values(), strict=True))
    given = iter(env.given)
    expected = []
    for steps in (2, 3, 4):
        expected += [flat(next(given)) for _ in range(steps)]
        next(given)
    assert [list(row) for row in rows] == expected


def test_actions_of_several_classes_are_one_id():
    env = Chance(NUMBERS, spaces.Tuple((spaces.Discrete(2), spaces.MultiDiscrete([2, 3]))))
    ids = [f"{a},{b},{c}" for a in range(2) for b in range(2) for c in range(3)]
    policy = mixope.read_policy(lambda states: np.full((len(states), 12), 1 / 12), actions=ids)
    logs = mixope.record(env, policy, episodes=12)
    assert set(logs.table().column("action").to_pylist()) <= set(ids)
    assert logs.table().column("propensity").to_numpy() == pytest.approx(1 / 12)


def test_the_label_is_the_users_or_made_from_the_policy():
    assert set(mixope.record(Chance(), EVEN, steps=3, label="a").table().column("policy_id").to_pylist()) == {"a"}
    named = set(mixope.record(Chance(), EVEN, steps=3).table().column("policy_id").to_pylist())
    assert named == {f"policy-{EVEN.fingerprint()[:8]}"}


def test_a_function_that_does_not_name_its_actions_has_those_of_the_environment():
    logs = mixope.record(Chance(), lambda states: np.full((len(states), 3), 1 / 3), steps=50)
    assert set(logs.table().column("action").to_pylist()) == {0, 1, 2}


def test_what_was_recorded_before_an_error_is_kept_and_said(tmp_path):
    with (
        pytest.warns(MixopeWarning, match=r"stopped early; its 6 steps \(3 episodes"),
        pytest.raises(DataError, match="the robot fell over"),
    ):
        mixope.record(Broken(), EVEN, episodes=5, path=tmp_path / "log")
    table = mixope.read(tmp_path / "log").table()
    assert table.column("episode_id").to_pylist() == [0, 0, 1, 1, 1, 2]
    assert table.column("truncated").to_pylist()[-1]
    assert table.column("next_observation.0").to_pylist()[-1] is not None


def test_a_recording_that_is_killed_keeps_the_episodes_before(tmp_path):
    program = """
        import sys, time
        import mixope
        from tests.recording.chance import Chance

        class Slow(Chance):
            def step(self, action):
                time.sleep(0.05)
                return super().step(action)

        mixope.record(Slow(), lambda states: [[1 / 3] * 3] * len(states), steps=10**6, path=sys.argv[1])
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "log")]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    until = time.monotonic() + 60
    while not list(tmp_path.glob("log/*.parquet")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    table = mixope.read(tmp_path / "log").table().to_pylist()
    last = [row for row, after in zip(table, [*table[1:], None], strict=True) if not after or after["step"] == 0]
    assert len(table) >= 2
    assert all(row["terminated"] or row["truncated"] for row in last)


def test_a_long_recording_has_several_parts_and_every_step_once(tmp_path, monkeypatch):
    monkeypatch.setattr("mixope.recording.parts.ROWS", 50)
    monkeypatch.setattr("mixope.recording.parts.SECONDS", 0.0)
    logs = mixope.record(Chance(), EVEN, steps=240, path=tmp_path / "log")
    assert len(list((tmp_path / "log").iterdir())) == 5
    assert logs.table().num_rows == 240
    held = mixope.record(Chance(), EVEN, steps=240)
    assert logs.table().equals(held.table())


class Several:
    num_envs, observation_space, action_space = 2, NUMBERS, CLASSES

    def reset(self, *, seed=None):
        raise AssertionError

    step = reset


class Nothing(Chance):
    def step(self, action):
        super().step(action)
        return "?", 0.0, False, False, {}


class Generous(Chance):
    def step(self, action):
        _, *others = super().step(action)
        return self.observation_space.sample(), "much", *others[1:]


REFUSED = {
    "how much is not said": (Chance, EVEN, {}, UsageError, "episodes=100 or steps=10000"),
    "no steps": (Chance, EVEN, {"steps": 0}, UsageError, "steps is a whole number above 0"),
    "half a step": (Chance, EVEN, {"steps": 1.5}, UsageError, "whole number"),
    "no environment": (int, EVEN, {"steps": 1}, UsageError, "observation_space.*got a int"),
    "several environments": (Several, EVEN, {"steps": 1}, UsageError, "one environment at a time"),
    "pictures": (lambda: Chance(spaces.Box(0, 255, (64, 64, 3), np.uint8)), EVEN, {"steps": 1}, DataError, "pictures"),
    "sequences": (lambda: Chance(spaces.Sequence(NUMBERS)), EVEN, {"steps": 1}, DataError, "Sequence"),
    "real actions": (Chance, normal(3, 1), {"steps": 1}, UsageError, "are classes, so the policy must have actions"),
    "classes": (lambda: Chance(NUMBERS, NUMBERS), EVEN, {"steps": 1}, UsageError, "are numbers.*sample"),
    "another action": (
        Chance,
        mixope.read_policy(lambda states: np.full((len(states), 1), 1.0), actions=[7]),
        {"steps": 1},
        DataError,
        "does not have(.|\n)*7",
    ),
    "another observation": (Nothing, EVEN, {"steps": 3}, DataError, "not of the space(.|\n)*3 numbers"),
    "a reward in words": (Generous, EVEN, {"steps": 3}, DataError, "reward is not a number(.|\n)*much"),
    "text beside numbers": (
        lambda: Chance(spaces.Dict({"a": spaces.Text(3), "b": NUMBERS})),
        EVEN,
        {"steps": 1},
        UsageError,
        "mixope.recorder",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_recorded_is_refused_in_words(name):
    env, policy, limits, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        mixope.record(env(), policy, **limits)


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path, words in ((tmp_path, "holds files already"), (tmp_path / "file", "is a file")):
        with pytest.raises(UsageError, match=words):
            mixope.record(Chance(), EVEN, steps=1, path=path)
    assert (tmp_path / "file").read_text() == "mine"
