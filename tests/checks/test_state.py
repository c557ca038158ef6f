"""What happened before tells what comes next only where the state leaves something out; how far the value moves."""

import numpy as np
import pytest

import mixope
from mixope import worlds

ACTIONS, STATES = 3, 6


def written(episodes, seed, *, wear=0.0, again=0.0, trait=0.0, steps=30, ends=0.0):
    """A chain of ids. ``wear`` grows with action 0 and costs, ``again`` pays a repeated action, ``trait`` is kept."""
    world, g = np.random.default_rng(3), np.random.default_rng([seed, 11])
    moves = world.dirichlet(np.ones(STATES), size=(STATES, ACTIONS)).cumsum(axis=2)
    mean = world.normal(size=(STATES, ACTIONS))
    law = world.dirichlet(np.full(ACTIONS, 2.0), size=(2, STATES)).cumsum(axis=2)
    rows = []
    for e in range(episodes):
        s, level, before, own = int(g.integers(STATES)), 0.0, None, g.normal()
        for t in range(steps):
            a = min(int(np.searchsorted(law[e % 2, s], g.random())), ACTIONS - 1)
            reward = mean[s, a] + g.normal() - wear * level + again * (a == before) + trait * own
            over = bool(g.random() < ends)
            later = min(int(np.searchsorted(moves[s, a], g.random())), STATES - 1)
            rows.append((e, t, s, a, reward, later, over, t == steps - 1 and not over, e % 2))
            if over:
                break
            level, before, s = 0.8 * level + (a == 0), a, later
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    return dict(zip((*names, "policy_id"), map(np.array, zip(*rows, strict=True)), strict=True))


TARGET = mixope.TabularPolicy(np.tile([0.8, 0.1, 0.1], (STATES, 1)))


def state_of(columns, target=TARGET, **asked):
    found = mixope.evaluate(columns, target, **asked)
    return next((check for check in found.diagnostics if check.name == "state"), None)


@pytest.mark.parametrize("asked", [{}, {"gamma": 0.9}, {"horizon": 20}])
@pytest.mark.parametrize("seed", range(3))
def test_a_chain_whose_state_is_all_passes(asked, seed):
    assert state_of(written(120, seed), **asked).status == "pass"


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_that_ends_passes(seed):
    assert state_of(written(200, seed, ends=0.1), estimand="episode").status == "pass"


@pytest.mark.parametrize("asked", [{}, {"gamma": 0.95}, {"horizon": 25}])
def test_wear_that_the_target_drives_fails(asked):
    check = state_of(written(200, 0, wear=0.7), **asked)
    assert (check.status, check.value > 2) == ("fail", True)


def chances(gamma):
    """Along a path of three states, where much of what comes is certain."""
    model = worlds.make("singlepath")
    columns = worlds.simulate(model, worlds.stages(model, 3, seed=0), episodes=100, horizon=50, seed=0)
    return state_of(columns, worlds.target(model, seed=0), estimator="emp", gamma=gamma)


@pytest.mark.parametrize("nines", [8, 9, 10, 12])
def test_a_discount_next_to_one_is_judged_as_the_average_is(nines):
    """What is left of an episode is worth 10⁹ rewards then, and what a row leaves over is still one."""
    gamma = 1.0 - 10.0**-nines
    assert chances(gamma).status == "pass"
    worn = written(200, 0, wear=0.7)
    near, limit = (state_of(worn, estimator="emp", **asked) for asked in ({"gamma": gamma}, {}))
    assert near.status == limit.status == "fail"
    assert near.value == pytest.approx(limit.value, rel=0.01)


def test_an_action_that_pays_when_repeated_fails():
    assert state_of(written(200, 0, again=1.0)).status == "fail"


def test_the_size_is_that_of_the_bias():
    columns = written(400, 0, again=1.0)
    found = mixope.evaluate(columns, TARGET, "emp")
    half = (found.interval.high - found.interval.low) / 2
    size = next(check for check in found.diagnostics if check.name == "state").value * half
    law = np.array([0.8, 0.1, 0.1])
    world = np.random.default_rng(3)
    world.dirichlet(np.ones(STATES), size=(STATES, ACTIONS))
    world.normal(size=(STATES, ACTIONS))
    logged = world.dirichlet(np.full(ACTIONS, 2.0), size=(2, STATES)).mean(axis=(0, 1))
    expected = float(law @ (law - logged))
    assert 0.5 * expected < size < 2.0 * expected


def test_a_trait_that_nobody_can_move_is_no_reason_to_doubt_the_value():
    check = state_of(written(200, 0, trait=1.0))
    assert (check.status, "not all" in str(check.sentence)) == ("pass", True)


def test_what_never_drives_the_target_is_not_judged():
    assert state_of(written(60, 0), estimator="is-step", horizon=5) is None


def test_users_of_several_episodes_are_one_cluster_each():
    columns = written(120, 0)
    columns["unit"] = columns["episode_id"] // 6
    assert state_of(columns).status == "pass"
    columns = written(240, 0, wear=0.7)
    columns["unit"] = columns["episode_id"] // 4
    assert state_of(columns).status == "fail"


def frail(patients, seed, *, differ, steps=30):
    """Two states; who is frail ends soon, which nobody records. Every day that is lived earns 1."""
    g = np.random.default_rng([seed, 13])
    chance = np.where(g.random(patients) < 0.5, *((0.15, 0.01) if differ else (0.04, 0.04)))
    rows = []
    for e in range(patients):
        s = int(g.integers(2))
        for t in range(steps):
            a, later = int(g.integers(3)), int(g.integers(2))
            over = bool(g.random() < chance[e])
            rows.append((e, t, s, a, 1.0, later, over, t == steps - 1 and not over))
            if over:
                break
            s = later
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def test_ends_that_follow_how_long_it_has_lasted_are_doubted_where_logs_do_not_reach():
    target = mixope.TabularPolicy(np.full((2, 3), 1 / 3))
    check = state_of(frail(400, 0, differ=True), target, estimand="episode")
    assert (check.status, "horizon=30" in check.sentence) == ("warn", True)
    assert state_of(frail(400, 0, differ=True), target, horizon=30).status == "pass"


@pytest.mark.parametrize("seed", range(3))
def test_much_beyond_the_logs_alone_is_no_reason_to_doubt(seed):
    target = mixope.TabularPolicy(np.full((2, 3), 1 / 3))
    columns = frail(400, seed, differ=False)
    found = mixope.evaluate(columns, target, estimand="episode")
    assert found.beyond_logged.share > 0.25
    assert next(check for check in found.diagnostics if check.name == "state").status == "pass"
