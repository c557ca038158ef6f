"""Bounds of chains whose steps may be reweighted: against linear programs, by hand, and attained by a confounder."""

import numpy as np
import pytest
from scipy.optimize import linprog

from mixope.solvers.reweighted import Extreme, NodeOutcomes, Room, Sum, extreme
from mixope.solvers.reweighted_path import extreme_path

AVERAGE = 1.0 - 1e-6
SIDES = ("low", "high")


def chain(seed: int, n_states: int = 3, n_outcomes: int = 5) -> tuple[NodeOutcomes, np.ndarray]:
    """Random outcomes, not sorted by state, and b by state."""
    rng = np.random.default_rng(seed)
    state = rng.permutation(np.repeat(np.arange(n_states), n_outcomes))
    share = rng.random(len(state)) + 0.1
    share /= np.bincount(state, share)[state]
    start = rng.random(n_states)
    later, reward = rng.integers(0, n_states, len(state)), np.round(rng.normal(size=len(state)), 1)
    return NodeOutcomes(state, later, share, reward, start / start.sum()), rng.uniform(0.1, 0.9, n_states)


def plain_value(steps: NodeOutcomes, gamma: float) -> float:
    n = steps.n_states
    p, r = np.zeros((n, n)), np.zeros(n)
    np.add.at(p, (steps.node, steps.next_state), steps.share)
    np.add.at(r, steps.node, steps.share * steps.reward)
    return float((1 - gamma) * steps.start @ np.linalg.solve(np.eye(n) - gamma * p, r))


def program(steps: NodeOutcomes, known: np.ndarray, factor: float, gamma: float, side: str) -> float:
    """The same bound as one linear program in the visits x(c) = d(s) p(c|s) λ(c) and d(s)."""
    n, m = steps.n_states, len(steps.share)
    low, high = known + (1 - known) / factor, known + (1 - known) * factor
    leave, flow = np.zeros((n, m + n)), np.zeros((n, m + n))
    within = np.zeros((2 * m, m + n))
    for c in range(m):
        s = steps.node[c]
        leave[s, c] = 1.0
        flow[steps.next_state[c], c] -= gamma
        within[c, c], within[c, m + s] = 1.0, -high[s] * steps.share[c]
        within[m + c, c], within[m + c, m + s] = -1.0, low[s] * steps.share[c]
    leave[:, m:] -= np.eye(n)
    flow[:, m:] += np.eye(n)
    sign = 1.0 if side == "low" else -1.0
    total = np.concatenate([np.zeros(m), np.ones(n)])[None]
    found = linprog(
        sign * np.concatenate([steps.reward, np.zeros(n)]),
        A_ub=within,
        b_ub=np.zeros(2 * m),
        A_eq=np.vstack([leave, flow, total]),
        b_eq=np.concatenate([np.zeros(n), (1 - gamma) * steps.start, [1.0]]),
        method="highs",
    )
    assert found.success
    return float(sign * found.fun)


@pytest.mark.parametrize("gamma", [AVERAGE, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_without_room_the_bound_is_the_plain_value(seed: int, gamma: float) -> None:
    steps, known = chain(seed)
    for side in SIDES:
        assert extreme(steps, Room(known, 1.0), Sum(gamma), side).value == pytest.approx(
            plain_value(steps, gamma), abs=1e-9
        )
    everything_known = Room(np.ones(3), 3.0)
    assert extreme(steps, everything_known, Sum(gamma), "low").value == pytest.approx(
        plain_value(steps, gamma), abs=1e-9
    )


@pytest.mark.parametrize("gamma", [AVERAGE, 0.8])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_agree_with_a_linear_program_over_all_reweightings(seed: int, gamma: float) -> None:
    steps, known = chain(seed)
    for factor in (1.2, 2.0, 7.0):
        for side in SIDES:
            found = extreme(steps, Room(known, factor), Sum(gamma), side).value
            assert found == pytest.approx(program(steps, known, factor, gamma, side), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_a_few_steps_agree_with_the_chain_unrolled_over_time(seed: int) -> None:
    """States become (step, state), and what comes after the last step earns nothing."""
    steps, known = chain(seed)
    n, length = steps.n_states, 4
    counted = np.array([0.1, 0.2, 0.3, 0.4])
    ended = n * length
    after = [steps.next_state + n * (t + 1) for t in range(length - 1)] + [np.full(len(steps.node), ended)]
    unrolled = NodeOutcomes(
        np.append(np.concatenate([steps.node + n * t for t in range(length)]), ended),
        np.append(np.concatenate(after), ended),
        np.append(np.tile(steps.share, length), 1.0),
        np.append(np.concatenate([w * steps.reward / 0.5**t for t, w in enumerate(counted)]), 0.0),
        np.concatenate([steps.start, np.zeros(n * (length - 1) + 1)]),
    )
    for side in SIDES:
        reference = program(unrolled, np.append(np.tile(known, length), 0.5), 2.0, 0.5, side) / 0.5
        assert extreme_path(steps, Room(known, 2.0), counted, side).value == pytest.approx(reference, abs=1e-7)


def test_more_room_never_narrows_the_bounds() -> None:
    steps, known = chain(7, n_states=6, n_outcomes=9)
    for gamma in (AVERAGE, 0.9):
        low, high = (
            [extreme(steps, Room(known, factor), Sum(gamma), side).value for factor in np.linspace(1, 4, 13)]
            for side in SIDES
        )
        assert np.all(np.diff(low) < 0)
        assert np.all(np.diff(high) > 0)
    lowest, highest = (extreme(steps, Room(known, 1e9), Sum(AVERAGE), side).value for side in SIDES)
    assert steps.reward.min() <= lowest < highest <= steps.reward.max()


@pytest.mark.parametrize(("factor", "b", "paid"), [(1.5, 0.5, 0.3), (2.0, 0.2, 0.6), (3.0, 0.7, 0.9)])
def test_a_hidden_coin_attains_the_bound(factor: float, b: float, paid: float) -> None:
    """One state, rewards 0 and 1. The coin is built so that the log looks the same and the truth is the bound."""
    steps = NodeOutcomes(
        np.zeros(2, int), np.zeros(2, int), np.array([1 - paid, paid]), np.array([0.0, 1.0]), np.ones(1)
    )
    bound = extreme(steps, Room(np.array([b]), factor), Sum(AVERAGE), "low").value
    low, high = b + (1 - b) / factor, b + (1 - b) * factor
    unpaid_first = min(1 - paid, 1 / (1 + factor))
    by_hand = high * (1 / (1 + factor) - unpaid_first) + low * (paid - (1 / (1 + factor) - unpaid_first))
    assert bound == pytest.approx(by_hand, abs=1e-12)

    coin_in_rows = np.array([1 / (1 + factor), factor / (1 + factor)])
    takes = b / np.array([high, low])
    coin = coin_in_rows * b / takes
    paid_with_heads = 1 / (1 + factor) - unpaid_first
    pays = np.array([paid_with_heads, paid - paid_with_heads]) / coin_in_rows

    assert coin.sum() == pytest.approx(1.0)
    assert coin @ takes == pytest.approx(b), "the logged share of the action"
    assert coin * takes @ pays / (coin @ takes) == pytest.approx(paid), "the logged share of rows that were paid"
    odds = (b / (1 - b)) / (takes / (1 - takes))
    np.testing.assert_allclose(odds, [factor, 1 / factor])
    assert coin @ pays == pytest.approx(bound, abs=1e-12), "what always taking the action earns"


def changed(steps: NodeOutcomes, **to: np.ndarray) -> NodeOutcomes:
    fields = {name: getattr(steps, name) for name in ("node", "next_state", "share", "reward", "start")}
    return NodeOutcomes(**{**fields, **to})


@pytest.mark.parametrize("way", ["average", "discounted", "path"])
@pytest.mark.parametrize("side", SIDES)
def test_bounds_move_to_first_order_as_they_say(way: str, side: str) -> None:
    steps, known = chain(3)
    rng = np.random.default_rng(1)
    by_share, by_reward = rng.normal(size=15), rng.normal(size=15)
    by_share -= np.bincount(steps.node, by_share)[steps.node] / 5
    by_known, by_start = rng.normal(size=3), np.array([1.0, -2.0, 1.0])

    def bound(size: float) -> Extreme:
        moved = changed(
            steps,
            share=steps.share + size * by_share,
            reward=steps.reward + size * by_reward,
            start=steps.start + size * by_start,
        )
        room = Room(known + size * by_known, 1.7)
        if way == "path":
            return extreme_path(moved, room, np.full(6, 1 / 6), side)
        return extreme(moved, room, Sum(AVERAGE if way == "average" else 0.8), side)

    here, size = bound(0.0), 1e-6
    told = here.by_share @ by_share + (steps.share * here.by_reward) @ by_reward
    told += here.by_known @ by_known + here.by_start @ by_start
    assert (bound(size).value - bound(-size).value) / (2 * size) == pytest.approx(told, rel=1e-3, abs=1e-5)


def outcomes_of(law: np.ndarray, rewards: np.ndarray, start: np.ndarray) -> NodeOutcomes:
    """Steps of the law p(reward, next state | state)."""
    s, r, later = np.indices(law.shape).reshape(3, -1)
    return NodeOutcomes(s, later, law.ravel(), rewards[r], start)


def earned(law: np.ndarray, rewards: np.ndarray, start: np.ndarray, gamma: float) -> tuple[float, np.ndarray]:
    """The value of a chain, and where it spends its time."""
    moves, mean = law.sum(axis=1), law.sum(axis=2) @ rewards
    visits = (1 - gamma) * np.linalg.solve(np.eye(len(start)) - gamma * moves.T, start)
    return float(visits @ mean), visits


@pytest.mark.parametrize("gamma", [AVERAGE, 0.8])
@pytest.mark.parametrize("seed", range(10))
def test_the_truth_of_a_confounded_process_lies_within_the_bounds_at_its_factor(seed: int, gamma: float) -> None:
    """Three hidden moods, drawn anew at each step, move the action and all that follows it; no sampling error."""
    rng = np.random.default_rng(seed)
    rewards, start = np.array([-1.0, 0.0, 2.0]), np.array([0.5, 0.3, 0.2])
    mood = rng.dirichlet(np.ones(3), size=3)
    takes = rng.uniform(0.2, 0.8, size=(3, 3))
    by_mood = rng.dirichlet(np.full(9, 0.5), size=(3, 3)).reshape(3, 3, 3, 3)
    b = (mood * takes).sum(axis=1)
    seen = np.einsum("su,su,surt->srt", mood, takes, by_mood) / b[:, None, None]
    odds = (b / (1 - b))[:, None] / (takes / (1 - takes))
    factor = float(np.maximum(odds, 1 / odds).max())
    truth, _ = earned(np.einsum("su,surt->srt", mood, by_mood), rewards, start, gamma)
    steps, room = outcomes_of(seen, rewards, start), Room(b, factor)
    low, high = (extreme(steps, room, Sum(gamma), side).value for side in SIDES)
    assert low < truth < high
    assert abs(plain_value(steps, gamma) - truth) > 1e-3, "without room it is wrong"


@pytest.mark.parametrize("seed", range(10))
def test_a_hidden_kind_that_stays_is_covered_by_the_bounds_that_ignore_the_odds(seed: int) -> None:
    """Two kinds of units that never change; short logs show them in other shares by state than the long run does."""
    rng = np.random.default_rng(seed)
    rewards, start = np.array([0.0, 1.0]), np.array([0.8, 0.1, 0.1])
    laws = rng.dirichlet(np.full(6, 0.5), size=(2, 3)).reshape(2, 3, 2, 3)
    logged = np.zeros((2, 3))
    for kind in range(2):
        law = start
        for _ in range(4):
            logged[kind] += law
            law = law @ laws[kind].sum(axis=1)
    values, visits = zip(*(earned(law, rewards, start, AVERAGE) for law in laws), strict=True)
    in_log, in_truth = logged / logged.sum(axis=0), np.array(visits) / np.sum(visits, axis=0)
    factor = float(np.maximum(in_truth / in_log, in_log / in_truth).max())
    steps = outcomes_of(np.einsum("ks,ksrt->srt", in_log, laws), rewards, start)
    low, high = (extreme(steps, Room(np.zeros(3), factor), Sum(AVERAGE), side).value for side in SIDES)
    assert low < np.mean(values) < high
