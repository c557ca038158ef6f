"""The interval of EMP does what it says on a small chain; the full-size experiment is in benchmarks/."""

import numpy as np
import pytest

import mixope
from mixope.worlds import efficiency_bound, simulate, singlepath, truth

pytestmark = pytest.mark.long

LOGS, EPISODES, HORIZON = 200, 24, 15


@pytest.fixture(scope="module")
def experiment():
    """Values, standard errors and hits over many simulated logs of two loggers, and the efficiency bound."""
    model, generator = singlepath(), np.random.default_rng(42)
    target, *loggers = generator.dirichlet([4, 4], size=(3, 5))
    wanted, policy = truth.average(model, target), mixope.TabularPolicy(target)
    results = [
        mixope.evaluate(mixope.read(simulate(model, loggers, EPISODES, HORIZON, seed=seed)), policy, "emp")
        for seed in range(LOGS)
    ]
    values = np.array([r.value for r in results])
    errors = np.array([r.standard_error for r in results])
    hits = np.array([r.interval.low <= wanted <= r.interval.high for r in results])
    bound = efficiency_bound(model, target, loggers, horizon=HORIZON) / (EPISODES * HORIZON)
    return values, errors, hits, wanted, bound


def test_the_standard_error_is_the_spread_of_the_estimates(experiment):
    values, errors, _, _, _ = experiment
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(values.std(), rel=0.2)


def test_the_interval_covers_as_often_as_it_says(experiment):
    hits = experiment[2]
    assert 0.90 <= hits.mean() <= 0.99


def test_the_error_is_near_the_efficiency_bound(experiment):
    values, _, _, wanted, bound = experiment
    assert np.mean((values - wanted) ** 2) == pytest.approx(bound, rel=0.4)
