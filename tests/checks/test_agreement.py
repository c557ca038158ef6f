"""Parts of the logs that saw the same world agree; a shifted reward or a changed law comes out."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from mixope import worlds
from mixope.checks.agreement import Parts, disagreement, halves_agree, loggers_agree
from mixope.session.session import count


@cache
def world(name, loggers):
    model = worlds.make(name)
    return model, worlds.stages(model, loggers, seed=0)


def logs(name="singlepath", loggers=3, episodes=60, horizon=50, seed=0):
    return worlds.simulate(*world(name, loggers), episodes, horizon, seed=seed)


def parts_of(columns, labels):
    """One entry a row, to be compared with what a loop finds."""
    cell = np.unique((columns["observation"] * 2 + columns["action"]) * 5 + columns["next_observation"])
    code = (columns["observation"] * 2 + columns["action"]) * 5 + columns["next_observation"]
    pair = np.unique(columns["observation"] * 2 + columns["action"], return_inverse=True)[1]
    ones = np.ones(len(labels))
    reward = columns["reward"]
    return Parts(labels, pair, np.searchsorted(cell, code), ones, reward, reward, reward)


def test_the_statistic_is_pearsons():
    columns = logs()
    labels = np.unique(columns["policy_id"], return_inverse=True)[1]
    statistic, degrees, mean, variance = 0.0, 0, 0.0, 0.0
    for s in range(5):
        for a in range(2):
            here = (columns["observation"] == s) & (columns["action"] == a)
            table = np.zeros((3, 5))
            np.add.at(table, (labels[here], columns["next_observation"][here]), 1)
            table = table[table.sum(axis=1) >= 5][:, table.sum(axis=0) > 0]
            expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
            statistic += ((table - expected) ** 2 / expected).sum()
            degrees += (table.shape[0] - 1) * (table.shape[1] - 1)
            if min(table.shape) > 1:
                moments = moments_by_chance(table)
                mean, variance = mean + moments[0], variance + moments[1]
    found = disagreement(parts_of(columns, labels))
    assert found.degrees == degrees
    tail = stats.chi2.sf(statistic * 2 * mean / variance, 2 * mean**2 / variance)
    assert found.dynamics == pytest.approx(stats.norm.isf(tail))


def moments_by_chance(table):
    """The mean and the variance of Pearson's statistic with both margins fixed, as Dawson (1954) writes them."""
    n, sides = table.sum(), []
    for total in (table.sum(axis=1), table.sum(axis=0)):
        k = len(total)
        sides.append(((k - 1) * (n - k) / (n - 1), (n * np.sum(1 / total) - k**2) / (n - 2)))
    (v1, w1), (v2, w2) = sides
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    return n * degrees / (n - 1), 2 * n / (n - 3) * (v1 - w1) * (v2 - w2) + n**2 / (n - 1) * w1 * w2


def test_those_moments_are_those_of_rows_dealt_at_random():
    generator, margins = np.random.default_rng(0), ((5, 20), (20, 3, 2))
    label, kind = (np.repeat(np.arange(len(m)), m) for m in margins)
    expected = np.outer(*margins) / 25
    found = []
    for _ in range(4000):
        table = np.zeros((2, 3))
        np.add.at(table, (label, generator.permutation(kind)), 1)
        found.append(((table - expected) ** 2 / expected).sum())
    assert (np.mean(found), np.var(found)) == pytest.approx(moments_by_chance(expected), rel=0.1)


@pytest.mark.parametrize("name", ["singlepath", "walk", "gridworld-slip"])
def test_healthy_logs_agree(name):
    apart = []
    for seed in range(8):
        columns = logs(name, seed=seed)
        found = loggers_agree(count(columns).transitions)
        assert found.status == "pass"
        apart.append(found.value)
    assert abs(np.mean(apart)) < 1.0


def test_a_shifted_reward_of_one_logger_comes_out():
    columns = logs()
    columns["reward"] = columns["reward"] + 0.5 * (columns["policy_id"] == "logger-1")
    found = loggers_agree(count(columns).transitions)
    assert found.status == "fail"
    assert "rewards" in found.sentence


def test_noise_in_the_rewards_is_no_disagreement():
    columns = logs()
    columns["reward"] = columns["reward"] + np.random.default_rng(0).normal(size=len(columns["reward"]))
    assert loggers_agree(count(columns).transitions).status == "pass"


def test_another_law_of_one_logger_comes_out():
    columns, other = logs(seed=1), logs(seed=2)
    mine = columns["policy_id"] == "logger-2"
    stuck = mine & (np.random.default_rng(0).random(len(mine)) < 0.3)
    columns["next_observation"] = np.where(stuck, columns["observation"], columns["next_observation"])
    found = loggers_agree(count({**columns, "episode_id": np.arange(len(mine))}).transitions)
    assert found.status == "fail"
    assert len(other["reward"]) == len(mine)


def test_loggers_that_never_meet_cannot_be_compared():
    model = worlds.make("singlepath")
    apart = [np.tile(law, (5, 1)) for law in ([1.0, 0.0], [0.0, 1.0])]
    columns = worlds.simulate(model, apart, 20, 20, seed=0)
    assert loggers_agree(count(columns).transitions) is None


def halves(columns):
    counted = count(columns)
    sums = counted.rounds().run(counted.structure())
    return halves_agree(counted.transitions, sums.ordered, sums.totals.logger)


def test_the_halves_are_compared_as_two_loggers_would_be():
    """Late episodes under a label of their own, of one logger, make the same comparison."""
    columns = logs(loggers=1)
    labelled = {**columns, "policy_id": np.where(columns["episode_id"] < 30, "early", "late")}
    assert halves(columns).value == pytest.approx(loggers_agree(count(labelled).transitions).value)


@pytest.mark.parametrize("name", ["singlepath", "walk", "gridworld-slip"])
def test_halves_of_one_world_agree(name):
    z = [halves(logs(name, seed=seed)).value for seed in range(12)]
    assert max(z) < 3.5


def test_a_law_that_changes_half_way_comes_out():
    """From the middle of every logger's episodes on, what one action did another does, three times in ten."""
    model = worlds.make("queue")
    columns = worlds.simulate(model, worlds.stages(model, 2, seed=0), 300, None, seed=1)
    late, n = columns["episode_id"] % 150 >= 75, len(columns["reward"])
    other = (columns["action"] + 1) % model.n_actions
    mixed = np.where(late & (np.random.default_rng(0).random(n) < 0.3), other, columns["action"])
    assert halves(columns).status == "pass"
    found = halves({**columns, "action": mixed})
    assert found.status != "pass"
    assert "the world may have changed meanwhile" in found.sentence


def cut_apart(seed, more=1.0, episodes=3000):
    """One logger's episodes are cut after 2 steps, the other's after 12; next observations are not logged."""
    generator, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        logger, state = episode % 2, int(generator.integers(3))
        for step in range(2 + 10 * logger):
            over = bool(generator.random() < 0.12 * (more if logger else 1.0))
            rows.append((episode, step, f"logger-{logger}", state, 0, 1.0, over, not over and step == 1 + 10 * logger))
            if over:
                break
            state = int(generator.choice(3, p=[0.5, 0.3, 0.2]))
    names = ("episode_id", "step", "policy_id", "observation", "action", "reward", "terminated", "truncated")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize(("more", "agree"), [(1.0, True), (2.5, False)])
def test_loggers_that_were_cut_after_other_lengths_agree_on_ends_if_they_do(more, agree):
    found = [loggers_agree(count(cut_apart(seed, more)).transitions).value for seed in range(4)]
    assert max(found) < 3 if agree else min(found) > 3.5
