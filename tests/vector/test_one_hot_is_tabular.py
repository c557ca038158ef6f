"""With one-hot features every step of the feature estimators is its tabular counterpart, so the answers are the same.

The feature estimators regularise (1e-6 in whitened coordinates, 1e-6 in LSTD-Q) and the tabular ones do not: without
the ridges the answers agree to 1e-8, with them to 1e-4.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import mixope
from mixope.behaviours import Behaviour, FittedBehaviour
from mixope.estimators import DoublyRobust, StateRatio
from mixope.features import OneHot

from .worlds import A, Counted, S, drop_ridges, id_columns, id_policies, posed_on_ids

pytestmark = pytest.mark.long

WORLDS = [pytest.param(False, id="continuing"), pytest.param(True, id="ending")]
GAMMAS = [pytest.param(None, id="average"), pytest.param(0.8, id="discounted")]
EXACT = {
    "emp": (StateRatio("emp", behaviour=Counted()), "emp"),
    "emp as a model": (StateRatio("emp", behaviour=Counted()), "model"),
    "bch": ("bch", "bch"),
    "bch-pooled": ("bch-pooled", "bch-pooled"),
    "mwl": ("mwl", "mwl"),
    "dualdice": ("dualdice", "dualdice"),
    "sadl": ("sadl", "sadl"),
    "lstdq": ("lstdq", "model"),
    "is": ("is", "is"),
    "wis": ("wis", "wis"),
    "is-step": ("is-step", "is-step"),
    "wis-step": ("wis-step", "wis-step"),
    "mis": ("mis", "mis"),
    "mis-step": ("mis-step", "mis-step"),
}
world, discount = pytest.mark.parametrize("ends", WORLDS), pytest.mark.parametrize("gamma", GAMMAS)


def logs_and_question(ends):
    target, *loggers = map(mixope.TabularPolicy, id_policies())
    return mixope.read(id_columns(ends)), target, {f"logger-{j}": law for j, law in enumerate(loggers)}


def both(ends, gamma, features_estimator, tabular_estimator):
    logs, target, known = logs_and_question(ends)
    ask = {"gamma": gamma, "loggers": known}
    return (
        mixope.evaluate(logs, target, features_estimator, features=OneHot(), **ask),
        mixope.evaluate(logs, target, tabular_estimator, **ask),
    )


def test_the_logs_cover_every_action_in_every_state():
    for ends in (False, True):
        columns = id_columns(ends)
        assert len(set(zip(columns["observation"].tolist(), columns["action"].tolist(), strict=True))) >= (S - ends) * A
        assert columns["terminated"].any() == ends


@world
@discount
@pytest.mark.parametrize("name", EXACT)
def test_without_a_ridge_the_answers_are_equal(request, monkeypatch, name, ends, gamma):
    drop_ridges(monkeypatch)
    found, expected = both(ends, gamma, *EXACT[name])
    assert found.value == pytest.approx(expected.value, abs=1e-8)


@world
@discount
@pytest.mark.parametrize("name", ["emp", "bch-pooled", "mwl", "dualdice", "lstdq"])
def test_with_the_default_ridge_they_are_close(name, ends, gamma):
    found, expected = both(ends, gamma, *EXACT[name])
    assert found.value == pytest.approx(expected.value, abs=1e-4)


@world
@discount
@pytest.mark.parametrize("name", ["emp", "mwl"])
def test_standard_errors_and_effective_sizes_agree_too(request, monkeypatch, name, ends, gamma):
    drop_ridges(monkeypatch)
    found, expected = both(ends, gamma, *EXACT[name])
    assert found.effective_sample_size == pytest.approx(expected.effective_sample_size, rel=1e-6)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-6)


@discount
def test_each_logger_alone_agrees(monkeypatch, gamma):
    drop_ridges(monkeypatch)
    single = StateRatio("emp-single", behaviour=Counted(), pooled=False)
    found, expected = both(False, gamma, single, "emp-single")
    assert found.value == pytest.approx(expected.value, abs=1e-8)


def test_the_effective_size_of_an_average_over_loggers_agrees(monkeypatch):
    drop_ridges(monkeypatch)
    found, expected = both(False, None, "bch", "bch")
    assert found.effective_sample_size == pytest.approx(expected.effective_sample_size, rel=1e-3)


@dataclass(frozen=True)
class CountedLabels(Behaviour):
    """Σ_j p̂(j|s) π_j(a|s) with p̂ counted: what the tabular known mixture divides by."""

    laws: tuple
    name = "known mixture, counted"

    def fit(self, sample, weight, seed=0):
        share = np.zeros((len(self.laws), S))
        np.add.at(share, ((sample.logger == "logger-1").astype(int), sample.observation), weight)
        return FittedLabels(np.einsum("js,jsa->sa", share / share.sum(axis=0), np.stack(self.laws)))


@dataclass(frozen=True)
class FittedLabels(FittedBehaviour):
    law: np.ndarray

    def log_prob(self, rows):
        return np.log(self.law[rows.observation, rows.action])


@world
@discount
def test_a_known_mixture_with_counted_labels_agrees(monkeypatch, ends, gamma):
    drop_ridges(monkeypatch)
    mixed = StateRatio("known", behaviour=CountedLabels(tuple(id_policies()[1:])))
    found, expected = both(ends, gamma, mixed, "known-mixture")
    assert found.value == pytest.approx(expected.value, abs=1e-8)


@world
@discount
def test_doubly_robust_without_cross_fitting_is_emp(monkeypatch, ends, gamma):
    """On one-hot features the value model is the counted model, whose correction is zero."""
    drop_ridges(monkeypatch)
    asked = posed_on_ids(mixope.read(id_columns(ends)), id_policies()[0], gamma)
    solved = replace(asked, problem=replace(asked.problem, folds=1)).solve(DoublyRobust(behaviour=Counted()))
    expected = mixope.evaluate(mixope.read(id_columns(ends)), mixope.TabularPolicy(id_policies()[0]), "dr", gamma=gamma)
    assert solved.value == pytest.approx(expected.value, abs=1e-8)


@world
@discount
def test_cross_fitting_moves_doubly_robust_by_less_than_a_standard_error(ends, gamma):
    robust = DoublyRobust(behaviour=Counted())
    found, expected = both(ends, gamma, robust, "dr")
    assert abs(found.value - expected.value) < 0.5 * expected.standard_error
    assert found.standard_error == pytest.approx(expected.standard_error, rel=0.15)


@pytest.mark.parametrize("name", ["kl-emp", "bch-kl-pooled"])
def test_weights_by_nearness_agree_within_a_standard_error(name):
    """The nearest logger is found on a sample of states, hence no exact equality."""
    estimator = StateRatio(name, behaviour=Counted(), nearest=True) if name == "kl-emp" else name
    found, expected = both(False, None, estimator, name)
    assert abs(found.value - expected.value) < expected.standard_error


def test_string_ids_do_as_well(monkeypatch):
    drop_ridges(monkeypatch)
    names = np.array(["e", "b", "zz", "a", "k"])
    columns = dict(id_columns(False))
    columns |= {key: names[columns[key]] for key in ("observation", "next_observation")}
    target = mixope.TabularPolicy(id_policies()[0], names)
    found = mixope.evaluate(mixope.read(columns), target, "bch-pooled", features=OneHot())
    expected = mixope.evaluate(mixope.read(id_columns(False)), mixope.TabularPolicy(id_policies()[0]), "bch-pooled")
    assert found.value == pytest.approx(expected.value, abs=1e-8)


def test_two_behaviours_of_one_type_are_two_behaviours():
    target, *loggers = id_policies()
    both = posed_on_ids(mixope.read(id_columns(False)), target)
    right, wrong = CountedLabels(tuple(loggers)), CountedLabels((loggers[1], loggers[0]))
    alone = posed_on_ids(mixope.read(id_columns(False)), target).solve(StateRatio("wrong", behaviour=wrong)).value
    assert both.solve(StateRatio("right", behaviour=right)).value != alone
    assert both.solve(StateRatio("wrong", behaviour=wrong)).value == pytest.approx(alone, abs=1e-12)


def test_the_score_pass_sums_to_zero_for_the_average(monkeypatch):
    drop_ridges(monkeypatch)
    asked = posed_on_ids(mixope.read(id_columns(False)), id_policies()[0])
    found = asked.solve(StateRatio("emp", behaviour=Counted()))
    assert found.scores.by_cluster.sum() == pytest.approx(0.0, abs=1e-9)
