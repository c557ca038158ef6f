import pytest

from .running import EXPECTED, GRIDWORLD, REFERENCE, json_of, run

TARGET = REFERENCE / "gridworld-target.csv"


def test_every_target_meets_every_estimator():
    other = REFERENCE / "gridworld-one-target.csv"
    record = json_of("compare", *GRIDWORLD, "--target", f"one={other}", "--estimator", "emp", "--estimator", "mwl")
    assert [(e["target"], e["estimator"]) for e in record["estimates"]] == [
        ("gridworld-target", "emp"),
        ("gridworld-target", "mwl"),
        ("one", "emp"),
        ("one", "mwl"),
    ]
    assert record["estimates"][0]["value"] == pytest.approx(EXPECTED["gridworld"]["values"]["emp"], abs=1e-6)


def test_the_page_has_a_line_for_each(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = run("compare", *GRIDWORLD, "--estimator", "emp", "--estimator", "wis", "--estimator", "logged-mean").stdout
    lines = {line.split()[0]: line for line in page.splitlines() if line.strip()}
    assert "trustworthy" in lines["emp"]
    assert "not supported" in lines["wis"]
    assert "reference" in lines["logged-mean"]
    assert max(map(len, page.splitlines())) <= 80


def test_all_says_what_was_left_out_and_why():
    log = REFERENCE / "walk.csv"
    result = run("compare", log, "--target", REFERENCE / "walk-target.csv", "--estimator", "all")
    assert result.exit_code == 0
    assert "bch was left out: these logs have no recorded propensities" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", TARGET), "two targets are called 'gridworld-target'"),
        (("--target", "="), "NAME=FILE"),
        (("--estimator", "all", "--estimator", "emp"), "stands alone"),
        (("--estimator", "drr"), "Did you mean 'dr'"),
    ],
)
def test_a_wrong_question_exits_with_2_and_words(options, words):
    result = run("compare", *GRIDWORLD, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
