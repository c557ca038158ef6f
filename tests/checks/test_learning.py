"""Loggers that learned from their own rows: seen by the luck that they followed; intervals are then wider."""

import json

import numpy as np
import pytest

import mixope
from mixope.checks.learning import STRETCHED, WARN, about_learning, loggers_learned, stretch_of
from mixope.requests.learning import luck_followed
from mixope.requests.trajectories import NumberedSteps
from mixope.session.session import count

ARMS = np.array([0.0, 0.1, 0.2])
WIDER = 1 + 1 / np.sqrt(2)
TARGET = {"policy": mixope.TabularPolicy(np.tile([0.2, 0.3, 0.5], (4, 1)))}


def logs(seed=0, learns=True, episodes=150, steps=6, loggers=2, improves=False):
    """Four states that come by chance and three actions; a logger prefers what has paid most in a state so far."""
    generator = np.random.default_rng(seed)
    total, taken, rows = np.zeros((loggers, 4, 3)), np.zeros((loggers, 4, 3)), []
    who = np.arange(loggers)
    for episode in range(episodes):
        state = generator.integers(0, 4, loggers)
        for step in range(steps):
            seen = np.divide(total, taken, out=np.full_like(total, 0.5), where=taken > 0)[who, state]
            known = ARMS if improves and episode > episodes / 2 else np.array([0.3, 0.0, 0.0])
            prefers = np.argmax(seen if learns else np.tile(known, (loggers, 1)), axis=1)
            action = np.where(generator.random(loggers) < 0.3, generator.integers(0, 3, loggers), prefers)
            reward, after = ARMS[action] + generator.normal(size=loggers), generator.integers(0, 4, loggers)
            np.add.at(total, (who, state, action), reward)
            np.add.at(taken, (who, state, action), 1)
            rows.append((who, who * episodes + episode, np.full(loggers, step), state, action, reward, after))
            state = after
    names = ("policy_id", "episode_id", "step", "observation", "action", "reward", "next_observation")
    found = {n: np.stack(v, axis=1).ravel() for n, v in zip(names, zip(*rows, strict=True), strict=True)}
    return {**found, "policy_id": np.char.add("logger-", found["policy_id"].astype(str))}


def followed(columns):
    seen = count(columns)
    (ordered,) = seen.rounds().ask([NumberedSteps(seen.numbers)])
    return luck_followed(seen.transitions, ordered.in_key_order())


def by_hand(columns):
    """z by loops over the rows."""
    visits, kinds = {}, {}
    order = np.lexsort((columns["step"], columns["episode_id"]))
    for row in order:
        visits.setdefault((columns["policy_id"][row], columns["observation"][row]), []).append(row)
    for place, rows in visits.items():
        earlier = {}
        for k, row in enumerate(rows):
            action, ahead = columns["action"][row], rows[k + 1 : k + 6]
            before = earlier.get(action, 0)
            earlier[action] = before + 1
            if ahead:
                again = np.mean([columns["action"][other] == action for other in ahead])
                kinds.setdefault((*place, action), []).append((columns["reward"][row], again, 1 / np.sqrt(1 + before)))
    top = bottom = 0.0
    for found in kinds.values():
        reward, again, weight = (np.array(part) for part in zip(*found, strict=True))
        tends = (again - again.mean()) * weight
        tends, luck = tends - tends.mean(), reward - reward.mean()
        top += luck @ tends
        bottom += (luck @ luck) * (tends @ tends) / max(len(luck) - 1, 1)
    return top / np.sqrt(bottom)


def test_the_statistic_is_that_of_a_loop_over_the_rows():
    columns = logs(episodes=20)
    assert followed(columns) == pytest.approx(by_hand(columns))
    mixed = np.random.default_rng(0).permutation(len(columns["reward"]))
    assert followed({name: values[mixed] for name, values in columns.items()}) == pytest.approx(by_hand(columns))


def test_loggers_that_learn_are_seen():
    check = {d.name: d for d in mixope.evaluate(logs(), TARGET["policy"]).diagnostics}["loggers learned"]
    assert check.status == "warn"
    assert check.value > WARN


@pytest.mark.parametrize("improves", [False, True])
def test_loggers_that_change_for_reasons_of_their_own_are_not(improves):
    """Also where they change for the better half way."""
    found = [followed(logs(seed, learns=False, improves=improves)) for seed in range(8)]
    assert max(found) < STRETCHED
    assert abs(np.mean(found)) < 1.0


@pytest.mark.long
def test_without_learning_the_statistic_is_standard_normal():
    found = [followed(logs(seed, learns=False, improves=True, episodes=60)) for seed in range(150)]
    assert abs(np.mean(found)) < 0.25
    assert 0.85 < np.std(found) < 1.15


def test_the_automatic_interval_is_wider_and_says_so():
    columns = logs()
    plain, wide = (mixope.evaluate(columns, TARGET["policy"], "emp", interval=name) for name in ("t", "auto"))
    assert wide.value == plain.value
    assert wide.interval.width == pytest.approx(WIDER * plain.interval.width)
    assert wide.standard_error == pytest.approx(WIDER * plain.standard_error)
    gains = [found.against_logs.difference for found in (plain, wide)]
    assert gains[1].interval.width == pytest.approx(WIDER * gains[0].interval.width)
    assert any("1.71 times as wide" in note for note in wide.notes)
    assert any("covers less" in note for note in plain.notes)
    assert json.loads(wide.to_json())["interval"]["high"] == pytest.approx(wide.interval.high)


def test_logs_of_loggers_that_did_not_learn_keep_their_interval():
    columns = logs(learns=False)
    plain, auto = (mixope.evaluate(columns, TARGET["policy"], "emp", interval=name) for name in ("t", "auto"))
    assert (auto.interval.low, auto.interval.high) == (plain.interval.low, plain.interval.high)


def test_a_comparison_is_wider_by_the_same_factor():
    columns, other = logs(), mixope.TabularPolicy(np.tile([0.5, 0.3, 0.2], (4, 1)))
    targets = {**TARGET, "other": other}
    found = [mixope.compare(columns, targets, estimators=["emp"], interval=name) for name in ("t", "auto")]
    widths = [each.differences[0].pairs[0].interval.width for each in found]
    assert widths[1] == pytest.approx(WIDER * widths[0])


def test_few_visits_and_equal_rewards_say_nothing():
    columns = logs()
    assert followed({**columns, "reward": np.ones(len(columns["reward"]))}) is None
    assert followed(logs(episodes=6)) is None
    assert loggers_learned(None) is None
    assert (stretch_of(None, 1), stretch_of(STRETCHED, 1), about_learning(None, 1.0)) == (1.0, 1.0, ())
    assert [stretch_of(5.0, n) for n in (1, 4)] == [2.0, 1.5]
