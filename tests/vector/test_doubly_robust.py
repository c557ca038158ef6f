"""Doubly robust means: right if the ratio or the value is right. On a linear–quadratic system, whose truth is exact."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.behaviours import Behaviour, FittedBehaviour, Logged
from mixope.estimators import DoublyRobust, StateRatio
from mixope.features import NormalisedBumps
from mixope.uncertainty import standard_error
from mixope.worlds import continuous, linear_quadratic

from .worlds import SYSTEM, TARGET, Monomials, posed

TRUTH = linear_quadratic.average(SYSTEM, TARGET)
SEEDS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Fixed(Behaviour, FittedBehaviour):
    """A behaviour that is what it is told to be."""

    policy: object
    name = "fixed"

    def fit(self, sample, weight, seed=0):
        return self

    def log_prob(self, rows):
        return self.policy.log_prob(rows.observation, rows.action)


def wrong_behaviour():
    return Fixed(mixope.LinearGaussianPolicy([0.3, -1.0], 0.5, 1.2))


RATIOS = {"right": (NormalisedBumps(40), Logged), "wrong": (Monomials(0), wrong_behaviour)}
VALUES = {"right": Monomials(2), "wrong": Monomials(0)}


@cache
def logs(seed):
    return mixope.read(continuous.simulate(SYSTEM, linear_quadratic.loggers(1), 60, 60, seed=seed))


@cache
def solve(ratio, value, seed, doubly_robust=True, gamma=None):
    features, behaviour = RATIOS[ratio]
    asked = posed(logs(seed), features, gamma=gamma)
    known = asked.problem.known
    known.maps[f"value {asked.problem.actions.size}"] = VALUES[value].fit(known.sample.observation)
    estimator = DoublyRobust(behaviour=behaviour()) if doubly_robust else StateRatio("emp", behaviour=behaviour())
    return asked.solve(estimator)


def mean_error(ratio, value, truth=TRUTH, **options):
    """The mean error over the seeds, and its standard error by the scores of the good estimate."""
    values = [solve(ratio, value, seed, **options).value for seed in SEEDS]
    good = [
        standard_error(solve("right", "right", seed, gamma=options.get("gamma")).scores.by_cluster) for seed in SEEDS
    ]
    return np.mean(values) - truth, np.sqrt(np.mean(np.square(good)) / len(SEEDS))


@pytest.mark.parametrize(("ratio", "value"), [("right", "right"), ("wrong", "right"), ("right", "wrong")])
def test_one_right_model_is_enough(ratio, value):
    error, scale = mean_error(ratio, value)
    assert abs(error) < 4 * scale


@pytest.mark.parametrize(("ratio", "value"), [("right", "right"), ("wrong", "right"), ("right", "wrong")])
def test_one_right_model_is_enough_with_a_discount(request, ratio, value):
    error, scale = mean_error(ratio, value, linear_quadratic.discounted(SYSTEM, TARGET, 0.9), gamma=0.9)
    assert abs(error) < 4 * scale


def test_two_wrong_models_are_not():
    error, scale = mean_error("wrong", "wrong")
    assert abs(error) > 8 * scale


def test_each_wrong_model_alone_is_wrong():
    """Without the other's correction: the ratio's own estimate, and the value's plug-in."""
    weighed, scale = mean_error("wrong", "right", doubly_robust=False)
    assert abs(weighed) > 8 * scale
    plugged = [solve("right", "wrong", seed).measures.plug_in for seed in SEEDS]
    assert abs(np.mean(plugged) - TRUTH) > 8 * scale


@pytest.mark.parametrize("seed", SEEDS)
def test_its_own_standard_error_explains_its_error(seed):
    found = solve("right", "right", seed)
    assert abs(found.value - TRUTH) < 4 * standard_error(found.scores.by_cluster)
    assert standard_error(found.scores.by_cluster) < 0.05


@pytest.mark.long
@pytest.mark.parametrize("gamma", [None, 0.9])
def test_with_default_features_it_is_about_as_sure_as_emp(gamma):
    robust, plain = (mixope.evaluate(logs(1), TARGET, name, gamma=gamma) for name in ("dr", "emp"))
    truth = TRUTH if gamma is None else linear_quadratic.discounted(SYSTEM, TARGET, gamma)
    assert robust.standard_error < 3 * plain.standard_error
    assert abs(robust.value - truth) < 4 * plain.standard_error


@pytest.mark.long
def test_recorded_propensities_enter_only_where_they_are_asked_for():
    """The mixture is fitted to the actions, which does better (benchmarks/recorded.py)."""
    columns = continuous.simulate(SYSTEM, linear_quadratic.loggers(4), 12, 30, seed=0)
    without = {name: column for name, column in columns.items() if name != "action_logp"}
    plain, bare = (mixope.evaluate(mixope.read(each), TARGET, "dr").value for each in (columns, without))
    assert plain == bare
    named, given = (
        mixope.evaluate(mixope.read(columns), TARGET, DoublyRobust(behaviour=behaviour)).value
        for behaviour in ("logged", Logged())
    )
    assert named == given != plain


def test_an_unknown_behaviour_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="logged"):
        DoublyRobust(behaviour="loged")
