"""opt-emp: pooled where loggers share one law, inverse noise where recorders differ, never a matter of names."""

from functools import cache

import numpy as np
import pytest

import mixope
from mixope.answers.answering import answer as run
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.estimators import REGISTRY
from mixope.estimators.optimal_weights import fit_log_noise
from mixope.session.session import count
from mixope.worlds import make, simulate
from mixope.worlds.first_order import FutureLogs, asymptotic_variance

LABELS = ("logger-0", "logger-1")
NOISE = (0.0, 3.0)
EPISODES, HORIZON = 40, 25


@cache
def world():
    model = make("singlepath")
    target, *loggers = np.random.default_rng(3).dirichlet([4, 4], size=(3, 5))
    return model, target, loggers


def columns(seed, noise=NOISE):
    model, _, loggers = world()
    logs = simulate(model, loggers, EPISODES, HORIZON, seed=seed)
    spread = np.where(logs["policy_id"] == LABELS[1], noise[1], noise[0])
    return {**logs, "reward": logs["reward"] + spread * np.random.default_rng(seed).normal(size=len(spread))}


def evaluate(logs, name="opt-emp", target=None, **options):
    return mixope.evaluate(mixope.read(logs), world()[1] if target is None else target, name, **options)


def both(logs):
    """emp and opt-emp from the same scans."""
    return run(count(mixope.read(logs)), {"new": world()[1]}, ["emp", "opt-emp"], estimand=Estimand("average"))


def test_the_noise_of_every_logger_is_recovered():
    generator = np.random.default_rng(0)
    share, scale = generator.dirichlet(np.ones(4), size=60), generator.gamma(0.5, size=60)
    tau = np.array([1.0, 0.2, 5.0, 1.0])
    t, _ = fit_log_noise(scale[:, None] * share * tau, share)
    np.testing.assert_allclose(np.exp(t - t[0]), tau, rtol=0.03)


def test_loggers_that_never_meet_are_left_as_they_are():
    t, _ = fit_log_noise(np.diag([1.0, 50.0, 3.0]), np.eye(3))
    np.testing.assert_allclose(t, 0.0, atol=1e-12)


def test_one_logger_is_emp():
    logs = columns(0)
    mine = {name: values[logs["policy_id"] == LABELS[0]] for name, values in logs.items()}
    weighed, plain = evaluate(mine), evaluate(mine, "emp")
    assert weighed.value == plain.value
    assert weighed.standard_error == pytest.approx(plain.standard_error, rel=1e-12)
    assert weighed.effective_sample_size == pytest.approx(plain.effective_sample_size, rel=1e-12)


def test_a_noisy_recorder_is_weighed_down_to_the_best_there_is():
    model, target, loggers = world()
    truth = FutureLogs(model, target, loggers, HORIZON).truth.average
    setting = FutureLogs(model, target, loggers, HORIZON, noise=[x**2 for x in NOISE])
    pooled = asymptotic_variance(setting, "emp")
    best = min(asymptotic_variance(setting, "emp", (1.0, c)) for c in np.geomspace(0.01, 1, 60))
    found = np.array([[e.value - truth for e in both(columns(seed))] for seed in range(30)])
    plain, weighed = EPISODES * HORIZON * (found**2).mean(axis=0)
    assert best < 0.5 * pooled
    assert plain / pooled == pytest.approx(1, abs=0.7)
    assert weighed / best == pytest.approx(1, abs=0.7)
    assert weighed < 0.6 * plain


def test_with_one_law_it_pools():
    """The first-order optimum is c = 1: about a third of the logs look otherwise by chance, and that costs little."""
    pairs = [both(columns(seed, (0.0, 0.0))) for seed in range(20)]
    assert 8 <= sum(plain.value == weighed.value for plain, weighed in pairs) <= 18
    for plain, weighed in pairs:
        assert abs(weighed.value - plain.value) < 0.3 * plain.standard_error


def test_the_interval_knows_the_gain():
    weighed, plain = evaluate(columns(1)), evaluate(columns(1), "emp")
    assert weighed.measures.noise_ratio > 4
    assert weighed.standard_error < 0.8 * plain.standard_error
    assert weighed.loggers[1].weight_share < plain.loggers[1].weight_share


@pytest.mark.parametrize(
    "estimand", [{}, {"estimand": "discounted", "gamma": 0.8}, {"estimand": "horizon", "horizon": 9}]
)
def test_order_names_scale_and_shift_do_not_matter(estimand):
    logs, plain = columns(2), evaluate(columns(2), **estimand)
    order = np.random.default_rng(5).permutation(len(logs["step"]))
    shuffled = {name: values[order] for name, values in logs.items()}
    states, labels = np.array(["d", "a", "z", "b", "c"]), {LABELS[0]: "zoe", LABELS[1]: "adam"}
    renamed = {
        **logs,
        "observation": states[logs["observation"]],
        "next_observation": states[logs["next_observation"]],
        "policy_id": np.array([labels[label] for label in logs["policy_id"]]),
        "episode_id": np.array([f"episode {997 - e}" for e in logs["episode_id"]]),
    }
    target = mixope.TabularPolicy(world()[1], states)
    for found in (evaluate(shuffled, **estimand), evaluate(renamed, target=target, **estimand)):
        assert found.value == pytest.approx(plain.value, rel=1e-6)
        assert found.standard_error == pytest.approx(plain.standard_error, rel=1e-5)
    moved = evaluate({**logs, "reward": 7.0 - 2.0 * logs["reward"]}, **estimand)
    assert moved.value == pytest.approx(7.0 - 2.0 * plain.value, rel=1e-6)
    assert moved.standard_error == pytest.approx(2.0 * plain.standard_error, rel=1e-5)


def test_unlabelled_logs_are_pooled():
    logs = {name: values for name, values in columns(3).items() if name != "policy_id"}
    assert evaluate(logs).value == evaluate(logs, "emp").value


def test_what_it_cannot_do_it_says():
    with pytest.raises(UsageError, match="paper's form has not"):
        REGISTRY["opt-emp"].make(form="paper")
    with pytest.raises(UsageError, match="counted"):
        mixope.evaluate(
            {
                "observation": np.random.default_rng(0).normal(size=(30, 2)),
                "next_observation": np.random.default_rng(1).normal(size=(30, 2)),
                "action": np.arange(30) % 2,
                "reward": np.ones(30),
                "episode_id": np.arange(30) // 3,
                "step": np.arange(30) % 3,
            },
            lambda observations: np.full((len(observations), 2), 0.5),
            "opt-emp",
        )
