"""The target is asked once for each logged pair, and the pooled flow is solved once, whoever needs them."""

import numpy as np
import pytest

import mixope
from mixope.answers.bands import problem_band
from mixope.checks.coverage import coverage_shift
from mixope.estimators import make
from mixope.estimators.counts import occupancy
from mixope.requests.problem import Problem
from mixope.session.session import count
from solving import solved


class Asked(mixope.TabularPolicy):
    """A policy that counts the pairs it was asked for."""

    pairs = 0

    def log_prob(self, observations, actions):
        type(self).pairs += len(observations)
        return super().log_prob(observations, actions)


@pytest.fixture
def problem():
    generator = np.random.default_rng(0)
    rows = 400
    state, action = generator.integers(6, size=rows), generator.integers(3, size=rows)
    kept = (state + action) % 5 > 0
    state, action = state[kept], action[kept]
    following = (state + 1 + action + generator.integers(2, size=len(state))) % 6
    logs = {
        "episode_id": np.arange(len(state)),
        "step": np.zeros(len(state), dtype=int),
        "observation": state,
        "action": action,
        "reward": generator.normal(size=len(state)),
        "next_observation": following,
        "truncated": np.ones(len(state), dtype=bool),
    }
    Asked.pairs = 0
    return Problem(count(mixope.read(logs)).transitions, Asked(generator.dirichlet(np.ones(3), size=6)))


def ask_all(problem):
    values = {name: solved(make(name), problem).value for name in ("emp", "model", "mwl", "sadl", "dualdice")}
    return values, coverage_shift(problem), problem_band(problem)


def test_the_target_is_asked_once_for_every_logged_pair(problem):
    ask_all(problem)
    assert Asked.pairs == problem.transitions.n_pairs


def test_the_pooled_flow_is_solved_once(problem, monkeypatch):
    solved = []
    occupy = occupancy.occupy
    monkeypatch.setattr(occupancy, "occupy", lambda flow: solved.append(flow) or occupy(flow))
    ask_all(problem)
    assert len(solved) == 1


def test_a_part_has_the_probabilities_of_the_whole(problem):
    groups = np.arange(0, problem.transitions.n_groups, 2)
    part = problem.on_groups(groups)
    alone = Problem(part.transitions, problem.target)
    assert part.pair_target.tolist() == alone.pair_target.tolist()


def test_other_questions_share_nothing(problem):
    other = Problem(problem.transitions, problem.target, mixope.Estimand("discounted", gamma=0.5))
    assert solved(make("emp"), problem).value != solved(make("emp"), other).value
