"""Worlds whose episodes end: their rules, their totals and lengths, and logs to the end or truncated."""

import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.worlds import BUILDERS, from_outcomes, make, simulate, soft_q, truth
from mixope.worlds.efficiency import logged_law
from mixope.worlds.games import dealer_law
from mixope.worlds.visits import DRUG, SURGERY

from .worlds import random_model, random_policy

ENDING = [name for name in BUILDERS if make(name).ends]


def always(model, action):
    return np.tile(np.eye(model.n_actions)[action], (model.n_states, 1))


def totals(logs, values=None):
    earned = logs["reward"] if values is None else values
    return np.bincount(logs["episode_id"], weights=earned)


def agrees(sample, exact):
    return abs(sample.mean() - exact) < 4 * sample.std(ddof=1) / np.sqrt(len(sample)) + 1e-12


def test_six_worlds_end():
    assert ENDING == ["walk", "sessions", "survival", "queue", "frozenlake", "blackjack"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_the_total_of_an_episode_is_a_slow_sum(seed, gamma):
    model = random_model(seed)
    policy = random_policy(model, seed)
    law, total, length = model.start, 0.0, 0.0
    matrix = model.transition.toarray().reshape(7, 3, 7)
    ends = np.zeros_like(matrix, dtype=bool)
    ends.reshape(21, 7)[model.entry_rows(), model.transition.indices] = model.terminated
    going_on = np.einsum("sa,sat->st", policy, np.where(ends, 0.0, matrix))
    for t in range(2000):
        total += gamma**t * law @ (policy * model.expected_reward()).sum(axis=1)
        length += law.sum()
        law = law @ going_on
    assert truth.episode(model, policy, gamma) == pytest.approx(total, abs=1e-10)
    assert truth.episode_length(model, policy) == pytest.approx(length, abs=1e-9)
    assert truth.episode_visits(model, policy).sum() == pytest.approx(length, abs=1e-9)


def test_a_value_is_asked_for_by_its_estimand():
    model = make("sessions")
    policy = random_policy(model, 0)
    found = [
        truth.value(model, policy, estimand)
        for estimand in (
            Estimand(),
            Estimand("discounted", gamma=0.9),
            Estimand("horizon", horizon=7),
            Estimand("episode"),
            Estimand("episode", gamma=0.9),
        )
    ]
    assert found == pytest.approx(
        [
            truth.average(model, policy),
            truth.discounted(model, policy, 0.9),
            truth.horizon(model, policy, 7),
            truth.episode(model, policy),
            10 * truth.discounted(model, policy, 0.9),
        ]
    )
    assert truth.average(model, policy) == pytest.approx(
        truth.episode(model, policy) / truth.episode_length(model, policy)
    )


def test_an_episode_that_may_go_on_for_ever_has_no_total():
    lake = make("frozenlake")
    left, up = always(lake, 0), always(lake, 3)
    assert truth.episode_length(lake, left) > 1
    with pytest.raises(UsageError, match="go on for ever"):
        truth.episode(lake, up)
    with pytest.raises(UsageError, match="go on for ever"):
        truth.episode_length(lake, up)
    with pytest.raises(UsageError, match="may never end; give a horizon"):
        simulate(lake, [left, up], 4, seed=0)
    assert truth.episode(lake, up, 0.9) == 0.0
    assert simulate(lake, [up], 4, 30, seed=0)["truncated"].sum() == 4
    with pytest.raises(UsageError, match="may never end"):
        simulate(make("singlepath"), [random_policy(make("singlepath"), 0)], 1, seed=0)


def test_a_trap_beyond_the_start_is_seen_and_one_out_of_reach_is_not():
    def trapped(start):
        return from_outcomes(
            "trapped",
            shape=(3, 1),
            state=np.array([0, 1, 1, 2]),
            action=np.zeros(4, dtype=int),
            next_state=np.array([2, 2, 0, 2]),
            probability=np.array([1.0, 0.5, 0.5, 1.0]),
            reward=np.array([1.0, 2.0, 0.0, 0.0]),
            terminated=np.array([True, False, False, False]),
            start=np.array(start),
        )

    one = np.ones((3, 1))
    assert truth.episode(trapped([1.0, 0, 0]), one) == 1.0
    with pytest.raises(UsageError, match="go on for ever"):
        truth.episode(trapped([0, 1.0, 0]), one)


@pytest.mark.parametrize("name", ENDING)
def test_logs_to_the_end_earn_the_total_and_last_the_length(name):
    model = make(name)
    policy = soft_q.stages(model, 1)[0]
    logs = simulate(model, [policy], 4000, seed=1)
    assert not logs["truncated"].any()
    assert logs["terminated"].sum() == 4000
    assert agrees(totals(logs), truth.episode(model, policy))
    assert agrees(totals(logs, np.ones(len(logs["reward"]))), truth.episode_length(model, policy))
    assert agrees(totals(logs, 0.9 ** logs["step"] * logs["reward"]), truth.episode(model, policy, 0.9))
    visited = np.bincount(logs["observation"], minlength=model.n_states) / len(logs["reward"])
    np.testing.assert_allclose(visited, logged_law(model, [policy], None).sum(axis=1), atol=0.02)


def test_logs_with_a_horizon_are_the_same_logs_cut():
    model = make("queue")
    policies = soft_q.stages(model, 2)
    whole, cut = simulate(model, policies, 60, seed=3), simulate(model, policies, 60, 12, seed=3)
    kept = whole["step"] < 12
    for column in ("episode_id", "observation", "action", "reward", "next_observation", "terminated"):
        assert (whole[column][kept] == cut[column]).all()
    assert (cut["truncated"] == ((cut["step"] == 11) & ~cut["terminated"])).all()
    assert 10 < cut["truncated"].sum() < 60


def test_surgery_is_better_per_step_and_the_drug_per_patient():
    model = make("survival")
    surgery, drug = always(model, SURGERY), always(model, DRUG)
    assert truth.episode(model, surgery) == pytest.approx(0.5)
    assert truth.episode(model, drug) == pytest.approx(0.9, abs=0.005)
    assert truth.episode_length(model, surgery) == pytest.approx(1)
    assert truth.average(model, surgery) == pytest.approx(0.5)
    assert truth.average(model, drug) == pytest.approx(0.07, abs=0.005)


def test_a_session_earns_by_purchases_and_pays_for_advertisements():
    model = make("sessions")
    logs = simulate(model, [random_policy(model, 0)], 500, seed=0, observed="factors")
    bought = logs["next_observation.page"] == 4
    assert (logs["terminated"] == (logs["next_observation.page"] >= 4)).all()
    np.testing.assert_allclose(logs["reward"], 10.0 * bought - 0.1 * (logs["action"] == 1))
    assert (logs["observation.page"][bought] == 3).all()
    assert (logs["observation.returning"] == logs["next_observation.returning"]).all()


def test_a_queue_moves_by_one_and_costs_what_it_says():
    model = make("queue")
    logs = simulate(model, [random_policy(model, 0)], 300, seed=0, observed="factors")
    length, mode, action = logs["observation.length"], logs["observation.fast"], logs["action"]
    then = np.where(action == 2, mode, action)
    assert (np.abs(logs["next_observation.length"] - length) <= 1).all()
    assert (logs["next_observation.length"][action == 2] <= length[action == 2]).all()
    assert (logs["next_observation.fast"] == then).all()
    cost = 0.05 * length + 0.3 * then + 0.5 * (then != mode) + 0.9 * (action == 2)
    np.testing.assert_allclose(logs["reward"], -cost)
    assert (logs["terminated"] == (logs["next_observation.length"] == 0)).all()


def test_frozenlake_is_gymnasiums():
    gymnasium = pytest.importorskip("gymnasium")
    table = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True).unwrapped.P
    model = make("frozenlake")
    for state, by_action in table.items():
        for action, outcomes in by_action.items():
            row = state * 4 + action
            span = slice(model.transition.indptr[row], model.transition.indptr[row + 1])
            law, reward = np.zeros(16), np.zeros(16)
            for chance, after, earned, ended in outcomes:
                law[after] += chance
                reward[after] = earned
                k = model.transition.indices[span].tolist().index(after)
                assert model.terminated[span][k] == ended
            np.testing.assert_allclose(model.transition[[row]].toarray()[0], law, atol=1e-12)
            assert (model.reward[span] == reward[model.transition.indices[span]]).all()


def test_the_dealer_goes_bust_as_tables_of_an_infinite_deck_say():
    bust = [dealer_law(card)[22:].sum() for card in range(1, 11)]
    known = [0.1153, 0.3536, 0.3739, 0.3945, 0.4164, 0.4232, 0.2623, 0.2447, 0.2284, 0.2121]
    np.testing.assert_allclose(bust, known, atol=5e-4)
    assert all(dealer_law(card).sum() == pytest.approx(1) for card in range(1, 11))


def test_blackjack_is_gymnasiums():
    gymnasium = pytest.importorskip("gymnasium")
    model = make("blackjack")
    place = {key: k for k, key in enumerate(zip(*(column.tolist() for column in model.factors.values()), strict=True))}
    policy = random_policy(model, 0)
    policy[model.factors["sum"] >= 20] = [1.0, 0.0]
    env, generator = gymnasium.make("Blackjack-v1", natural=False, sab=False), np.random.default_rng(0)
    earned = []
    for k in range(4000):
        state, _ = env.reset(seed=0 if k == 0 else None)
        over = False
        while not over:
            key = (int(state[0]), int(state[1]), int(state[2]))
            assert key in place
            state, reward, over, _, _ = env.step(int(generator.random() < policy[place[key], 1]))
        earned.append(reward)
    assert agrees(np.array(earned), truth.episode(model, policy))
