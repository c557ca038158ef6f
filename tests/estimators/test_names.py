"""Names of estimators as people type them, and one target without a name."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import UnknownName, UsageError
from mixope.estimators import REGISTRY, canonical, make
from mixope.estimators.registry import ALIASES

LOGS = {
    "policy_id": np.repeat(["a", "b"], 40),
    "episode_id": np.repeat(np.arange(20), 4),
    "step": np.tile(np.arange(4), 20),
    "observation": np.tile([0, 1, 1, 0, 1, 0, 0, 1], 10),
    "action": np.tile([0, 1, 0, 1, 1], 16),
    "reward": np.tile([1.0, 0.0, 2.0, 0.5], 20),
    "truncated": np.tile([False, False, False, True], 20),
}
TARGET = np.array([[0.6, 0.4], [0.3, 0.7]])


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        ("DR", "dr"),
        ("doubly_robust", "dr"),
        ("Doubly Robust", "dr"),
        ("ips", "is"),
        ("IPS", "is"),
        ("snips", "wis"),
        ("BCH_pooled", "bch-pooled"),
        ("Auto", "auto"),
        ("dr", "dr"),
    ],
)
def test_a_usual_spelling_is_one_of_our_names(typed, ours):
    assert canonical(typed) == ours


def test_aliases_lead_to_estimators_and_hide_none():
    assert set(ALIASES.values()) <= set(REGISTRY)
    assert not set(ALIASES) & set(REGISTRY)
    assert {make(alias).name for alias in ALIASES} == {make(name).name for name in ALIASES.values()}


def test_results_have_our_name_and_the_same_answer():
    table = mixope.compare(LOGS, {"new": TARGET}, ["snips", "WIS", "wis"])
    (found,) = table.estimates
    assert found.estimator == "wis"
    assert mixope.evaluate(LOGS, TARGET, "SNIPS") == mixope.evaluate(LOGS, TARGET, "wis")
    assert mixope.evaluate(LOGS, TARGET, "AUTO") == mixope.evaluate(LOGS, TARGET)


def test_an_unknown_name_still_offers_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown estimator 'drr'. Did you mean 'dr'\? Known: .*wis-step"):
        make("drr")
    for odd in ("", None, 3):
        assert canonical(odd) is odd


def test_one_target_needs_no_name():
    table = mixope.compare(LOGS, TARGET, ["emp", "wis"])
    named = mixope.compare(LOGS, {"target": TARGET}, ["emp", "wis"])
    assert [each.target for each in table] == ["target", "target"]
    assert table.to_json() == named.to_json()


@pytest.mark.parametrize("several", [None, [TARGET, TARGET], ("new.csv", "old.csv")])
def test_several_targets_need_names(several):
    with pytest.raises(UsageError, match="targets maps names to policies"):
        mixope.compare(LOGS, several)
