"""The stories of the gallery run as they are told: code and commands in one folder, printing what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path

import pytest
from documents import ROOT, blocks, page_name
from pages_run import commands, not_printed, run_code, run_command

GALLERY = ROOT / "docs" / "gallery"
STORIES = sorted(page for page in GALLERY.glob("*.md") if page.name != "index.md")


def _marked(page: Path) -> object:
    """A story that takes more than a few seconds says so in its first line."""
    slow = page.read_text(encoding="utf-8").startswith("<!-- long -->")
    return pytest.param(page, marks=pytest.mark.long if slow else (), id=page_name(page))


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")  # notes, which pages need not show
@pytest.mark.parametrize("page", [_marked(page) for page in STORIES])
def test_a_story_runs_and_prints_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page):
        if block.language == "python":
            printed = run_code(block, names)
        elif block.language == "console":
            outcomes = [run_command(command, monkeypatch) for command in commands(block)]
            printed = "".join(said for _, said in outcomes)
            assert all(code == 0 for code, _ in outcomes), f"{page.name}, line {block.line}:\n{printed}"
        elif block.language == "text" and block.follows:
            missing = not_printed(block, printed)
            assert not missing, f"{page.name}, line {block.line + 1}: not printed: {missing}\n\nprinted:\n{printed}"


def test_the_notebooks_are_made_from_the_pages() -> None:
    made = run_path(str(GALLERY / "notebooks.py"))
    expected = {path: made["notebook"](page.read_text(encoding="utf-8")) for page, path in made["paths"]().items()}
    stale = [path.name for path, text in expected.items() if not path.is_file() or path.read_text("utf-8") != text]
    assert not stale, "run python docs/gallery/notebooks.py"
    assert set((GALLERY / "notebooks").iterdir()) == set(expected)


@pytest.mark.parametrize("page", STORIES, ids=page_name)
def test_a_story_answers_the_same_questions(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in headings if name not in ("The call", "The command")] == [
        "The data",
        "How to read it",
        "What would change the decision",
        "The truth",
    ]
