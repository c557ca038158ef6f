"""Every engine gives what the in-memory engine gives, on every statistic, format and kind of state."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings

from engine_list import IN_PROCESS
from laws.requests import assert_same, examples, id_logs, vector_logs
from laws.small_logs import episode_grouping, raw_columns, read
from mixope.answers.answering import answer as run
from mixope.base.errors import MixopeError
from mixope.base.estimand import Estimand
from mixope.engines import ENGINES, EmbeddedEngine, MemoryEngine
from mixope.estimators import REGISTRY
from mixope.requests.episodes import cluster_scores, episode_sums
from mixope.requests.grouping import Aggregate, Grouping
from mixope.requests.trajectories import NumberedSteps
from mixope.requests.transitions import encode, transition_grouping
from mixope.session.session import count

from .sources import FORMATS, KINDS, columns, policy, written

OTHERS = [name for name in IN_PROCESS if name != "memory"]
engines = pytest.mark.parametrize("engine", OTHERS)
formats = pytest.mark.parametrize("kind_of_file", FORMATS)
kinds = pytest.mark.parametrize("kind", KINDS)


def assert_tables_equal(found, wanted):
    assert found.column_names == wanted.column_names
    assert found.num_rows == wanted.num_rows
    for name in wanted.column_names:
        left, right = found.column(name).to_pylist(), wanted.column(name).to_pylist()
        if right and isinstance(right[0], float):
            np.testing.assert_allclose(np.array(left), np.array(right), rtol=1e-12, atol=1e-12, err_msg=name)
        else:
            assert left == right, name


@pytest.fixture(params=[True, False], ids=["propensities", "none"])
def propensities(request):
    return request.param


@engines
@formats
@kinds
def test_transition_counts(engine, kind_of_file, kind, propensities, tmp_path):
    logs = written(columns(kind, propensities), kind_of_file, tmp_path)
    grouping = transition_grouping(logs.schema)
    wanted = MemoryEngine().group_sums(logs, grouping)
    assert_tables_equal(ENGINES[engine]().group_sums(logs, grouping).table, wanted.table)
    assert wanted.table.column(logs.schema.next_observation[0]).null_count > 0  # terminated rows have no next state
    assert wanted.column("rows").sum() == len(columns(kind)["step"])


@engines
@formats
@kinds
def test_episode_sums_with_a_lookup_on_null_keys(engine, kind_of_file, kind, tmp_path):
    """Terminated rows have null next keys; they must find their line of the lookup all the same."""
    logs = written(columns(kind), kind_of_file, tmp_path)
    lookup, grouping = episode_grouping(logs)
    wanted = MemoryEngine().group_sums(logs, grouping, lookup)
    found = ENGINES[engine]().group_sums(logs, grouping, lookup)
    assert_tables_equal(found.table, wanted.table)
    assert np.isfinite(wanted.column("score0_rows")).all()
    transitions = encode(MemoryEngine().group_sums(logs, transition_grouping(logs.schema)), logs.schema)
    right = episode_sums(wanted, transitions, logs.step_base)
    scores = [[each.by_cluster for each in cluster_scores(sums, 2, logs.step_base)] for sums in (found, wanted)]
    np.testing.assert_allclose(*scores, rtol=1e-12, atol=1e-12)
    assert not right.irregular_steps.any()
    assert not right.broken_chain.any()


@engines
@formats
def test_the_total_of_all_rows(engine, kind_of_file, tmp_path):
    logs = written(columns("ids"), kind_of_file, tmp_path)
    everything = Grouping((), (Aggregate("rows", "count"), Aggregate("reward", "sum", ("reward",))))
    found, wanted = ENGINES[engine]().group_sums(logs, everything), MemoryEngine().group_sums(logs, everything)
    assert_tables_equal(found.table, wanted.table)
    assert wanted.column("rows").tolist() == [len(columns("ids")["step"])]


@engines
@pytest.mark.parametrize("name", examples())
def test_every_kind_of_request(engine, name):
    request, logs = examples()[name]
    (wanted,) = MemoryEngine().scan(logs, [request])
    (found,) = ENGINES[engine](fragment_rows=50).scan(logs, [request])
    assert_same(found, wanted)


@engines
def test_all_requests_at_once_are_answered_as_one_by_one(engine):
    """Sums by key are pushed down where they are alone, and streamed along where they are not."""
    for logs in (id_logs(), vector_logs()):
        requests = [request for request, of in examples().values() if of is logs]
        together = ENGINES[engine]().scan(logs, requests)
        for request, found in zip(requests, together, strict=True):
            assert_same(found, MemoryEngine().scan(logs, [request])[0])


@engines
@formats
@kinds
@pytest.mark.parametrize("size", [1, 64])
def test_whole_episodes_though_they_straddle_batches(engine, kind_of_file, kind, size, tmp_path):
    logs = written(columns(kind), kind_of_file, tmp_path)
    request = NumberedSteps(count(logs, "memory").numbers)
    (wanted,) = MemoryEngine().scan(logs, [request])
    assert wanted.episodes.n_episodes == 40
    for other in (ENGINES[engine](fragment_rows=size), MemoryEngine(fragment_rows=size)):
        assert_same(other.scan(logs, [request])[0], wanted)


@dataclass(frozen=True)
class EveryRow:
    """The rows themselves, as they come."""

    rows: tuple = ()
    whole_episodes = False

    def columns(self, schema):
        return ("step", "reward")

    def of(self, batch):
        return EveryRow(tuple(zip(*(batch.table.column(n).to_pylist() for n in self.columns(None)), strict=True)))

    def merge(self, other):
        return EveryRow(self.rows + other.rows)


@pytest.mark.parametrize("engine", IN_PROCESS)
@formats
def test_fragments_hold_every_row_once(engine, kind_of_file, tmp_path):
    logs = written(columns("ids"), kind_of_file, tmp_path)
    base = columns("ids")
    (found,) = ENGINES[engine](fragment_rows=50).scan(logs, [EveryRow()], len(base["step"]))
    assert sorted(found.rows) == sorted(zip(base["step"].tolist(), base["reward"].tolist(), strict=True))


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_rows_that_were_lost_are_noticed(engine):
    n = len(id_logs().table(("step",)))
    with pytest.raises(MixopeError, match=f"saw {n:,} rows in this scan, and the logs have {n + 1:,}"):
        ENGINES[engine]().scan(id_logs(), [EveryRow()], n + 1)


@engines
@settings(max_examples=10)
@given(drawn=raw_columns())
def test_engines_agree_on_drawn_logs(engine, drawn):
    logs = read(drawn)
    grouping = transition_grouping(logs.schema)
    made = ENGINES[engine]()
    assert_tables_equal(made.group_sums(logs, grouping).table, MemoryEngine().group_sums(logs, grouping).table)
    lookup, episodes = episode_grouping(logs)
    wanted = MemoryEngine().group_sums(logs, episodes, lookup)
    assert_tables_equal(made.group_sums(logs, episodes, lookup).table, wanted.table)


@engines
@kinds
@pytest.mark.parametrize("kind_of_file", ["memory", "parquet"])
@pytest.mark.parametrize("estimand", [Estimand(), Estimand("discounted", 0.9)], ids=str)
def test_every_estimator_gives_the_same_answer(engine, kind_of_file, kind, estimand, tmp_path):
    logs = written(columns(kind), kind_of_file, tmp_path)
    names = [n for n, e in REGISTRY.items() if "counts" in e.takes and (not estimand.gamma or n != "logged-mean")]
    known = {label: policy(kind, seed) for label, seed in (("logger-0", 1), ("logger-1", 2))}
    wanted, found = (
        run(count(logs, made), {"new": policy(kind)}, names, estimand=estimand, loggers=known)
        for made in (MemoryEngine(), ENGINES[engine](fragment_rows=11, ordered=False))
    )
    for left, right in zip(found, wanted, strict=True):
        assert left.value == pytest.approx(right.value, rel=1e-10, abs=1e-10), left.estimator
        assert (left.standard_error is None) == (right.standard_error is None)
        if right.standard_error is not None:
            assert left.standard_error == pytest.approx(right.standard_error, rel=1e-9, abs=1e-12), left.estimator
        assert left.effective_sample_size == pytest.approx(right.effective_sample_size, rel=1e-9)
        assert (left.alerts, left.verdict, left.n_episodes) == (right.alerts, right.verdict, right.n_episodes)


def test_limits_of_memory_and_threads_change_nothing(tmp_path):
    logs = written(columns("strings"), "parquet", tmp_path)
    grouping = transition_grouping(logs.schema)
    small = EmbeddedEngine(memory_limit="100MB", threads=1)
    assert_tables_equal(small.group_sums(logs, grouping).table, MemoryEngine().group_sums(logs, grouping).table)
