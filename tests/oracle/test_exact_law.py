"""Exact law in, exact value out: where counts are the laws themselves every consistent estimator is the truth."""

import numpy as np
import pytest

import mixope
from mixope.estimators import LstdQ
from mixope.worlds import truth

from .worlds import world

TIGHT = {"rel": 0, "abs": 1e-9}
STATE_RATIO = ("emp", "emp-single", "kl-emp", "bch", "bch-pooled", "bch-kl-pooled", "known-mixture")
STATE_ACTION = ("sadl", "mwl", "dualdice")
VALUE = ("model", "lstdq", "dr")
SEEDS = range(4)


def true_value(made, estimand):
    if "gamma" in estimand:
        return truth.discounted(made.model, made.target, estimand["gamma"])
    if "horizon" in estimand:
        return truth.horizon(made.model, made.target, estimand["horizon"])
    return truth.average(made.model, made.target)


@pytest.mark.parametrize("ends", [False, True], ids=["continuing", "ending"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("estimand", "estimators"),
    [
        ({}, (*STATE_RATIO, *STATE_ACTION, *VALUE)),
        ({"gamma": 0.9}, (*STATE_RATIO, *STATE_ACTION, *VALUE)),
        ({"gamma": 0.3}, (*STATE_RATIO, *STATE_ACTION, *VALUE)),
        ({"horizon": 1}, (*STATE_RATIO, *VALUE)),
        ({"horizon": 7}, (*STATE_RATIO, *VALUE)),
    ],
    ids=["average", "discounted .9", "discounted .3", "horizon 1", "horizon 7"],
)
def test_exact_counts_give_the_truth(estimand, estimators, seed, ends):
    made = world(seed, ends=ends)
    table = mixope.compare(made.logs, {"new": made.policy}, estimators, loggers=made.known, **estimand)
    wanted = true_value(made, estimand)
    for estimate in table:
        assert estimate.value == pytest.approx(wanted, **TIGHT), estimate.estimator
        assert estimate.uncovered_mass == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("estimand", [{}, {"gamma": 0.9}, {"horizon": 7}], ids=["average", "discounted", "horizon"])
@pytest.mark.parametrize("ends", [False, True], ids=["continuing", "ending"])
def test_factors_change_nothing_where_all_is_covered(estimand, ends):
    made = world(11, ends=ends)
    wanted = true_value(made, estimand)
    names = ("emp", "dr", "bch", "model")
    for estimate in mixope.compare(made.factored_logs, {"new": made.factored_policy}, names, **estimand):
        assert estimate.value == pytest.approx(wanted, **TIGHT), estimate.estimator


@pytest.mark.parametrize("estimand", [{}, {"gamma": 0.9}, {"horizon": 7}], ids=["average", "discounted", "horizon"])
@pytest.mark.parametrize("ends", [False, True], ids=["continuing", "ending"])
def test_lstdq_with_saturated_factors_and_hardly_any_ridge_is_the_truth(estimand, ends):
    made = world(12, ends=ends)
    estimator = LstdQ(orders=(2,), ridges=(1e-8,))
    result = mixope.evaluate(made.factored_logs, made.factored_policy, estimator, **estimand)
    assert result.value == pytest.approx(true_value(made, estimand), abs=1e-6)


@pytest.mark.parametrize("ends", [False, True], ids=["continuing", "ending"])
def test_a_doubly_robust_estimate_forgives_a_value_model_without_interactions(ends):
    """With the right ratio the value model may be wrong: main effects cannot tell four states apart."""
    made = world(13, ends=ends)
    plug_in = mixope.evaluate(made.factored_logs, made.factored_policy, LstdQ(orders=(1,), ridges=(100.0,)))
    robust = mixope.evaluate(made.factored_logs, made.factored_policy, "dr")
    assert abs(plug_in.value - true_value(made, {})) > 1e-3
    assert robust.value == pytest.approx(true_value(made, {}), **TIGHT)


def test_the_ratio_is_exact_too():
    """Weights by logger and effective size follow from d_π and the counts alone."""
    made = world(3)
    result = mixope.evaluate(made.logs, made.policy, "emp")
    columns, d = made.columns, truth.stationary(made.model, made.target)
    counts = np.zeros((4, 2))
    np.add.at(counts, (columns["observation"], columns["action"]), 1)
    weight = (d[:, None] * made.target / counts)[columns["observation"], columns["action"]]
    assert result.effective_sample_size == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), rel=1e-9)
    for share in result.loggers:
        mine = columns["policy_id"] == share.label
        assert share.weight_share == pytest.approx(weight[mine].sum() / weight.sum(), abs=1e-9)
        assert share.logged_mean == pytest.approx(columns["reward"][mine].mean(), abs=1e-12)
