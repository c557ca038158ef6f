"""Long logs are added up by episode in parts that share no episode: the same sums, and no trip to the disk."""

from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.load.test_sizes_foreseen import walk

import mixope
from mixope.base.errors import MixopeWarning
from mixope.engines import EmbeddedEngine, embedded
from mixope.logs import EPISODE_KEYS
from mixope.requests.grouping import Aggregate, Grouping

BY_EPISODE = Grouping(
    EPISODE_KEYS,
    (
        Aggregate("rows", "count"),
        Aggregate("earned", "sum", ("reward",)),
        Aggregate("starts", "sum", ("start",)),
        Aggregate("highest", "max", ("reward",)),
    ),
)


def write_parts(folder, table, cuts):
    for number, (low, high) in enumerate(pairwise(cuts)):
        pq.write_table(table.slice(low, high - low), folder / f"part-{number}.parquet")
    return str(folder)


@pytest.fixture
def table():
    return walk(states=20, episodes=60, steps=10)


def rows_of(logs):
    return [part.total_rows() for part in logs.apart(1)]


def test_files_that_share_no_episode_are_apart(tmp_path, table):
    logs = mixope.read(write_parts(tmp_path, table, [0, 100, 200, 450, 600]))
    assert rows_of(logs) == [100, 100, 250, 150]
    assert [part.total_rows() for part in logs.apart(150)] == [200, 250, 150]
    assert logs.apart(600) == (logs,)


def test_files_that_share_an_episode_stay_together(tmp_path, table):
    logs = mixope.read(write_parts(tmp_path, table, [0, 105, 200, 450, 600]))
    assert rows_of(logs) == [200, 250, 150]


def test_nothing_is_apart_where_episodes_are_counted_by_the_order_of_rows(tmp_path, table):
    ends = table.column("step").to_numpy() == 9
    counted = table.drop_columns(["episode_id"]).append_column("truncated", [ends])
    with pytest.warns(MixopeWarning):
        logs = mixope.read(write_parts(tmp_path, counted, [0, 100, 600]))
    assert rows_of(logs) == [600]


def test_small_sources_are_taken_together(tmp_path, table):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = write_parts(tmp_path / "a", table.slice(0, 300), [0, 100, 300])
    second = write_parts(tmp_path / "b", table.slice(300), [0, 300])
    logs = mixope.read(first, second)
    assert [part.total_rows() for part in logs.apart(250)] == [300, 300]
    assert [len(part.sources) for part in logs.apart(550)] == [2]


@pytest.mark.parametrize("cuts", [[0, 100, 200, 450, 600], [0, 105, 200, 455, 600]])
@pytest.mark.parametrize("without", [[], ["next_observation", "step", "terminated"]])
def test_parts_add_up_to_the_whole(cuts, without, tmp_path, table, monkeypatch, recwarn):
    logs = mixope.read(write_parts(tmp_path, table.drop_columns(without), cuts), ends="truncated" if without else None)
    engine = EmbeddedEngine(ordered=False)
    whole = engine.group_sums(logs, BY_EPISODE)
    monkeypatch.setattr(embedded, "PART_ROWS", 1)
    parts = engine.group_sums(logs, BY_EPISODE)
    assert parts.n_groups == whole.n_groups == 60
    for key in EPISODE_KEYS:
        assert parts.values(key).tolist() == whole.values(key).tolist()
    for name in ("rows", "starts", "highest"):
        assert parts.column(name).tolist() == whole.column(name).tolist()
    np.testing.assert_allclose(parts.column("earned"), whole.column("earned"), rtol=1e-14)


def test_an_evaluation_in_parts_is_the_evaluation_of_the_whole(tmp_path, table, monkeypatch):
    logs = mixope.read(write_parts(tmp_path, table, [0, 100, 200, 450, 600]))
    target = mixope.TabularPolicy(np.tile([0.4, 0.6], (20, 1)))
    engine = EmbeddedEngine(ordered=False)
    whole = mixope.evaluate(logs, target, "emp", engine=engine)
    monkeypatch.setattr(embedded, "PART_ROWS", 1)
    parts = mixope.evaluate(logs, target, "emp", engine=engine)
    assert parts.value == pytest.approx(whole.value, rel=1e-12)
    assert parts.interval.low == pytest.approx(whole.interval.low, rel=1e-12)
    assert [d.status for d in parts.diagnostics] == [d.status for d in whole.diagnostics]
