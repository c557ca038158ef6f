"""An estimator that does not apply is left out of a comparison with its reason; the others answer."""

import numpy as np
import pytest

import mixope
from estimators.test_learned import moved
from mixope.base.errors import DataError, MixopeError

LAWS = {"new": mixope.TabularPolicy([[0.5, 0.5]] * 3), "old": mixope.TabularPolicy([[0.7, 0.3]] * 3)}


def counted(episodes=30, steps=8):
    """Three states, two actions, no propensities; episodes are cut."""
    draw = np.random.default_rng(0)
    state = draw.integers(3, size=(episodes, steps + 1))
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        "observation": state[:, :-1].ravel(),
        "next_observation": state[:, 1:].ravel(),
        "action": draw.integers(2, size=episodes * steps),
        "reward": draw.normal(size=episodes * steps),
        "truncated": np.tile(np.arange(steps) == steps - 1, episodes),
    }


@pytest.mark.parametrize("asked", [{}, {"gamma": 0.9}, {"horizon": 5}], ids=str)
def test_an_estimator_that_needs_propensities_is_left_out_where_there_are_none(asked):
    found = mixope.compare(counted(), LAWS, ["emp", "bch", "wis-step"], **asked)
    assert {one.estimator for one in found} == {"emp", "wis-step"}
    ((name, reason),) = found.skipped
    assert name == "bch"
    assert reason
    assert [each.estimator for each in found.selections] == ["emp", "wis-step"]


def test_one_that_lacks_the_estimand_is_left_out_too():
    found = mixope.compare(counted(), LAWS, ["emp", "wis"], estimand="average")
    kept = {one.estimator for one in found}
    left = {name for name, _ in found.skipped}
    assert "emp" in kept
    assert kept | left == {"emp", "wis"}


def test_on_vectors_those_that_take_counts_alone_are_left_out():
    log, target, _ = moved(0.25, 12, 6)
    found = mixope.compare(log, {"new": target}, ["emp", "opt-emp"], gamma=0.9)
    assert [one.estimator for one in found] == ["emp"]
    assert [name for name, _ in found.skipped] == ["opt-emp"]


def test_where_none_applies_that_is_an_error_as_with_one_alone():
    with pytest.raises(DataError) as alone:
        mixope.evaluate(counted(), LAWS["new"], "bch")
    with pytest.raises(DataError) as both:
        mixope.compare(counted(), LAWS, ["bch"])
    assert str(both.value) == str(alone.value)
    with pytest.raises(MixopeError):
        mixope.compare(counted(), LAWS, ["bch", "bch-pooled"])


def test_the_command_line_says_what_was_left_out(tmp_path):
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    from cli.running import run

    log, target = tmp_path / "log.parquet", tmp_path / "t.csv"
    pq.write_table(pa.table(counted()), log)
    target.write_text("observation,action,prob\n" + "".join(f"{s},{a},0.5\n" for s in range(3) for a in range(2)))
    result = run("compare", str(log), "--target", f"new={target}", "--estimator", "emp", "--estimator", "bch", "--json")
    assert result.exit_code == 0
    assert [each["estimator"] for each in json.loads(result.stdout)["skipped"]] == ["bch"]
