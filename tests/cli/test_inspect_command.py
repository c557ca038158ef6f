import json

import pytest

from .running import LOG, WALK, json_of, run, write


def test_json_says_columns_rows_loggers_and_coverage():
    record = json_of("inspect", *WALK)
    assert record["total_rows"] == 670
    assert record["columns"][0]["mapping"]["reward"] == "reward"
    assert record["columns"][0]["mapping"]["action_prob"] == "absent: unknown"
    assert [(j["label"], j["rows"], j["episodes"]) for j in record["contents"]["loggers"]] == [
        ("even", 375, 60),
        ("left", 295, 60),
    ]
    assert record["contents"]["terminated"] + record["contents"]["truncated"] == 120
    assert record["coverage"]["uncovered_mass"] == 0
    assert record["usable"]


def test_the_page_shows_mapping_histogram_and_coverage(tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("observation", "state").replace("reward", "r"))
    target = write(tmp_path / "t.csv", "observation,action,prob\n0,0,0.1\n0,2,0.9\n1,1,1\n")
    page = run("inspect", log, "--target", target, "--unknown-actions", "zero", "--full").stdout
    assert "observation ← state" in " ".join(page.split())
    assert "all 3 rows" in page
    assert "45.00% of the target's actions" in page
    assert ["0", "2", "0.9", "3", "45.0000%"] in [line.split() for line in page.splitlines()]
    assert "every row can be used" in page


def test_rows_that_cannot_be_used_are_shown_and_exit_with_3(tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("a,0,1,1,1,0.0,0", "a,0,1,1,1,nan,0"))
    result = run("inspect", log, "--json")
    assert result.exit_code == 3
    assert "The reward is not a finite number" in result.stderr
    record = json.loads(result.stdout)
    assert record["contents"] is None
    assert record["remarks"][0]["status"] == "error"


def test_broken_episodes_are_found_only_if_looked_for(tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("a,0,2,", "a,0,1,"))
    found = run("inspect", log)
    assert found.exit_code == 3
    assert "repeat a step" in found.stderr
    assert "loggers" not in found.stderr
    assert run("inspect", log, "--no-check").exit_code == 0


def test_dropped_rows_have_a_reason(tmp_path):
    lines = [line.rpartition(",")[0] for line in LOG.splitlines()]
    at = lines[0].split(",").index("reward")
    for number in (3, 6):  # the last rows of the two episodes do not say what they earned
        cells = lines[number].split(",")
        lines[number] = ",".join([*cells[:at], "", *cells[at + 1 :]])
    page = run("inspect", write(tmp_path / "log.csv", "\n".join(lines)), "--no-check", "--full").stdout
    assert "6, of which 2 dropped: the last row of an episode" in page
    assert "every row can be used" not in page


def test_logs_without_end_marks_are_shown_with_the_two_ways_to_say_it(tmp_path):
    log = write(tmp_path / "log.csv", "\n".join(line.rpartition(",")[0] for line in LOG.splitlines()))
    found = run("inspect", log, "--full")
    assert found.exit_code == 0
    assert "--ends terminated if" in " ".join(found.stdout.split())
    assert [r["name"] for r in json_of("inspect", log)["remarks"]] == ["ends-unsaid", "dropped-rows"]
    told = run("inspect", log, "--ends", "terminated", "--full").stdout
    assert "every row can be used" in told
    assert "2 terminated" in told


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_engines_agree(engine):
    record = json_of("inspect", *WALK, "--engine", engine)
    assert record.pop("engine") == engine
    assert record | {"engine": "embedded"} == json_of("inspect", *WALK)


def test_vectors_are_described_though_not_counted(tmp_path):
    text = "episode_id,step,obs.x,obs.y,action,reward\n0,0,0.5,1.5,1,1\n0,1,0.25,1,0,0\n0,2,0.1,1,0,1\n"
    record = json_of("inspect", write(tmp_path / "log.csv", text))
    assert (record["observation_kind"], record["space"]) == ("vector", None)
    assert record["contents"]["rows"] == 3
