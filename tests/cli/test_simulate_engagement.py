"""``mixope simulate engagement``: a product experiment on disk, with its truth."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mixope.base.errors import UsageError
from mixope.worlds import datasets, engagement

from .running import run

SMALL = ("--users", "60", "--days", "8")


def test_a_test_is_written_with_what_it_will_say_and_what_is_true(tmp_path):
    said = run("simulate", "engagement", *SMALL, "--setting", "wear-out", "-o", tmp_path / "data").stdout
    truth = json.loads((tmp_path / "data" / "truth.json").read_text())
    effect = truth["effects"]["B"]["revenue"]
    assert f"shows {effect['naive']:+.4f} on average; in the long run it is {effect['long_run']:+.4f} per day" in said
    assert effect["naive"] == pytest.approx(engagement.naive("wear-out", users=60, days=8))
    assert effect["long_run"] == effect["apparent"] == pytest.approx(engagement.effect("wear-out"))
    assert truth["arms"]["B"]["revenue"]["by_day"] == pytest.approx(engagement.by_day("wear-out", "B", 8))
    table = pq.read_table(tmp_path / "data" / "test.parquet")
    assert table.num_rows == truth["rows"] == 480
    assert table.to_pylist() == engagement.draw("wear-out", 60, 8, seed=0).to_pylist()


def test_all_options_reach_the_test(tmp_path):
    options = ("--arms", "A,C", "--stagger", "2", "--exposure", "0.5", "--rollout", "0.2,0.6", "--seed", "7")
    recorded = ("--hidden", "plan", "--hidden", "fatigue", "--metric", "visits", "--metric", "revenue")
    run("simulate", "engagement", *SMALL, *options, *recorded, "--format", "csv", "-o", tmp_path / "data")
    choices = {"arms": ("A", "C"), "stagger": 2, "exposure": 0.5, "rollout": (0.2, 0.6), "hidden": ("plan", "fatigue")}
    table = engagement.draw("wear-out", 60, 8, seed=7, metrics=("visits", "revenue"), **choices)
    assert pa.csv.read_csv(tmp_path / "data" / "test.csv").to_pylist() == table.to_pylist()
    truth = json.loads((tmp_path / "data" / "truth.json").read_text())
    assert truth["hidden"] == ["plan", "fatigue"]
    assert truth["effects"]["C"]["revenue"]["apparent"] > truth["effects"]["C"]["revenue"]["long_run"]


def test_what_a_test_cannot_say_is_null(tmp_path):
    said = run("simulate", "engagement", *SMALL, "--rollout", "0", "--switchback", "2", "-o", tmp_path / "data")
    assert (said.exit_code, "not both" in said.stderr) == (2, True)
    said = run("simulate", "engagement", *SMALL, "--rollout", "0", "-o", tmp_path / "data").stdout
    assert "has no difference to show" in said
    assert json.loads((tmp_path / "data" / "truth.json").read_text())["effects"]["B"]["revenue"]["naive"] is None


@pytest.mark.parametrize("format", ["parquet", "csv", "arrow"])
def test_the_same_seed_gives_the_same_bytes_and_only_force_replaces(format, tmp_path):
    for name in ("one", "two"):
        run("simulate", "engagement", *SMALL, "--format", format, "-o", tmp_path / name)
    for name in (f"test.{format}", "truth.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    refused = run("simulate", "engagement", *SMALL, "--format", format, "-o", tmp_path / "one")
    assert (refused.exit_code, "--force" in refused.stderr) == (2, True)
    assert run("simulate", "engagement", *SMALL, "--seed", "1", "-o", tmp_path / "one", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("engagment",), "Did you mean 'engagement'"),
        (("engagement", "--setting", "wearout"), "Did you mean 'wear-out'"),
        (("engagement", "--episodes", "20"), "--episodes is not for engagement"),
        (("walk", "--users", "20"), "--users is for engagement only"),
        (("engagement", "--stagger", "14"), "--stagger 14 lets users enter after the end"),
        (("engagement", "--rollout", "0.1;0.2"), "such as 0.1,0.25,0.5"),
        (("engagement", "--arms", "A"), "two different arms"),
        (("engagement", "--arms", "A,D"), "unknown arm 'D'"),
        (("engagement", "--metric", "clicks"), "unknown metric 'clicks'"),
        (("engagement", "--hidden", "mood"), "unknown state column 'mood'"),
    ],
)
def test_a_wrong_wish_exits_with_2_and_writes_nothing(arguments, words, tmp_path):
    result = run("simulate", *arguments, "-o", tmp_path / "data")
    assert result.exit_code == 2
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_help_names_every_setting():
    said = " ".join(run("simulate", "--help").stdout.split())
    assert all(name in said for name in engagement.SETTINGS)


def test_the_library_says_which_function_writes_a_test(tmp_path):
    with pytest.raises(UsageError, match=r"engagement\.write_dataset"):
        datasets.write_dataset(datasets.Settings("engagement"), tmp_path / "data")
