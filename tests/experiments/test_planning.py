"""Plans from pilots, held against what the planned amount of data really gives."""

import json

import numpy as np
import pytest
from scipy import stats

import mixope
from mixope.base.errors import DataError, UsageError
from mixope.worlds import simulate
from uncertainty.logs import chain_log

from .test_watching import COLUMNS, peeking, table


@pytest.fixture(scope="module")
def pilot():
    model, target, loggers, columns = chain_log(seed=1, episodes=200)
    return model, mixope.TabularPolicy(target), [mixope.TabularPolicy(law) for law in loggers], loggers, columns


def test_the_number_of_episodes_is_the_formula(pilot):
    _, target, _, _, columns = pilot
    estimate = mixope.evaluate(columns, target, "emp")
    found = mixope.plan(columns, target, "emp", precision=estimate.interval.width / 4)
    expected = 200 * (2 * stats.norm.ppf(0.975) / stats.t.ppf(0.975, 199)) ** 2
    assert found.need == pytest.approx(expected, rel=0.02)
    assert found.standard_error == pytest.approx(estimate.standard_error)
    assert found.half_width == pytest.approx(estimate.interval.width / 2, rel=0.01)
    (need,) = found.needs
    assert need.low < need.need < need.high
    assert need.high / need.need == pytest.approx(199 / stats.chi2.ppf(0.05, 199), rel=0.15)


@pytest.mark.parametrize("against", [None, "logs", "policy"])
def test_the_planned_episodes_give_the_precision_that_was_asked_for(pilot, against):
    model, target, known, laws, columns = pilot
    other = known[0] if against == "policy" else against
    first = mixope.plan(columns, target, "emp", precision=1.0, against=other)
    asked = first.half_width / 1.6
    found = mixope.plan(columns, target, "emp", precision=asked, against=other)
    larger = simulate(model, laws, found.need, 15, seed=99)
    again = mixope.plan(larger, target, "emp", precision=asked, against=other)
    assert again.half_width == pytest.approx(asked, rel=0.15)


def test_a_watched_test_takes_more(pilot):
    _, target, _, _, columns = pilot
    once, always = (mixope.plan(columns, target, "emp", precision=0.05, sequential=s).need for s in (False, True))
    assert always / once == pytest.approx((3.035 / 1.96) ** 2, rel=0.05)


@pytest.mark.long
def test_the_planned_days_and_units_give_the_precision_that_was_asked_for():
    world = peeking.WORLDS["wear-out"]
    pilot = peeking.simulate(world, 600, 14, np.random.default_rng(5))
    first = mixope.plan_experiment(table(pilot), precision=1.0, **COLUMNS)
    asked = first.half_width / 1.35
    found = mixope.plan_experiment(table(pilot), precision=asked, **COLUMNS)
    users, days = found.needs
    longer = peeking.simulate(world, 600, days.need, np.random.default_rng(6))
    more = peeking.simulate(world, users.need, 14, np.random.default_rng(7))
    for larger in (longer, more):
        again = mixope.plan_experiment(table(larger), precision=asked, **COLUMNS)
        assert again.half_width == pytest.approx(asked, rel=0.15)
    assert any("extrapolation" in note for note in found.notes)


def test_days_that_tell_nothing_new_are_not_planned_for():
    generator = np.random.default_rng(3)
    arm = np.arange(200) % 2
    state = np.repeat(generator.integers(0, 2, (200, 1)), 8, axis=1)
    reward = np.repeat(state[:, :1] + 0.5 * generator.standard_normal((200, 1)), 8, axis=1)
    found = mixope.plan_experiment(table(peeking.Test(arm, state, reward)), precision=0.01, **COLUMNS)
    users, days = found.needs
    assert users.need > 1_000
    assert days.need is None
    assert "hardly help" in found.notes[-1]
    assert "days" not in str(found).splitlines()[0]


def test_a_plan_is_shown_drawn_and_written(pilot):
    _, target, _, _, columns = pilot
    assert "The pilot is enough" in str(mixope.plan(columns, target, "emp", precision=0.05))
    found = mixope.plan(columns, target, "emp", precision=0.01)
    assert f"{found.need:,}" in str(found).splitlines()[0].replace("\N{NARROW NO-BREAK SPACE}", ",")
    assert "more data are needed" in found._repr_html_()
    assert found.plot().get_xlabel() == "episodes"
    written = json.loads(found.to_json())
    assert written["needs"][0]["need"] == found.need
    assert mixope.Plan.from_json(found.to_json()).to_dict() == found.to_dict()


def test_a_pilot_without_support_is_named():
    model, _, _, columns = chain_log(seed=1, episodes=60)
    laws = np.tile([0.6, 0.4], (model.n_states, 1))
    missing = (columns["observation"] == 0) | (columns["observation"] == 2)
    kept = {**columns, "action": np.where(missing, np.maximum(columns["action"], 1), columns["action"])}
    kept.pop("action_prob", None)
    found = mixope.plan(kept, mixope.TabularPolicy(laws), "emp", precision=0.1)
    assert any("does not support" in note for note in found.notes)


def test_what_cannot_be_planned_is_refused_in_words(pilot):
    _, target, _, _, columns = pilot
    with pytest.raises(UsageError, match="precision is half the width"):
        mixope.plan(columns, target, precision=0)
    short = peeking.simulate(peeking.WORLDS["null"], 40, 4, np.random.default_rng(0))
    with pytest.raises(DataError, match="too short"):
        mixope.plan_experiment(table(short), precision=0.1, **COLUMNS)
    with pytest.raises(DataError, match="Which treatment"):
        mixope.plan_experiment(table(short), precision=0.1, treatment="C", **COLUMNS)
