"""Every input that the fuzzer ever found to fail is answered or refused in words; so are a few thousand new ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from .fuzzing.cases import SHARES, draw_case
from .fuzzing.corpus import FOLDER, keep, load
from .fuzzing.judging import Failure, judge
from .fuzzing.running import fuzz

KEPT = sorted(FOLDER.glob("*.json"))
CRASHED = [path for path in KEPT if '"place": "crash' in path.read_text(encoding="utf-8")]
ALONE = "from pathlib import Path; from tests.adversarial.fuzzing.corpus import load; \
from tests.adversarial.fuzzing.judging import judge; import sys; print(judge(load(Path(sys.argv[1]))))"


@pytest.mark.parametrize("path", [path for path in KEPT if path not in CRASHED], ids=lambda path: path.stem)
def test_what_failed_once(path):
    assert judge(load(path)) is None


@pytest.mark.parametrize("path", CRASHED, ids=lambda path: path.stem)
def test_what_once_ended_the_process(path):
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", ALONE, str(path)]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout.strip()) == (0, "None"), found.stderr


def test_new_inputs(tmp_path):
    run = fuzz(seed=11, begin=0, end=2_000, jobs=2, folder=tmp_path, patience=60.0, quiet=True)
    assert run.done == sum(run.counts.values()) == 2_000
    assert not run.failures, [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]


def test_an_input_depends_on_its_seed_and_number_alone():
    again = [repr(draw_case(3, number)) for number in range(200)]
    assert [repr(draw_case(3, number)) for number in range(200)] == again
    assert {case.kind for case in (draw_case(3, number) for number in range(3000))} == set(SHARES)
    assert draw_case(4, 0) != draw_case(3, 0)


def test_a_kept_input_is_the_same_input(tmp_path):
    for number in range(100):
        case = draw_case(5, number)
        assert repr(load(keep(case, Failure("it failed", "somewhere"), "a test", tmp_path))) == repr(case)
