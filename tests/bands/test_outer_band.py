"""The outer band against an adversary who tries everything, on logs small enough for that."""

from itertools import product

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.answers.bands import outer_band
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.session.session import count

ESTIMANDS = [Estimand(), Estimand("discounted", gamma=0.8), Estimand("horizon", horizon=4)]
N, A = 3, 3


def sparse_logs(seed, ends=False):
    """A random walk on three states in which some actions are never tried; it comes back to where it began."""
    generator = np.random.default_rng(seed)
    tried = [generator.choice(A, size=generator.integers(1, A), replace=False) for _ in range(N)]
    rows, state, episode, step = [], 0, 0, 0
    for t in range(120):
        action = int(generator.choice(tried[state]))
        after = (state + 1) % N if t % 3 == 0 else int(generator.integers(N))
        after = 0 if t == 119 else after
        end = ends and state == 1 and generator.random() < 0.3
        rows.append((episode, step, state, action, float(generator.integers(-2, 3)), after, end))
        state, step = (0, 0) if end else (after, step + 1)
        episode += end
    columns = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated")
    return {name: np.array(values) for name, values in zip(columns, zip(*rows, strict=True), strict=True)}


def random_target(seed):
    return np.random.default_rng([seed, 7]).dirichlet(np.ones(A), size=N)


def known(columns, target):
    """P(s, s′), P(s, end), r(s) and u(s), by a loop over rows."""
    n = np.zeros((N, A))
    np.add.at(n, (columns["observation"], columns["action"]), 1)
    move, end, reward = np.zeros((N, N)), np.zeros(N), np.zeros(N)
    for s, a, r, t, done in zip(
        *(columns[k] for k in ("observation", "action", "reward", "next_observation", "terminated")), strict=True
    ):
        share = target[s, a] / n[s, a]
        reward[s] += share * r
        if done:
            end[s] += share
        else:
            move[s, t] += share
    return move, end, reward, 1 - move.sum(axis=1) - end


def exact(estimand, move, end, reward, start):
    """The value of a chain that is known throughout, by dense algebra."""
    if estimand.kind == "average":
        whole = move + np.outer(end, start)
        law = np.linalg.lstsq(np.vstack([whole.T - np.eye(N), np.ones(N)]), np.append(np.zeros(N), 1), rcond=None)[0]
        return law @ reward
    if estimand.kind == "discounted":
        return (1 - estimand.gamma) * start @ np.linalg.solve(np.eye(N) - estimand.gamma * move, reward)
    value = np.zeros(N)
    for _ in range(estimand.horizon):
        value = reward + move @ value
    return start @ value / estimand.horizon


def attempts(estimand, columns, target, rewards, ends):
    """Every value that an adversary can reach who always answers an unknown step of s with one choice of its own."""
    move, end, reward, unknown = known(columns, target)
    start = np.eye(N)[0]
    choices = [*range(N), *(["end"] if ends else [])]
    for landing in product(choices, repeat=N):
        for paid in product(rewards, repeat=N):
            moved, ended = move.copy(), end.copy()
            for s, k in enumerate(landing):
                if k == "end":
                    ended[s] += unknown[s]
                else:
                    moved[s, k] += unknown[s]
            yield exact(estimand, moved, ended, reward + unknown * np.array(paid), start)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("estimand", ESTIMANDS[:2], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_no_adversary_does_worse_or_better_than_the_band(seed, estimand, ends):
    columns, target = sparse_logs(seed, ends), random_target(seed)
    band = outer_band(count(columns), mixope.TabularPolicy(target), estimand=estimand)
    range_ = (columns["reward"].min(), columns["reward"].max())
    found = list(attempts(estimand, columns, target, range_, ends))
    assert band.low == pytest.approx(min(found), abs=1e-9)
    assert band.high == pytest.approx(max(found), abs=1e-9)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_over_a_horizon_the_adversary_may_change_its_mind_at_every_step(seed, ends):
    columns, target = sparse_logs(seed, ends), random_target(seed)
    move, _, reward, unknown = known(columns, target)
    steps = 3
    low = columns["reward"].min()
    choices = [*range(N), *([N] if ends else [])]
    reached = []
    for plan in product(choices, repeat=steps):
        value = np.zeros(N + 1)
        for k in plan:
            value[:N] = reward + unknown * low + move @ value[:N] + unknown * value[k]
        reached.append(value[0] / steps)
    band = outer_band(count(columns), mixope.TabularPolicy(target), estimand=Estimand("horizon", horizon=steps))
    assert band.low == pytest.approx(min(reached), abs=1e-12)


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_the_band_holds_the_estimate(seed, estimand):
    columns, target = sparse_logs(seed, ends=seed % 2 == 1), mixope.TabularPolicy(random_target(seed))
    band = outer_band(count(columns), target, estimand=estimand)
    value = mixope.evaluate(columns, target, "emp", estimand=estimand).value
    assert band.low - 1e-12 <= value <= band.high + 1e-12
    assert band.low < band.high
    assert 0 < band.uncovered_mass < 1


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=str)
@pytest.mark.parametrize("name", ["singlepath", "walk"])
def test_where_all_is_covered_the_band_is_the_estimate(name, estimand):
    model = worlds.make(name)
    uniform = np.full((model.n_states, model.n_actions), 1 / model.n_actions)
    logs = worlds.simulate(model, [uniform], 200, 30, seed=1)
    target = mixope.TabularPolicy(worlds.target(model, seed=0))
    band = outer_band(count(logs), target, estimand=estimand)
    value = mixope.evaluate(logs, target, "emp", estimand=estimand).value
    assert band.low == pytest.approx(value, abs=1e-9)
    assert band.high == pytest.approx(value, abs=1e-9)
    assert band.uncovered_mass == 0


@pytest.mark.parametrize("kind", ["average", "horizon"])
def test_the_band_holds_the_truth_where_the_estimate_is_biased(kind):
    """Taxi with few episodes: the interval of EMP is too short for what it has not seen, the band is not."""
    model = worlds.make("taxi")
    policy = worlds.target(model, seed=0)
    logs = worlds.simulate(model, worlds.stages(model, 2, seed=0), 40, 100, seed=3)
    estimand = Estimand() if kind == "average" else Estimand("horizon", horizon=100)
    truth = worlds.truth.average(model, policy)
    truth = truth if kind == "average" else worlds.truth.horizon(model, policy, 100)
    band = outer_band(count(logs), mixope.TabularPolicy(policy), estimand=estimand)
    assert band.low < truth < band.high
    assert band.uncovered_mass > 0.005


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_if_unknown_steps_lead_where_known_ones_do_the_band_is_narrower(seed, estimand):
    columns, target = sparse_logs(seed, ends=seed % 2 == 1), mixope.TabularPolicy(random_target(seed))
    counted = count(columns)
    wide = outer_band(counted, target, estimand=estimand)
    narrow = outer_band(counted, target, estimand=estimand, continuation="alike")
    value = mixope.evaluate(columns, target, "emp", estimand=estimand).value
    assert wide.low - 1e-12 <= narrow.low <= value + 1e-12
    assert value - 1e-12 <= narrow.high <= wide.high + 1e-12
    if estimand.kind == "average":
        assert (narrow.high - narrow.low) / 2 == pytest.approx(narrow.uncovered_mass * np.ptp(columns["reward"]) / 2)


def test_an_unknown_continuation_has_a_suggestion():
    with pytest.raises(UsageError, match="alike"):
        outer_band(count(sparse_logs(0)), mixope.TabularPolicy(random_target(0)), continuation="like")


def test_a_wider_range_of_rewards_makes_a_wider_band():
    columns, target = sparse_logs(0), mixope.TabularPolicy(random_target(0))
    inner = outer_band(count(columns), target)
    outer = outer_band(count(columns), target, reward_range=(-10, 10))
    assert outer.low < inner.low
    assert inner.high < outer.high
    assert outer.high - outer.low > inner.high - inner.low


@pytest.mark.parametrize("bad", [(1.0, 0.0), (float("-inf"), 0.0)])
def test_a_range_that_is_none_is_refused(bad):
    with pytest.raises(UsageError, match="lowest and the highest"):
        outer_band(count(sparse_logs(0)), mixope.TabularPolicy(random_target(0)), reward_range=bad)
