import json

import pytest

from .running import EXPECTED, GRIDWORLD, LOG, POLICY, REFERENCE, WALK, json_of, run, write

KEYS = {
    "estimator",
    "estimand",
    "value",
    "interval",
    "n_rows",
    "n_episodes",
    "loggers",
    "effective_sample_size",
    "uncovered_mass",
    "logged_mean",
    "verdict",
    "diagnostics",
}


@pytest.fixture
def small(tmp_path):
    return write(tmp_path / "log.csv", LOG), "--target", write(tmp_path / "target.csv", POLICY)


def test_json_is_one_object_with_the_promised_keys():
    record = json_of("evaluate", *WALK)
    assert set(record) >= KEYS
    assert set(record["interval"]) == {"low", "high", "level", "method"}
    assert record["interval"]["low"] < record["value"] < record["interval"]["high"]
    assert {"name", "value", "threshold", "status", "sentence"} <= set(record["diagnostics"][0])


def test_notes_go_to_stderr_so_that_stdout_stays_one_object(tmp_path):
    rows = [line.split(",") for line in LOG.splitlines()]
    unnumbered = write(tmp_path / "log.csv", "\n".join(",".join(r[:2] + r[3:]) for r in rows))
    result = run("evaluate", unnumbered, "--target", write(tmp_path / "target.csv", POLICY), "--json")
    assert "note: " in result.stderr
    assert "no step column" in result.stderr
    assert json.loads(result.stdout)["n_rows"] == 6


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "emp"),
        (("--estimand", "discounted", "--gamma", "0.9"), "emp, discounted 0.9"),
        (("--gamma", "0.99", "--estimator", "emp"), "emp, discounted 0.99"),
    ],
)
def test_walk_gives_the_reference_values(options, name):
    assert json_of("evaluate", *WALK, *options)["value"] == pytest.approx(EXPECTED["walk"]["values"][name], abs=1e-6)


@pytest.mark.parametrize("estimator", ["emp", "bch-pooled", "wis-step", "known-mixture", "mis-step", "logged-mean"])
def test_gridworld_gives_the_reference_values(estimator):
    loggers = REFERENCE / "gridworld-loggers.csv"
    record = json_of("evaluate", *GRIDWORLD, "--estimator", estimator, "--loggers", loggers)
    assert record["value"] == pytest.approx(EXPECTED["gridworld"]["values"][estimator], abs=1e-6)


def test_the_paper_form_gives_its_reference_value():
    record = json_of("evaluate", *GRIDWORLD, "--form", "paper")
    expected = EXPECTED["gridworld"]["values"]["emp, paper form, quadratic program, not calibrated"]
    assert record["value"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("options", [("--engine", "memory"), ("--memory-limit", "500MB", "--threads", "1")])
def test_engines_agree(options):
    assert json_of("evaluate", *WALK, *options)["value"] == json_of("evaluate", *WALK)["value"]


def test_the_same_command_gives_the_same_bytes():
    assert run("evaluate", *WALK, "--json").stdout_bytes == run("evaluate", *WALK, "--json").stdout_bytes


def test_labels_name_the_loggers(tmp_path):
    rows = [line.partition(",")[2] for line in LOG.splitlines()]
    first = write(tmp_path / "one.csv", "\n".join(rows[:4]))
    second = write(tmp_path / "two.csv", "\n".join([rows[0], *rows[4:]]))
    record = json_of("evaluate", f"old={first}", f"new={second}", "--target", write(tmp_path / "t.csv", POLICY))
    assert {logger["label"]: logger["rows"] for logger in record["loggers"]} == {"old": 3, "new": 3}


def test_single_logger_policies_are_given_by_label(small, tmp_path):
    policy = write(tmp_path / "b.csv", POLICY)
    options = ("--estimator", "known-mixture", "--logger", f"a={policy}")
    assert "'b' is not known" in run("evaluate", *small, *options).stderr
    assert json_of("evaluate", *small, *options, "--logger", f"b={policy}")["estimator"] == "known-mixture"


def test_columns_can_be_named(tmp_path):
    header, _, rows = LOG.partition("\n")
    odd = header.replace("observation", "cell", 1).replace("reward", "gain").replace("next_observation", "cell2")
    log = write(tmp_path / "log.csv", f"{odd}\n{rows}")
    names = ("--column", "observation=cell", "--column", "reward=gain", "--column", "next_observation=cell2")
    target = ("--target", write(tmp_path / "t.csv", POLICY))
    assert json_of("evaluate", log, *target, *names)["n_rows"] == 6
    pair = ("--column", "observation=cell,gain")
    assert "takes NAME=COLUMN" in run("evaluate", log, *target, "--column", "observation").stderr
    assert run("evaluate", log, *target, *names, *pair).exit_code == 2


def test_a_lone_done_is_explained_with_done(tmp_path):
    header, _, rows = LOG.partition("\n")
    text = header + ",done\n" + "\n".join(f"{row},{int(row.split(',')[2] == '2')}" for row in rows.splitlines())
    log, target = write(tmp_path / "log.csv", text), write(tmp_path / "t.csv", POLICY)
    refused = run("evaluate", log, "--target", target)
    assert refused.exit_code == 3
    assert "--done truncated" in refused.stderr
    assert json_of("evaluate", log, "--target", target, "--done", "truncated")["n_rows"] == 6


def test_how_episodes_end_is_asked_for_and_taken(tmp_path):
    log = write(tmp_path / "log.csv", "\n".join(line.rpartition(",")[0] for line in LOG.splitlines()))
    target = write(tmp_path / "t.csv", POLICY)
    for command in ("evaluate", "compare"):
        refused = run(command, log, "--target", target)
        assert refused.exit_code == 3
        assert "--ends terminated" in refused.stderr
    assert run("backtest", log).exit_code == 3
    for ends, rows in (("terminated", 6), ("truncated", 6)):
        assert json_of("evaluate", log, "--target", target, "--ends", ends)["n_rows"] == rows


def test_a_default_answers_for_states_that_the_target_does_not_list(tmp_path):
    log = write(tmp_path / "log.csv", LOG)
    short = write(tmp_path / "t.csv", "observation,action,prob\n0,0,0.5\n0,1,0.5\n")
    refused = run("evaluate", log, "--target", short)
    assert refused.exit_code == 3
    assert "--target-default uniform" in refused.stderr
    values = [json_of("evaluate", log, "--target", short, "--target-default", d)["value"] for d in ("uniform", "1")]
    assert values[0] != values[1]
    assert run("evaluate", log, "--target", short, "--target-default", "7").exit_code == 2


def test_the_page_shows_verdict_number_and_interval_first():
    lines = run("evaluate", *WALK, "--full").stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["verdict", "value", "interval"]
    assert "0.167339 reward per step, long-run average" in lines[1]
    page = "\n".join(lines)
    assert "effective sample size" in page
    assert "even" in page


def test_strict_exits_with_4_if_the_logs_do_not_support_an_answer():
    unsupported = ("evaluate", *GRIDWORLD, "--estimator", "is")
    assert run(*unsupported).exit_code == 0
    result = run(*unsupported, "--strict", "--json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["verdict"] == "not supported by these logs"
    assert run("evaluate", *WALK, "--strict").exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--estimator", "empp"), "Did you mean 'emp'?"),
        (("--estimand", "discounted"), "needs gamma"),
        (("--gamma", "1.5"), "gamma must lie between 0 and 1"),
        (("--horizon", "0"), "at least 1 step"),
        (("--gamma", "0.9", "--horizon", "3"), "--estimand"),
        (("--level", "95"), "level must lie between 0 and 1"),
        (("--estimand", "mean"), "average"),
        (("--memory-limit", "much"), "such as 500MB"),
        (("--engine", "memory", "--threads", "2"), "--engine embedded"),
        (("--form", "paper", "--estimator", "dr"), "state-ratio"),
        (("--column", "prize=r"), "canonical column"),
        (("--column", "reward=r", "--column", "reward=r"), "twice"),
        (("--logger", "even"), "LABEL=FILE"),
        (("--logger", f"stranger={REFERENCE / 'walk-target.csv'}"), "no rows belong to logger 'stranger'"),
        (("--seed", "-1"), "seed"),
        (("--nonsense",), "nonsense"),
    ],
)
def test_a_wrong_question_exits_with_2_and_words(options, words):
    result = run("evaluate", *WALK, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_bounds_under_hidden_confounding(tmp_path):
    page = tmp_path / "page.html"
    record = json_of("evaluate", *GRIDWORLD, "--confounding", "1.5", "--html", page)
    found = record["confounding"]
    assert found["curve"][0]["low"] == pytest.approx(record["value"])
    assert found["curve"][-1]["factor"] == 1.5
    assert found["against"] == "what the logs earn themselves"
    assert 'id="confounding"' in page.read_text()
    asked = ("--confounding", "1.5", "--threshold", "-100", "--full")
    said = " ".join(run("evaluate", *GRIDWORLD, *asked).stdout.split())
    assert "factor on the odds" in said
    assert "above the threshold (-100)" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--confounding", "0.5"), "confounding is a factor on the odds of the logged actions, at least 1"),
        (("--threshold", "1"), "add --confounding 1.5"),
        (("--confounding", "2", "--estimator", "logged-mean"), "is a reference line"),
    ],
)
def test_confounding_asked_for_in_a_wrong_way_exits_with_2_and_words(words, said):
    result = run("evaluate", *GRIDWORLD, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())
