"""Objects of other libraries are known by the names of their classes, and strange ones are refused in words.

The real ones are read in ``test_buffers.py`` and ``test_minari_itself.py``, where their libraries are installed.
"""

import random
from contextlib import suppress

import numpy as np
import pytest

import mixope
from mixope.base.errors import DataError, MixopeError, UsageError

spaces = pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install 'mixope[gym]'").spaces


def of(library, name, **held):
    """An object whose class has this name and comes from this library."""
    made = type(name, (), {"__module__": library})()
    made.__dict__.update(held)
    return made


def replay(steps=5, full=False, **more):
    held = {
        "observations": np.arange(12.0, dtype=np.float32).reshape(6, 2, 1),
        "next_observations": np.arange(12.0, dtype=np.float32).reshape(6, 2, 1) + 2,
        "actions": np.zeros((6, 2, 1), np.int64),
        "rewards": np.arange(12.0).reshape(6, 2),
        "dones": np.zeros((6, 2)),
        "timeouts": np.zeros((6, 2)),
        "handle_timeout_termination": True,
        "observation_space": spaces.Box(-1, 1, (1,)),
        "action_space": spaces.Discrete(2),
    }
    return of(
        "stable_baselines3.common.buffers", "ReplayBuffer", **held | {"n_envs": 2, "pos": steps, "full": full} | more
    )


def rollout(**more):
    held = {"episode_starts": np.eye(6, 2), "log_probs": -np.ones((6, 2)), "generator_ready": False}
    made = of("stable_baselines3.common.buffers", "RolloutBuffer", **replay().__dict__ | held | {"full": True} | more)
    del made.dones, made.timeouts, made.next_observations
    return made


def episodes(count=2):
    held = {"observations": np.ones((3, 2)), "actions": np.zeros((3, 1), int), "rewards": np.ones((3, 1))}
    return of("d3rlpy.dataset.replay_buffer", "ReplayBuffer", episodes=[of("x", "E", **held, terminated=True)] * count)


def test_each_is_read_by_its_name():
    table = mixope.read(replay()).table()
    assert table.column("reward").to_pylist() == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    assert table.column("episode_id").to_pylist() == [0] * 5 + [1] * 5
    assert table.column("truncated").to_pylist() == ([False] * 4 + [True]) * 2
    assert mixope.read(episodes()).table().num_rows == 6
    with pytest.raises(DataError, match="ambiguous"):
        mixope.read(rollout(episode_starts=np.eye(6, 2)[::-1]))


def test_the_same_names_of_another_library_are_strangers():
    with pytest.raises(UsageError, match="cannot read a Queue"):
        mixope.read(of("somewhere", "Queue"))


@pytest.mark.parametrize("made", [replay(0), episodes(0), rollout(pos=0, full=False)])
def test_an_empty_one_is_refused(made):
    with pytest.raises(DataError, match="holds no steps"):
        mixope.read(made)


def test_one_that_is_not_as_its_class_says_is_refused_in_words():
    broken = replay()
    del broken.dones
    with pytest.raises(DataError, match=r"The object cannot be read(.|\n)*dones(.|\n)*list of episodes"):
        mixope.read(broken)


STRANGE = [None, 3, -1, "x", [], {}, np.zeros(3), np.zeros((2, 2, 2)), np.array(None), float("nan"), object(), b"\\xff"]


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning", "ignore::RuntimeWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("make", [replay, rollout, episodes], ids=["replay", "rollout", "d3rlpy"])
def test_with_anything_in_it_an_object_is_read_or_refused_in_words(make):
    draw = random.Random(0)
    for _ in range(200):
        made = make()
        place = made.episodes[0] if make is episodes and draw.random() < 0.8 else made
        setattr(place, draw.choice(list(place.__dict__)), draw.choice(STRANGE))
        with suppress(MixopeError):
            assert mixope.read(made, done=draw.choice([None, "truncated"])).table().num_rows > 0
