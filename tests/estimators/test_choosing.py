"""``auto`` on vectors: weights where the logs carry them, a learned value before them where they do not."""

from dataclasses import dataclass

import numpy as np
import pytest

import mixope
from mixope import choosing
from mixope.diagnostics import Verdict
from mixope.estimators.learned import LearnedValue
from mixope.features import NormalisedBumps
from mixope.policies import LinearGaussianPolicy
from mixope.solvers.fitted_q import FittedQSettings

from .test_learned import GAMMA, moved

QUICK = LearnedValue(FittedQSettings(width=32, renewals=20, steps=10, batch=64), jobs=1)
FAR, NEAR = moved(-0.5, 20, 20), moved(0.25, 60, 20)


@dataclass(frozen=True)
class Never:
    """A learner that must not be asked."""

    name: str = "fqe"

    def solve(self, problem):
        raise AssertionError("nobody should learn here")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(choosing, "LEARNED", QUICK)


@pytest.fixture
def nobody(monkeypatch):
    monkeypatch.setattr(choosing, "LEARNED", Never())


@pytest.mark.usefixtures("quick")
@pytest.mark.long
def test_where_weights_fail_a_learned_value_stands_before_them_and_says_why():
    log, target, _ = FAR
    weighted = mixope.evaluate(log, target, estimator="dr", gamma=GAMMA)
    assert weighted.verdict is Verdict.UNSUPPORTED
    found = mixope.evaluate(log, target, gamma=GAMMA)
    assert found.estimator == "fqe"
    assert [one.estimator for one in found.beside] == ["dr", "emp"]
    assert found.beside[0].value == weighted.value
    failed = [check.name for check in weighted.diagnostics if check.status == "fail"]
    assert failed
    assert all(name in found.notes[0] for name in failed)


@pytest.mark.usefixtures("nobody")
def test_where_weights_hold_nothing_is_learned():
    log, target, _ = NEAR
    found = mixope.evaluate(log, target, gamma=GAMMA)
    assert found.estimator == "dr"
    assert found.verdict is not Verdict.UNSUPPORTED


@pytest.mark.usefixtures("quick")
@pytest.mark.long
def test_a_wide_interval_asks_for_both_and_the_smaller_error_is_chosen(monkeypatch):
    monkeypatch.setattr(choosing, "_WIDE", 0.0)
    log, target, _ = NEAR
    found = mixope.evaluate(log, target, gamma=GAMMA)
    both = {one.estimator: one for one in (found, *found.beside)}
    assert {"dr", "fqe"} <= set(both)
    assert found.standard_error == min(both["dr"].standard_error, both["fqe"].standard_error)
    assert "beside it" in found.notes[0]


@pytest.mark.usefixtures("quick")
@pytest.mark.long
def test_all_targets_of_a_comparison_are_answered_by_one_estimator():
    log, target, _ = FAR
    found = mixope.compare(log, {"far": target, "farther": moved(-0.6)[1]}, gamma=GAMMA)
    assert [one.estimator for one in found.estimates] == ["fqe", "fqe"]
    assert [one.beside[0].estimator for one in found.estimates] == ["dr", "dr"]
    assert len(found.differences) == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.long
def test_one_refused_target_does_not_take_a_better_answer_from_the_others():
    log, target, _ = NEAR
    away = LinearGaussianPolicy(-2.0 * np.eye(3), np.zeros(3), np.full(3, 0.5))
    near, refused = mixope.compare(log, {"near": target, "away": away}, gamma=GAMMA).estimates
    (other,) = near.beside
    assert near.standard_error < other.standard_error
    assert refused.estimator == near.estimator


@pytest.mark.usefixtures("nobody")
def test_the_undiscounted_total_of_an_episode_is_not_learned():
    log, target, _ = FAR
    log = {name: values for name, values in log.items() if name != "truncated"}
    log["terminated"] = log["step"] == log["step"].max()
    assert mixope.evaluate(log, target, estimand="episode").estimator == "dr"


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("asked", [{"interval": "likelihood"}, {"features": NormalisedBumps(20)}])
def test_what_was_asked_for_by_name_is_not_learned(asked):
    log, target, _ = FAR
    assert mixope.evaluate(log, target, gamma=GAMMA, **asked).estimator == "dr"


@pytest.mark.usefixtures("nobody")
@pytest.mark.long
def test_a_log_that_fails_for_other_reasons_is_refused_as_it_was():
    log, target, _ = FAR
    log = dict(log)
    log["next_observation"] = log["next_observation"][::-1].copy()  # every row leads to another row's state
    found = mixope.evaluate(log, target, gamma=GAMMA)
    assert found.estimator == "dr"
    assert found.verdict is Verdict.UNSUPPORTED
