"""Records are below their rendering: what they share, and files that appear whole or not at all."""

import json
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from mixope.base.files import replacing, write_whole
from mixope.base.rendering import plain

from . import records


@pytest.mark.parametrize(
    "record",
    [records.comparison(), records.backtest(), records.differences()],
    ids=["comparison", "backtest", "differences"],
)
def test_json_has_no_number_that_does_not_exist(record):
    assert json.loads(record.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_plain_values_keep_their_kind_and_twelve_digits():
    given = {"a": (1, np.int64(2), True, None, "x"), "b": [1 / 3, float("nan"), np.float32(0.5)]}
    assert plain(given) == {"a": [1, 2, True, None, "x"], "b": [0.333333333333, None, 0.5]}
    assert json.dumps(plain(given))


def test_a_record_finds_its_rendering_when_it_is_asked():
    code = "import sys, mixope.answers.estimate, mixope.differences, mixope.backtesting, mixope.inspection\n"
    code += "print('mixope.report' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_file_is_replaced_whole_and_its_folder_is_made(tmp_path):
    path = write_whole(tmp_path / "new" / "x.bin", b"one")
    assert write_whole(path, b"two") == path
    assert path.read_bytes() == b"two"
    assert [found.name for found in path.parent.iterdir()] == ["x.bin"]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = write_whole(tmp_path / "x.bin", b"one")
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:  # noqa: PT012
        temporary.write_bytes(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"one"
    assert [found.name for found in tmp_path.iterdir()] == ["x.bin"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    plainly = tmp_path / "plain"
    plainly.write_bytes(b"")
    written = write_whole(tmp_path / "x.bin", b"one")
    assert stat.S_IMODE(os.stat(written).st_mode) == stat.S_IMODE(os.stat(plainly).st_mode)
