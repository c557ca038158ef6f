"""A method is shown where its own conditions hold; and a refused experiment draws no conclusion."""

import json

import numpy as np
import pyarrow as pa
import pytest

import mixope
from mixope.checks import Verdict

from .tables import WORDS, long_run, two_states


def habits(users=1200, days=14, seed=0):
    """A habit that is hard to gain and hard to lose under A; B breaks it in a few days. Whoever has it earns 1."""
    rng = np.random.default_rng(seed)
    arm = np.arange(users) % 2
    habit = (rng.random(users) < 0.5).astype(int)
    parts = []
    for day in range(days):
        parts.append((np.arange(users), np.full(users, day), arm, habit, habit + 0.1 * rng.normal(size=users)))
        gained = rng.random(users) < np.where(arm == 1, 0.02, 0.1)
        lost = rng.random(users) < np.where(arm == 1, 0.5, 0.02)
        habit = np.where(habit == 1, ~lost, gained).astype(int)
    user, day, arm, habit, revenue = (np.concatenate(column) for column in zip(*parts, strict=True))
    names = np.array(["A", "B"])[arm]
    return pa.table({"user": user, "day": day, "variant": names, "habit": habit.astype(str), "revenue": revenue})


TRUTH = 0.02 / 0.52 - 0.1 / 0.12


def lines(found):
    return {line.name: line.effect for line in found.main.lines}


@pytest.fixture(scope="module")
def far():
    return mixope.experiment(habits(), **WORDS, state="habit")


def test_a_first_order_method_is_left_out_where_arms_move_units_far_and_a_note_says_so(far):
    assert set(lines(far)) == {"naive", "surrogate", far.main.long_run.estimator}
    sure = far.main.long_run.effect.interval
    assert sure.low < TRUTH < sure.high
    (note,) = [note for note in far.notes if note.startswith("dq is left out for B on revenue")]
    assert "first-order" in note


def test_it_is_shown_where_arms_are_near():
    found = mixope.experiment(two_states(effect=0.1), **WORDS, state="tired")
    dq = lines(found)["dq"]
    assert not any(note.startswith("dq") for note in found.notes)
    assert abs(dq.difference - long_run(0.1)) < 0.1


def test_a_state_that_one_arm_was_never_seen_in_leaves_it_out_too():
    table = two_states(effect=0.1).to_pydict()
    table["place"] = [
        "home" if arm == "A" or day % 2 else "away" for arm, day in zip(table["variant"], table["day"], strict=True)
    ]
    found = mixope.experiment(pa.table(table), **WORDS, state=["tired", "place"])
    assert "dq" not in lines(found)
    assert any("never seen in" in note for note in found.notes)


def test_a_refused_experiment_draws_no_conclusion(tmp_path):
    """Eight users on three days tell nothing of the long run."""
    found = mixope.experiment(habits(users=8, days=3), **WORDS, state="habit")
    assert found.main.long_run.verdict is Verdict.UNSUPPORTED
    assert {effect.probability_better for effect in lines(found).values()} == {None}
    record = json.loads(found.to_json())
    assert record["long_run"]["probability_better"] is None
    assert record["long_run"]["difference"] is not None
    assert record["arms"][0]["decision"] == "not supported"
    assert {line["effect"]["probability_better"] for line in record["arms"][0]["lines"]} == {None}
    assert mixope.Experiment.from_json(found.to_json()).to_json() == found.to_json()
    assert "< 0.001" not in found.full()
    page = found.report(tmp_path / "page.html").read_text()
    assert "&lt; 0.001" not in page
    found._repr_html_()


def test_a_probability_is_never_rounded_to_certainty(far):
    assert "< 0.001" in far.full()
