"""The paper's form on episodes that begin at a reset: its bias is the one of the formula, and no data removes it."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixope.estimators import state_ratio
from mixope.policies import TabularPolicy
from mixope.requests.problem import Problem
from mixope.requests.transitions import Transitions
from mixope.worlds import from_outcomes, logged_law, paper_form_bias, singlepath, truth
from mixope.worlds.efficiency import last_law
from solving import solved

ROWS = 1e7


@dataclass(frozen=True, eq=False)
class Setting:
    model: object
    target: np.ndarray
    logger: np.ndarray
    horizon: int

    @property
    def d0(self):
        return logged_law(self.model, [self.logger], self.horizon)

    @property
    def moves(self):
        """P(s′|s,a)."""
        return self.model.transition.toarray().reshape(self.model.n_states, self.model.n_actions, -1)

    def solve(self, estimator):
        """The estimator on the exact law of logged rows: expected counts of a huge log."""
        s, a, t = np.nonzero(self.d0[:, :, None] * self.moves)
        rows = ROWS * self.d0[s, a] * self.moves[s, a, t]
        reward = np.zeros(self.moves.shape)
        reward.reshape(-1, self.model.n_states)[self.model.entry_rows(), self.model.transition.indices] = (
            self.model.reward
        )
        each = reward[s, a, t]
        counts = Transitions(
            observations=np.arange(self.model.n_states),
            factors=(),
            actions=np.arange(self.model.n_actions),
            loggers=("only",),
            logger=np.zeros(len(s), dtype=np.int64),
            state=s,
            action=a,
            next_state=t,
            rows=rows,
            reward=rows * each,
            lowest=each,
            highest=each,
            starts=np.zeros(len(s)),
        )
        return solved(estimator, Problem(counts, TabularPolicy(self.target)))


def settings():
    ring, generator = singlepath(), np.random.default_rng(5)
    yield Setting(ring, generator.dirichlet([2, 2], size=5), generator.dirichlet([2, 2], size=5), 12)
    s, a, t = (i.ravel() for i in np.indices((4, 2, 4)))
    law = generator.dirichlet(np.ones(4), size=(4, 2))
    drifting = from_outcomes(
        "drifting",
        shape=(4, 2),
        state=s,
        action=a,
        next_state=t,
        probability=law.ravel(),
        reward=generator.normal(size=law.size),
        start=np.array([1.0, 0, 0, 0]),
    )
    yield Setting(drifting, generator.dirichlet([2, 2], size=4), generator.dirichlet([2, 2], size=4), 6)


@pytest.mark.parametrize("setting", list(settings()), ids=["singlepath", "drifting"])
def test_the_bias_of_the_paper_form_is_the_drift_of_the_value_along_an_episode(setting):
    """η̂ − η = [(E ω̂V(s₀) − E ω̂V(s_H)) / H − e·V] / E ω̂, with ω̂ the paper's own ratio, solved densely here.

    Because s and s′ have different laws no ω solves the paper's equations; e is what the least squares leave.
    """
    long_run, d0 = truth.long_run(setting.model, setting.target), setting.d0
    leaving, arriving = d0.sum(axis=1), np.einsum("sa,sat->t", d0, setting.moves)
    equations = np.einsum("s,sa,sat->ts", leaving, setting.target, setting.moves) - np.diag(arriving)
    n, visits = len(arriving), (leaving + arriving) / 2
    bordered = np.block([[equations.T @ equations, visits[:, None]], [visits[None, :], np.zeros((1, 1))]])
    omega = np.linalg.solve(bordered, np.append(np.zeros(n), 1.0))[:n]
    assert omega.min() > 0
    mass, value = omega @ leaving, long_run.differential_value
    last = last_law(setting.model, [setting.logger], setting.horizon)
    drift = (omega * value) @ (setting.model.start - last) / setting.horizon
    bias = (drift - equations @ omega @ value) / mass
    paper = setting.solve(state_ratio.emp(form="paper"))
    assert abs(bias) > 1e-3
    assert paper.value - long_run.average == pytest.approx(bias, abs=1e-6)


@pytest.mark.parametrize("setting", list(settings()), ids=["singlepath", "drifting"])
def test_the_general_form_has_no_such_bias(setting):
    wanted = truth.average(setting.model, setting.target)
    assert setting.solve(state_ratio.emp()).value == pytest.approx(wanted, abs=1e-10)


def test_the_published_formula_is_the_bias_to_first_order():
    """For longer episodes the ratio of the formula and the paper's own come together."""
    ring, generator = singlepath(), np.random.default_rng(8)
    setting = Setting(ring, generator.dirichlet([2, 2], size=5), generator.dirichlet([2, 2], size=5), 100)
    bias = setting.solve(state_ratio.emp(form="paper")).value - truth.average(ring, setting.target)
    formula = paper_form_bias(ring, setting.target, [setting.logger], horizon=100)
    assert bias == pytest.approx(formula, rel=0.1)
