"""Moments are a commutative monoid, and no result depends on how rows came in pieces."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mixope
from mixope.engines import EmbeddedEngine, MemoryEngine
from mixope.errors import UsageError
from mixope.estimators.vector import Scan, make_vector
from mixope.estimators.vector.kernel import KernelRatio
from mixope.features import NormalisedBumps
from mixope.statistics.moments import Moments

from .worlds import TARGET, lq_columns, lq_logs, lq_problem

BUMPS = NormalisedBumps(12)
quarters = st.integers(-40, 40).map(lambda k: k / 4.0)


@st.composite
def moments(draw, belongs_to="pass"):
    if draw(st.booleans()) and draw(st.booleans()):
        return Moments()
    values = draw(st.lists(quarters, min_size=6, max_size=6))
    return Moments(
        {"a": np.reshape(values[:4], (2, 2)), "e": np.array(values[4:])}, draw(st.integers(1, 9)), belongs_to
    )


def assert_equal(left, right):
    assert (left.n_rows, left.belongs_to, left.arrays.keys()) == (right.n_rows, right.belongs_to, right.arrays.keys())
    assert all(np.array_equal(left[name], right[name]) for name in left.arrays)


@given(a=moments())
def test_no_rows_are_neutral(a):
    assert_equal(Moments().merge(a), a)
    assert_equal(a.merge(Moments()), a)


@given(a=moments(), b=moments(), c=moments())
def test_merging_is_associative_and_commutative(a, b, c):
    assert_equal(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_equal(a.merge(b), b.merge(a))


def test_strangers_refuse_to_merge():
    one = Moments({"a": np.ones(2)}, 3, "calibration")
    with pytest.raises(UsageError, match="cannot be merged"):
        one.merge(Moments({"a": np.ones(2)}, 3, "moments"))
    with pytest.raises(UsageError, match="cannot be merged"):
        one.merge(Moments({"b": np.ones(2)}, 3, "calibration"))


def test_sums_are_in_double_precision():
    one = Moments({"a": np.float32([1e8])}, 1)
    assert one.merge(Moments({"a": np.float32([1.0])}, 1))["a"] == 1e8 + 1


@pytest.mark.parametrize("fragment_rows", [1, 7, 100, 10_000])
def test_sums_by_episode_equal_a_slow_loop(fragment_rows):
    columns = lq_columns(4, 8, 10)
    order = np.random.default_rng(3).permutation(80)
    logs = mixope.read({name: values[order] for name, values in columns.items()})
    scan = Scan(logs, MemoryEngine(fragment_rows=fragment_rows))
    found = scan.by_episode("test", lambda rows: np.stack([rows.reward, np.ones(len(rows))], axis=1), 2)
    slow = {}
    for label, episode, reward in zip(columns["policy_id"], columns["episode_id"], columns["reward"], strict=True):
        slow.setdefault((str(label), int(episode)), []).append(reward)
    assert found == pytest.approx(np.array([[sum(slow[key]), len(slow[key])] for key in sorted(slow)]), abs=1e-12)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = lq_columns(1, 12, 40)
    flat = {name: values for name, values in columns.items() if values.ndim == 1}
    for name in ("observation", "next_observation", "action"):
        flat |= {f"{name}.{k}": columns[name][:, k] for k in range(columns[name].shape[1])}
    path = tmp_path_factory.mktemp("lq") / "logs.parquet"
    pq.write_table(pa.table(flat), path, row_group_size=97)
    return path


@pytest.mark.parametrize("name", ["emp", "bch", "dr", "lstdq", "mwl", "sadl", "wis-step", "logged-mean"])
@pytest.mark.parametrize("estimand", [{}, {"gamma": 0.9}], ids=["average", "discounted"])
def test_neither_pieces_nor_engines_change_the_answer(parquet, name, estimand):
    if name == "logged-mean" and estimand:
        pytest.skip("the logged mean has no discount")
    engines = [MemoryEngine(), MemoryEngine(fragment_rows=41), EmbeddedEngine(fragment_rows=2048, threads=1)]
    found = [
        mixope.evaluate(mixope.read(parquet), TARGET, name, features=BUMPS, engine=engine, **estimand)
        for engine in engines
    ]
    found.append(mixope.evaluate(lq_logs(1, 12, 40), TARGET, name, features=BUMPS, engine=engines[1], **estimand))
    values, errors = [r.value for r in found], [r.standard_error or 0.0 for r in found]
    assert values == pytest.approx([values[0]] * 4, abs=1e-9)
    assert errors == pytest.approx([errors[0]] * 4, abs=1e-9)


def test_a_sample_does_not_depend_on_pieces():
    logs = lq_logs(1, 12, 40)
    samples = [Scan(logs, MemoryEngine(fragment_rows=n), seed=2, sample_rows=100).sample for n in (10, 33, 5000)]
    assert 60 < len(samples[0]) < 150
    assert all(np.array_equal(s.observation, samples[0].observation) for s in samples)


@dataclass(frozen=True)
class Spy:
    """Bumps that note how many rows they were shown at a time."""

    inner: NormalisedBumps
    seen: list = field(default_factory=list)

    def fit(self, observations, seed=0):
        return FittedSpy(self.inner.fit(observations, seed), self.seen)


@dataclass(frozen=True)
class FittedSpy:
    inner: object
    seen: list

    @property
    def size(self):
        return self.inner.size

    def transform(self, observations):
        self.seen.append(len(observations))
        return self.inner.transform(observations)


@pytest.mark.parametrize("engine", [MemoryEngine(fragment_rows=64), EmbeddedEngine(fragment_rows=64, threads=1)])
def test_no_pass_holds_more_rows_than_a_piece(engine):
    spy, piece = Spy(BUMPS), 64 if engine.name == "memory" else 2048
    logs = lq_logs(1, 100, 50)
    mixope.evaluate(logs, TARGET, "bch", features=spy, engine=engine)
    assert sum(spy.seen) >= 4 * 5000
    assert max(size for size in spy.seen if size != len(lq_columns(1, 100, 50)["reward"])) <= piece


def test_passes_are_shared_between_estimators():
    problem = lq_problem(lq_logs(1, 12, 40), BUMPS)
    for name in ("emp", "dr", "lstdq", "mwl"):
        make_vector(name).solve(problem)
    passes = problem.scan.passes
    assert [passes.count(p) for p in ("sample", "calibration", "moments", "value")] == [1, 1, 1, 1]
    assert passes == ["sample", "calibration", "moments", "value", "scores of emp", "scores of dr", "scores of mwl"]


def test_the_dense_oracle_refuses_large_logs():
    with pytest.raises(UsageError, match="at most 3000 rows"):
        mixope.evaluate(lq_logs(1, 100, 50), TARGET, KernelRatio())
