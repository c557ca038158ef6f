"""An experiment end to end: the long run of a short test, what was seen, and what speaks against it."""

from __future__ import annotations

import json
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import mixope
from mixope.base.errors import DataError, UsageError
from mixope.worlds import engagement

from .tables import WORDS, long_run, two_states

STATE = {"state": "tired"}


@pytest.fixture(scope="module")
def found():
    return mixope.experiment(two_states(effect=0.05), **WORDS, **STATE)


def test_the_long_run_is_that_of_the_chains(found):
    effect = found.main.long_run.effect
    assert effect.interval.low < long_run(0.05) < effect.interval.high
    assert effect.standard_error < 0.05
    assert found.main.decision == "worse"


def test_the_naive_difference_is_that_of_the_means_with_errors_by_user(found):
    table = two_states(effect=0.05).to_pandas()
    means = table.groupby(["variant", "user"]).revenue.mean()
    b, a = means["B"], means["A"]
    naive = found.main.naive
    assert naive.difference == pytest.approx(b.mean() - a.mean())
    assert naive.standard_error == pytest.approx(np.sqrt(b.var() / len(b) + a.var() / len(a)), rel=0.02)


def test_the_path_begins_with_what_is_earned_at_once_and_ends_in_the_long_run(found):
    days = found.main.days
    assert days[0].seen == pytest.approx(0.05, abs=0.05)
    assert days[0].predicted == pytest.approx(days[0].seen, abs=0.03)
    assert days[-1].predicted == pytest.approx(found.main.long_run.effect.difference, abs=0.005)
    assert [day.day for day in days] == list(range(90))
    assert days[7].seen is not None
    assert days[8].seen is None


def test_both_parts_make_the_long_run_difference(found):
    main = found.main
    assert main.at_once.difference == pytest.approx(0.05, abs=0.04)
    assert main.carried.difference == pytest.approx(long_run(0.0), abs=0.08)
    assert main.at_once.difference + main.carried.difference == pytest.approx(
        main.long_run.effect.difference, abs=0.005
    )
    assert sum(driver.carried for driver in main.drivers) == pytest.approx(main.carried.difference)


def test_all_checks_pass_where_the_state_is_all_that_matters(found):
    assert found.main.long_run.verdict is mixope.Verdict.TRUSTWORTHY
    names = {check.name for check in found.main.long_run.checks}
    assert {"history", "drift", "later periods", "uncovered mass"} <= names


def test_the_json_has_what_a_program_wants_and_is_read_again(found):
    written = json.loads(found.to_json())
    assert set(written["naive"]["interval"]) >= {"low", "high", "level"}
    assert written["long_run"]["verdict"] == "trustworthy"
    assert written["arms"][0]["decision"] == "worse"
    again = mixope.Experiment.from_json(found.to_json())
    assert json.loads(again.to_json()) == written


def test_the_order_of_the_rows_and_names_of_units_do_not_matter(found):
    table = two_states(effect=0.05)
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))
    other = mixope.experiment(shuffled, **WORDS, **STATE)
    assert other.main.long_run.effect.difference == pytest.approx(found.main.long_run.effect.difference, rel=1e-9)
    assert other.main.long_run.effect.standard_error == pytest.approx(
        found.main.long_run.effect.standard_error, rel=1e-9
    )


def test_dates_staggered_entries_and_text_are_the_same_experiment(found):
    table = two_states(effect=0.05)
    number = table.column("day").to_numpy() + table.column("user").to_numpy() % 5
    days = [date(2026, 3, 1) + timedelta(int(day)) for day in number]
    dated = table.set_column(1, "day", pa.array(days))
    as_text = table.set_column(1, "day", pc.cast(pa.array(days), pa.string()))
    for other in (dated, as_text):
        again = mixope.experiment(other, **WORDS, **STATE)
        assert again.main.long_run.effect.difference == pytest.approx(found.main.long_run.effect.difference, rel=1e-9)
        assert again.tested == 8


def test_a_period_may_be_a_month_or_a_visit(found):
    table = two_states(effect=0.05)
    number = table.column("day").to_numpy()
    months = table.set_column(1, "day", pa.array([date(2026, 1 + int(day), 15) for day in number]))
    counted = table.set_column(1, "day", pc.cast(pa.array(number), pa.string()))
    for other, period in ((months, "month"), (counted, "visit"), (table, "visit")):
        again = mixope.experiment(other, **WORDS, **STATE, period=period)
        assert again.main.long_run.effect.difference == pytest.approx(found.main.long_run.effect.difference, rel=1e-9)
        assert f"per user and {period}" in " ".join(str(again).split())
    with pytest.raises(DataError, match="expected: a whole number in every row, one row per unit and visit"):
        mixope.experiment(months, **WORDS, **STATE, period="visit")


def test_a_gap_is_not_a_step():
    table = two_states()
    kept = pc.invert(pc.and_(pc.equal(table.column("day"), 3), pc.less(table.column("user"), 100)))
    found = mixope.experiment(table.filter(kept), **WORDS, **STATE)
    assert any("100 of 3,100 rows" in note for note in found.notes)


def test_several_treatments_and_metrics_are_lists():
    table = engagement.draw("wear-out", users=300, days=5, seed=0, arms=("A", "B", "C"), metrics=("revenue", "visits"))
    found = mixope.experiment(table, **{**WORDS, "metric": ["revenue", "visits"]}, state=["level", "fatigue"])
    assert [(arm.arm, arm.metric) for arm in found.arms] == [
        ("B", "revenue"),
        ("C", "revenue"),
        ("B", "visits"),
        ("C", "visits"),
    ]
    assert "long_run" not in json.loads(found.to_json())
    assert len(found.tables()["lines"]) == 16


def test_a_column_that_never_changes_counts_by_the_units_that_have_it():
    """Free and paid users never meet: the long run is that of both, each by its share."""
    table = engagement.draw("opposite", users=2000, days=14, seed=0)
    found = mixope.experiment(table, **WORDS, state=["level", "fatigue", "plan"])
    effect = found.main.long_run.effect
    assert effect.interval.low < engagement.effect("opposite") < effect.interval.high
    assert found.main.long_run.verdict is mixope.Verdict.TRUSTWORTHY


@pytest.mark.parametrize("setting", [pytest.param("novelty", marks=pytest.mark.long), "opposite"])
def test_where_arms_were_seen_in_all_states_emp_and_dr_are_the_same_number(setting):
    table = engagement.draw(setting, users=600, days=10, seed=0)
    state = [name for name in table.column_names if name not in (*WORDS.values(), "visits", "complaints")]
    emp, dr = (mixope.experiment(table, **WORDS, state=state, estimator=name).main.long_run for name in ("emp", "dr"))
    assert (emp.estimator, dr.estimator) == ("emp", "dr")
    # emp takes the long run of plans that never mix with a discount of 1 − 10⁻⁵, and dr plan by plan.
    rounding = 1e-4 * dr.effect.standard_error
    assert emp.effect.difference == pytest.approx(dr.effect.difference, abs=rounding)
    assert emp.effect.interval.low == pytest.approx(dr.effect.interval.low, abs=rounding)


@pytest.mark.parametrize("seed", [0])
def test_a_state_that_misses_what_matters_is_flagged(seed):
    table = engagement.draw("wear-out", users=4000, days=14, seed=seed, hidden="fatigue")
    found = mixope.experiment(table, **WORDS, state=["level", "plan"])
    bad = {check.name for check in found.main.long_run.checks if check.status != "pass"}
    assert bad & {"drift", "history", "later periods"}
    assert found.main.long_run.verdict is not mixope.Verdict.TRUSTWORTHY


def test_a_lag_brings_back_what_the_state_misses():
    """Reward depends on the state before; with one lag the state holds it."""
    rng = np.random.default_rng(0)
    users, days = 300, 10
    x = rng.integers(0, 2, (users, days))
    before = np.concatenate([np.zeros((users, 1), dtype=int), x[:, :-1]], axis=1)
    revenue = before + rng.normal(0, 0.1, (users, days))
    table = pa.table(
        {
            "user": np.repeat(np.arange(users), days),
            "day": np.tile(np.arange(days), users),
            "variant": np.repeat(np.where(np.arange(users) % 2, "B", "A"), days),
            "x": x.ravel(),
            "revenue": revenue.ravel(),
        }
    )
    plain = mixope.experiment(table, **WORDS, state="x")
    lagged = mixope.experiment(table, **WORDS, state="x", lags=1)

    def history(found):
        return next(check for check in found.main.long_run.checks if check.name == "history")

    assert history(plain).value > 3
    assert history(lagged).value < 3
    assert lagged.states == ("x", "x, 1 before")


def test_the_other_columns_are_the_state_where_none_is_named():
    found = mixope.experiment(two_states(), **WORDS)
    assert found.states == ("tired",)
    assert any("nobody said what the state is" in note for note in found.notes)


def test_a_number_with_many_values_is_cut_and_a_note_says_where():
    table = two_states()
    spend = np.random.default_rng(0).normal(size=len(table))
    found = mixope.experiment(table.append_column("spend", pa.array(spend)), **WORDS, state=["tired", "spend"])
    assert any(note.startswith("spend is a number: it is cut into 5 classes") for note in found.notes)


def test_the_value_of_one_day_is_that_of_the_path(found):
    one = mixope.experiment(two_states(effect=0.05), **WORDS, **STATE, estimand="day", horizon=30)
    assert one.main.long_run.effect.difference == pytest.approx(found.main.days[29].predicted)
    assert "day 30" in one.main.long_run.estimand


def test_exposure_makes_a_treated_unit_a_control_for_a_day():
    table = engagement.draw("lift", users=3000, days=10, seed=0, exposure=0.5)
    found = mixope.experiment(table, **WORDS, state=["level"], exposure="exposed")
    effect = found.main.long_run.effect
    assert effect.interval.low < engagement.effect("lift") < effect.interval.high
    assert any("exposed" in note for note in found.notes)


WRONG = {
    "no such column": ({"arm": "group"}, DataError, "no column 'group'"),
    "no such control": ({"control": "Z"}, DataError, "No row belongs to the control 'Z'"),
    "a column twice": ({"metric": "tired"}, UsageError, "two meanings"),
    "an unknown period": ({"period": "year"}, UsageError, "period is one of"),
    "episodes": ({"estimand": "episode"}, UsageError, "do not end"),
    "no day": ({"estimand": "day"}, UsageError, "needs its number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_question_is_answered_in_words(name):
    changed, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        mixope.experiment(two_states(users=20), **{**WORDS, **STATE, **changed})


def test_two_rows_of_a_unit_in_one_period_are_refused():
    table = two_states(users=20)
    with pytest.raises(DataError, match="8 rows have the unit and the day of another row"):
        mixope.experiment(pa.concat_tables([table, table.filter(pc.equal(table.column("user"), 3))]), **WORDS, **STATE)


def test_a_metric_that_is_missing_is_refused_and_a_missing_state_can_be_kept():
    table = two_states(users=40)
    gone = pc.if_else(pc.equal(table.column("user"), 3), None, table.column("revenue"))
    with pytest.raises(DataError, match="8 of 320 rows have no usable value in column 'revenue'"):
        mixope.experiment(table.set_column(4, "revenue", gone), **WORDS, **STATE)
    gone = pc.if_else(pc.equal(table.column("user"), 3), None, table.column("tired"))
    holed = table.set_column(3, "tired", gone)
    with pytest.raises(DataError, match="missing='keep'"):
        mixope.experiment(holed, **WORDS, **STATE)
    assert mixope.experiment(holed, **WORDS, **STATE, missing="keep").units == 40


def test_a_dict_of_columns_is_a_table(found):
    table = two_states(effect=0.05)
    again = mixope.experiment({name: table.column(name).to_numpy() for name in table.column_names}, **WORDS, **STATE)
    assert again.main.long_run.effect.difference == found.main.long_run.effect.difference
    with pytest.raises(DataError, match="different lengths"):
        mixope.experiment({"user": [1, 2], "day": [1]}, **WORDS, **STATE)


def test_one_treatment_on_two_metrics_has_the_first_at_the_top():
    table = two_states(users=60, days=5)
    found = mixope.experiment(
        table.append_column("visits", table.column("revenue")), **{**WORDS, "metric": ["revenue", "visits"]}, **STATE
    )
    written = json.loads(found.to_json())
    assert written["long_run"] == written["arms"][0]["long_run"]
    assert mixope.Experiment.from_json(found.to_json()).to_json() == found.to_json()
