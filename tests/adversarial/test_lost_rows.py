"""Rows that went missing, or changed, without a word: each is refused, or counted in a note."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import run
from mixope.base.errors import DataError, MixopeWarning
from mixope.logs.sources import text

ROWS = 60
HALF = mixope.read_policy(np.full((2, 2), 0.5))
TARGET = "observation,action,prob\n0,0,0.5\n0,1,0.5\n1,0,0.5\n1,1,0.5\n"


def arrays(**changes: Any) -> dict[str, Any]:
    """Six episodes of ten steps, with some columns changed."""
    draw = np.random.default_rng(0)
    state = draw.integers(0, 2, ROWS + 1)
    good = {
        "episode_id": np.repeat(np.arange(6), 10),
        "step": np.tile(np.arange(10), 6),
        "observation": state[:-1],
        "action": draw.integers(0, 2, ROWS),
        "reward": draw.random(ROWS).round(3),
        "next_observation": state[1:],
    }
    return good | changes


def evaluate(given: Any) -> mixope.Estimate:
    return mixope.evaluate(given, HALF)


def masked(values: Any) -> Any:
    return np.ma.array(values, mask=np.arange(ROWS) % 20 == 3)


@pytest.mark.parametrize("name", ["observation", "action", "reward", "episode_id", "step"])
def test_what_an_array_masks_is_missing(name):
    with pytest.raises(DataError, match=f"The {name} is missing") as told:
        evaluate(mixope.Logs.from_arrays(**arrays(**{name: masked(arrays()[name])})))
    assert told.value.rows == (3, 23, 43)


def test_what_a_matrix_of_vectors_masks_is_missing():
    both = np.c_[arrays()["observation"], arrays()["reward"]].astype(float)
    mask = np.zeros_like(both, dtype=bool)
    mask[7, 1] = True
    given = arrays(observation=np.ma.array(both, mask=mask), next_observation=both)
    with pytest.raises(DataError, match="The observation is missing") as told:
        evaluate(mixope.Logs.from_arrays(**given))
    assert told.value.rows == (7,)


def test_a_masked_propensity_or_label_is_one_that_is_not_known():
    found = mixope.Logs.from_arrays(
        **arrays(action_prob=masked(np.full(ROWS, 0.5)), policy_id=masked(np.array(["a"] * ROWS)))
    ).table(["propensity", "policy_id"])
    assert found.column("propensity").null_count == 3
    assert found.column("policy_id").to_pylist().count("unlabelled") == 3


def shard(path: Path, **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays(**changes)), path)
    return path


def linked(folder: Path) -> Path:
    shard(folder / "logs" / "a.parquet")
    shard(folder / "elsewhere" / "b.parquet")
    (folder / "logs" / "more").symlink_to(folder / "elsewhere", target_is_directory=True)
    return folder / "logs"


def packed(folder: Path) -> Path:
    (folder / "b.parquet.gz").write_bytes(gzip.compress(shard(folder / "a.parquet").read_bytes()))
    return folder


def half_written(folder: Path) -> Path:
    shard(folder / "a.parquet")
    (folder / "b.csv.part").write_text("observation,action,reward\n")
    return folder


PASSED_OVER: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a linked sub-folder": (linked, "A sub-folder is a link"),
    "an ending that is not read": (packed, "looks like a log and cannot be read"),
    "a file that is half written": (half_written, "looks like a log and cannot be read"),
}


@pytest.mark.parametrize("case", PASSED_OVER)
def test_nothing_in_a_folder_is_passed_over(case, tmp_path):
    make, words = PASSED_OVER[case]
    folder = make(tmp_path)
    with pytest.raises(DataError, match=words):
        mixope.read(folder)
    result = run("inspect", folder)
    assert result.exit_code == 3
    assert words in result.stderr


@pytest.mark.parametrize("pattern", ["", "*", "**/*.parquet", "*/*.parquet"])
def test_a_folder_that_cannot_be_listed_is_an_error(pattern, tmp_path, monkeypatch):
    shard(tmp_path / "open" / "a.parquet")
    closed = shard(tmp_path / "closed" / "b.parquet").parent
    listed = os.scandir

    def scandir(path: Any = ".") -> Any:
        if os.path.abspath(path) == str(closed):
            raise PermissionError(13, "Permission denied", str(closed))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(DataError, match="cannot be listed: Permission denied") as told:
        mixope.read(os.path.join(tmp_path, pattern))
    assert told.value.where == str(closed)


def test_other_files_of_a_folder_are_counted_in_a_note(tmp_path):
    shard(tmp_path / "a.parquet")
    for name in ("README.md", "notes.txt", "plot.png", "sums.sha256", "_SUCCESS", ".hidden"):
        (tmp_path / name).write_text("")
    with pytest.warns(MixopeWarning, match=r"4 files are not read.*README.md, notes.txt, plot.png and 1 more"):
        logs = mixope.read(tmp_path)
    assert logs.total_rows() == ROWS


BEYOND: dict[str, tuple[str, str, str, list[Any]]] = {
    "words after whole numbers": ("policy_id", "1", "newest", ["1", "newest"]),
    "words after nothing": ("policy_id", "", "newest", ["unlabelled", "newest"]),
    "words after true and false": ("policy_id", "true", "maybe", ["true", "maybe"]),
    "fractions after whole numbers": ("reward", "1", "0.5", [1.0, 0.5]),
    "true and false after nothing": ("truncated", "", "true", [False, True]),
    "fractions after whole states": ("observation", "1", "0.5", [1.0, 0.5]),
}
"""Column, what it holds in the first rows, what further down, and how the two are read."""


@pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
@pytest.mark.parametrize("case", BEYOND)
def test_what_comes_after_the_first_rows_of_a_large_file_is_read_for_what_it_is(case, tmp_path, monkeypatch):
    column, early, late, expected = BEYOND[case]
    given = arrays(**{column: [early] * 40 + [late] * 20})
    path = tmp_path / "log.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [list(given), *zip(*given.values(), strict=True)]))
    monkeypatch.setattr(text, "WHOLE_BYTES", 0)
    monkeypatch.setattr(text, "SAMPLE", 30)
    logs = mixope.read(path)
    found = logs.table().column(next(name for name in logs.schema.columns if name.startswith(column))).to_pylist()
    assert found == expected[:1] * 40 + expected[1:] * 20


def test_the_guess_from_the_first_rows_stands_where_nothing_contradicts_it(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    given = arrays(policy_id=["a", "b"] * 30, action_prob=[""] * 59 + ["0.5"])
    path.write_text("\n".join(",".join(map(str, row)) for row in [list(given), *zip(*given.values(), strict=True)]))
    small = mixope.read(path)
    monkeypatch.setattr(text, "WHOLE_BYTES", 0)
    monkeypatch.setattr(text, "SAMPLE", 30)
    large = mixope.read(path)
    assert [p.fields for p in large.sources[0].pieces] == [p.fields for p in small.sources[0].pieces]
    assert [p.null_free for p in large.sources[0].pieces] == [set(given) - {"action_prob"}]


def half_masked(observations: Any) -> Any:
    return np.ma.masked_equal(np.tile([0.25, 0.75], (len(observations), 1)), 0.75)


@pytest.mark.parametrize("target", [half_masked(np.arange(2)), half_masked], ids=["table", "function"])
def test_a_policy_that_masks_probabilities_has_none(target):
    with pytest.raises(DataError, match="masked values"):
        mixope.evaluate(mixope.Logs.from_arrays(**arrays()), target)
