"""Where several targets are asked about, a message about one of them names it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import mixope
from cli.running import LOG, POLICY, run, write
from mixope.base.errors import DataError, MixopeError, UsageError, about

VECTORS = {
    "observation": np.linspace(-1, 1, 40).reshape(20, 2),
    "next_observation": np.linspace(-1, 1, 40).reshape(20, 2)[::-1],
    "action": np.arange(20) % 2,
    "reward": np.linspace(0, 1, 20),
    "episode_id": np.repeat(np.arange(4), 5),
    "step": np.tile(np.arange(5), 4),
}


def fair(observations):
    return np.full((len(observations), 2), 0.5)


def wrong(observations):
    return np.full((len(observations), 2), 0.7)


@pytest.fixture
def logs(tmp_path):
    return mixope.read(write(tmp_path / "log.csv", LOG))


def test_a_table_that_lacks_a_state_is_named(logs, tmp_path):
    short = write(tmp_path / "short.csv", "observation,action,prob\n0,0,0.5\n0,1,0.5\n")
    targets = {"whole": write(tmp_path / "t.csv", POLICY), "short": short}
    with pytest.raises(MixopeError, match=r"^target 'short': "):
        mixope.compare(logs, targets)


def test_a_policy_that_cannot_be_read_is_named(logs, tmp_path):
    targets = {"whole": write(tmp_path / "t.csv", POLICY), "gone": tmp_path / "gone.csv"}
    with pytest.raises(MixopeError, match=r"^target 'gone': "):
        mixope.compare(logs, targets)


@pytest.mark.parametrize("engine", ["memory", "processes"])
@pytest.mark.long
def test_a_function_that_answers_wrongly_while_rows_are_read_is_named(engine):
    with pytest.raises(DataError, match=r"^target 'wrong': "):
        mixope.compare(mixope.read(VECTORS), {"fair": fair, "wrong": wrong}, ["emp"], engine=engine)


def test_a_single_target_needs_no_name(logs, tmp_path):
    short = write(tmp_path / "short.csv", "observation,action,prob\n0,0,0.5\n0,1,0.5\n")
    with pytest.raises(MixopeError) as caught:
        mixope.compare(logs, {"short": short})
    assert "target 'short'" not in str(caught.value)


def test_an_estimator_that_fails_for_one_target_is_skipped_in_its_name(logs, tmp_path):
    short = write(tmp_path / "short.csv", "observation,action,prob\n0,0,0.5\n0,1,0.5\n")
    found = mixope.compare(logs, {"whole": write(tmp_path / "t.csv", POLICY), "short": short}, "all")
    reasons = [reason for name, reason in found.skipped if name == "emp"]
    assert len(reasons) == 1
    assert reasons[0].startswith("target 'short': ")
    assert found["whole", "emp"].value > 0


def test_the_command_line_names_it(tmp_path):
    log, target = write(tmp_path / "log.csv", LOG), write(tmp_path / "t.csv", POLICY)
    broken = write(tmp_path / "broken.csv", "observation,action,prob\n0,0,0.4\n")
    result = run("compare", log, "--target", f"old={target}", "--target", f"new={broken}")
    assert result.exit_code == 3
    assert result.stderr.startswith("error: target 'new': ")


def test_the_first_name_stays_and_survives_a_copy():
    with pytest.raises(UsageError) as caught, about("target 'outer'"), about("target 'inner'"):
        raise UsageError("it cannot be asked")
    assert str(caught.value) == "target 'inner': it cannot be asked"
    assert caught.value.reason == "it cannot be asked"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
