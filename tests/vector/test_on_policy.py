"""Where the target wrote the logs itself, all is known: every ratio is one and the logged mean is the answer."""

from functools import cache

import numpy as np
import pytest

import mixope
from mixope.features import NormalisedBumps
from mixope.worlds import continuous, linear_quadratic
from mixope.worlds.linear_quadratic import LinearQuadratic

from .worlds import SYSTEM, TARGET

BUMPS = NormalisedBumps(25)
TRUTH = linear_quadratic.long_run(SYSTEM, TARGET)


def stationary_system():
    """The system whose start law is the target's stationary law: then ω = 1 exactly."""
    fields = {name: getattr(SYSTEM, name) for name in ("A", "B", "W", "Q", "R")}
    return LinearQuadratic(**fields, S0=TRUTH.stationary.covariance)


@cache
def found(name, gamma=None):
    columns = continuous.simulate(stationary_system(), [TARGET], 80, 50, seed=5)
    known = {"logger-0": TARGET} if name.startswith("mis") else None
    return mixope.evaluate(mixope.read(columns), TARGET, name, features=BUMPS, gamma=gamma, loggers=known)


@pytest.mark.parametrize("name", ["emp", "bch", "dr", "mwl", "dualdice", "kl-emp"])
def test_the_answer_is_the_stationary_mean(name):
    result = found(name)
    assert abs(result.value - TRUTH.average) < 4 * result.standard_error
    assert abs(result.value - result.logged_mean) < 2 * result.standard_error


def test_lstdq_is_the_stationary_mean_too():
    assert abs(found("lstdq").value - TRUTH.average) < 4 * found("dr").standard_error


@pytest.mark.parametrize("name", ["emp", "bch", "mwl", "dualdice"])
def test_weights_are_nearly_one(name):
    """ESS = N / (1 + cv²), cv the coefficient of variation of the weights."""
    result = found(name)
    spread = np.sqrt(result.n_rows / result.effective_sample_size - 1)
    assert spread < 0.35
    assert result.measures.mean_weight == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("name", ["is", "wis", "is-step", "wis-step", "mis", "mis-step"])
def test_trajectory_weights_are_one_exactly(name):
    assert found(name).value == pytest.approx(found("logged-mean").value, abs=1e-12)


@pytest.mark.parametrize("name", ["emp", "bch", "dr"])
def test_from_the_stationary_law_a_discount_changes_nothing(name):
    result = found(name, 0.9)
    assert abs(result.value - TRUTH.average) < 4 * result.standard_error
