"""A test that is watched: intervals for all times, against those for one look."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.uncertainty import sequence_reach

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import peeking

COLUMNS = {"arm": "variant", "control": "A", "unit": "user", "time": "day", "metric": "revenue", "state": "level"}


def table(test):
    units, days = test.state.shape
    columns = {
        "user": np.repeat(np.arange(units), days),
        "day": np.tile(np.arange(days), units),
        "variant": np.repeat(np.where(test.arm == 1, "B", "A"), days),
        "level": np.char.add("level ", test.state.astype(str)).ravel(),
        "revenue": test.reward.ravel(),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def short_test():
    return peeking.simulate(peeking.WORLDS["wear-out"], 300, 7, np.random.default_rng(2))


@pytest.fixture(scope="module")
def once(short_test):
    return mixope.experiment(table(short_test), **COLUMNS)


@pytest.fixture(scope="module")
def watched(short_test):
    return mixope.experiment(table(short_test), **COLUMNS, sequential=True, planned=2_100)


def test_watching_moves_no_value_and_widens_every_interval(once, watched):
    for one, other in zip(once.main.lines, watched.main.lines, strict=True):
        assert other.effect.difference == pytest.approx(one.effect.difference)
        assert 1.4 < other.effect.interval.width / one.effect.interval.width < 1.8
        assert other.effect.interval.level == 0.95
        assert other.effect.interval.method == one.effect.interval.method + ", anytime-valid"
        assert not one.effect.interval.method.endswith("anytime-valid")
    assert watched.main.days[-1].high > once.main.days[-1].high
    assert watched.level == 0.95


def test_the_interval_of_the_long_run_is_the_boundary_times_the_standard_error(watched):
    effect = watched.main.long_run.effect
    assert effect.interval.width / 2 == pytest.approx(sequence_reach(1.0, 0.95, 299) * effect.standard_error, rel=1e-6)


def test_the_record_says_how_often_one_may_look(once, watched):
    assert any("one look" in note and "sequential=True" in note for note in once.notes)
    assert any("however often one looks" in note and "2,100" in note for note in watched.notes)


def test_a_plan_is_a_number_of_rows(short_test):
    with pytest.raises(UsageError, match="planned"):
        mixope.experiment(table(short_test), **COLUMNS, sequential=True, planned=-3)


def test_the_benchmark_computes_what_the_experiment_does(short_test, once):
    value, error = peeking.long_run(short_test)
    effect = once.main.long_run.effect
    assert value == pytest.approx(effect.difference, rel=1e-3)
    assert error == pytest.approx(effect.standard_error, rel=0.02)
    plain, its_error = peeking.naive(short_test)
    assert plain == pytest.approx(once.main.naive.difference)
    assert its_error == pytest.approx(once.main.naive.standard_error, rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize("by", ["days", "batches"])
@pytest.mark.parametrize("world", peeking.WORLDS)
def test_the_sequence_holds_the_truth_at_all_looks_and_one_look_does_not(world, by):
    found = [peeking.held(world, by, peeking.long_run, np.random.default_rng([7, k]))[0] for k in range(120)]
    one_look, no_plan, as_planned = np.mean(found, axis=0)
    assert one_look < 0.85
    assert no_plan >= 0.95
    assert as_planned >= 0.95
