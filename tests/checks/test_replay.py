"""The counts replay the logs that they were made from, where the state is all that there is; else they say so."""

from __future__ import annotations

import numpy as np
import pytest

import mixope
from mixope.backtesting import backtest
from mixope.checks.replay import farthest, judge_replays, replay_logs
from mixope.requests.replay import FOLDS, dealt, lay, replay, replay_by_logger
from mixope.session.session import count

COLUMNS = (
    "episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated", "policy_id",
)  # fmt: skip
STATES, ACTIONS = 8, 2


def world(seed=0, ends=0.0):
    """P, mean reward and chance of an end by state and action."""
    generator = np.random.default_rng(seed)
    moves = np.zeros((STATES, ACTIONS, STATES))
    for row in moves.reshape(-1, STATES):
        row[generator.choice(STATES, 3, replace=False)] = generator.dirichlet(np.ones(3))
    return moves, generator.normal(size=(STATES, ACTIONS)), np.full((STATES, ACTIONS), ends)


def wander(episodes, steps, seed, *, loggers=1, ends=0.0, length=None, shift=None, trait=0.0, labels=True):
    """Episodes of a Markov chain from state 0; ``shift(t, e)`` and a normal trait of the episode move its rewards."""
    moves, mean, end = world(ends=ends)
    generator, rows = np.random.default_rng([7, seed]), []
    laws = np.random.default_rng(3).dirichlet(np.ones(ACTIONS), size=(loggers, STATES))
    for e in range(episodes):
        s, own = 0, trait * generator.normal()
        last = (steps if length is None else length(generator, e)) - 1
        for t in range(last + 1):
            a = generator.choice(ACTIONS, p=laws[e % loggers, s])
            reward = mean[s, a] + own + (shift(t, e) if shift else 0.0) + generator.normal()
            over = generator.random() < end[s, a]
            s, before = generator.choice(STATES, p=moves[s, a]), s
            who = f"logger-{e % loggers}" if labels else "all"
            rows.append((e, t, before, a, reward, s, over, t == last and not over, who))
            if over:
                break
    return dict(zip(COLUMNS, map(np.array, zip(*rows, strict=True)), strict=True))


def customers(episodes, weeks, seed, chances=(0.1,), fade=0.0, longest=10):
    """Weekly customers: the state is the number of weeks since the last purchase, the chance to buy their own."""
    generator, rows = np.random.default_rng([11, seed]), []
    for e in range(episodes):
        chance, s = generator.choice(chances), 0
        for t in range(weeks):
            bought = generator.random() < chance * np.exp(-fade * t)
            later = 0 if bought else min(s + 1, longest)
            rows.append((e, t, s, 0, 30.0 * bought, later, False, t == weeks - 1, "shop"))
            s = later
    return dict(zip(COLUMNS, map(np.array, zip(*rows, strict=True)), strict=True))


def laid(columns):
    counted = count(columns)
    sums = counted.rounds().run(counted.structure())
    return lay(counted.transitions, sums.ordered, sums.totals.logger)


def replayed(columns):
    counted = count(columns)
    sums = counted.rounds().run(counted.structure())
    return replay_logs(counted.transitions, sums)


def everything(rows):
    return np.ones(len(rows.step), dtype=bool)


def checks(columns, **options):
    target = mixope.TabularPolicy(np.full((11, 1 + int(columns["action"].max())), 1.0 / (1 + columns["action"].max())))
    found = mixope.evaluate(columns, target, **options)
    return {d.name: d for d in found.diagnostics if d.name.startswith("replay")}


def by_hand(rows, n_bands):
    """S, its size and what every episode adds to it: all pairs of rows, one by one."""
    steps = int(rows.step.max()) + 1
    n = np.bincount(rows.step)
    band = np.minimum(((np.cumsum(n) - n / 2) * n_bands / n.sum()).astype(int), n_bands - 1)
    last = {e: np.flatnonzero(rows.episode == e)[-1] for e in set(rows.episode.tolist())}
    alive = [i for i in range(len(rows.step)) if rows.next_state[i] < rows.n_states]
    goes_on = np.zeros(steps)
    for t in range(steps - 1):
        here = [i for i in alive if rows.step[i] == t]
        goes_on[t] = sum(i != last[rows.episode[i]] for i in here) / max(len(here), 1)
    total, size = np.zeros(n_bands), np.zeros(n_bands)
    adds = np.zeros((len(last), n_bands))
    for third in range(FOLDS):
        mine = np.flatnonzero(rows.fold == third)
        value = np.zeros((steps + 1, rows.n_states + 1, n_bands))
        visits = np.bincount(rows.state[mine], minlength=rows.n_states)
        for t in reversed(range(steps)):
            for i in mine:
                gain = rows.reward[i] * (band[t] == np.arange(n_bands))
                value[t, rows.state[i]] += (gain + goes_on[t] * value[t + 1, rows.next_state[i]]) / visits[
                    rows.state[i]
                ]
            usual = visits @ value[t, :-1] / visits.sum()
            value[t, :-1][visits == 0] = usual
        weight = 1.0 / (1.0 + np.bincount(rows.pair[mine], minlength=rows.n_pairs))

        def worth(t, i, value=value):
            return rows.reward[i] * (band[t] == np.arange(n_bands)) + goes_on[t] * value[t + 1, rows.next_state[i]]

        for j in np.flatnonzero(rows.fold != third):
            for k in np.flatnonzero((rows.fold != third) & (rows.fold != rows.fold[j]) & (rows.pair == rows.pair[j])):
                gap = weight[rows.pair[j]] * (worth(rows.step[j], j) - worth(rows.step[j], k))
                total += gap
                adds[rows.episode[j]] += gap
                adds[rows.episode[k]] += gap
                size[band[rows.step[j]]] += weight[rows.pair[j]]
    return total / 2, size / 2, adds / 2


@pytest.mark.parametrize(("ends", "length"), [(0.0, None), (0.2, lambda g, e: 2 + e % 4)])
def test_the_sum_is_that_over_all_pairs_of_rows(ends, length):
    rows = laid(wander(9, 6, 1, ends=ends, length=length))
    found = replay(rows, everything(rows), everything(rows))
    total, size, adds = by_hand(rows, 3)
    np.testing.assert_allclose(found.total, total, atol=1e-10)
    np.testing.assert_allclose(found.size, size)
    np.testing.assert_allclose(found.by_episode, adds, atol=1e-10)


def test_every_difference_counts_for_both_of_its_episodes():
    rows = laid(wander(30, 10, 2, loggers=2, ends=0.05))
    for found, columns in ((replay(rows, everything(rows), everything(rows)), 3), (replay_by_logger(rows), 2)):
        assert found.by_episode.shape == (30, columns)
        np.testing.assert_allclose(found.by_episode.sum(axis=0), 2 * found.total, atol=1e-9)
        assert found.rows.sum() == len(rows.step)


def test_where_all_is_known_by_state_and_step_loggers_are_parts_of_the_whole():
    """With episodes of two steps a logger's window is the whole episode: its sums are parts of those of all bands."""
    rows = laid(wander(30, 2, 2, loggers=2))
    whole, by_logger = replay(rows, everything(rows), everything(rows)), replay_by_logger(rows)
    np.testing.assert_allclose(whole.total.sum(), by_logger.total.sum(), atol=1e-9)


def test_episodes_too_long_to_be_followed_in_one_go_are_followed_in_windows(monkeypatch):
    monkeypatch.setattr("mixope.requests.replay.LONGEST", 5)
    rows = laid(wander(30, 20, 3))
    found = replay(rows, everything(rows), everything(rows))
    assert found.first.tolist() == [0, 7, 13]
    np.testing.assert_allclose(found.by_episode.sum(axis=0), 2 * found.total, atol=1e-9)
    assert np.all(np.abs(found.off) < 4 * found.error)


def test_the_folds_are_even_in_every_logger_and_over_time():
    logger = np.repeat([0, 1], [30, 7])
    fold = dealt(logger, 0)
    assert np.bincount(fold[:30]).tolist() == [10, 10, 10]
    assert np.ptp(np.bincount(fold[30:])) <= 1
    assert np.ptp(np.bincount(fold[:15])) <= 2


def test_a_world_that_is_known_by_its_state_is_replayed():
    found = checks(wander(60, 20, 4, loggers=2))
    assert set(found) == {"replay", "replay, by logger", "replay, later steps", "replay, later episodes"}
    assert all(check.status == "pass" and check.value == 0 for check in found.values())


def test_loggers_that_are_not_told_apart_are_no_matter():
    """The pool of several policies has no chain of its own; the actions that were taken tell all that is needed."""
    found = checks(wander(120, 20, 5, loggers=3, labels=False))
    assert all(check.status == "pass" for check in found.values())


def test_customers_who_differ_are_not_replayed():
    found = checks(customers(300, 26, 6, chances=(0.02, 0.3)))
    assert found["replay"].status == "warn"
    assert "does not follow from the recorded state alone" in found["replay"].sentence
    assert found["replay, later steps"].status == "warn"


def test_customers_who_are_alike_are_replayed_though_some_states_are_never_left():
    """The newest number of weeks is a state that no row leaves: its rows count as others do."""
    found = checks(customers(200, 9, 7, longest=100))
    assert found["replay"].status == "pass"
    assert "replay, later steps" not in found  # most of their states were not met before


def test_customers_who_tire_are_not_replayed_and_the_level_out_of_time_is_said():
    columns = customers(1100, 26, 8, fade=0.05)
    later = farthest(replayed(columns).later_steps)
    seen = columns["reward"][columns["step"] >= 13].mean()
    assert later.seen == pytest.approx(seen)
    assert later.predicted > 1.25 * seen
    found = checks(columns)
    assert found["replay, later steps"].status != "pass"
    assert "the steps before 13 predict" in found["replay, later steps"].sentence


def test_rewards_that_drift_over_steps_are_not_replayed():
    found = checks(wander(120, 20, 9, shift=lambda t, e: 0.06 * t))
    assert found["replay"].status != "pass"
    assert found["replay, later steps"].status != "pass"


def test_rewards_that_drift_over_episodes_are_not_foretold():
    found = checks(wander(120, 20, 10, shift=lambda t, e: 0.01 * e))
    assert found["replay, later episodes"].status != "pass"
    assert found["replay, later steps"].status == "pass"


def test_a_logger_whose_rewards_are_others_is_named():
    found = checks(wander(120, 20, 11, loggers=2, shift=lambda t, e: 1.0 * (e % 2)))
    assert found["replay, by logger"].status != "pass"
    assert "for logger-" in found["replay, by logger"].sentence


def test_what_is_sure_but_small_passes():
    found = replayed(wander(120, 20, 9, shift=lambda t, e: 0.06 * t))
    wide = judge_replays(found, 100.0, 1.0, -5.0, 5.0)
    assert all(check.status == "pass" for check in wide)
    assert any(check.status != "pass" for check in judge_replays(found, 0.1, 1.0, -5.0, 5.0))


def test_a_total_of_an_episode_is_off_at_every_one_of_its_steps():
    found = replayed(wander(120, 20, 9, shift=lambda t, e: 0.06 * t))
    once, often = (judge_replays(found, 2.0, steps, -5.0, 5.0)[0].value for steps in (1.0, 5.0))
    assert often == pytest.approx(5 * once)


def test_an_interval_without_a_width_is_not_the_measure():
    found = replayed(wander(120, 20, 9, shift=lambda t, e: 0.06 * t))
    assert judge_replays(found, 0.0, 1.0, -5.0, 5.0)[0].status == "warn"


def test_few_episodes_say_nothing():
    assert replayed(wander(11, 20, 12)) is None


def test_states_that_no_two_episodes_share_say_nothing():
    columns = wander(20, 10, 13)
    columns["observation"] = np.arange(len(columns["step"]))
    columns["next_observation"] = columns["observation"] + 1
    found = replayed(columns)
    assert farthest(found.whole) is None
    assert judge_replays(found, 1.0, 1.0, -1.0, 1.0) == ()


def test_times_that_are_part_of_the_state_leave_nothing_to_foretell():
    columns = wander(60, 8, 14)
    for name, ahead in (("observation", 0), ("next_observation", 1)):
        columns[name] = columns[name] + STATES * (columns["step"] + ahead)
    found = replayed(columns)
    assert found.later_steps is None
    assert farthest(found.whole).beyond == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ending", "staggered", "unequal", "unlabelled", "short"])
def test_healthy_logs_are_replayed(kind):
    options = {
        "ending": {"ends": 0.05, "loggers": 2},
        "staggered": {"length": lambda g, e: 3 + int(g.integers(20))},
        "unequal": {"length": lambda g, e: (4, 30)[e % 2], "loggers": 2},
        "unlabelled": {"loggers": 3, "labels": False},
        "short": {},
    }[kind]
    for seed in range(10):
        found = replayed(wander((20, 60)[seed % 2], 6 if kind == "short" else 20, 100 + seed, **options))
        for one in (found.whole, found.by_logger, found.later_steps, found.later_episodes):
            assert one is None or farthest(one) is None or farthest(one).beyond == 0


def test_a_backtest_replays_the_logs_that_loggers_predict_alike():
    """All loggers see the same drift over episodes, and predict each other without a word."""
    drifting = backtest(wander(120, 20, 10, loggers=2, shift=lambda t, e: 0.01 * e))
    assert drifting.agree == 2
    assert {d.name: d.status for d in drifting.replays}["replay, later episodes"] != "pass"
    assert any("early episodes" in note for note in drifting.notes)
    assert mixope.Backtest.from_json(drifting.to_json()).to_json() == drifting.to_json()
    steady = backtest(wander(120, 20, 10, loggers=2))
    assert [d.status for d in steady.replays] == ["pass"] * 4


# --- logs that are too long to be put in order


def test_long_logs_are_replayed_from_sums_by_episode(monkeypatch):
    for limit in ("mixope.session.session.MOST_ORDERED", "mixope.requests.joined.MOST_ROWS"):
        monkeypatch.setattr(limit, 0)
    steady = checks(wander(120, 20, 4, loggers=2))
    assert {name: check.status for name, check in steady.items()} == {"replay": "pass"}
    drifting = checks(wander(120, 20, 9, shift=lambda t, e: 0.06 * t))["replay"]
    assert drifting.status != "pass"
    assert "steps 0 to 9" in drifting.sentence or "steps 10 to 19" in drifting.sentence
    assert checks(customers(300, 26, 6, chances=(0.02, 0.3)))["replay"].status != "pass"


def test_the_sums_by_episode_are_those_of_the_residuals(monkeypatch):
    for limit in ("mixope.session.session.MOST_ORDERED", "mixope.requests.joined.MOST_ROWS"):
        monkeypatch.setattr(limit, 0)
    columns = wander(40, 12, 15, ends=0.05)
    # of a bandit nothing lies ahead: residuals are rewards less the mean of their action
    nowhere = np.zeros_like(columns["step"])
    bandit = {**columns, "observation": nowhere, "next_observation": nowhere, "terminated": nowhere > 0}
    found = replayed(bandit).whole
    reward, action, early = columns["reward"], columns["action"], columns["step"] <= found.last[0]
    residual = reward - np.array([reward[action == a].mean() for a in range(ACTIONS)])[action]
    assert found.first.tolist() == [0, found.last[0] + 1]
    assert found.size.tolist() == [early.sum(), (~early).sum()]
    np.testing.assert_allclose(found.seen, [reward[early].mean(), reward[~early].mean()])
    np.testing.assert_allclose(found.total, [residual[early].sum(), residual[~early].sum()], atol=1e-9)
    np.testing.assert_allclose(found.by_episode.sum(axis=0), found.total, atol=1e-9)


def test_of_many_rows_some_episodes_are_compared_and_all_rows_summed(monkeypatch):
    columns = wander(200, 20, 10, loggers=2, shift=lambda t, e: 0.01 * e)
    for limit in ("mixope.requests.joined.MOST_ROWS", "mixope.checks.replay.MOST_ROWS"):
        monkeypatch.setattr(limit, 2000)
    found = replayed(columns)
    assert found.whole.rows.sum() == pytest.approx(4000)
    assert found.by_logger.rows.tolist() == [1000, 1000]
    assert checks(columns)["replay, later episodes"].status != "pass"


def cut_without_next(seed, episodes=3000, steps=5):
    """Customers who come to earn more, or leave; of those who are cut there is no next observation."""
    generator = np.random.default_rng([17, seed])
    state, alive, rows = generator.integers(0, 3, episodes), np.ones(episodes, dtype=bool), []
    for t in range(steps):
        over = generator.random(episodes) < np.where(state == 0, 0.15, 0.1)
        rows.append(np.stack([np.arange(episodes), np.full(episodes, t), state, over, alive]))
        state = np.clip(state + generator.choice([-1, 0, 1], episodes, p=[0.35, 0.25, 0.4]), 0, 5)
        alive = alive & ~over
    episode, step, observation, over, lived = np.concatenate(rows, axis=1)
    order = np.lexsort((step, episode))
    order = order[lived[order] == 1]
    found = {"episode_id": episode, "step": step, "observation": observation, "terminated": over == 1}
    found |= {"truncated": (step == steps - 1) & (over == 0), "action": np.zeros_like(step)}
    found["reward"] = 0.05 + 0.15 * observation
    return {name: values[order] for name, values in found.items()}


@pytest.mark.parametrize("summed", [False, True])
def test_ends_on_the_rows_where_the_recorder_stopped_are_no_more_frequent_than_elsewhere(monkeypatch, summed):
    """Of the last rows those that ended tell what came, and those that went on do not: none of them counts."""
    if summed:
        for limit in ("mixope.session.session.MOST_ORDERED", "mixope.requests.joined.MOST_ROWS"):
            monkeypatch.setattr(limit, 100)
    off = []
    for seed in range(6):
        found = mixope.evaluate(cut_without_next(seed), mixope.TabularPolicy(np.ones((6, 1))), gamma=0.9)
        assert {c.status for c in found.diagnostics if c.name.startswith("replay")} == {"pass"}
        off += [(mean.seen - mean.predicted) / mean.standard_error for mean in found.pictures.replay[-1:]]
    assert abs(np.mean(off)) < 1.5
