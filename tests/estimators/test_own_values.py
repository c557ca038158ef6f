"""What loggers earn by themselves: means by hand where nothing is cut, the chain of their rows where something is."""

import numpy as np
import pytest

import mixope
from mixope.base.estimand import Estimand
from mixope.engines import EmbeddedEngine, MemoryEngine
from mixope.estimators.asking import all_or_nothing
from mixope.estimators.counts.on_policy import FROM_CHAIN, FROM_EPISODES, FROM_STEPS
from mixope.features import NormalisedBumps
from mixope.session.session import look
from mixope.worlds import cartpole, continuous
from rounds import worlds

pytestmark = pytest.mark.long

SUMS = [Estimand("discounted", 0.9), Estimand("episode"), Estimand("episode", 0.95), Estimand("horizon", horizon=6)]
STATES = ("ids", "factors", "floats")


def own(columns, estimand, engine=None, features=None):
    """Every logger's value and the pool's, each as a run has them."""
    seen = look(mixope.read(columns), engine, features)
    rounds = seen.rounds()
    (values,) = rounds.run(all_or_nothing([lambda: seen.on_policy(estimand)]))
    return values


def taken(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


def ended(states, episodes=60, seed=0, horizon=400):
    """Every episode runs to its true end."""
    made = worlds.columns(states, "discrete", episodes=episodes, horizon=horizon, seed=seed)
    assert not made["truncated"].any()
    return made


def returns_of(columns, estimand, label=None):
    """k Σ γᵗ r of every episode, in a loop."""
    found = []
    for episode in sorted(set(columns["episode_id"].tolist())):
        mine = columns["episode_id"] == episode
        if label is None or columns["policy_id"][mine][0] == label:
            rewards = columns["reward"][mine][: estimand.horizon]
            total = sum(estimand.discount**t * r for t, r in enumerate(rewards))
            found.append(estimand.scale * total)
    return np.array(found)


@pytest.mark.parametrize("states", STATES)
@pytest.mark.parametrize("estimand", SUMS, ids=str)
def test_of_episodes_that_ended_it_is_the_mean_of_what_they_earned(states, estimand):
    columns = ended(states)
    for found, label in zip(own(columns, estimand), (*worlds.LABELS, None), strict=True):
        by_hand = returns_of(columns, estimand, label)
        assert found.value == pytest.approx(by_hand.mean(), rel=1e-12)
        assert found.method == FROM_EPISODES
        assert np.linalg.norm(found.scores) == pytest.approx(by_hand.std() / np.sqrt(len(by_hand)))
        assert np.count_nonzero(found.scores) == len(by_hand)


@pytest.mark.parametrize("states", STATES)
def test_the_average_of_episodes_that_ended_is_the_mean_of_their_steps(states):
    columns = ended(states)
    for found, label in zip(own(columns, Estimand()), (*worlds.LABELS, None), strict=True):
        mine = columns["reward"] if label is None else columns["reward"][columns["policy_id"] == label]
        assert (found.value, found.method) == (pytest.approx(mine.mean()), FROM_STEPS)
        assert found.scores.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("states", STATES)
def test_a_horizon_within_all_episodes_and_a_tail_that_is_discounted_to_nothing_need_no_model(states):
    columns = worlds.columns(states, "discrete", episodes=20, horizon=30, ends=False)
    for estimand in (Estimand("horizon", horizon=30), Estimand("discounted", 0.5)):
        *_, pool = own(columns, estimand)
        assert (pool.value, pool.method) == (pytest.approx(returns_of(columns, estimand).mean()), FROM_EPISODES)


def test_the_first_step_need_not_be_zero():
    columns = ended("ids")
    late = {**columns, "step": columns["step"] + 7}
    for estimand in SUMS:
        assert own(late, estimand)[0].value == pytest.approx(own(columns, estimand)[0].value)


@pytest.mark.parametrize("estimand", SUMS, ids=str)
def test_engines_agree_on_what_episodes_earned(estimand):
    columns = ended("ids")
    for one, other in zip(
        own(columns, estimand, MemoryEngine()), own(columns, estimand, EmbeddedEngine()), strict=True
    ):
        assert one.value == pytest.approx(other.value, rel=1e-12)
        assert one.scores == pytest.approx(other.scores, abs=1e-12)


def by_linear_algebra(columns, gamma):
    """(1−γ) μ₀ (I − γP)⁻¹ r of the rows themselves, dense and in loops."""
    n = worlds.PLACES
    count, moves, earned, start = np.zeros(n), np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for k in range(len(columns["step"])):
        s, t = columns["observation"][k], columns["next_observation"][k]
        count[s] += 1
        earned[s] += columns["reward"][k]
        moves[s, t] += not columns["terminated"][k]
        start[s] += columns["step"][k] == 0
    value = np.linalg.solve(np.eye(n) - gamma * moves / count[:, None], earned / count)
    return (1 - gamma) * start @ value / start.sum()


def test_of_cut_episodes_it_is_the_chain_of_the_logger_s_own_rows():
    columns = worlds.columns("ids", "discrete", episodes=80, horizon=6)
    for found, label in zip(own(columns, Estimand("discounted", 0.9)), (*worlds.LABELS, None), strict=True):
        mine = columns if label is None else taken(columns, columns["policy_id"] == label)
        assert found.value == pytest.approx(by_linear_algebra(mine, 0.9), rel=1e-9)
        assert found.method == FROM_CHAIN


AVERAGE, DISCOUNTED, EPISODE = Estimand(), Estimand("discounted", 0.9), Estimand("episode", 0.95)
CUT = [(states, estimand, ends) for states in STATES for estimand in (AVERAGE, DISCOUNTED) for ends in (True, False)]


@pytest.mark.parametrize(("states", "estimand", "ends"), [*CUT, *((s, EPISODE, True) for s in STATES)])
def test_cut_episodes_tell_what_long_ones_earn(states, estimand, ends):
    short = worlds.columns(states, "discrete", episodes=240, horizon=8, ends=ends)
    long = worlds.columns(states, "discrete", episodes=120 if ends else 24, horizon=200, seed=5, ends=ends)
    for found, wanted in zip(own(short, estimand), own(long, estimand), strict=True):
        error = np.hypot(np.linalg.norm(found.scores), np.linalg.norm(wanted.scores))
        assert (found.method, wanted.method == FROM_CHAIN) == (FROM_CHAIN, estimand.restarts and not ends)
        assert abs(found.value - wanted.value) < 3.5 * error
        assert error < 0.25 * (1.0 if estimand.scale < 1 or estimand.restarts else 10.0)


def test_only_those_whose_episodes_were_cut_are_solved_for():
    columns = ended("ids")
    first = worlds.LABELS[0]
    keep = (columns["policy_id"] == first) | (columns["step"] < 3)
    mixed = taken(columns, keep)
    a, b, pool = own(mixed, Estimand("discounted", 0.9))
    assert (a.method, b.method, pool.method) == (FROM_EPISODES, FROM_CHAIN, FROM_CHAIN)
    assert a.value == pytest.approx(returns_of(mixed, Estimand("discounted", 0.9), first).mean())
    assert not a.scores[b.mine].any()
    assert not b.scores[a.mine].any()


@pytest.mark.long
@pytest.mark.parametrize("states", ["ids", "floats"])
@pytest.mark.parametrize("estimand", [Estimand(), Estimand("discounted", 0.9)], ids=str)
def test_scores_are_what_leaving_out_an_episode_changes(states, estimand):
    """The jackknife, which knows nothing of scores."""
    columns = worlds.columns(states, "discrete", episodes=60, horizon=6)
    given = NormalisedBumps(6) if states == "floats" else None
    *_, whole = own(columns, estimand, features=given)
    n = len(whole.scores)
    moved = []
    for episode in range(n):
        *_, rest = own(taken(columns, columns["episode_id"] != episode), estimand, features=given)
        moved.append((n - 1) / n * (whole.value - rest.value))
    in_key_order = np.argsort(np.argsort(np.arange(n) % 2, kind="stable"), kind="stable")  # loggers take turns
    scores = whole.scores[in_key_order]
    assert np.corrcoef(scores, moved)[0, 1] > 0.9
    assert np.linalg.norm(moved) == pytest.approx(np.linalg.norm(scores), rel=0.2)


def test_where_nothing_can_be_said_the_reason_is():
    columns = worlds.columns("floats", "discrete", episodes=20, horizon=6)
    for estimand, words in (
        (Estimand("horizon", horizon=9), "cut before 9 steps"),
        (Estimand("discounted", 0.9), "too few"),
    ):
        found = own(columns, estimand)
        assert all(isinstance(each, str) and words in each for each in found[:2])
    late = worlds.columns("floats", "discrete", episodes=100, horizon=8)
    late = taken(late, (late["step"] > 1) | (late["policy_id"] == worlds.LABELS[0]))
    assert "no first step" in own(late, Estimand("discounted", 0.9))[1]


@pytest.mark.parametrize("seed", [1, 3, 8])
def test_directions_that_hardly_any_row_shows_move_nothing(seed):
    """Where bumps lie by chance, one of them may be another's double but for a row or two."""
    logs = continuous.simulate(cartpole.CartPole(), cartpole.loggers(1), 100, 60, seed=seed)
    earned = mixope.evaluate(logs, cartpole.target(), "lstdq", gamma=0.95, seed=seed).against_logs
    steps = np.bincount(logs["episode_id"].astype(int))
    returns = 1 - 0.95**steps  # of those that were cut at 60 steps .05 at the most is missing
    assert earned.value == pytest.approx(returns.mean(), abs=0.03)
    assert earned.interval.width < 1.3 * 3.96 * returns.std(ddof=1) / 10
