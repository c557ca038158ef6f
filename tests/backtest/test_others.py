"""Leaving a logger out of counts that were merged over loggers is leaving it out of the logs."""

import dataclasses

import numpy as np
import pytest

from mixope import worlds
from mixope.backtesting import backtest, from_counts, without
from mixope.backtesting.others import merge
from mixope.estimators import REGISTRY, StateRatio, ignores_loggers, make
from mixope.requests.transitions import noise_by_action, transition_cells
from mixope.session.session import count

pytestmark = pytest.mark.long

SUMS = ("rows", "reward", "starts", "inverse", "inverse_reward", "inverse_squared")


def world(observed="id", uneven=False):
    """So few rows that some pairs were logged once and some cells by one logger only.

    Episodes that are cut unevenly are predicted by the average, others by their horizon.
    """
    model = worlds.make("gridworld-slip")
    columns = worlds.simulate(model, worlds.stages(model, 5, seed=0), 15, 15, seed=1, observed=observed)
    noise = np.random.default_rng(3).normal(size=len(columns["reward"]))
    kept = columns["step"] < (12 + columns["episode_id"] % 3 if uneven else 15)
    return {name: values[kept] for name, values in {**columns, "reward": columns["reward"] + noise}.items()}


def cells_of(transitions):
    """Of every (s, a, s′), all that a loop over its groups finds."""
    found = {}
    keys = zip(transitions.state.tolist(), transitions.action.tolist(), transitions.next_state.tolist(), strict=True)
    for group, key in enumerate(keys):
        found.setdefault(key, []).append(group)
    names = [name for name in SUMS if getattr(transitions, name) is not None]
    return {
        key: {
            **{name: sum(getattr(transitions, name)[group] for group in groups) for name in names},
            "lowest": min(transitions.lowest[groups]),
            "highest": max(transitions.highest[groups]),
        }
        for key, groups in found.items()
    }


def test_the_others_of_merged_counts_are_the_sums_over_the_others_groups():
    transitions = count(world()).transitions
    merged = merge(transitions)
    for logger in range(len(transitions.loggers)):
        rest, places = merged.without(logger)
        found, expected = cells_of(rest), cells_of(without(transitions, logger))
        assert found.keys() == expected.keys()
        assert rest.n_groups == len(found)
        for key, cell in expected.items():
            assert found[key] == pytest.approx(cell, rel=1e-12)
        assert set(places.tolist()) == set(merged.place[transitions.logger != logger].tolist())


def test_a_huge_reward_of_the_logger_left_out_costs_the_others_no_digit():
    columns = world()
    mine = columns["policy_id"] == "logger-2"
    calm = merge(count(columns).transitions).without(2)[0]
    loud = merge(count({**columns, "reward": np.where(mine, 1e15, columns["reward"])}).transitions).without(2)[0]
    np.testing.assert_array_equal(loud.reward, calm.reward)
    np.testing.assert_array_equal(loud.highest, calm.highest)
    np.testing.assert_array_equal(loud.scatter, calm.scatter)


def test_rows_that_one_logger_ended_in_two_ways_are_all_counted():
    """After an end there is no next state, so that two groups of one logger may fall into one cell."""
    transitions = count(world()).transitions
    ended = dataclasses.replace(transitions, next_state=np.where(transitions.state < 8, -1, transitions.next_state))
    assert len(np.unique(transition_cells(ended))) < len(np.unique(transition_cells(transitions)))
    rest, _ = merge(ended).without(1)
    assert rest.n_rows == without(ended, 1).n_rows


def test_the_noise_of_a_row_is_the_same_whether_groups_are_merged_or_not():
    transitions = count(world()).transitions
    apart, (together, _) = without(transitions, 3), merge(transitions).without(3)
    expected = noise_by_action(apart, apart.reward / apart.rows)
    assert noise_by_action(together, together.reward / together.rows) == pytest.approx(expected, rel=1e-12)
    forgotten = dataclasses.replace(together, scatter=None)
    assert np.all(noise_by_action(forgotten, together.reward / together.rows) < expected)


MERGED = [name for name, entry in REGISTRY.items() if "counts" in entry.takes and ignores_loggers(make(name))]


@pytest.mark.parametrize("cells", [0, 10**9], ids=["by scans", "from counts by episode"])
@pytest.mark.parametrize("observed", ["id", "factors"])
@pytest.mark.parametrize("name", MERGED)
def test_merging_changes_no_prediction(name, observed, cells, monkeypatch):
    columns = world(observed, uneven=name in ("sadl", "mwl", "dualdice", "logged-mean"))
    monkeypatch.setattr(from_counts, "MOST_CELLS", cells)
    monkeypatch.setattr(from_counts, "MOST_SCORES", 1000)
    found = backtest(columns, estimator=name)
    monkeypatch.setattr(from_counts, "ignores_loggers", lambda estimator: False)
    expected = backtest(columns, estimator=name)
    assert found.notes == expected.notes
    for row, same in zip(found.rows, expected.rows, strict=True):
        assert (row.verdict, row.note, row.covered) == (same.verdict, same.note, same.covered)
        for number in ("predicted", "low", "high", "z", "uncovered_mass"):
            mine, other = getattr(row, number), getattr(same, number)
            assert (mine is None) == (other is None)
            assert mine is None or mine == pytest.approx(other, rel=1e-8, abs=1e-10, nan_ok=True)


def test_estimators_that_look_at_labels_are_not_given_merged_counts():
    assert {"emp", "model", "dr"} <= set(MERGED)
    assert not {"emp-single", "kl-emp", "opt-emp", "bch", "bch-pooled", "known-mixture"} & set(MERGED)
    assert not ignores_loggers(StateRatio("emp", behaviour="per-logger"))
