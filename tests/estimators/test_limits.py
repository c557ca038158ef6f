"""Many states: what does not fit is refused at once, with its size and what to do instead; nothing is tried first."""

import time

import numpy as np
import pytest

import mixope
from mixope.base import arrays
from mixope.base.errors import MOST_BYTES, UsageError, must_fit
from mixope.behaviours import kl_weights, logger_weights
from mixope.estimators import LstdQ
from mixope.estimators.counts.value_model import _MOST_COLUMNS
from mixope.inspection import coverage
from mixope.requests.problem import Problem
from mixope.session.session import count
from solving import solved

SIDE = 46


def torus(side=SIDE, rows=20_000, seed=0):
    """A walk on a torus of side², two factors, two actions."""
    generator = np.random.default_rng(seed)
    x, y, action = (
        generator.integers(side, size=rows),
        generator.integers(side, size=rows),
        generator.integers(2, size=rows),
    )
    return {
        "episode_id": np.arange(rows),
        "step": np.zeros(rows, dtype=int),
        "observation.x": x,
        "observation.y": y,
        "action": action,
        "reward": x / side + generator.normal(size=rows),
        "next_observation.x": (x + action) % side,
        "next_observation.y": (y + 1 - action) % side,
        "truncated": np.ones(rows, dtype=bool),
    }


class Half:
    """Either action with the same chance."""

    actions = np.array([0, 1])

    def probs(self, observations):
        return np.full((len(observations), 2), 0.5)

    def log_prob(self, observations, actions):
        return np.full(len(observations), np.log(0.5))


def test_lstdq_leaves_out_interactions_that_would_exceed_its_limit():
    """46 × 46 states × 2 actions: all pairs of factors would be 4,418 columns of at most 4,000."""
    problem = Problem(count(mixope.read(torus())).transitions, Half())
    start = time.process_time()
    solution = solved(LstdQ(), problem)
    assert solution.measures.order == 1.0
    assert time.process_time() - start < 3.0


def test_lstdq_refuses_at_once_where_not_even_main_effects_fit():
    logs = torus()
    logs["observation.x"] = logs["observation.x"] + SIDE * logs["observation.y"]
    logs["next_observation.x"] = logs["next_observation.x"] + SIDE * logs["next_observation.y"]
    problem = Problem(count(mixope.read(logs)).transitions, Half())
    start = time.process_time()
    with pytest.raises(UsageError, match=rf"4,326 columns .* at most {_MOST_COLUMNS:,} .* MB each. Use 'emp'"):
        solved(LstdQ(), problem)
    assert time.process_time() - start < 1.0


def test_a_table_that_does_not_fit_is_refused_with_its_size():
    must_fit("small things", (1000, 1000), "never said")
    with pytest.raises(
        UsageError, match=r"π would be a table of 100,000 × 10,000 entries, 7,629 MB .* 2,048 MB .* do so"
    ):
        must_fit("π", (100_000, 10_000), "do so")
    assert MOST_BYTES == 2**31


def test_states_by_actions_are_looked_at_in_batches_with_the_same_result(monkeypatch):
    logs = torus(side=7, rows=300)
    logs["policy_id"] = np.where(np.arange(300) % 3 == 0, "a", "b")
    transitions = count(mixope.read(logs)).transitions
    problem = Problem(transitions, Half())
    whole = coverage.cover(transitions, Half()), kl_weights(problem)
    for module in (coverage, logger_weights):
        monkeypatch.setattr(module, "batches", lambda items, width: arrays.batches(items, width, entries=10))
    parts = coverage.cover(transitions, Half()), kl_weights(problem)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-12)
    assert parts[0].worst == whole[0].worst
    assert (parts[0].gaps, parts[0].loggers) == (whole[0].gaps, whole[0].loggers)
    assert parts[0].uncovered_mass == pytest.approx(whole[0].uncovered_mass, rel=1e-12)


def test_a_law_of_all_actions_in_all_states_that_does_not_fit_is_refused(monkeypatch):
    problem = Problem(count(mixope.read(torus(side=7, rows=300))).transitions, Half())
    monkeypatch.setattr("mixope.base.errors.MOST_BYTES", 100)
    with pytest.raises(UsageError, match=r"the target's law in every state would be a table of 49 × 2 .* Use 'emp'"):
        solved(mixope.estimators.DoublyRobust(), problem)
