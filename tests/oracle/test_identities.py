"""The equations of the state ratio hold on the rows themselves, checked by slow loops over them."""

import numpy as np
import pytest

import mixope
from mixope.base.estimand import Estimand
from mixope.behaviours import CountedMixture
from mixope.engines import MemoryEngine
from mixope.estimators.counts.flow import follow
from mixope.estimators.counts.occupancy import occupy
from mixope.estimators.state_ratio import state_ratio
from mixope.requests.problem import Problem
from mixope.requests.transitions import encode, transition_grouping

from .worlds import closed_walk, counted_policy, random_policy, world


def problem_of(logs, policy, estimand=None):
    sums = MemoryEngine().group_sums(logs, transition_grouping(logs.schema))
    return Problem(encode(sums, logs.schema), policy, estimand or Estimand())


def ratios(columns, target, n_states):
    """ρ of every row: the target over the counted mixture, states all covered."""
    behaviour = counted_policy(columns, n_states, target.shape[1])
    return [target[s, a] / behaviour[s, a] for s, a in zip(columns["observation"], columns["action"], strict=True)]


@pytest.mark.parametrize(("gamma", "seed"), [(1.0, 0), (1.0, 1), (0.9, 2), (0.5, 3)])
def test_the_general_form_holds_for_every_test_function(gamma, seed):
    """Σ c ω(s)[f(s) − γ ρ f(s′)] = (1−γ) E_μ₀ f Σ c, by a loop over rows for random f."""
    columns, target = closed_walk(seed, episodes=1 if gamma == 1 else 8), random_policy(seed, 6, 2)
    estimand = Estimand() if gamma == 1 else Estimand("discounted", gamma)
    flow = follow(
        problem_of(mixope.read(columns), mixope.TabularPolicy(target), estimand),
        CountedMixture(),
        np.ones(len(set(zip(*(columns[c] for c in ("observation", "action", "next_observation")), strict=True)))),
    )
    omega, rho = state_ratio(flow, occupy(flow)), ratios(columns, target, 6)
    starts = columns["observation"][columns["step"] == 0]
    for f in np.random.default_rng(seed).normal(size=(5, 6)):
        left = sum(
            omega[s] * (f[s] - gamma * p * f[t])
            for s, t, p in zip(columns["observation"], columns["next_observation"], rho, strict=True)
        )
        assert left == pytest.approx((1 - gamma) * f[starts].mean() * len(rho), abs=1e-9 * len(rho))


@pytest.mark.parametrize("seed", range(3))
def test_weights_sum_to_the_rows_and_ratios_are_normalised_in_every_state(seed):
    """Σ ω = Σ ωρ = Σ c, and Σ ρ = Σ c over the rows of every state, though an action was never logged in one."""
    columns = closed_walk(seed)
    keep = ~((columns["observation"] == 1) & (columns["action"] == 1))
    columns = {name: values[keep] for name, values in columns.items()}
    columns["episode_id"], columns["step"] = np.arange(keep.sum()), np.zeros(keep.sum(), dtype=int)
    problem = problem_of(mixope.read(columns), mixope.TabularPolicy(random_policy(seed, 6, 2)))
    flow = follow(problem, CountedMixture(), np.ones(problem.transitions.n_groups))
    omega, rows = state_ratio(flow, occupy(flow)), flow.rows
    by_state = np.zeros(6)
    for g in range(rows.n_groups):
        by_state[rows.state[g]] += flow.ratio[g]
    np.testing.assert_allclose(by_state[flow.states], flow.state_count[flow.states], rtol=1e-12)
    assert float(omega[rows.state] @ flow.ratio) == pytest.approx(flow.count.sum(), rel=1e-10)
    assert float(omega[rows.state] @ flow.count) == pytest.approx(flow.count.sum(), rel=1e-10)


@pytest.mark.parametrize("ends", [False, True], ids=["continuing", "ending"])
@pytest.mark.parametrize("seed", range(3))
def test_a_slow_loop_over_a_tiny_world_gives_the_same_value(seed, ends):
    """Follow the counted law of the target from row to row in plain Python until it no longer changes."""
    made = world(seed, n_states=3, ends=ends)
    columns, target = made.columns, made.target
    rho = ratios(columns, target, 3) if not ends else _living_ratios(columns, target)
    rows = list(zip(*(columns[c].tolist() for c in ("observation", "next_observation", "terminated", "reward")), rho))  # noqa: B905
    visits = [sum(1 for s, *_ in rows if s == state) for state in range(3)]
    starts = [s for s, step in zip(columns["observation"], columns["step"], strict=True) if step == 0]
    law = [1 / 3] * 3 if not ends else [0.5, 0.5, 0.0]
    for _ in range(200):
        after = [0.0] * 3
        for s, t, ended, _, p in rows:
            share = law[s] * p / visits[s]
            if not ended:
                after[t] += share
            else:
                for first in starts:
                    after[first] += share / len(starts)
        if max(abs(x - y) for x, y in zip(law, after, strict=True)) < 1e-14:
            break
        law = after
    value = sum(law[s] * p * r / visits[s] for s, _, _, r, p in rows)
    assert mixope.evaluate(made.logs, made.policy, "emp").value == pytest.approx(value, abs=1e-9)


def _living_ratios(columns, target):
    counts = np.zeros((3, 2))
    np.add.at(counts, (columns["observation"], columns["action"]), 1)
    return [
        target[s, a] / (counts[s, a] / counts[s].sum())
        for s, a in zip(columns["observation"], columns["action"], strict=True)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_standard_error_is_the_sum_of_squared_episode_scores(seed):
    """ωρ(r − η + V(s′) − q(s,a)) n/(n−1) row by row, V by dense algebra, summed by episode."""
    columns, target = closed_walk(seed, episodes=7), random_policy(seed, 6, 2)
    s, a, t, r = (columns[c] for c in ("observation", "action", "next_observation", "reward"))
    counts, moves, rewards = np.zeros((6, 2)), np.zeros((6, 2, 6)), np.zeros((6, 2))
    np.add.at(counts, (s, a), 1)
    np.add.at(moves, (s, a, t), 1)
    np.add.at(rewards, (s, a), r)
    chain = np.einsum("sa,sat->st", target, moves / counts[:, :, None])
    reward = (target * rewards / counts).sum(axis=1)
    d = np.linalg.lstsq(np.vstack([np.eye(6) - chain.T, np.ones(6)]), np.append(np.zeros(6), 1), rcond=None)[0]
    eta = d @ reward
    v = np.linalg.lstsq(np.vstack([np.eye(6) - chain, d]), np.append(reward - eta, 0), rcond=None)[0]
    q = (rewards - counts * eta + moves @ v) / counts
    scores = np.zeros(7)
    for i, episode in enumerate(columns["episode_id"]):
        weight = d[s[i]] * target[s[i], a[i]] / counts[s[i], a[i]]
        n = counts[s[i], a[i]]
        scores[episode] += weight * (r[i] - eta + v[t[i]] - q[s[i], a[i]]) * n / (n - 1)
    result = mixope.evaluate(mixope.read(columns), mixope.TabularPolicy(target), "emp")
    assert result.value == pytest.approx(eta, abs=1e-9)
    assert result.standard_error == pytest.approx(np.sqrt(7 / 6 * np.sum(scores**2)), rel=1e-8)
