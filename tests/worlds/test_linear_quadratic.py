import numpy as np
import pytest
from scipy import stats

from mixope.base.errors import DataError, UsageError
from mixope.policies import LinearGaussianPolicy
from mixope.worlds import continuous
from mixope.worlds import linear_quadratic as lq

SYSTEM = lq.linear_quadratic()
BIASED = LinearGaussianPolicy([-0.4, -0.3], 0.6, 0.7)
POLICIES = {"target": lq.target(), "biased": BIASED, **{f"logger-{j}": p for j, p in enumerate(lq.loggers(4))}}


@pytest.fixture(params=POLICIES.values(), ids=POLICIES.keys())
def policy(request):
    return request.param


def near(exact, simulated):
    return abs(exact - simulated.value) < 4 * simulated.standard_error


def test_the_average_is_the_simulated_one(policy):
    simulated = continuous.average(SYSTEM, policy, chains=1000, steps=200, burn_in=100, seed=2)
    assert near(lq.average(SYSTEM, policy), simulated)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.95])
def test_the_discounted_value_is_the_simulated_one(gamma):
    simulated = continuous.discounted(SYSTEM, BIASED, gamma, chains=5000, seed=0)
    assert near(lq.discounted(SYSTEM, BIASED, gamma), simulated)


def test_the_horizon_value_is_the_mean_of_logged_rewards_and_tends_to_the_average(policy):
    rows = continuous.simulate(SYSTEM, [policy], 4000, 12, seed=0)
    means = rows["reward"].reshape(4000, 12).mean(axis=1)
    assert abs(lq.horizon(SYSTEM, policy, 12) - means.mean()) < 4 * means.std() / np.sqrt(4000)
    assert lq.horizon(SYSTEM, policy, 10**7) == pytest.approx(lq.average(SYSTEM, policy), rel=1e-5)


def test_discounting_tends_to_the_average(policy):
    assert lq.discounted(SYSTEM, policy, 1 - 1e-8) == pytest.approx(lq.average(SYSTEM, policy), rel=1e-6)


def test_the_stationary_law_is_the_law_after_many_steps():
    rows = continuous.simulate(SYSTEM, [BIASED], 20_000, 60, seed=0)
    last = rows["next_observation"].reshape(20_000, 60, 2)[:, -1]
    mean, covariance = lq.long_run(SYSTEM, BIASED).stationary
    assert (np.abs(last.mean(axis=0) - mean) < 4 * np.sqrt(np.diag(covariance) / 20_000)).all()
    np.testing.assert_allclose(np.cov(last.T), covariance, rtol=0.05, atol=0.01)


def gaussian_nodes(dimensions, order=12):
    x, w = np.polynomial.hermite_e.hermegauss(order)
    grid = np.stack(np.meshgrid(*[x] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions)
    weights = np.stack(np.meshgrid(*[w] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions).prod(axis=1)
    return grid, weights / weights.sum()


def test_the_differential_value_solves_its_equation(policy):
    """V(s) = E[r − η + V(s′)], the expectation over action and noise by quadrature; and E_d V = 0."""
    average, (mean, covariance), value = lq.long_run(SYSTEM, policy)
    nodes, weights = gaussian_nodes(3)
    for state in np.random.default_rng(0).normal(size=(5, 2)) * 2:
        action = policy.weights @ state + policy.bias + policy.scale(state[None])[0] * nodes[:, :1]
        following = SYSTEM.A @ state + action @ SYSTEM.B.T + nodes[:, 1:] @ np.linalg.cholesky(SYSTEM.W).T
        reward = -(state @ SYSTEM.Q @ state + SYSTEM.R[0, 0] * action[:, 0] ** 2)
        assert value(state[None])[0] == pytest.approx(weights @ (reward - average + value(following)), abs=1e-9)
    states, weights = gaussian_nodes(2)
    assert weights @ value(mean + states @ np.linalg.cholesky(covariance).T) == pytest.approx(0, abs=1e-9)


def independent_bound(loggers, horizon, points=81):
    """∫ d_π²/d₀ · Var(V(s′)|s,a) by the trapezoidal rule on a box, with densities from another library."""
    _, (mean, covariance), value = lq.long_run(SYSTEM, lq.target())
    spans = [np.linspace(-8, 8, points) * np.sqrt(v) for v in covariance.diagonal()] + [np.linspace(-6, 6, points)]
    s0, s1, a = (axis.ravel() for axis in np.meshgrid(*spans, indexing="ij"))
    s, volume = np.stack([s0, s1], axis=1), np.prod([span[1] - span[0] for span in spans])

    def rows_of(policy, m, S):
        deviation = policy.scale(s[:1])[0, 0]
        return stats.multivariate_normal.pdf(s, m, S) * stats.norm.pdf(
            a, s @ policy.weights[0] + policy.bias, deviation
        )

    logged = np.zeros(len(s))
    for policy in loggers:
        m, S = np.zeros(2), SYSTEM.S0
        F = SYSTEM.A + SYSTEM.B @ policy.weights
        for _ in range(horizon):
            logged += rows_of(policy, m, S) / horizon / len(loggers)
            m = F @ m + SYSTEM.B @ policy.bias
            S = F @ S @ F.T + SYSTEM.W + SYSTEM.B @ SYSTEM.B.T * policy.scale(s[:1])[0, 0] ** 2
    noise, weights = gaussian_nodes(2, order=4)
    centre = s @ SYSTEM.A.T + a[:, None] @ SYSTEM.B.T
    outcomes = [value(centre + step) for step in noise @ np.linalg.cholesky(SYSTEM.W).T]
    expected = sum(w * v for w, v in zip(weights, outcomes, strict=True))
    variance = sum(w * (v - expected) ** 2 for w, v in zip(weights, outcomes, strict=True))
    wanted = rows_of(lq.target(), mean, covariance)
    return float((wanted**2 / np.maximum(logged, 1e-290) * variance).sum() * volume)


@pytest.mark.parametrize(("n", "horizon"), [(1, 1), (1, 3), (4, 2)])
def test_the_bound_is_that_of_an_independent_quadrature(n, horizon):
    bound = lq.efficiency_bound(SYSTEM, lq.target(), lq.loggers(n), horizon=horizon)
    assert bound.value == pytest.approx(independent_bound(lq.loggers(n), horizon), rel=1e-6)
    assert bound.error < 1e-9 * bound.value


def test_the_closed_bound_is_the_quadrature_of_one_part():
    closed = lq.efficiency_bound(SYSTEM, lq.target(), [BIASED], horizon=None)
    twice = lq.efficiency_bound(SYSTEM, lq.target(), [BIASED, BIASED], horizon=None)
    assert closed.error == 0
    assert twice.value == pytest.approx(closed.value, rel=1e-10)


@pytest.mark.parametrize("n", [1, 4])
def test_the_bound_is_the_variance_of_the_efficient_score_on_logs(n):
    """E[(ωρ (r − η + V(s′) − q(s,a)))²] over simulated rows, q(s,a) = r − η + E[V(s′)|s,a]."""
    horizon, episodes = 15, 4000
    target, loggers = lq.target(), lq.loggers(n)
    _, stationary, value = lq.long_run(SYSTEM, target)
    rows = continuous.simulate(SYSTEM, loggers, episodes, horizon, seed=3)
    s, a = rows["observation"], rows["action"]
    logged = np.zeros(len(s))
    for weight, law in lq.logged_law(SYSTEM, loggers, horizon):
        logged += weight * np.exp(law.log_density(np.hstack([s, a])))
    wanted = np.exp(stationary.log_density(s) + target.log_prob(s, a))
    expected = value(s @ SYSTEM.A.T + a @ SYSTEM.B.T) - np.trace(value.P @ SYSTEM.W)
    scores = (wanted / logged * (value(rows["next_observation"]) - expected)) ** 2
    by_episode = scores.reshape(episodes, horizon).mean(axis=1)
    bound = lq.efficiency_bound(SYSTEM, target, loggers, horizon=horizon).value
    assert abs(bound - by_episode.mean()) < 4 * by_episode.std() / np.sqrt(episodes)


def test_shares_choose_among_loggers():
    four = lq.loggers(4)
    alone = lq.efficiency_bound(SYSTEM, lq.target(), four, [0, 0, 1, 0], horizon=None)
    assert alone == lq.efficiency_bound(SYSTEM, lq.target(), lq.loggers(1), horizon=None)


def test_no_overlap_has_an_infinite_bound():
    timid = LinearGaussianPolicy([-0.5, -0.6], 0.0, 0.2)
    assert lq.efficiency_bound(SYSTEM, lq.target(), [timid], horizon=None).value == np.inf


def test_the_default_overlap_is_good():
    for n in (1, 4):
        assert lq.efficiency_bound(SYSTEM, lq.target(), lq.loggers(n), horizon=50).value < 1


def test_wrong_questions_are_refused():
    with pytest.raises(DataError, match="stable"):
        lq.average(SYSTEM, LinearGaussianPolicy([1.0, 1.0], 0.0, 1.0))
    with pytest.raises(DataError, match="does not fit the system"):
        lq.average(SYSTEM, LinearGaussianPolicy([1.0], 0.0, 1.0))
    with pytest.raises(UsageError, match="discount"):
        lq.discounted(SYSTEM, lq.target(), 1.0)
    with pytest.raises(UsageError, match="horizon"):
        lq.horizon(SYSTEM, lq.target(), 0)
    with pytest.raises(UsageError, match="1 or 4 loggers"):
        lq.loggers(3)
