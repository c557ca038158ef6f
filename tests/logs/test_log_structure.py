"""Episodes whose rows do not follow each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ragged_logs import read

from mixope import logs as lib

LOG: dict[str, list[Any]] = {
    "episode_id": [0, 0, 0, 1, 1, 1],
    "step": [0, 1, 2, 0, 1, 2],
    "observation": [1, 2, 3, 1, 2, 3],
    "action": [0] * 6,
    "reward": [0.0] * 6,
    "next_observation": [2, 3, 4, 2, 3, 4],
}
NO_NEXT = {name: values for name, values in LOG.items() if name != "next_observation"}


def test_a_sound_log_has_no_findings() -> None:
    assert lib.explain_episodes(lib.read(pa.table(LOG))) == ()
    assert lib.explain_episodes(lib.read(pa.table(NO_NEXT))) == ()
    assert lib.explain_episodes(read(pa.table({n: LOG[n] for n in ("observation", "action", "reward")}))) == ()


@pytest.mark.parametrize(
    ("log", "name", "status", "count"),
    [
        (LOG | {"step": [0, 1, 1, 0, 1, 2]}, "duplicate-steps", "error", 1),
        (NO_NEXT | {"step": [0, 1, 3, 0, 2, 3]}, "step-holes", "error", 2),
        (LOG | {"step": [0, 1, 3, 0, 2, 3]}, "step-gaps", "warning", 2),
        (LOG | {"step": [0, 1, 3, 0, 1, 2], "observation": [1, 2, 4, 1, 2, 3]}, "missing-rows", "warning", 1),
        (LOG | {"terminated": [True, False, False, False, False, True]}, "rows-after-end", "error", 2),
        (LOG | {"truncated": [False, True, False, False, False, True]}, "rows-after-cut", "warning", 1),
        (LOG | {"next_observation": [2, 9, 4, 9, 3, 9]}, "next-mismatch", "warning", 2),
        (LOG | {"step": [0, 1, 2, 1, 2, 3]}, "late-starts", "note", 1),
        (LOG | {"pscore": [0.5, None, 0.5, 0.5, None, None]}, "partial-propensity", "note", 3),
    ],
)
def test_each_disorder_is_found_and_counted(log: dict[str, list[Any]], name: str, status: str, count: int) -> None:
    found = {finding.name: finding for finding in lib.explain_episodes(lib.read(pa.table(log)))}
    assert (found[name].status, found[name].count) == (status, count)
    assert found[name].sentence.startswith(f"{count} ")
    assert (found[name].error is not None) == (status == "error")
    if name != "rows-after-end":
        assert set(found) == {name}


def test_an_error_names_the_file_and_its_rows(tmp_path: Path) -> None:
    table = pa.table(NO_NEXT | {"step": [0, 1, 2, 0, 1, 1]})
    pq.write_table(table.slice(0, 3), tmp_path / "1.parquet")
    pq.write_table(table.slice(3), tmp_path / "2.parquet")
    (finding,) = lib.explain_episodes(lib.read(str(tmp_path)))
    assert finding.error is not None
    assert (Path(str(finding.error.where)).name, finding.error.rows) == ("2.parquet", (2,))
    assert "step 1 of episode 1" in str(finding.error)
    assert finding.error.hint


def test_the_same_numbers_in_two_sources_do_not_clash() -> None:
    other = {**LOG, "reward": [r + 1.0 for r in LOG["reward"]]}
    assert lib.explain_episodes(lib.read(pa.table(LOG), pa.table(other))) == ()
    assert lib.explain_episodes(lib.read({"a": pa.table(LOG), "b": pa.table(other)})) == ()


def test_a_log_of_factors_compares_every_factor() -> None:
    log = {n: v for n, v in LOG.items() if "observation" not in n}
    log |= {"obs.x": [1, 2, 3, 1, 2, 3], "obs.y": ["a"] * 6}
    log |= {"next_obs.x": [2, 3, 4, 2, 3, 4], "next_obs.y": ["a", "b", "a", "a", "a", "a"]}
    (finding,) = lib.explain_episodes(lib.read(pa.table(log)))
    assert (finding.name, finding.count) == ("next-mismatch", 1)


def floats(episodes: int = 4, length: int = 5, seed: int = 0) -> dict[str, Any]:
    """A sound log of vectors: a random walk in the plane, with explicit next observations."""
    rng = np.random.default_rng(seed)
    path = rng.normal(size=(episodes, length + 1, 2)).cumsum(axis=1)
    return {
        "episode_id": np.repeat(np.arange(episodes), length),
        "step": np.tile(np.arange(length), episodes),
        "observation": path[:, :-1].reshape(-1, 2),
        "action": rng.normal(size=(episodes * length, 1)),
        "reward": rng.normal(size=episodes * length),
        "next_observation": path[:, 1:].reshape(-1, 2),
        "terminated": np.zeros(episodes * length, dtype=bool),
    }


def saved(log: dict[str, Any], folder: Path, stored: str) -> lib.Logs:
    """As arrays, as a column per number, or as lists of floats."""
    if stored == "arrays":
        return read(log)
    if stored == "columns":
        return read(lib.write(log, folder / "log.parquet", row_group_size=3))
    lists = {name: list(value) if value.ndim > 1 else value for name, value in log.items()}
    pq.write_table(pa.table(lists), folder / "log.parquet")
    return read(folder / "log.parquet")


stored = pytest.mark.parametrize("stored", ["arrays", "columns", "lists"])


@stored
def test_a_sound_log_of_floats_has_no_findings(tmp_path: Path, stored: str) -> None:
    log = floats()
    del log["next_observation"]
    for sound in (floats(), log):
        logs = saved(sound, tmp_path, stored)
        assert logs.schema.observation_kind == "vector"
        assert lib.explain_episodes(logs) == ()
        assert lib.explain_rows(logs) is None


@stored
def test_shuffled_next_observations_of_floats_are_found(tmp_path: Path, stored: str) -> None:
    log = floats()
    log["next_observation"] = np.random.default_rng(1).permutation(log["next_observation"])
    (finding,) = lib.explain_episodes(saved(log, tmp_path, stored))
    assert (finding.name, finding.status, finding.count) == ("next-mismatch", "warning", 16)
    assert finding.rows == (1, 2, 3, 4, 6)
    assert finding.place.startswith("rows 1, 2, 3, 4, 6 of ")
    assert "observation is not the next_observation of the row before" in finding.sentence


@stored
@pytest.mark.parametrize(
    ("fault", "name", "rows"),
    [
        (lambda log: log["step"].__setitem__([3, 13], [2, 2]), "duplicate-steps", (3, 13)),
        (lambda log: log["terminated"].__setitem__([7], True), "rows-after-end", (8, 9)),
        (lambda log: log.pop("next_observation") is None or log["step"].__setitem__(4, 9), "step-holes", (4,)),
    ],
)
def test_faults_of_float_logs_are_errors_that_name_the_rows(
    tmp_path: Path, stored: str, fault: Any, name: str, rows: tuple[int, ...]
) -> None:
    log = floats()
    fault(log)
    finding = lib.explain_episodes(saved(log, tmp_path, stored))[0]
    assert (finding.name, finding.status, finding.rows) == (name, "error", rows)
    assert finding.error is not None
    assert finding.error.rows == rows
    assert finding.error.hint
    assert finding.where == finding.error.where
    for words in ("expected: one row per step", "try: ", f"step {log['step'][rows[0]]} of episode"):
        assert words in str(finding.error)


def test_numbers_stored_with_fewer_digits_are_the_same_observation(tmp_path: Path) -> None:
    log = floats()
    log["next_observation"] = log["next_observation"].astype(np.float32)
    assert lib.explain_episodes(saved(log, tmp_path, "columns")) == ()
    log["next_observation"] = log["next_observation"] * 1.001
    (finding,) = lib.explain_episodes(saved(log, tmp_path, "columns"))
    assert (finding.name, finding.count) == ("next-mismatch", 16)


@stored
def test_float_rows_that_cannot_be_used_are_named(tmp_path: Path, stored: str) -> None:
    for name in ("observation", "next_observation", "action"):
        log = floats()
        log[name][[6, 11], -1] = np.nan, np.inf
        error = lib.explain_rows(saved(log, tmp_path, stored))
        assert error is not None
        assert (error.problem, error.rows, error.total) == (f"The {name} is not a finite number", (6, 11), 2)
