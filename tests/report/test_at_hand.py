"""Numbers of a result are at hand: unpacked, formatted, as lines, and read again from a file."""

import json

import pytest

import mixope
from mixope import worlds
from mixope.base.errors import DataError, UsageError


@pytest.fixture(scope="module")
def columns_and_target():
    model = worlds.make("gridworld-slip")
    columns = worlds.simulate(model, worlds.stages(model, 2, seed=0), episodes=20, horizon=30, seed=0)
    return columns, worlds.target(model, seed=0)


@pytest.fixture(scope="module")
def result(columns_and_target):
    return mixope.evaluate(*columns_and_target)


def test_an_interval_is_two_numbers(result):
    low, high = result.interval
    assert (low, high) == (result.interval.low, result.interval.high)


def test_a_result_takes_the_format_of_a_number(result):
    assert f"{result:.2f}" == f"{result.value:.2f}"
    assert f"{result}" == str(result)


def test_a_summary_is_a_dict_and_prints_as_lines(result):
    summary = result.summary()
    assert summary["value"] == result.value
    assert json.loads(json.dumps(summary)) == dict(summary)
    lines = str(summary).splitlines()
    assert len(lines) == len(summary)
    assert f"value                  {result.value:.6g}" in lines


def test_load_gives_back_any_kind_of_result(columns_and_target, result, tmp_path):
    columns, target = columns_and_target
    for number, record in enumerate(
        (result, mixope.inspect(columns), mixope.compare(columns, {"a": target, "b": target}))
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(record.to_json(), encoding="utf-8")
        found = mixope.load(path)
        assert type(found) is type(record)
        assert found.to_json() == record.to_json()


def test_load_says_what_is_wrong(tmp_path):
    (tmp_path / "other.json").write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(DataError, match="result of mixope"):
        mixope.load(tmp_path / "other.json")
    with pytest.raises(DataError, match="cannot be read"):
        mixope.load(tmp_path / "nowhere.json")
    with pytest.raises(UsageError, match="path"):
        mixope.load(3)
