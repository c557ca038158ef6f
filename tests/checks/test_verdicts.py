"""A verdict speaks up where the logs are of two worlds, names the reason, and is quiet where they are of one."""

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.estimators import state_ratio
from mixope.features import NormalisedBumps
from mixope.worlds import continuous, linear_quadratic

MODEL = worlds.make("singlepath")
TARGET = worlds.target(MODEL, seed=0)
LOGGERS = worlds.stages(MODEL, 3, seed=0)
STEADY = {"value over episodes", "value over steps", "world over episodes"}


def logs(seed=0, episodes=60, noise=0.0):
    columns = worlds.simulate(MODEL, LOGGERS, episodes, 50, seed=seed)
    columns["reward"] = columns["reward"] + noise * np.random.default_rng(seed).normal(size=len(columns["reward"]))
    return columns


def judged(columns, estimator="emp", **options):
    return mixope.evaluate(columns, mixope.TabularPolicy(TARGET), estimator, **options)


def reasons(estimate):
    return {d.name for d in estimate.diagnostics if d.status != "pass"}


def late(columns):
    """Rows of the second half of every logger's episodes."""
    result = np.zeros(len(columns["reward"]), dtype=bool)
    for label in np.unique(columns["policy_id"]):
        mine = columns["policy_id"] == label
        result[mine] = columns["episode_id"][mine] >= np.median(np.unique(columns["episode_id"][mine]))
    return result


@pytest.mark.parametrize("estimator", ["emp", "bch", "dr", "sadl"])
@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_healthy_logs_are_judged_and_pass(estimator, engine):
    found = judged(logs(noise=0.5), estimator, engine=engine)
    names = {d.name for d in found.diagnostics}
    assert {*STEADY, "rewards over steps", "rewards by episode", "loggers agree"} <= names
    assert reasons(found) == set()


def test_engines_agree_on_every_check():
    one, other = (judged(logs(noise=0.5), engine=engine) for engine in ("memory", "embedded"))
    assert [d.name for d in one.diagnostics] == [d.name for d in other.diagnostics]
    assert [d.value for d in one.diagnostics] == pytest.approx([d.value for d in other.diagnostics], rel=1e-6, abs=1e-9)


def test_rewards_that_change_half_way_are_no_support():
    columns = logs(noise=0.2)
    columns["reward"] = columns["reward"] - 0.5 * late(columns)
    found = judged(columns)
    assert str(found.verdict) != "trustworthy"
    assert {"value over episodes", "world over episodes"} <= reasons(found)
    assert "loggers agree" not in reasons(found)


def test_next_states_that_change_half_way_come_out():
    columns, other = logs(seed=1), logs(seed=2)
    stuck = late(columns) & (np.random.default_rng(0).random(len(columns["reward"])) < 0.3)
    columns["next_observation"] = np.where(stuck, columns["observation"], columns["next_observation"])
    found = judged({**columns, "step": np.zeros_like(columns["step"]), "episode_id": np.arange(len(stuck))})
    assert "world over episodes" in reasons(found)
    assert "world over episodes" not in reasons(judged(other))


def test_rewards_that_fall_with_the_step_come_out():
    columns = logs(noise=0.2)
    columns["reward"] = columns["reward"] - 0.01 * columns["step"]
    assert {"rewards over steps", "value over steps"} <= reasons(judged(columns))


def test_a_start_far_from_the_long_run_is_no_drift():
    """All episodes begin in one state and reach the others later: early steps are other steps, but the same world."""
    columns = logs(episodes=200)
    early = columns["step"] < 5
    assert np.mean(columns["observation"][early]) < 0.9 * np.mean(columns["observation"][~early])
    assert reasons(judged(columns)) == set()


def test_a_wrong_recorder_without_a_label_comes_out():
    columns = logs(noise=0.3)
    wrong = columns["policy_id"] == "logger-1"
    order = np.random.default_rng(0).permutation(60)
    shifted = {**columns, "reward": columns["reward"] + 0.5 * wrong, "episode_id": order[columns["episode_id"]]}
    del shifted["policy_id"]
    assert "rewards by episode" in reasons(judged(shifted))


def test_noisy_rewards_alone_are_not_suspicious():
    alarms = [reasons(judged(logs(seed=seed, noise=2.0))) for seed in range(10)]
    assert sum(map(bool, alarms)) <= 1


def test_the_papers_weights_are_asked_to_average_one():
    found = judged(logs(), state_ratio.emp(form="paper"))
    check = next(d for d in found.diagnostics if d.name == "mean weight")
    assert check.status == "pass"
    assert check.value == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("form", ["general", "paper"])
def test_rows_of_other_loggers_are_not_outside(form):
    assert judged(logs(), state_ratio.emp_single(form=form)).outside_mass == 0.0


def test_the_logged_mean_is_a_reference_and_not_judged():
    assert judged(logs(), "logged-mean").diagnostics == ()


def test_vectors_are_judged_over_episodes_too():
    system = linear_quadratic.linear_quadratic()
    columns = continuous.simulate(system, linear_quadratic.loggers(1), 24, 10, seed=0)
    options = {"estimator": "emp", "features": NormalisedBumps(6)}
    healthy = mixope.evaluate(columns, linear_quadratic.target(), **options)
    changed = {**columns, "reward": columns["reward"] - 3.0 * (columns["episode_id"] >= 12)}
    assert next(d for d in healthy.diagnostics if d.name == "value over episodes").status == "pass"
    assert "value over episodes" in reasons(mixope.evaluate(changed, linear_quadratic.target(), **options))


def test_a_small_gap_beside_a_narrow_interval_comes_out():
    """The target takes an action that was never logged one time in four hundred; many rows make the interval narrow."""
    logger, target = np.full((5, 2), 0.5), np.full((5, 2), 0.5)
    logger[0], target[0] = [0.0, 1.0], [0.004, 0.996]
    columns = worlds.simulate(MODEL, [logger], 400, 200, seed=0)
    found = mixope.evaluate(columns, mixope.TabularPolicy(target), "emp")
    check = next(d for d in found.diagnostics if d.name == "coverage bias")
    assert 0 < found.uncovered_mass < 0.005
    assert check.value > 0.05
    assert "coverage bias" not in {d.name for d in judged(logs()).diagnostics}
