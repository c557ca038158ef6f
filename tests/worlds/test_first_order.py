"""First-order variances against what estimators written out in arrays really do over many logs, and against bounds."""

from functools import cache

import numpy as np
import pytest

from mixope.base.errors import MixopeError, UsageError
from mixope.paper.claim_measurements import two_states
from mixope.worlds import efficiency_bound, make, simulate, truth
from mixope.worlds.first_order import ESTIMATORS, FutureLogs, asymptotic_variance, sum_variance

from .worlds import random_model, random_policy

EPISODES, HORIZON, LOGS = 80, 20, 1200
WEIGHTS = (1.0, 0.3)


@cache
def counts():
    """How often each logger went from s by a to s′, in each of many logs: shape (logs, loggers, 2, 2, 2)."""
    setting = two_states()
    logs = simulate(setting.model, setting.loggers, EPISODES * LOGS, HORIZON, seed=11)
    each = EPISODES // 2 * HORIZON
    logger = (logs["policy_id"] == "logger-1").astype(int)
    log = np.tile(np.repeat(np.arange(LOGS), each), 2)
    code = (((log * 2 + logger) * 2 + logs["observation"]) * 2 + logs["action"]) * 2 + logs["next_observation"]
    return np.bincount(code, minlength=LOGS * 16).reshape(LOGS, 2, 2, 2, 2).astype(float)


def rewards():
    setting = two_states()
    return setting.model.reward.reshape(2, 2, 2)


def value(flow, visits, calibrate):
    """η of the flow Σ c ρ over rows s → a → s′, by its Perron vector; shapes (logs, 2, 2, 2) and (logs, 2)."""
    leaving = flow.sum(axis=(2, 3)) if calibrate else visits
    step = flow / leaving[:, :, None, None]
    P = step.sum(axis=2)
    gap = P[:, 0, 0] - P[:, 1, 1]
    top = (P[:, 0, 0] + P[:, 1, 1] + np.sqrt(gap**2 + 4 * P[:, 0, 1] * P[:, 1, 0])) / 2
    law = np.stack([P[:, 1, 0], top - P[:, 0, 0]], axis=1)
    flowing = law[:, :, None, None] * step
    return (flowing * rewards()).sum(axis=(1, 2, 3)) / flowing.sum(axis=(1, 2, 3))


def estimates(name, weights):
    setting, n = two_states(), counts()
    c = np.asarray(weights)[:, None, None, None]
    pooled, target = (c * n).sum(axis=1), np.asarray(setting.target)[:, :, None]
    visits, calibrate = pooled.sum(axis=(2, 3)), "uncalibrated" not in name
    loggers = np.stack(setting.loggers)[..., None]
    if name == "emp":
        flow = pooled * target / (pooled.sum(axis=3, keepdims=True) / visits[:, :, None, None])
    elif name.startswith("bch-pooled"):
        flow = (c * n * target / loggers).sum(axis=1)
    else:
        share = (c[:, :, 0, 0] * n.sum(axis=(3, 4))) / visits[:, None, :]
        if name.startswith("exact"):
            law = np.asarray(weights)[:, None] * setting.row_law
            share = (law / law.sum(axis=0))[None]
        flow = pooled * target / np.einsum("ljs,jsat->lsat", np.broadcast_to(share, (LOGS, 2, 2)), loggers)
    return value(flow, visits, calibrate)


def averaged(name):
    single = [estimates(name, c) for c in np.eye(2) + 1e-12]
    return (single[0] + single[1]) / 2


@pytest.mark.parametrize("weights", [(1.0, 1.0), WEIGHTS], ids=["as they are", "re-weighted"])
@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if name not in ("emp-single", "bch", "bch, uncalibrated")]
)
def test_rows_times_variance_over_many_logs(name, weights):
    found = EPISODES * HORIZON * estimates(name, weights).var()
    exact = asymptotic_variance(two_states(), name, weights)
    assert found / exact == pytest.approx(1, abs=4 * np.sqrt(2 / LOGS) + 0.03)


@pytest.mark.parametrize(("name", "single"), [("emp-single", "emp"), ("bch", "bch-pooled")])
def test_averages_over_loggers(name, single):
    found = EPISODES * HORIZON * averaged(single).var()
    assert found / asymptotic_variance(two_states(), name) == pytest.approx(1, abs=4 * np.sqrt(2 / LOGS) + 0.03)


def test_an_exact_mixture_policy_can_beat_the_estimated_one_and_a_counted_one_cannot():
    """Proposition 3 takes rows as independent. In episodes π₀ depends on the transitions: who knows it knows them."""
    setting = two_states()
    emp = asymptotic_variance(setting, "emp")
    assert asymptotic_variance(setting, "exact mixture") < 0.8 * emp
    assert asymptotic_variance(setting, "known-mixture") > 1.1 * emp
    ones = (1.0, 1.0)
    assert estimates("exact mixture", ones).var() < 0.9 * estimates("emp", ones).var()


@pytest.mark.parametrize("seed", range(4))
def test_an_estimated_behaviour_is_never_worse_than_known_policies(seed):
    model = random_model(seed, ends=seed % 2 == 1)
    target, *loggers = (random_policy(model, 10 * seed + k) for k in range(4))
    setting = FutureLogs(model, target, loggers, 7, shares=[1, 2, 3])
    emp = asymptotic_variance(setting, "emp")
    for rival in ("bch-pooled", "bch-pooled, uncalibrated", "known-mixture", "emp-single", "bch"):
        assert asymptotic_variance(setting, rival) >= emp * (1 - 1e-9)


def test_no_row_weights_beat_the_rows_as_they_are():
    setting = two_states()
    best = asymptotic_variance(setting, "emp")
    for c in np.geomspace(0.05, 20, 41):
        assert asymptotic_variance(setting, "emp", (1.0, c)) >= best * (1 - 1e-12)
    assert asymptotic_variance(setting, "emp", (1.0, 1.01)) == pytest.approx(best, rel=1e-4)


def test_with_a_noisy_recorder_the_best_weights_are_inverse_noise():
    """Where all noise is the recorders', c = 1/noise is best, and no other weights are as good."""
    model = make("gridworld")
    target, *loggers = (random_policy(model, seed) for seed in (1, 2, 3))
    setting = FutureLogs(model, target, loggers, 30, noise=[1.0, 4.0])
    best = asymptotic_variance(setting, "emp", (4.0, 1.0))
    assert best < 0.95 * asymptotic_variance(setting, "emp")
    assert all(asymptotic_variance(setting, "emp", (c, 1.0)) > best for c in (1, 2, 3, 3.8, 4.2, 5, 8))


def test_emp_is_efficient_where_nothing_ends():
    model = make("singlepath")
    policies = [random_policy(model, seed) for seed in range(3)]
    found = asymptotic_variance(FutureLogs(model, policies[0], policies[1:], 40), "emp")
    assert found == pytest.approx(efficiency_bound(model, policies[0], policies[1:], horizon=40), rel=1e-10)


def test_where_episodes_end_the_start_law_has_to_be_estimated_too():
    model = random_model(5, ends=True)
    policies = [random_policy(model, seed) for seed in range(3)]
    found = asymptotic_variance(FutureLogs(model, policies[0], policies[1:], 9), "emp")
    assert found > 1.001 * efficiency_bound(model, policies[0], policies[1:], horizon=9)


@pytest.mark.parametrize("ends", [False, True])
def test_variance_of_a_sum_over_episodes_is_that_of_simulated_episodes(ends):
    model = random_model(3, n_states=4, n_actions=2, ends=ends)
    policy, horizon, episodes = random_policy(model, 8), 6, 40_000
    psi, start = np.random.default_rng(0).normal(size=(2, len(model.reward)))
    start = start[: model.n_states]
    logs = simulate(model, [policy], episodes, horizon, seed=4)
    entry = {key: i for i, key in enumerate(zip(model.entry_rows(), model.transition.indices, strict=True))}
    number = np.array([entry.get(divmod(k, model.n_states), 0) for k in range(8 * model.n_states)])
    row = (logs["observation"] * 2 + logs["action"]) * model.n_states + logs["next_observation"]
    total = np.bincount(logs["episode_id"], weights=psi[number[row]])
    total += start[logs["observation"][logs["step"] == 0]]
    exact = sum_variance(model, policy, psi, horizon, start)
    assert total.var() / exact == pytest.approx(1, abs=0.04)


def test_what_no_logger_covers_has_no_variance():
    model = make("singlepath")
    only_first, both = np.tile([1.0, 0.0], (5, 1)), np.full((5, 2), 0.5)
    assert asymptotic_variance(FutureLogs(model, both, [only_first], 20), "emp") == np.inf
    mixed = FutureLogs(model, both, [only_first, both], 20)
    assert np.isfinite(asymptotic_variance(mixed, "emp"))
    assert asymptotic_variance(mixed, "bch-pooled") == np.inf
    assert asymptotic_variance(mixed, "emp", (1.0, 0.0)) == np.inf


def test_mistakes_are_named():
    setting = two_states()
    assert truth.average(setting.model, setting.target) == pytest.approx(setting.truth.average)
    with pytest.raises(MixopeError, match="emp"):
        asymptotic_variance(setting, "empp")
    with pytest.raises(UsageError, match="weight"):
        asymptotic_variance(setting, "emp", (1.0,))
    with pytest.raises(UsageError, match="takes no row weights"):
        asymptotic_variance(setting, "bch", (1.0, 1.0))
