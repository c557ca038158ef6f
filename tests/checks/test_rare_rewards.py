"""Where nearly all rows earn the same, the few others decide, and the check counts what they are worth."""

import numpy as np
import pytest

import mixope
from mixope.policies import LinearGaussianPolicy

LOGGER = LinearGaussianPolicy(np.zeros((1, 2)), np.zeros(1), np.ones(1))


def log(rare, episodes=40, steps=50, seed=0):
    """States and actions of pure noise; ``rare`` of the rows earn −1, the others nothing."""
    draw, n = np.random.default_rng(seed), episodes * steps
    reward = np.zeros(n)
    reward[draw.permutation(n)[:rare]] = -1.0
    step = np.tile(np.arange(steps), episodes)
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": step,
        "observation": draw.standard_normal((n, 2)),
        "action": draw.standard_normal((n, 1)),
        "reward": reward,
        "next_observation": draw.standard_normal((n, 2)),
        "truncated": step == steps - 1,
    }


def judged(rare, target=LOGGER):
    found = mixope.evaluate(log(rare), target, estimator="emp")
    return found, {check.name: check for check in found.diagnostics}.get("rare rewards")


@pytest.mark.parametrize(("rare", "status"), [(10, "warn"), (80, "pass")])
def test_on_policy_they_are_worth_about_their_number(rare, status):
    found, check = judged(rare)
    assert rare / 2 < found.measures.rare_rewards <= rare  # less what estimated weights vary
    assert check.status == status
    assert ("fewer than 30" in check.sentence) == (status == "warn")


def test_a_target_that_hardly_goes_there_makes_them_worth_less():
    away = LinearGaussianPolicy(np.zeros((1, 2)), np.full(1, 1.0), np.full(1, 0.7))
    assert judged(80, away)[0].measures.rare_rewards < 40


@pytest.mark.parametrize("rare", [0, 200])
def test_it_does_not_apply_where_all_earn_the_same_or_many_do_not(rare):
    assert judged(rare)[1] is None
