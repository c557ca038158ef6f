"""A ratio that is right balances episodes it has not seen; one that is made wrong does not."""

from dataclasses import replace

import numpy as np
import pytest

import mixope
from mixope.environments import linear_quadratic
from mixope.estimand import Estimand
from mixope.estimators.vector import Scan, VectorProblem
from mixope.estimators.vector.held_out import held_out_residual
from mixope.estimators.vector.state_ratio import VectorRatio, _weight_of
from mixope.evaluation import look
from mixope.features import NormalisedBumps

from .worlds import lq_columns


def ratio(columns, estimand=None):
    seen = look(mixope.read(columns))
    problem = VectorProblem(
        Scan(seen.logs, seen.engine), linear_quadratic.target(), estimand or Estimand(), features=NormalisedBumps(8)
    )
    weights = dict.fromkeys(problem.labels, 1.0)
    fitted = VectorRatio("emp")._behaviour(problem, weights, "mixture")
    return problem.ratio("mixture", fitted, _weight_of(weights))


@pytest.mark.parametrize("estimand", [Estimand(), Estimand("discounted", gamma=0.9)])
def test_a_fitted_ratio_balances_what_it_has_not_seen(estimand):
    assert held_out_residual(ratio(lq_columns(1, 40, 20), estimand)) < 3.0


def test_a_ratio_that_is_wrong_leaves_the_flow_unbalanced():
    """Weights that lean to the states that earn least: the value that flows out of them does not come back."""
    found = ratio(lq_columns(1, 80, 40))
    wrong = replace(found)
    lean = np.zeros_like(found.crossed)
    phi = found.features.transform(found.judges.observation)
    lean[:, np.argmin(phi.T @ found.judges.reward / phi.sum(axis=0))] = 5.0
    wrong.__dict__["crossed"] = lean
    assert held_out_residual(found) < 3.0 < held_out_residual(wrong)


def test_too_few_episodes_are_not_judged():
    assert held_out_residual(ratio(lq_columns(1, 4, 30))) is None


def test_it_is_part_of_the_verdict():
    found = mixope.evaluate(lq_columns(1, 40, 20), linear_quadratic.target(), "emp", features=NormalisedBumps(8))
    check = next(d for d in found.diagnostics if d.name == "held-out stationarity")
    assert check.status == "pass"
    assert check.threshold == 3.0
