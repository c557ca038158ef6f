"""A ratio that is right balances episodes it has not seen; one that is made wrong does not."""

from dataclasses import replace

import numpy as np
import pytest

import mixope
from mixope.behaviours import DefaultMixture
from mixope.estimators.features.ratio import calibration_requests, phi_of, solve_ratios
from mixope.features import NormalisedBumps
from mixope.worlds import linear_quadratic

from .worlds import lq_columns, posed


def ratio(columns, gamma=None):
    asked = posed(mixope.read(columns), NormalisedBumps(8), gamma=gamma)
    problem, weights = asked.problem, dict.fromkeys(asked.problem.labels, 1.0)
    requests = calibration_requests(problem, problem.known.fitted(DefaultMixture(), weights), weights)
    ((system, _),) = asked.rounds.run(solve_ratios(problem, requests, asked.rounds.ask(requests)))
    return system


@pytest.mark.parametrize("gamma", [None, 0.9])
def test_a_fitted_ratio_balances_what_it_has_not_seen(gamma):
    assert ratio(lq_columns(1, 40, 20), gamma).held_out() < 3.0


def test_a_ratio_that_is_wrong_leaves_the_flow_unbalanced():
    """Weights that lean to the states that earn least: the value that flows out of them does not come back."""
    found = ratio(lq_columns(1, 80, 40))
    wrong = replace(found)
    lean = np.zeros_like(found.crossed)
    judges = found.problem.known.judges
    phi = phi_of(found.ratio.features, judges)
    lean[:, np.argmin(phi.T @ judges.reward / phi.sum(axis=0))] = 5.0
    wrong.__dict__["crossed"] = lean
    assert found.held_out() < 3.0 < wrong.held_out()


def test_too_few_episodes_are_not_judged():
    assert ratio(lq_columns(1, 4, 30)).held_out() is None


def test_it_is_part_of_the_verdict():
    found = mixope.evaluate(lq_columns(1, 40, 20), linear_quadratic.target(), "emp", features=NormalisedBumps(8))
    check = next(d for d in found.diagnostics if d.name == "held-out stationarity")
    assert check.status == "pass"
    assert check.threshold == 3.0
