"""A period without a row means what the user says it means; where nobody says and it may matter, that is flagged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import mixope
from mixope.base.errors import DataError, UsageError
from mixope.base.estimand import Estimand
from mixope.experiments import ordering
from mixope.experiments.absences import Watch, coming_back_check, leaving_check
from mixope.experiments.counts import KEYS, SUMS, count
from mixope.experiments.design import ExperimentDesign
from mixope.experiments.panel import make_panel
from mixope.worlds import engagement

from .tables import WORDS, two_states

DAYS = 8
DRAWN = ExperimentDesign("user", "day", "variant", "A", ("revenue",), ("level", "fatigue", "plan"), absent="zero")
ZERO = ExperimentDesign("user", "day", "variant", "A", ("revenue",), ("kind",), absent="zero")


def _leaving(users: int = 600, days: int = DAYS, rates=(0.05, 0.05), back: float = 0.0, seed: int = 0) -> pa.Table:
    """Users who earn 1 on every day they come; each day they stay away at a rate of their arm, and come back or not."""
    rng = np.random.default_rng(seed)
    arm, here = np.arange(users) % 2, np.ones(users, dtype=bool)
    parts = []
    for day in range(days):
        user = np.flatnonzero(here)
        parts.append(np.stack([user, np.full(len(user), day), arm[user], user % 3]))
        goes, comes = rng.random(users) < np.array(rates)[arm], rng.random(users) < back
        here = np.where(here, ~goes, comes)
    user, day, arm_, kind = np.concatenate(parts, axis=1)
    columns = {"user": user, "day": day, "variant": np.array(["A", "B"])[arm_], "kind": kind}
    return pa.table({**columns, "revenue": np.ones(len(user))})


def _written_out(table: pa.Table, watch: Watch) -> pa.Table:
    """The same with the missing rows, by a loop."""
    rows = sorted(table.to_pylist(), key=lambda row: (row["user"], row["day"]))
    units: dict[int, list[dict]] = {}
    for row in rows:
        units.setdefault(row["user"], []).append(row)
    found = []
    for own in units.values():
        seen, last = {row["day"]: row for row in own}, own[0]
        end = min(own[0]["day"] + watch.longest - 1, watch.last)
        for day in range(own[0]["day"], end + 1):
            last = seen.get(day, last)
            away = min(day - last["day"], watch.long_away)
            earned = last["revenue"] if day in seen else 0.0
            found.append({**last, "day": day, "revenue": earned, "gone": away})
    return pa.Table.from_pylist(found)


def _numbers(found):
    main = found.main
    effects = [main.naive, main.long_run.effect, *(line.effect for line in main.lines), main.at_once, main.carried]
    days = [number for day in main.days for number in (day.predicted, day.low, day.seen or 0.0)]
    return [n for e in effects for n in (e.difference, e.interval.low, e.interval.high)] + days


def test_zero_is_the_table_with_its_missing_rows_written_out():
    table, season = _leaving(200, rates=(0.2, 0.3), back=0.3), 2
    out = _written_out(table, Watch(DAYS - 1, DAYS, 0))
    assert len(out) > len(table)
    found = mixope.experiment(table, **WORDS, state="kind", absent="zero", season=season)
    by_hand = mixope.experiment(out, **WORDS, state=["kind", "gone"], season=season)
    assert found.rows == by_hand.rows == len(out)
    assert found.states[-1] == "days away"
    np.testing.assert_allclose(_numbers(found), _numbers(by_hand), rtol=1e-9, atol=1e-12)
    assert f"{len(out) - len(table):,} of {len(out):,} rows were added" in found.notes[0]


def test_rows_are_added_part_by_part_as_all_at_once(monkeypatch):
    table = _leaving(200, rates=(0.2, 0.3), back=0.3)
    whole = make_panel(table, ZERO)
    monkeypatch.setattr(ordering, "PART", 5_000)
    parts = make_panel(table, ZERO)
    assert len(parts.steps.files) > 3 > len(whole.steps.files)
    assert parts.facts == whole.facts
    assert parts.facts.added > 0
    by_part, at_once = (count(panel, "revenue").counts for panel in (parts, whole))
    for name in (*KEYS, *SUMS):
        np.testing.assert_allclose(getattr(by_part, name), getattr(at_once, name))


def test_units_are_watched_for_as_long_as_any_unit_and_not_beyond_the_test():
    """Each user enters on another day and is watched for five; one of two misses the last of them."""
    rows = [
        {"user": user, "day": user % 7 + day, "variant": "AB"[user % 2], "kind": 0, "revenue": 1.0 + user % 5}
        for user in range(80)
        for day in range(5 - (user // 2) % 2)
    ]
    facts = make_panel(pa.Table.from_pylist(rows), ZERO).facts
    assert (facts.rows, facts.longest, facts.added) == (80 * 5, 5, 40)


def test_the_worth_of_units_that_leave_is_that_of_the_days_they_stay():
    rates, horizon = (0.05, 0.10), 30
    found = mixope.experiment(
        _leaving(1000, 12, rates, seed=3), **WORDS, state="kind", absent="zero", estimand="horizon", horizon=horizon
    )
    plain, treated = (np.mean((1 - rate) ** np.arange(horizon)) for rate in rates)
    effect = found.main.long_run.effect
    assert effect.interval.low < treated - plain < effect.interval.high
    assert effect.interval.width < 0.15
    assert str(found.main.long_run.verdict) == "trustworthy"


def test_a_long_run_in_which_everybody_is_gone_is_told():
    found = mixope.experiment(_leaving(300, rates=(0.1, 0.2)), **WORDS, state="kind", absent="zero")
    note = next(note for note in found.notes if "are away" in note)
    assert "estimand='horizon' and horizon=16" in note


@pytest.mark.parametrize(
    ("rates", "absent", "status", "words"),
    [
        ((0.0, 0.0), None, "pass", "all units have rows to the end"),
        ((0.002, 0.002), None, "pass", "as many in both arms"),
        ((0.05, 0.05), None, "warn", "nobody said what that means"),
        ((0.05, 0.05), "unknown", "pass", "as many in both arms"),
        ((0.0, 0.008), None, "warn", "those who stay are not the same"),
        ((0.02, 0.2), None, "fail", "those who stay are not the same"),
        ((0.02, 0.2), "unknown", "warn", "those who stay are not the same"),
        ((0.02, 0.2), "zero", "pass", "all units have rows to the end"),
    ],
)
def test_units_that_leave_bear_on_the_verdict(rates, absent, status, words):
    panel = make_panel(_leaving(1000, rates=rates), replace(ZERO, absent=absent))
    check = leaving_check(panel, "B", "A")
    assert check.status == status
    assert words in check.sentence


def test_where_treatment_drives_units_away_there_is_no_answer_until_somebody_says_what_that_means():
    found = mixope.experiment(_leaving(300, rates=(0.02, 0.2)), **WORDS, state="kind")
    assert found.main.decision == "not supported"
    assert found.main.sensitivity is None
    said = " ".join(found.full().split())
    assert "how sure these data do not tell whether B is better refused" in said
    assert "the probability that B" not in said
    assert "If a unit without a row earned nothing, say absent='zero'" in found.notes[0]


def test_who_changes_the_arm_has_none_while_away():
    table = _leaving(rates=(0.1, 0.1))
    changing = np.array(["A", "B"])[np.array(table["day"]) % 2]
    table = table.set_column(table.column_names.index("variant"), "variant", pa.array(changing))
    with pytest.raises(DataError, match="the arm of a day without a row is not known"):
        make_panel(table, ZERO)


TEST = {**WORDS, "state": ["level", "fatigue", "plan"], "absent": "zero"}


@pytest.mark.parametrize("seed", [2, 3])
def test_a_rare_state_in_which_nobody_came_back_does_not_capture_the_long_run(seed):
    """Of both seeds a handful of users of one kind were away to the end; their return is not ruled out by that."""
    found = mixope.experiment(engagement.draw("churn", users=4000, seed=seed), **TEST).main
    sure, truth = found.long_run.effect.interval, engagement.effect("churn")
    assert sure.low < truth < sure.high
    assert sure.width < 0.05
    parts = found.at_once.difference + found.carried.difference
    assert parts == pytest.approx(found.long_run.effect.difference, abs=0.005)
    assert found.days[-1].predicted == pytest.approx(parts, abs=0.005)


def _drawn(back, users=800, seed=0):
    world = engagement.build("leaving", engagement.Recipe("", lift=(0.08, 0.08), leave=0.05, back=back))
    return world, engagement.draw(world, users=users, seed=seed)


def test_where_nobody_comes_back_units_are_gone_and_the_long_run_is_nothing():
    world, table = _drawn(1e-9)
    found = mixope.experiment(table, **TEST)
    effect = found.main.long_run.effect
    assert (effect.difference, effect.interval.low, effect.interval.high) == (0.0, 0.0, 0.0)
    assert (found.main.decision, str(found.main.long_run.verdict)) == ("unclear", "caution")
    assert any("nobody was seen to come back after 3 or more days away" in note for note in found.notes)
    later = mixope.experiment(table, **TEST, estimand="horizon", horizon=60).main.long_run
    sure, truth = later.effect.interval, engagement.effect(world, Estimand("horizon", horizon=60))
    assert sure.low < truth < sure.high
    assert "coming back" not in [check.name for check in later.checks]


def test_who_is_gone_is_in_one_state():
    panel = make_panel(_drawn(1e-9)[1], DRAWN)
    assert [classes[-1] for classes in panel.classes.values()] == ["gone", "gone", "gone", "3 or more"]
    with panel.open() as (connection, rows):
        states = ", ".join(f'"state {name}"' for name in panel.states)
        found = connection.execute(f"SELECT DISTINCT {states} FROM {rows}").fetchall()
    gone = tuple(len(panel.classes[name]) - 1 for name in panel.states)
    assert [state for state in found if gone[0] == state[0] or gone[-1] == state[-1]] == [gone]


@pytest.mark.parametrize(
    ("back", "users", "status", "words"),
    [
        (1e-9, 800, "warn", "nobody came back after 3 or more days away"),
        (0.005, 800, "fail", "units came back only"),
        (0.05, 1000, "warn", "units came back only"),
        (0.1, 2000, "pass", "units came back"),
    ],
)
def test_a_long_run_rests_on_those_who_come_back(back, users, status, words):
    check = coming_back_check(make_panel(_drawn(back, users)[1], DRAWN), "B", "A")
    assert (check.status, words in check.sentence) == (status, True)
    assert (check.status == "pass") == (check.value >= 30)
    assert ("estimand='horizon'" in check.sentence) == (status != "pass")


def test_hardly_anybody_away_for_long_needs_nobody_to_come_back():
    check = coming_back_check(make_panel(_leaving(600, rates=(0.001, 0.001)), ZERO), "B", "A")
    assert (check.status, "of the rows are of units" in check.sentence) == ("pass", True)


def test_what_absent_may_be():
    with pytest.raises(UsageError, match="absent is one of zero, unknown, got 'gone'"):
        mixope.experiment(two_states(), **WORDS, state="tired", absent="gone")
