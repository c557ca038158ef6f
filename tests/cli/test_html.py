"""``--html``: a page beside the result, never instead of something else."""

import json

import pytest

from mixope.base.folders import RECORD
from mixope.cli import demo

from .running import GRIDWORLD, REFERENCE, WALK, run


def test_the_page_has_the_command_and_the_coverage_and_stderr_says_where_it_is(tmp_path):
    page = tmp_path / "new" / "report.html"
    result = run("evaluate", *WALK, "--html", page, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["n_rows"] == 670
    assert result.stderr.splitlines()[-1] == f"report: {page}"
    text = page.read_text(encoding="utf-8")
    assert f"mixope evaluate {WALK[0]}" in text
    assert "Coverage" in text
    assert [path.name for path in page.parent.iterdir()] == ["report.html"]


def test_a_comparison_has_a_page_too(tmp_path):
    page = tmp_path / "report.html"
    other = f"one={REFERENCE / 'gridworld-one-target.csv'}"
    result = run("compare", *GRIDWORLD, "--target", other, "--estimator", "emp", "--estimator", "mwl", "--html", page)
    assert result.exit_code == 0
    assert "report: " in result.stderr
    assert "gridworld-target" in page.read_text(encoding="utf-8")


def test_the_same_command_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pages = []
    for _ in range(2):
        run("evaluate", *WALK, "--html", "report.html")
        pages.append((tmp_path / "report.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_strict_refusal_still_writes_its_page(tmp_path):
    result = run("evaluate", *GRIDWORLD, "--estimator", "is", "--strict", "--html", tmp_path / "r.html")
    assert result.exit_code == 4
    assert (tmp_path / "r.html").exists()


def test_a_failure_leaves_an_older_page_as_it_was(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("before")
    assert run("evaluate", *WALK, "--estimator", "empp", "--html", page).exit_code == 2
    assert page.read_text() == "before"


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize(("name", "words"), [("", "is a folder"), ("logs.parquet", "ends in .html")])
def test_a_wrong_place_exits_with_2_before_any_work(command, name, words, tmp_path):
    result = run(command, *WALK, "--html", tmp_path / name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_exits_with_2(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("evaluate", *WALK, "--html", tmp_path / "file" / "report.html")
    assert result.exit_code == 2
    assert "the report cannot be written" in result.stderr


@pytest.mark.long
def test_the_demo_leaves_pages_and_says_where(tmp_path):
    folder = tmp_path / "shown"
    result = run("demo", "--output", folder, "--episodes", "16", "--horizon", "30")
    assert result.exit_code == 0
    for name in demo.PAGES:
        assert (folder / name).stat().st_size > 1000
        assert str(folder / name) in result.stdout.replace("\n", "")
    assert "truth" in (folder / "report.html").read_text(encoding="utf-8")
    assert set(json.loads((folder / RECORD).read_text())["files"]) >= {*demo.RESULTS, *demo.PAGES}
