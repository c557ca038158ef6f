"""Gaps that chance left among thin states are a warning; what loggers avoid stays refused."""

import numpy as np
import pytest

import mixope
from mixope.checks.coverage import REFUSED

ACTIONS = 4


def world(states, seed, sparse=0.1):
    draw = np.random.default_rng([states, seed])
    moves = draw.dirichlet(np.full(states, sparse), size=(states, ACTIONS))
    behaviour, other = draw.dirichlet(np.ones(ACTIONS), size=(2, states))
    return moves, draw.normal(size=(states, ACTIONS)), behaviour, (behaviour + other) / 2


def log(moves, mean, behaviour, episodes, steps, seed):
    draw, states = np.random.default_rng([seed, 1]), len(mean)
    state, parts = draw.integers(0, states, episodes), []
    for step in range(steps):
        action = (draw.random(episodes)[:, None] > behaviour[state].cumsum(axis=1)).sum(axis=1).clip(0, ACTIONS - 1)
        after = (draw.random(episodes)[:, None] > moves[state, action].cumsum(axis=1)).sum(axis=1).clip(0, states - 1)
        reward = mean[state, action] + draw.normal(size=episodes)
        parts.append((np.arange(episodes), np.full(episodes, step), state, action, reward, after))
        state = after
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation")
    columns = dict(zip(names, (np.concatenate(column) for column in zip(*parts, strict=True)), strict=True))
    return {**columns, "truncated": columns["step"] == steps - 1}


def average(moves, mean, law):
    chain, n = np.einsum("sa,sat->st", law, moves), len(mean)
    system = np.vstack([chain.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0] @ np.sum(law * mean, axis=1)


def check(found):
    return next(d for d in found.diagnostics if d.name == "uncovered mass")


@pytest.mark.parametrize("seed", range(6))
def test_many_short_episodes_are_doubted_and_not_refused(seed):
    """All six intervals hold the truth; all six answers were refused for the size of the gap alone."""
    moves, mean, behaviour, law = world(80, seed)
    found = mixope.evaluate(log(moves, mean, behaviour, 50, 10, seed), mixope.TabularPolicy(law))
    assert check(found).value > REFUSED
    assert "logged once" in check(found).sentence
    assert check(found).status == "warn"
    assert found.interval.low <= average(moves, mean, law) <= found.interval.high


def avoided(seed):
    """In every state there is an action that loggers never take, and the target does in one step of five."""
    moves, mean, behaviour, _ = world(20, seed)
    never = np.random.default_rng([seed, 2]).integers(0, ACTIONS, 20)
    behaviour[np.arange(20), never] = 0.0
    behaviour /= behaviour.sum(axis=1, keepdims=True)
    law = 0.8 * behaviour
    law[np.arange(20), never] += 0.2
    return moves, mean, behaviour, law


def test_what_loggers_avoid_is_refused():
    moves, mean, behaviour, law = avoided(0)
    found = mixope.evaluate(log(moves, mean, behaviour, 100, 20, 0), mixope.TabularPolicy(law))
    assert check(found).status == "fail"
    assert "logged once" not in check(found).sentence


def test_a_gap_that_moves_the_value_is_refused():
    """Half of the actions earn 10 more and are seldom logged: those that were logged once tell what is missing."""
    states = 60
    moves, mean, _, _ = world(states, 3, sparse=1.0)
    mean[:, 2:] += 10.0
    behaviour, law = np.tile([0.46, 0.46, 0.04, 0.04], (states, 1)), np.full((states, ACTIONS), 0.25)
    refused = 0
    for seed in range(4):
        found = mixope.evaluate(log(moves, mean, behaviour, 60, 20, seed), mixope.TabularPolicy(law))
        refused += check(found).status == "fail"
    assert refused == 4


def test_one_long_episode_has_an_answer_to_a_discounted_question():
    """Its interval allows for a start law of which one start was seen."""
    moves, mean, behaviour, law = world(8, 5, sparse=1.0)
    held, method = 0, ""
    for seed in range(20):
        columns = log(moves, mean, behaviour, 1, 2000, seed)
        found = mixope.evaluate(columns, mixope.TabularPolicy(law), "emp", gamma=0.9)
        chain = np.einsum("sa,sat->st", law, moves)
        truth = 0.1 * np.mean(np.linalg.solve(np.eye(8) - 0.9 * chain, np.sum(law * mean, axis=1)))
        held += found.interval.low <= truth <= found.interval.high
        method = found.interval.method
        assert found.verdict == "caution"
        assert {d.name for d in found.diagnostics if d.status == "fail"} == set()
    assert held >= 17
    assert method.startswith("batch means, ")
    assert method.endswith(" + start law")


def test_two_long_episodes_rest_on_blocks_and_not_on_one_degree_of_freedom():
    moves, mean, behaviour, law = world(8, 6, sparse=1.0)
    columns, target = log(moves, mean, behaviour, 2, 2000, 0), mixope.TabularPolicy(law)
    blocks, t = (mixope.evaluate(columns, target, "emp", gamma=0.9, interval=name).interval for name in ("auto", "t"))
    assert "blocks" in blocks.method
    assert blocks.width < t.width
    assert mixope.evaluate(columns, target, "emp", horizon=20).interval.method == "clustered score, t"
