"""Moments are a commutative monoid, and no result depends on how rows came in pieces."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mixope
from mixope.base.errors import UsageError
from mixope.engines import EmbeddedEngine, MemoryEngine
from mixope.features import NormalisedBumps
from mixope.logs import EPISODE_KEYS
from mixope.requests.by_episode import pieces_of_episodes, sum_by_episode
from mixope.requests.moments import Moments
from mixope.requests.rows import row_columns
from mixope.requests.sample import Sample

from .worlds import TARGET, lq_columns, lq_logs

pytestmark = pytest.mark.long

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


@dataclass(frozen=True)
class Earned:
    """Reward and rows by episode, or by pieces of it."""

    piece_steps: int | None = None
    whole_episodes = False

    def columns(self, schema):
        return (*row_columns(schema), "step")

    def of(self, batch):
        columns = {"reward": batch.rows.reward, "rows": np.ones(len(batch))}
        return sum_by_episode(batch.table, columns, "test", self.piece_steps)


@pytest.mark.parametrize("piece_steps", [None, 4])
@pytest.mark.parametrize("fragment_rows", [1, 7, 100, 10_000])
def test_sums_by_episode_equal_a_slow_loop(fragment_rows, piece_steps):
    columns = lq_columns(4, 8, 10)
    order = np.random.default_rng(3).permutation(80)
    logs = mixope.read({name: values[order] for name, values in columns.items()})
    (found,) = MemoryEngine(fragment_rows=fragment_rows).scan(logs, [Earned(piece_steps)])
    slow = {}
    keys = zip(columns["policy_id"], columns["episode_id"], columns["step"] // (piece_steps or 99), strict=True)
    for (label, *rest), reward in zip(keys, columns["reward"], strict=True):
        slow.setdefault((str(label), *map(int, rest)), []).append(reward)
    sums = np.stack([found.column("reward"), found.column("rows")], axis=1)
    assert sums == pytest.approx(np.array([[sum(slow[key]), len(slow[key])] for key in sorted(slow)]), abs=1e-12)
    assert found.grouping.keys[:3] == EPISODE_KEYS
    if piece_steps:
        assert pieces_of_episodes(found).tolist() == [3] * 8


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
    samples = [MemoryEngine(fragment_rows=n).scan(logs, [Sample(100, 2)])[0].in_order for n in (10, 33, 5000)]
    assert len(samples[0]) == 100
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


@pytest.mark.parametrize("engine", [MemoryEngine(threads=1), EmbeddedEngine(threads=1)], ids=lambda e: e.name)
def test_no_request_sees_more_rows_at_a_time_than_a_slice(engine, monkeypatch):
    """Fragments are large; features are made of a few rows at a time. Those of the sample are made once."""
    monkeypatch.setattr("mixope.requests.request.SLICE", 64)
    spy, logs = Spy(BUMPS), lq_logs(1, 100, 50)
    mixope.evaluate(logs, TARGET, "dr", features=spy, engine=engine)
    assert sum(spy.seen) >= 4 * 5000
    assert max(size for size in spy.seen if size != 5000) <= 64
    assert spy.seen.count(5000) <= 4
