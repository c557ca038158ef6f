"""Running a page: its ``python`` blocks are one session, its ``$ mixope …`` lines are commands beside it."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys

import pytest
from documents import Block


def run_code(block: Block, names: dict[str, object]) -> str:
    """Execute a block and give back what it printed; line numbers of a traceback are those of the page."""
    printed = io.StringIO()
    code = compile("\n" * block.line + block.text, str(block.page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def commands(block: Block) -> list[str]:
    """The commands of a ``console`` block that call ``mixope``; a line that ends in a backslash goes on in the next."""
    lines = block.text.replace("\\\n", "").splitlines() if block.language == "console" else []
    return [line[2:] for line in lines if line.startswith("$ mixope ")]


def run_command(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[object, str]:
    """The exit code of a command line, and all it said."""
    from mixope.cli.app import app

    monkeypatch.delenv("COLUMNS", raising=False)  # the width is that of a file, whoever runs the tests
    monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code: object = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            app(prog_name="mixope")
        except SystemExit as leaving:
            code = leaving.code or 0
    said.seek(0)
    return code, said.read()


def not_printed(shown: Block, printed: str) -> list[str]:
    """The lines of a ``text`` block that were not printed, save those that are ``…``."""
    return [line for line in shown.text.splitlines() if line.strip() not in ("", "…") and line not in printed]
