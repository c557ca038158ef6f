"""Guardrails bound the long-run difference; groups are the same experiment on some of the units."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import mixope
from mixope.base.errors import UnknownName, UsageError
from mixope.report.trial_words import headline
from mixope.worlds import engagement

from .tables import WORDS, two_states

pytestmark = pytest.mark.xdist_group("groups of units")


@pytest.fixture(scope="module")
def found():
    table = engagement.draw("opposite", users=600, days=8, seed=2, metrics=("revenue", "complaints"))
    rails = ["complaints<=0.5", "complaints >= 0.5", "revenue>=0.01"]
    return mixope.experiment(table, **WORDS, state=["level", "fatigue", "plan"], guardrail=rails, by="plan")


def test_a_guardrail_is_held_broken_or_open_by_its_whole_interval(found):
    held, broken, third = found.guardrails
    assert (held.status, broken.status) == ("held", "broken")
    sure = third.effect.interval
    assert third.status == ("held" if sure.low >= 0.01 else "broken" if sure.high < 0.01 else "open")
    assert [arm.metric for arm in found.arms] == ["revenue"]
    assert "it breaks the guardrail on complaints" in headline(found, found.main)


def test_groups_are_the_experiment_on_their_units(found):
    table = engagement.draw("opposite", users=600, days=8, seed=2)
    for group in found.subgroups:
        mine = table.filter(pc.equal(table.column("plan"), group.value))
        alone = mixope.experiment(mine, **WORDS, state=["level", "fatigue", "plan"])
        assert alone.units == group.units
        assert alone.main.long_run.effect.difference == pytest.approx(group.long_run.effect.difference, rel=1e-9)
        truth = engagement.effect("opposite", where={"plan": group.value})
        assert group.long_run.effect.interval.low < truth < group.long_run.effect.interval.high
    assert {group.value for group in found.subgroups} == {"free", "paid"}


def test_both_are_in_json_tables_terminal_and_page(found, tmp_path):
    written = json.loads(found.to_json())
    assert [rail["status"] for rail in written["guardrails"]][:2] == ["held", "broken"]
    assert mixope.Experiment.from_json(found.to_json()).to_json() == found.to_json()
    assert len(found.to_arrow("subgroups")) == 2
    assert "by plan at entry" in found.full()
    page = found.report(tmp_path / "page.html").read_text()
    assert 'id="guardrails"' in page
    assert 'id="subgroups"' in page


def test_less_of_a_cost_is_better():
    table = two_states(200, 6, effect=0.5)
    plain = mixope.experiment(table, **WORDS, state="tired", by="tired")
    cost = mixope.experiment(table, **WORDS, state="tired", by="tired", less="revenue")
    for more, less in zip((*plain.arms, *plain.subgroups), (*cost.arms, *cost.subgroups), strict=True):
        assert less.naive.difference == more.naive.difference
        assert less.naive.probability_better == 1 - more.naive.probability_better
        assert less.long_run.effect.probability_better == 1 - more.long_run.effect.probability_better
    assert (plain.main.decision, cost.main.decision) == ("better", "worse")
    assert headline(cost, cost.main).startswith("B is worse than A, with more revenue, in the long run: +")
    assert mixope.Experiment.from_json(cost.to_json()).to_json() == cost.to_json()
    with pytest.raises(UsageError, match="less of 'waits' is to be better, but the metrics are revenue"):
        mixope.experiment(table, **WORDS, state="tired", less="waits")


def test_what_is_no_guardrail_and_no_column_is_told():
    with pytest.raises(UsageError, match="METRIC<=BOUND"):
        mixope.experiment(two_states(users=20), **WORDS, state="tired", guardrail="complaints")
    with pytest.raises(UnknownName, match="group by"):
        mixope.experiment(two_states(users=200, days=4), **WORDS, state="tired", by="plan")


def test_small_groups_are_left_out_and_counted():
    table = two_states(users=200, days=4)
    plan = pa.array(["rare" if user < 10 else "usual" for user in table.column("user").to_pylist()])
    found = mixope.experiment(table.append_column("plan", plan), **WORDS, state=["tired", "plan"], by="plan")
    assert [group.value for group in found.subgroups] == ["usual"]
    assert any("1 of 2 groups are left out" in note for note in found.notes)
