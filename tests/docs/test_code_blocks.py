"""The documents run: every ``python`` block, and every ``$ mixope …`` line of a ``console`` block.

The blocks of a page are one session, in a folder of its own that holds the data of ``conftest.py``. A ``text`` block
right after a ``python`` block is what it prints: every line of it must be printed, save those that are ``…``.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from documents import PAGES, Block, blocks


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "session"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    return folder


def _with(language: str) -> list[Path]:
    return [page for page in PAGES if any(block.language == language for block in blocks(page))]


def _run(block: Block, names: dict[str, object]) -> str:
    """Execute a block; line numbers of a traceback are those of the page."""
    printed = io.StringIO()
    code = compile("\n" * block.line + block.text, str(block.page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")  # notes, which pages need not show
@pytest.mark.parametrize("page", _with("python"), ids=lambda page: page.name)
def test_python_blocks_run_and_print_what_they_show(page: Path, workspace: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    previous = ""
    for block in blocks(page):
        if block.language == "python":
            printed = _run(block, names)
        elif block.language == "text" and previous == "python" and block.follows:
            missing = [
                line for line in block.text.splitlines() if line.strip() not in ("", "…") and line not in printed
            ]
            assert not missing, f"{page.name}, line {block.line + 1}: not printed: {missing}\n\nprinted:\n{printed}"
        previous = block.language


@pytest.mark.long
@pytest.mark.parametrize("page", _with("console"), ids=lambda page: page.name)
def test_commands_run(page: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(page):
        commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ mixope ")]
        for command in commands if block.language == "console" else ():
            monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
            code, said = _outcome()
            assert code == 0, f"{page.name}: {command}\n{said}"


def _outcome() -> tuple[object, str]:
    """The exit code of the command in sys.argv, and all it said."""
    from mixope.cli.app import app

    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code: object = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            app(prog_name="mixope")
        except SystemExit as leaving:
            code = leaving.code or 0
    said.seek(0)
    return code, said.read()
