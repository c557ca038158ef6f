"""``auto`` on vectors: weights where the logs carry them, a learned value before them where they do not."""

from dataclasses import dataclass

import numpy as np
import pytest

import mixope
from mixope.answers import choosing
from mixope.checks import Verdict
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
    assert "shown for comparison" in found.notes[0]


@pytest.mark.usefixtures("quick")
@pytest.mark.long
def test_targets_that_are_all_learned_are_compared_by_what_was_learned():
    log, target, _ = FAR
    found = mixope.compare(log, {"far": target, "farther": moved(-0.6)[1]}, gamma=GAMMA)
    assert [one.estimator for one in found.estimates] == ["fqe", "fqe"]
    assert [one.beside[0].estimator for one in found.estimates] == ["dr", "dr"]
    assert len(found.differences) == 1
    assert found.selections[0].alerts == ()


AWAY = LinearGaussianPolicy(-2.0 * np.eye(3), np.zeros(3), np.full(3, 0.5))


def same(one, other):
    """To the bit: all that is written of an answer, and its scores."""
    first, second = one.to_dict(), other.to_dict()
    for found in (first, second):
        found.pop("beside", None)  # a comparison shows no emp beside
        found.pop("target")
    return first == second and np.array_equal(one.scores, other.scores) and one.verdict is other.verdict


@pytest.mark.usefixtures("quick")
@pytest.mark.long
def test_the_answer_on_a_target_does_not_depend_on_the_others_which_one_estimator_compares():
    log, target, _ = NEAR
    targets = {"near": target, "away": AWAY}
    found = mixope.compare(log, targets, ["auto", "fqe"], gamma=GAMMA)
    alone = {name: mixope.evaluate(log, policy, gamma=GAMMA) for name, policy in targets.items()}
    assert {one.estimator for one in alone.values()} == {"dr", "fqe"}  # it flips
    answers = {name: next(one for one in found if one.target == name) for name in targets}
    assert all(same(answers[name], alone[name]) for name in targets)
    chosen, differences = found.selections[0], found.differences[0]
    assert {rank.target for rank in chosen.ranks} == set(targets)
    assert all(found[rank.target, chosen.estimator].value == rank.value for rank in chosen.ranks)
    assert differences.estimator == chosen.estimator
    assert differences.selection is chosen
    assert chosen.estimator in chosen.alerts[0]
    keys = [(one.target, one.estimator) for one in found]
    assert len(set(keys)) == len(keys)
    assert ("near", "fqe") in keys


@pytest.mark.usefixtures("quick")
def test_a_target_that_auto_cannot_answer_takes_nothing_from_the_others():
    """A density cannot be drawn from, which dr needs."""
    log, near, _ = moved(0.25, 12, 8)

    def density(states, actions):
        return np.exp(near.log_prob(states, actions))

    found = mixope.compare(log, {"density": density, "near": near}, ["auto", "emp"], gamma=GAMMA)
    assert [one.estimator for one in found if one.target == "density"] == ["emp"]
    assert [name for name, _ in found.skipped] == ["dr"]
    assert next(one for one in found if one.target == "near").value == mixope.evaluate(log, near, gamma=GAMMA).value


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
