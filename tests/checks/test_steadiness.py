"""Early and late episodes, early and late steps, and all episodes agree where the world is one; changes come out."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from mixope.checks.evidence import Evidence
from mixope.checks.steadiness import (
    Halves,
    compare_halves,
    hotelling,
    late_half,
    normal_of_f,
    normal_of_t,
    rewards_by_episode,
    rewards_over_steps,
    value_is_steady,
    value_over_episodes,
    value_over_steps,
    world_over_episodes,
)
from mixope.estimators import Solution
from mixope.requests.episodes import EpisodeSums, EpisodeTotals
from mixope.requests.probes import EpisodeProbes
from mixope.uncertainty import Uncertainty


def probes(reward, squared=None, moves=None, by_step=None, n_random=2):
    reward = np.asarray(reward, dtype=float)
    squared = np.ones(len(reward)) if squared is None else np.asarray(squared, dtype=float)
    moves = np.zeros((len(reward), 0)) if moves is None else moves
    by_step = np.zeros(len(reward)) if by_step is None else by_step
    return EpisodeProbes(reward, squared, by_step, moves, np.broadcast_to(n_random, len(reward)))


@pytest.mark.parametrize("t", [-6.0, -1.0, 0.5, 3.0, 8.0])
@pytest.mark.parametrize("degrees", [8, 30, 200])
def test_t_becomes_the_normal_deviate_of_the_same_tail(t, degrees):
    exact = np.sign(t) * stats.norm.isf(stats.t.sf(abs(t), degrees))
    assert normal_of_t(t, degrees) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("f", [0.5, 1.0, 3.0, 6.0])
@pytest.mark.parametrize("degrees", [(1, 20), (5, 30), (7, 200)])
def test_f_becomes_the_normal_deviate_of_the_same_tail(f, degrees):
    assert normal_of_f(f, *degrees) == pytest.approx(stats.norm.isf(stats.f.sf(f, *degrees)), abs=1e-9)


def test_the_halves_are_those_of_every_logger_in_order():
    late, usable = late_half(np.array([0, 0, 1, 0, 0, 0, 1, 0, 0]))
    assert late.tolist() == [False, False, False, False, False, True, True, True, True]
    assert usable.tolist() == [True, True, False, True, True, True, False, True, True]


def test_the_difference_of_one_loggers_halves_is_welchs():
    generator = np.random.default_rng(0)
    scores = generator.normal(size=40)
    found = compare_halves(scores[:, None], np.zeros(40, dtype=int))
    t = found.difference[0] / np.sqrt(found.covariance[0, 0])
    assert t == pytest.approx(stats.ttest_ind(scores[20:], scores[:20], equal_var=False).statistic)
    assert found.degrees == 38


def test_loggers_that_differ_are_no_drift():
    """A logger's own level must not look like a change, though all of its episodes come last."""
    scores = np.concatenate([np.full(20, -1.0), np.full(20, 1.0)]) + 0.1 * np.random.default_rng(1).normal(size=40)
    assert value_over_episodes(scores, np.repeat([0, 1], 20)).status == "pass"
    assert value_over_episodes(scores, np.zeros(40, dtype=int)).status == "fail"


def test_steady_scores_seldom_look_like_a_change():
    generator = np.random.default_rng(2)
    alarms = [
        value_over_episodes(generator.exponential(size=24), np.repeat([0, 1], 12)).status != "pass" for _ in range(400)
    ]
    assert np.mean(alarms) < 0.01


def test_one_column_of_t_squared_is_t():
    halves = Halves(np.array([2.0]), np.array([[0.25]]), 30)
    assert hotelling(halves) == pytest.approx(stats.norm.isf(2 * stats.t.sf(4.0, 30)), abs=0.15)


def test_columns_that_say_the_same_count_once():
    generator = np.random.default_rng(3)
    one = generator.normal(size=(60, 1))
    alone, thrice = (compare_halves(x, np.zeros(60, dtype=int)) for x in (one, np.tile(one, 3)))
    assert hotelling(thrice) <= hotelling(alone) + 0.1


def test_a_reward_that_changes_without_noise_comes_out():
    """Within each half nothing varies: the comparison must not divide by nothing."""
    reward = np.repeat([-5.0, 5.0], 20)
    found = world_over_episodes(probes(reward, reward**2 / 10), np.zeros(40, dtype=int))
    assert found.status == "fail"
    assert "changed" in found.sentence


def test_next_states_that_change_come_out_and_others_do_not():
    generator = np.random.default_rng(4)
    moves = generator.normal(size=(80, 6))
    still = world_over_episodes(probes(np.zeros(80), moves=moves), np.zeros(80, dtype=int))
    moved = world_over_episodes(probes(np.zeros(80), moves=moves + np.repeat([0, 1], 40)[:, None]), np.zeros(80, int))
    assert (still.status, moved.status) == ("pass", "warn")


def test_a_recorder_shared_by_a_whole_episode_comes_out():
    """Ten of forty episodes earn half a unit more on each of a hundred rows: R = 37.5 or −12.5, Q = 25·…"""
    shifted = np.arange(40) % 4 == 0
    off = np.where(shifted, 0.375, -0.125)
    found = rewards_by_episode(probes(100 * off, 100 * off**2))
    excess = (100 * off) ** 2 - 100 * off**2
    assert found.value == pytest.approx(excess.sum() / np.sqrt((excess**2).sum()))
    assert found.status == "warn"


def test_noise_of_single_rows_is_no_recorder():
    generator = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        rows = generator.normal(size=(40, 50))
        alarms += rewards_by_episode(probes(rows.sum(axis=1), (rows**2).sum(axis=1))).status != "pass"
    assert alarms <= 3


def test_a_few_long_episodes_do_not_decide():
    """Their squares are the largest by far, though no recorder was wrong there: short ones must be heard too."""
    generator = np.random.default_rng(8)
    n = np.where(np.arange(200) % 20 == 0, 300, 8)
    alone, shared = [], []
    for _ in range(40):
        for shift, found in ((0.0, alone), (0.8, shared)):
            rows = [generator.normal(size=k) + shift * ((e % 4 == 1) - 0.25) * (k == 8) for e, k in enumerate(n)]
            sums = (np.array([f(r) for r in rows]) for f in (np.sum, lambda r: np.sum(r**2)))
            found.append(rewards_by_episode(probes(*sums, n_random=n)).value)
    assert np.mean(np.array(shared) > 2) > 0.9
    assert np.mean(np.array(alone) > 2) <= 0.05


def test_certain_rewards_have_nothing_to_compare():
    assert rewards_by_episode(probes(np.zeros(40), np.zeros(40))) is None


def test_a_single_random_reward_cannot_hang_together_with_another():
    """R² is Q there, and what floats leave of the difference is no evidence."""
    reward = np.random.default_rng(5).normal(size=40)
    assert rewards_by_episode(probes(reward, reward**2 * (1 - 1e-15), n_random=1)) is None
    assert rewards_by_episode(probes(reward, reward**2 * (1 - 1e-15))).value > 2


def test_scores_that_grow_with_the_step_come_out():
    generator = np.random.default_rng(6)
    steps = np.arange(30)
    score = generator.normal(size=(50, 30))
    rows, mean = np.full(50, 30.0), 14.5

    def judged(values):
        return value_over_steps((values * steps).sum(axis=1), values.sum(axis=1), rows, mean)

    assert judged(score).status == "pass"
    assert judged(score + 0.3 * (steps >= 15) - 0.15).status != "pass"


def test_rewards_that_fall_with_the_step_come_out():
    generator = np.random.default_rng(7)
    steps = np.arange(20)
    off = generator.normal(size=(40, 20))

    def judged(values):
        return rewards_over_steps(probes(values.sum(axis=1), by_step=(values * steps).sum(axis=1)), 9.5)

    assert judged(off).status == "pass"
    assert judged(off - 0.03 * (steps - 9.5)).status != "pass"
    assert rewards_over_steps(probes(np.zeros(40)), 9.5) is None


def test_too_few_episodes_are_not_judged():
    episodes = EpisodeTotals(*(np.zeros(4, dtype=int), *(np.ones(4),) * 5))
    none = np.zeros(4, dtype=bool)
    sums = EpisodeSums(episodes, none, none)
    for scores in (np.arange(4.0), None, np.full(4, np.nan)):
        assert value_is_steady(judged(sums, scores)) == ()


def judged(sums, scores, by_step=None):
    survey = SimpleNamespace(lowest=0.0, highest=1.0)
    return Evidence(Solution(0.5), Uncertainty(), survey, None, sums, scores, by_step)


def test_scores_that_are_rounding_alone_are_not_judged():
    """Where every episode earns the same there is nothing to chance; what floats leave is all on one side."""
    episodes = EpisodeTotals(np.zeros(20, dtype=int), np.full(20, 5.0), *(np.ones(20),) * 4)
    none = np.zeros(20, dtype=bool)
    sums = EpisodeSums(episodes, none, none)
    for size, checks in ((1e-17, 0), (1e-3, 2)):
        scores = np.full(20, size)
        assert len(value_is_steady(judged(sums, scores, 3 * scores))) == checks
