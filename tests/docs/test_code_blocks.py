"""The documents run: every ``python`` block, and every ``$ mixope …`` line of a ``console`` block.

The blocks of a page are one session, in a folder of its own that holds the data of ``conftest.py``. A ``text`` block
right after a ``python`` block is what it prints: every line of it must be printed, save those that are ``…``. The
stories of the gallery, whose commands read what their code wrote, are run by ``test_gallery.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from documents import PAGES, ROOT, blocks, page_name
from pages_run import commands, not_printed, run_code, run_command

ELSEWHERE = {*(ROOT / "docs" / "gallery").glob("*.md"), ROOT / "docs" / "first-commands.md"}


SLOW = {"experiments.md", "learned-values.md", "mixed-states.md", "sequential.md", "vectors.md"}
"""Pages that take five seconds or more."""


def _with(language: str) -> list[Any]:
    chosen = [page for page in PAGES if page not in ELSEWHERE and any(b.language == language for b in blocks(page))]
    return [pytest.param(page, marks=pytest.mark.long if page.name in SLOW else ()) for page in chosen]


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")  # notes, which pages need not show
@pytest.mark.parametrize("page", _with("python"), ids=page_name)
def test_python_blocks_run_and_print_what_they_show(page: Path, workspace: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    previous = ""
    for block in blocks(page):
        if block.language == "python":
            printed = run_code(block, names)
        elif block.language == "text" and previous == "python" and block.follows:
            missing = not_printed(block, printed)
            assert not missing, f"{page.name}, line {block.line + 1}: not printed: {missing}\n\nprinted:\n{printed}"
        previous = block.language


@pytest.mark.long
@pytest.mark.parametrize("page", _with("console"), ids=page_name)
def test_commands_run(page: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in [command for block in blocks(page) for command in commands(block)]:
        code, said = run_command(command, monkeypatch)
        assert code == 0, f"{page.name}: {command}\n{said}"
