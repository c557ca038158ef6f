"""The first commands of a stranger: each works, or says in a line what to type instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from documents import ROOT, blocks
from pages_run import commands, not_printed, run_command

PAGE = ROOT / "docs" / "first-commands.md"
DONE, USAGE, BAD_DATA = 0, 2, 3


def _csv(path: Path, header: str, rows: list[tuple[object, ...]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What somebody has who tries the program for the first time."""
    draw, rows = np.random.default_rng(0), []
    for episode in range(60):
        state = 0
        for step in range(12):
            action = int(draw.random() < 0.5)
            rows.append((episode, step, "abc"[state], "xy"[action], float(action == state % 2)))
            state = int(draw.integers(0, 3))
    for name in ("log.csv", "logs/log.csv"):
        _csv(tmp_path / name, "episode_id,step,observation,action,reward", rows)
    _csv(tmp_path / "visits.csv", "visit,t,page,choice,money", rows)
    _csv(tmp_path / "loose.csv", "step,observation,action,reward", [row[1:] for row in rows])
    law = [(state, action, prob) for state in "abc" for action, prob in (("x", 0.7), ("y", 0.3))]
    _csv(tmp_path / "target.csv", "observation,action,prob", law)
    (tmp_path / "empty").mkdir()
    (tmp_path / "plan.py").write_text('def rule(state):\n    return "x"\n', encoding="utf-8")
    for name in ("model.zip", "policy.pkl"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_each_command_works_or_says_what_to_type_instead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed, codes = "", set()
    for block in blocks(PAGE):
        if block.language == "console":
            outcomes = [run_command(command, monkeypatch) for command in commands(block)]
            printed, codes = "".join(said for _, said in outcomes), {code for code, _ in outcomes}
        elif block.language == "text" and block.follows:
            missing = not_printed(block, printed)
            assert not missing, f"line {block.line + 1}: not printed: {missing}\n\nprinted:\n{printed}"
            refused = block.text.lower().startswith("error: ")
            assert codes <= ({USAGE, BAD_DATA} if refused else {DONE}), f"line {block.line + 1}: {codes}\n{printed}"


def test_the_page_has_ten_of_them() -> None:
    headings = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    assert [heading.split(".")[0] for heading in headings] == [f"## {number}" for number in range(1, 11)]
