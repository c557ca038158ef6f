"""``fqe``: near the exact value where it is known, an interval from folds, refused where nobody went."""

import numpy as np
import pytest
from scipy import stats

import mixope
from mixope.checks import Verdict
from mixope.estimators.learned import LearnedValue
from mixope.features.actions import DiscreteActions, QuadraticActions
from mixope.features.pairs import DRAWS, chosen_by
from mixope.policies import CallablePolicy, LinearGaussianPolicy
from mixope.solvers.fitted_q import FittedQSettings

GOOD = LearnedValue(FittedQSettings(width=32, renewals=30, steps=20, batch=128), jobs=1)
QUICK = LearnedValue(FittedQSettings(width=16, renewals=5, steps=4, batch=32), jobs=1)
"""Where it matters how the value is found, not which one it is."""
GAMMA = 0.9


def moved(target_gain=-0.5, episodes=40, steps=40, seed=0):
    """x′ = .8 x + .4 a + noise in three dimensions, r = −|x|²/3: a log of another gain, and the target's value by hand.

    Under a = g x + σ ε, x is an autoregression of variance v: v′ = (.8 + .4 g)² v + .16 σ² + .09.
    """
    draw, logged, sigma = np.random.default_rng(seed), 0.3, 0.5
    x = draw.standard_normal((episodes, 3))
    columns = {name: [] for name in ("episode_id", "step", "observation", "action", "reward", "next_observation")}
    for t in range(steps):
        a = logged * x + sigma * draw.standard_normal(x.shape)
        after = 0.8 * x + 0.4 * a + 0.3 * draw.standard_normal(x.shape)
        parts = (np.arange(episodes), np.full(episodes, t), x, a, -(x**2).mean(axis=1), after)
        for name, part in zip(columns, parts, strict=True):
            columns[name].append(part)
        x = after
    log = {name: np.concatenate(parts) for name, parts in columns.items()}
    log["truncated"] = log["step"] == steps - 1
    variance, value = 1.0, 0.0
    for t in range(400):
        value -= (1 - GAMMA) * GAMMA**t * variance
        variance = (0.8 + 0.4 * target_gain) ** 2 * variance + 0.16 * sigma**2 + 0.09
    return log, LinearGaussianPolicy(target_gain * np.eye(3), np.zeros(3), np.full(3, sigma)), value


@pytest.mark.long
def test_the_value_is_near_the_one_by_hand_and_far_from_what_was_logged():
    log, target, truth = moved()
    found = mixope.evaluate(log, target, estimator=GOOD, gamma=GAMMA)
    logged = mixope.evaluate(log, moved(0.3)[1], estimator=GOOD, gamma=GAMMA)
    assert found.value == pytest.approx(truth, abs=0.1)
    assert logged.value == pytest.approx(moved(0.3)[2], abs=0.15)
    assert logged.value < truth - 0.2


def test_the_interval_is_the_jackknife_over_folds_by_hand():
    log, target, _ = moved(episodes=24, steps=10)
    found = mixope.evaluate(log, target, estimator=QUICK, gamma=GAMMA)
    spread = found.measures.seed_spread
    assert found.degrees == 7
    # eight folds of three episodes: (K − 1)/K Σ (θₖ − θ)² is (K − 1)²/K times the variance of the networks
    assert found.standard_error == pytest.approx(spread * 7 / np.sqrt(8), rel=1e-6)
    half = stats.t.ppf(0.975, 7) * found.standard_error
    assert found.interval.high - found.value == pytest.approx(half)
    assert found.verdict is Verdict.CAUTION


def test_differences_rest_on_the_folds_too():
    log, target, _ = moved(episodes=24, steps=10)
    same = mixope.compare(log, {"a": target, "b": moved(0.1)[1]}, [QUICK], gamma=GAMMA)
    (pair,) = same.differences[0].pairs
    first, second = same.estimates
    assert pair.value == pytest.approx(first.value - second.value)
    assert pair.interval.high - pair.value == pytest.approx(stats.t.ppf(0.975, 7) * pair.standard_error)


def test_one_episode_has_a_value_and_no_interval():
    log, target, _ = moved(episodes=1, steps=200)
    found = mixope.evaluate(log, target, estimator=QUICK, gamma=GAMMA)
    assert found.interval is None
    assert "two episodes" in found.no_interval_because


def test_a_target_that_goes_where_nobody_went_is_refused():
    log, _, _ = moved(episodes=24, steps=20)
    away = LinearGaussianPolicy(np.zeros((3, 3)), np.full(3, 9.0), np.full(3, 0.1))
    found = mixope.evaluate(log, away, estimator=QUICK, gamma=GAMMA)
    assert found.verdict is Verdict.UNSUPPORTED
    assert [check.name for check in found.diagnostics if check.status == "fail"] == ["pairs far away"]


def test_a_target_that_does_what_was_done_is_near():
    log, _, _ = moved(episodes=24, steps=20)
    found = mixope.evaluate(log, moved(0.3)[1], estimator=QUICK, gamma=GAMMA)
    assert found.measures.far_pairs < 0.15


def test_a_constant_reward_is_the_value():
    log, target, _ = moved(episodes=8, steps=10)
    log["reward"] = np.full(len(log["reward"]), 2.5)
    assert mixope.evaluate(log, target, estimator=QUICK, gamma=GAMMA).value == pytest.approx(2.5, rel=1e-5)


def values_by_hand(gain=-0.5, sigma=0.5):
    """The average, and the mean of the first ten steps."""
    slope, noise = (0.8 + 0.4 * gain) ** 2, 0.16 * sigma**2 + 0.09
    variance, steps = 1.0, []
    for _ in range(10):
        steps.append(-variance)
        variance = slope * variance + noise
    return {"average": -noise / (1 - slope), "horizon": np.mean(steps)}


@pytest.mark.parametrize("asked", [{"estimand": "average"}, {"estimand": "horizon", "horizon": 10}])
def test_without_a_discount_it_is_near_the_one_by_hand_too(asked):
    log, target, _ = moved()
    found = mixope.evaluate(log, target, estimator=GOOD, **asked)
    assert found.value == pytest.approx(values_by_hand()[asked["estimand"]], abs=0.15)  # logged: −.85 and −.78


def test_the_total_of_an_episode_is_the_discounted_value_over_one_less_the_discount():
    log, target, _ = moved(episodes=12, steps=10)
    log["terminated"] = (log["step"] == 9) & (log["episode_id"] < 6)
    log["truncated"] = (log["step"] == 9) & ~log["terminated"]
    per_step, total = (
        mixope.evaluate(log, target, estimator=QUICK, estimand=kind, gamma=GAMMA).value
        for kind in ("discounted", "episode")
    )
    assert total == pytest.approx(per_step / (1 - GAMMA))


def ending(episodes=150, seed=0):
    """Every step earns 1 and is the last with probability .4 (action 0) or .1 (action 1); action 1 in a half."""
    draw, columns = np.random.default_rng(seed), {name: [] for name in ("episode_id", "step", "action", "terminated")}
    for episode in range(episodes):
        for step in range(1000):
            action = int(draw.integers(2))
            ends = bool(draw.random() < (0.1 if action else 0.4))
            for name, value in zip(columns, (episode, step, action, ends), strict=True):
                columns[name].append(value)
            if ends:
                break
    log = {name: np.array(values) for name, values in columns.items()}
    n = len(log["step"])
    states = draw.standard_normal((n, 2))
    return log | {"observation": states, "next_observation": draw.standard_normal((n, 2)), "reward": np.ones(n)}


@pytest.mark.long
def test_the_total_of_an_undiscounted_episode_is_its_length_by_hand():
    always = CallablePolicy(lambda states: np.tile([0.0, 1.0], (len(states), 1)), actions=np.arange(2))
    longer = LearnedValue(FittedQSettings(width=32, renewals=60, steps=20, batch=128), jobs=1)
    log = ending()
    found = mixope.evaluate(log, always, estimator=longer, estimand="episode")
    assert found.interval.low < 10.0 < found.interval.high
    taken = log["action"] == 1
    assert found.value == pytest.approx(1 / log["terminated"][taken].mean(), abs=2.5)


def test_pairs_under_a_policy_depend_on_the_state_alone():
    states, target = np.random.default_rng(0).standard_normal((6, 3)), moved()[1]
    actions = QuadraticActions(np.zeros(3), np.ones(3))
    together, _ = chosen_by(actions, target, states)
    apart = np.concatenate([chosen_by(actions, target, states[k : k + 1])[0] for k in range(6)])
    assert np.array_equal(together, apart)
    assert together.mean(axis=1) == pytest.approx(target.mean(states), abs=1e-12)


def test_of_many_actions_quantiles_of_the_law_are_looked_at():
    law = np.random.default_rng(0).dirichlet(np.ones(40) * 0.1, size=5)
    policy = CallablePolicy(lambda states: law[: len(states)], actions=np.arange(40))
    chosen, shares = chosen_by(DiscreteActions(np.arange(40)), policy, np.zeros((5, 1)))
    assert chosen.shape == (5, DRAWS, 40)
    mean = (chosen * shares[..., None]).sum(axis=1)
    assert np.abs(np.cumsum(mean, axis=1) - np.cumsum(law, axis=1)).max() <= 1 / DRAWS + 1e-12
