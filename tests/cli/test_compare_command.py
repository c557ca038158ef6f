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


def test_json_and_terminal_say_which_to_take_in_any_order_of_the_targets(tmp_path):
    rows = [line.split(",") for line in TARGET.read_text().split()]
    even = [rows[0], *([state, action, "0.25"] for state, action, _ in rows[1:])]
    (tmp_path / "even.csv").write_text("\n".join(map(",".join, even)))
    other = ("--target", str(tmp_path / "even.csv"))
    log, *first = GRIDWORLD
    there, back = (json_of("compare", log, *asked) for asked in ((*first, *other), (*other, *first)))
    assert there["ranks"] == back["ranks"]
    assert there["regret"] == back["regret"]
    assert [rank["place"] for rank in there["ranks"]] == [1, 2]
    assert [(found["k"], found["of"]) for found in there["regret"]] == [(1, 2), (2, 2)]
    shown = " ".join(run("compare", *GRIDWORLD, *other, "--full").stdout.split())
    assert f"take {there['ranks'][0]['target']}: it is" in shown


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
    result = run("compare", log, "--target", REFERENCE / "walk-target.csv", "--estimator", "all", "--full")
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
