"""Truths and bounds equal those of two independent implementations; the reference logs are possible in the models."""

import numpy as np
import pytest

from mixope.worlds import efficiency_bound, make, paper_form_bias, truth

from . import reference

LOGS = [("gridworld", "gridworld-slip"), ("gridworld-one", "gridworld-slip"), ("singlepath", "singlepath")]
TIGHT = {"rel": 0, "abs": 1e-9}


@pytest.mark.parametrize(("log", "name"), LOGS)
def test_truths_equal_the_reference(log, name):
    model, target, known = make(name), reference.target(log), reference.expected(log)["truth"]
    assert truth.average(model, target) == pytest.approx(known["average"], **TIGHT)
    assert truth.horizon(model, target, 20) == pytest.approx(known["horizon 20"], **TIGHT)
    assert truth.horizon(model, target, 100) == pytest.approx(known["horizon 100"], **TIGHT)


@pytest.mark.parametrize(("log", "name"), LOGS)
def test_bound_and_bias_equal_the_reference(log, name):
    model, target, loggers, known = make(name), reference.target(log), reference.loggers(log), reference.expected(log)
    bound = efficiency_bound(model, target, loggers, horizon=known["horizon"]) / known["rows"]
    bias = paper_form_bias(model, target, loggers, horizon=known["horizon"])
    assert bound == pytest.approx(known["truth"]["efficiency_bound_mse"], **TIGHT)
    assert bias == pytest.approx(known["truth"]["differential_value_bias_of_paper_form"], **TIGHT)


def test_ends_restart_in_the_average_and_absorb_in_the_discounted_value():
    model, target, known = make("walk"), reference.target("walk"), reference.expected("walk")["truth"]
    assert truth.average(model, target) == pytest.approx(known["average"], **TIGHT)
    assert truth.discounted(model, target, 0.9) == pytest.approx(known["discounted 0.9"], **TIGHT)
    assert truth.discounted(model, target, 0.99) == pytest.approx(known["discounted 0.99"], **TIGHT)


@pytest.mark.parametrize(("log", "name"), [*LOGS, ("walk", "walk")])
def test_every_reference_row_is_possible_and_earns_what_the_model_says(log, name):
    model, records = make(name), reference.rows(log)
    state, action, following = (
        np.array([int(r[column]) for r in records]) for column in ("observation", "action", "next_observation")
    )
    reward = np.zeros(model.transition.shape)
    reward[model.entry_rows(), model.transition.indices] = model.reward
    pair = state * model.n_actions + action
    assert (model.transition.toarray()[pair, following] > 0).all()
    assert (reward[pair, following] == [float(r["reward"]) for r in records]).all()
