"""How much of a value lies beyond the logged steps: known where every step ends with the same chance."""

import json

import numpy as np
import pytest

import mixope
from mixope.requests.episodes import EpisodeTotals
from mixope.worlds import continuous, linear_quadratic

STEPS = 12
TARGET = mixope.TabularPolicy(np.full((2, 2), 0.5))


def logs(ends):
    """Two states that follow each other by chance; a step earns the state. The counts have the chance of an end."""
    episodes = 200
    g, rows = np.random.default_rng(0), []
    for e in range(episodes):
        s = e % 2
        for t in range(STEPS):
            later, over = int(g.integers(2)), bool(g.random() < ends)
            rows.append((e, t, s, int(g.integers(2)), float(s), later, over, t == STEPS - 1 and not over))
            if over:
                break
            s = later
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def paths(columns, target, gamma):
    """μ₀(γP)ᵗ by a loop over the counts: mass and reward of every step, far beyond the logs."""
    counts, starts = np.zeros((2, 2, 3)), np.zeros(2)
    reward, n = np.zeros((2, 2)), np.zeros((2, 2))
    for s, a, r, later, over, t in zip(
        *(columns[k] for k in ("observation", "action", "reward", "next_observation", "terminated", "step")),
        strict=True,
    ):
        counts[s, a, 2 if over else later] += 1
        reward[s, a] += r
        n[s, a] += 1
        starts[s] += t == 0
    chain = np.einsum("sa,say->sy", target, counts / n[:, :, None])[:, :2]
    pays, law = (target * reward / n).sum(axis=1), starts / starts.sum()
    mass, earned = [], []
    for _ in range(4000):
        mass.append(law.sum())
        earned.append(law @ pays)
        law = gamma * law @ chain
    return np.array(mass), np.array(earned)


@pytest.mark.parametrize(
    ("asked", "gamma"), [({"estimand": "episode"}, 1.0), ({"gamma": 0.9}, 0.9), ({"estimand": "average"}, 1.0)]
)
def test_the_share_is_that_of_a_loop_over_steps(asked, gamma):
    columns = logs(0.03)
    found = mixope.evaluate(columns, TARGET, "emp", **asked)
    mass, earned = paths(columns, np.full((2, 2), 0.5), gamma)
    beyond = found.beyond_logged
    assert beyond.steps == STEPS
    assert beyond.share == pytest.approx(mass[STEPS:].sum() / mass.sum(), abs=1e-9)
    late = slice(9, STEPS)
    left = earned[STEPS:].sum() - mass[STEPS:].sum() * earned[late].sum() / mass[late].sum()
    scale = {"episode": 1.0, "average": 1.0 / mass.sum()}.get(asked.get("estimand"), 1.0 - gamma)
    assert beyond.shift == pytest.approx(scale * left, abs=1e-9)


def test_where_nothing_ends_the_average_lies_beyond_and_a_horizon_within():
    columns = logs(0.0)
    assert mixope.evaluate(columns, TARGET).beyond_logged.share == 1.0
    assert mixope.evaluate(columns, TARGET, horizon=STEPS).beyond_logged.share == pytest.approx(0.0, abs=1e-12)
    assert mixope.evaluate(columns, TARGET, horizon=2 * STEPS).beyond_logged.share == pytest.approx(0.5)
    assert mixope.evaluate(columns, TARGET, gamma=0.9).beyond_logged.share == pytest.approx(0.9**STEPS)


def test_it_is_in_the_json_and_comes_back():
    found = mixope.evaluate(logs(0.0), TARGET)
    assert json.loads(found.to_json())["beyond_logged"]["steps"] == STEPS
    assert mixope.Estimate.from_json(found.to_json()).beyond_logged == found.beyond_logged


def test_on_vectors_that_never_end_the_discount_says_it():
    columns = continuous.simulate(linear_quadratic.linear_quadratic(), linear_quadratic.loggers(4), 20, 30, seed=0)
    found = mixope.evaluate(columns, linear_quadratic.target(), "emp", gamma=0.9)
    assert (found.beyond_logged.steps, found.beyond_logged.share) == (30, pytest.approx(0.9**30))


def test_episodes_are_followed_as_far_as_half_of_those_that_had_not_ended():
    g = np.random.default_rng(1)
    rows, ended = g.integers(1, 30, size=300), g.random(300) < 0.3
    kept, expected = 1.0, int(rows.max())
    for length in range(1, 30):
        there = np.sum(rows >= length) - np.sum((rows == length) & ended)
        if there:
            kept *= 1.0 - np.sum((rows == length) & ~ended) / there
        if kept <= 0.5:
            expected = length
            break
    some = {"logger": np.zeros(300, dtype=int), "reward": np.zeros(300), "cut": 1.0 - ended}
    totals = EpisodeTotals(rows=rows.astype(float), starts=np.ones(300), ended=ended.astype(float), **some)
    assert totals.followed_steps == expected
