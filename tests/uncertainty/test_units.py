"""Units: users, patients or machines with several episodes are what intervals count."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.units import SIZES, TARGET, held, log

import mixope
from mixope.answers.resampling import prepare
from mixope.base.errors import DataError, MixopeWarning, UsageError
from mixope.requests.clusters import Clusters
from mixope.session.session import count
from mixope.uncertainty import standard_error

from .logs import chain_log, factored_log


def with_unit(columns, unit):
    return {**columns, "unit": unit}


def facts(estimate):
    """All that is written of an estimate, besides what the logs are called."""
    written = estimate.to_dict()
    del written["provenance"]
    return json.dumps(written)


def two_of_each(columns):
    """The same log twice, with other episodes for the same users."""
    n = int(columns["episode_id"].max()) + 1
    both = {name: np.concatenate([values, values]) for name, values in columns.items()}
    both["episode_id"] = np.concatenate([columns["episode_id"], columns["episode_id"] + n])
    return with_unit(both, np.concatenate([columns["episode_id"]] * 2))


def vector_log(users=12, per=3, steps=10, seed=0):
    generator = np.random.default_rng(seed)
    n = users * per
    state = generator.normal(size=(n, steps + 1, 2))
    action = generator.normal(size=(n, steps))
    return {
        "observation": state[:, :-1].reshape(-1, 2),
        "action": action.ravel(),
        "reward": (state[:, :-1].sum(axis=2) + action + np.repeat(np.arange(users), per)[:, None] / users).ravel(),
        "next_observation": state[:, 1:].reshape(-1, 2),
        "episode_id": np.repeat(np.arange(n), steps),
        "step": np.tile(np.arange(steps), n),
        "truncated": np.tile(np.arange(steps) == steps - 1, n),
        "unit": np.repeat(np.arange(n) // per, steps),
    }


GAUSSIAN = mixope.LinearGaussianPolicy(np.zeros((1, 2)), np.array([0.2]), np.array([0.9]))


@pytest.mark.parametrize("interval", ["auto", "normal", "likelihood", "bca"])
def test_a_unit_that_is_the_episode_changes_nothing_to_the_bit(interval):
    _, law, _, columns = chain_log(seed=1)
    asked = {"interval": interval, "replicates": 10, "jobs": 1}
    target = mixope.TabularPolicy(law)
    plain = mixope.evaluate(columns, target, **asked)
    own = mixope.evaluate(with_unit(columns, columns["episode_id"]), target, **asked)
    assert facts(plain) == facts(own)


def test_so_it_is_on_factors_and_on_vectors():
    _, target, columns = factored_log(seed=2)
    assert facts(mixope.evaluate(columns, target)) == facts(
        mixope.evaluate(with_unit(columns, columns["episode_id"]), target)
    )
    columns = vector_log()
    own = with_unit(columns, columns["episode_id"])
    del columns["unit"]
    assert facts(mixope.evaluate(columns, GAUSSIAN, "dr")) == facts(mixope.evaluate(own, GAUSSIAN, "dr"))


@pytest.mark.parametrize("estimator", ["emp", "bch-pooled", "is-step", "model"])
def test_two_copies_of_a_log_with_the_same_units_do_not_shrink_the_error(estimator):
    _, law, _, columns = chain_log(seed=3)
    target = mixope.TabularPolicy(law)
    once = mixope.evaluate(columns, target, estimator)
    twice = mixope.evaluate(two_of_each(columns), target, estimator)
    assert twice.value == pytest.approx(once.value, rel=1e-9)
    assert twice.n_units == once.n_episodes
    assert twice.standard_error == pytest.approx(once.standard_error, rel=0.03)


def test_so_it_is_on_vectors_and_with_refits():
    columns = vector_log(users=30, per=1)
    del columns["unit"]
    once = mixope.evaluate(columns, GAUSSIAN, "emp")
    twice = mixope.evaluate(two_of_each(columns), GAUSSIAN, "emp")
    assert twice.standard_error == pytest.approx(once.standard_error, rel=0.25)  # more rows, more features
    _, law, _, columns = chain_log(seed=3)
    asked = {"interval": "percentile", "replicates": 200, "jobs": 1}
    once = mixope.evaluate(columns, mixope.TabularPolicy(law), "emp", **asked)
    twice = mixope.evaluate(two_of_each(columns), mixope.TabularPolicy(law), "emp", **asked)
    assert twice.standard_error == pytest.approx(once.standard_error, rel=0.2)


def test_what_loggers_earn_and_what_the_target_earns_more_are_by_unit():
    _, law, _, columns = chain_log(seed=3)
    target = mixope.TabularPolicy(law)
    once, twice = mixope.evaluate(columns, target), mixope.evaluate(two_of_each(columns), target)
    for name in range(2):
        a, b = once.loggers[name].earned, twice.loggers[name].earned
        assert b.interval.width == pytest.approx(a.interval.width, rel=0.1)
        assert b.difference.standard_error == pytest.approx(a.difference.standard_error, rel=0.1)
    pair = {"one": target, "other": mixope.TabularPolicy(law[:, ::-1])}
    once, twice = mixope.compare(columns, pair), mixope.compare(two_of_each(columns), pair)
    (a,), (b,) = once.differences[0].pairs, twice.differences[0].pairs
    assert b.standard_error == pytest.approx(a.standard_error, rel=0.1)


def test_a_backtest_counts_units():
    _, _, _, columns = chain_log(seed=3, episodes=120)
    once, twice = mixope.backtest(columns), mixope.backtest(two_of_each(columns))
    for a, b in zip(once.rows, twice.rows, strict=True):
        assert b.high - b.low == pytest.approx(a.high - a.low, rel=0.1)
        assert b.z == pytest.approx(a.z, rel=0.3)


def test_replicates_draw_units_whole():
    columns = with_unit(chain_log(seed=3)[3], chain_log(seed=3)[3]["episode_id"] // 4)
    counted = count(columns)
    refit = prepare(counted, mixope.TabularPolicy(chain_log(seed=3)[1]), "emp")
    refit = replace(refit, unit=np.arange(refit.n_episodes) // 4)
    weight = refit.weights(0)
    assert refit.n_clusters == 6
    assert weight.sum() == refit.n_episodes
    np.testing.assert_array_equal(weight.reshape(-1, 4).min(axis=1), weight.reshape(-1, 4).max(axis=1))


def test_degrees_of_freedom_are_those_of_the_matrix():
    generator = np.random.default_rng(0)
    for sizes in (np.full(7, 3.0), generator.integers(1, 20, size=9).astype(float), np.array([50.0, 1, 1, 1])):
        unit = np.repeat(np.arange(len(sizes)), 2)
        clusters = Clusters.of(unit, np.repeat(sizes / 2, 2))
        h = sizes / sizes.sum()
        off = np.eye(len(h)) - np.outer(np.ones(len(h)), h)
        a = off.T @ np.diag(h**2 / (1 - 2 * h + h @ h)) @ off
        assert clusters.degrees == pytest.approx(max(np.trace(a) ** 2 / np.trace(a @ a), 1.0))
    assert Clusters.of(np.repeat(np.arange(7), 2), np.ones(14)).degrees == pytest.approx(6.0)


def test_the_error_of_units_of_unlike_sizes_is_unbiased():
    """A mean over rows of users whose levels differ: the error is right in the mean, the plain sum too small."""
    generator, sizes = np.random.default_rng(1), np.array([30, 10, 10, 5, 5])
    unit = np.repeat(np.arange(5), sizes)
    clusters, squared, values = Clusters.of(unit, np.ones(len(unit))), [], []
    for _ in range(4000):
        y = generator.normal(size=5)[unit]
        values.append(y.mean())
        squared.append(standard_error(clusters.scores((y - y.mean()) / len(y))) ** 2)
    assert np.mean(squared) == pytest.approx(np.var(values), rel=0.08)


def test_units_are_the_same_whoever_reads_the_rows(tmp_path):
    columns = {
        **log(SIZES["20 of 5"], "level", 0),
        "person": np.array([f"u{k}" for k in log(SIZES["20 of 5"], "level", 0)["person"]]),
    }
    half = len(columns["reward"]) // 2
    for k, rows in enumerate((slice(None, half), slice(half, None))):
        pq.write_table(pa.table({name: values[rows] for name, values in columns.items()}), tmp_path / f"{k}.parquet")
    path = str(tmp_path / "*.parquet")
    found = [
        mixope.evaluate(given, TARGET, unit="person", engine=engine)
        for given, engine in ((columns, "memory"), (path, "memory"), (path, "embedded"), (path, "processes"))
    ]
    for other in found[1:]:
        assert other.n_units == found[0].n_units == 20
        assert (other.value, other.interval) == (found[0].value, found[0].interval)


def test_an_episode_without_a_unit_is_its_own():
    columns = log(SIZES["20 of 5"], "level", 0)
    person = columns.pop("person").astype(object)
    person[columns["episode_id"] == 7] = None
    assert mixope.evaluate(with_unit(columns, person), TARGET).n_units == 21


def test_an_episode_of_two_units_is_refused():
    columns = log(SIZES["20 of 5"], "level", 0)
    columns["person"] = columns["person"] + (columns["step"] > 3) * (columns["episode_id"] == 3)
    with pytest.raises(DataError) as error:
        mixope.evaluate(columns, TARGET, unit="person")
    assert error.value.column == "unit"


def test_a_column_that_may_be_the_unit_is_named_in_a_note():
    columns = log(SIZES["20 of 5"], "level", 0)
    columns["user_id"] = columns.pop("person")
    with pytest.warns(MixopeWarning, match="user_id"):
        logs = mixope.read(columns)
    assert mixope.evaluate(logs, TARGET).n_units is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mixope.evaluate(mixope.read(columns, columns={"unit": "user_id"}), TARGET).n_units == 20
    with pytest.raises(DataError):
        mixope.evaluate(logs, TARGET, unit="nobody")
    with pytest.raises(UsageError):
        mixope.evaluate(logs, TARGET, unit=3)


def test_inspect_counts_units():
    found = mixope.inspect(log(SIZES["20 of 5"], "level", 0), unit="person")
    assert (found.contents.units, found.contents.episodes) == (20, 100)


def test_returns_are_of_episodes():
    columns = log(SIZES["20 of 5"], "level", 0)
    plain = mixope.returns(columns, TARGET, horizon=3)
    own = mixope.returns(with_unit(columns, columns["person"]), TARGET, horizon=3)
    assert own.targets[0].tail == plain.targets[0].tail


def test_few_users_with_a_level_of_their_own_are_covered():
    by_episode, _ = held(SIZES["4 of 25"], "level", None, 20, 0)
    by_unit, _ = held(SIZES["4 of 25"], "level", "person", 20, 0)
    assert by_episode < 0.6 < 0.8 <= by_unit


@pytest.mark.long
@pytest.mark.parametrize("kind", ["level", "response"])
@pytest.mark.parametrize("sizes", SIZES)
def test_intervals_by_unit_hold_the_truth(sizes, kind):
    covered, _ = held(SIZES[sizes], kind, "person", 200, 1)
    assert covered >= 0.92
