"""``recorder``: an environment that writes down what a program does with it."""

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError

gymnasium = pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install 'mixope[gym]'")
from gymnasium import spaces  # noqa: E402

from .chance import NUMBERS, Chance  # noqa: E402


def play(env, steps, probability=None):
    """Any actions, and a reset whenever an episode is over."""
    env.reset(seed=0)
    for t in range(steps):
        if probability is not None and t % 2 == 0:
            env.probability(probability)
        _, _, terminated, truncated, _ = env.step(t % 3)
        if terminated or truncated:
            env.reset()


def test_every_step_is_a_row_and_the_environment_is_the_same(tmp_path):
    inner = Chance()
    env = mixope.recorder(inner, tmp_path / "log", label="old")
    assert isinstance(env, gymnasium.Wrapper)
    play(env, 7, 0.25)
    env.close()
    table = mixope.read(tmp_path / "log").table()
    assert table.column("action").to_pylist() == [0, 1, 2, 0, 1, 2, 0]
    assert table.column("reward").to_pylist() == [1, 2, 11, 12, 13, 21, 22]
    assert table.column("propensity").to_pylist() == [pytest.approx(0.25), None] * 3 + [pytest.approx(0.25)]
    assert set(table.column("policy_id").to_pylist()) == {"old"}
    seen = [inner.given[k] for k in (0, 1, 3, 4, 5, 7, 8)]
    assert table.column("observation.2").to_pylist() == [float(each[2]) for each in seen]


def test_an_episode_that_is_left_is_cut_with_its_next_observation(tmp_path):
    env = mixope.recorder(Chance(), tmp_path / "log")
    env.reset()
    env.step(0)
    env.reset()
    env.reset()
    env.step(1)
    env.close()
    rows = mixope.read(tmp_path / "log").table().to_pylist()
    assert [(row["episode_id"], row["truncated"], row["terminated"]) for row in rows] == [
        (0, True, False),
        (1, True, False),
    ]
    assert all(row["next_observation.0"] is not None for row in rows)


def test_arrays_that_the_environment_writes_into_again_are_kept_as_they_were(tmp_path):
    class Reusing(Chance):
        def _see(self):
            self.view = getattr(self, "view", np.zeros(3, np.float32))
            self.view += 1
            return self.view

    env = mixope.recorder(Reusing(), tmp_path / "log")
    play(env, 2)
    env.close()
    assert mixope.read(tmp_path / "log").table().column("observation.0").to_pylist() == [1.0, 2.0]


def test_the_info_of_a_step_may_say_the_probability(tmp_path):
    class Saying(Chance):
        def step(self, action):
            *others, info = super().step(action)
            return *others, info | {"action_prob": 0.125}

    env = mixope.recorder(Saying(), tmp_path / "log")
    play(env, 3, 0.5)
    env.close()
    found = mixope.read(tmp_path / "log").table().column("propensity").to_pylist()
    assert found == [pytest.approx(0.5), pytest.approx(0.125), pytest.approx(0.5)]


def test_densities_of_real_actions_may_be_above_one(tmp_path):
    env = mixope.recorder(Chance(NUMBERS, spaces.Box(-1, 1, (1,), np.float32)), tmp_path / "log")
    env.reset()
    env.probability(log=2.5)
    env.step(np.array([0.5], np.float32))
    env.close()
    assert mixope.read(tmp_path / "log").table().column("propensity").to_pylist() == [pytest.approx(np.exp(2.5))]


def test_wrong_probabilities_are_refused(tmp_path):
    env = mixope.recorder(Chance(), tmp_path / "log")
    for given in ({"value": 0.0}, {"value": 1.5}, {}, {"value": 0.5, "log": -1.0}, {"log": 0.1}, {"log": float("nan")}):
        with pytest.raises(UsageError):
            env.probability(**given)


def test_a_step_before_reset_and_after_close_is_refused(tmp_path):
    env = mixope.recorder(Chance(), tmp_path / "log")
    with pytest.raises(UsageError, match="expected reset"):
        env.step(0)
    env.close()
    with pytest.raises(UsageError, match="closed"):
        env.reset()


def test_a_recorder_that_is_forgotten_writes_what_it_has(tmp_path):
    env = mixope.recorder(Chance(), tmp_path / "log")
    play(env, 6)
    del env
    gc.collect()
    assert mixope.read(tmp_path / "log").total_rows() == 6


def run(program, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_the_end_of_the_program_writes_what_is_not_written(tmp_path):
    program = """
        import sys, mixope
        from tests.recording.chance import Chance
        env = mixope.recorder(Chance(), sys.argv[1])
        env.reset()
        env.step(1)
    """
    assert run(program, tmp_path / "log") == ""
    assert mixope.read(tmp_path / "log").total_rows() == 1


def test_without_gymnasium_the_error_is_the_line_that_installs_it(tmp_path):
    program = """
        import sys
        sys.modules["gymnasium"] = None
        import mixope
        from mixope import *
        try:
            recorder(object(), sys.argv[1])
        except mixope.UsageError as error:
            print(error)
    """
    assert "pip install 'mixope[gym]'" in run(program, tmp_path / "log")
