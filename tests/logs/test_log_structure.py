"""Episodes whose rows do not follow each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    assert lib.explain_episodes(lib.read(pa.table(LOG), pa.table(LOG))) == ()
    assert lib.explain_episodes(lib.read({"a": pa.table(LOG), "b": pa.table(LOG)})) == ()


def test_a_log_of_factors_compares_every_factor() -> None:
    log = {n: v for n, v in LOG.items() if "observation" not in n}
    log |= {"obs.x": [1, 2, 3, 1, 2, 3], "obs.y": ["a"] * 6}
    log |= {"next_obs.x": [2, 3, 4, 2, 3, 4], "next_obs.y": ["a", "b", "a", "a", "a", "a"]}
    (finding,) = lib.explain_episodes(lib.read(pa.table(log)))
    assert (finding.name, finding.count) == ("next-mismatch", 1)
