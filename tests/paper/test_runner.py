"""Repetitions are kept one by one, taken up again, and give the same file however they were run."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mixope.paper import reproduction, runner

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Squared:
    """A repetition that writes down that it was measured."""

    number: int
    repetition: int
    diary: str = ""
    seconds: float = 2.0

    def measure(self):
        if self.diary:
            with open(self.diary, "a") as file:
                file.write(f"{self.number}\n")
        if self.number < 0:
            time.sleep(30)
        return [{"square": self.number**2, "share": 1 / 3, "nothing": float("nan")}]


def squares(numbers, **options):
    return [Squared(number, k, **options) for k, number in enumerate(numbers)]


def test_results_come_in_the_order_asked_and_are_not_measured_twice(tmp_path):
    diary, path = tmp_path / "diary", tmp_path / "a.jsonl"
    asked = squares([3, 1, 2], diary=str(diary))
    assert [r.rows[0]["square"] for r in runner.run(asked, path)] == [9, 1, 4]
    assert [r.rows[0]["square"] for r in runner.run(asked[::-1], path)] == [4, 1, 9]
    assert diary.read_text().split() == ["3", "1", "2"]


def test_a_changed_setting_is_measured_afresh(tmp_path):
    first, path = squares([3])[0], tmp_path / "a.jsonl"
    runner.run([first], path)
    assert runner.missing([first], tmp_path) == []
    assert runner.missing([replace(first, repetition=1)], tmp_path) == [replace(first, repetition=1)]


def test_experiments_of_a_folder_share_equal_repetitions(tmp_path):
    runner.run(squares([3]), tmp_path / "a.jsonl")
    assert runner.run(squares([3]), tmp_path / "b.jsonl")[0].rows[0]["square"] == 9
    assert not (tmp_path / "b.jsonl").exists()


def test_a_line_cut_short_is_left_out_and_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "a.jsonl"
    whole = runner.run(squares([3, 4]), path)
    text = path.read_text()
    path.write_text(text[:-20])
    assert len(runner.read_records(tmp_path)) == 1
    again = runner.run(squares([3, 4]), path)
    assert [(r.key, r.rows) for r in again] == [(r.key, r.rows) for r in whole]
    assert len(path.read_text().splitlines()) == 3


def test_a_number_that_is_none_is_written_as_null(tmp_path):
    runner.run(squares([3]), tmp_path / "a.jsonl")
    assert json.loads((tmp_path / "a.jsonl").read_text())["rows"][0]["nothing"] is None


def test_processes_and_one_process_write_the_same_csv(tmp_path):
    tables = []
    for jobs, name in ((1, "one"), (2, "two")):
        done = runner.run(squares(range(6)), tmp_path / name / "a.jsonl", jobs=jobs)
        reproduction.write_lines([row for record in done for row in record.whole_rows()], tmp_path / name / "a.csv")
        tables.append((tmp_path / name / "a.csv").read_bytes())
    assert tables[0] == tables[1]
    assert reproduction.read_lines(tmp_path / "two" / "a.csv")[2]["square"] == 4


def test_the_cost_is_what_the_same_settings_took_else_what_was_measured_once(tmp_path):
    asked = [Squared(3, k) for k in range(4)]
    assert runner.cost(asked, tmp_path) == 8.0
    runner.append_record(
        tmp_path / "a.jsonl", runner.FinishedRepetition(runner.key_of(asked[0]), runner.settings_of(asked[0]), [], 5.0)
    )
    assert runner.cost(asked[1:], tmp_path) == 15.0


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interruption_keeps_what_is_done(tmp_path):
    """Two processes, one of them busy for half a minute: Ctrl-C ends both at once, and the other's work is there."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from test_runner import squares\n"
        "from mixope.paper import runner\n"
        "if __name__ == '__main__':\n"
        "    runner.run(squares([-1, 5, 6]), Path(sys.argv[2]), jobs=2)\n"
    )
    (tmp_path / "main.py").write_text(script)
    path = tmp_path / "out" / "a.jsonl"
    child = subprocess.Popen(
        [sys.executable, tmp_path / "main.py", str(Path(__file__).parent), str(path)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    start = time.monotonic()
    while not (path.exists() and len(path.read_text().splitlines()) == 2) and time.monotonic() - start < 25:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(timeout=20) != 0
    assert {r.rows[0]["square"] for r in runner.read_records(path.parent).values()} == {25, 36}
