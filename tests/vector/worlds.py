"""Logs with vector states whose truth is known, a counted behaviour for ids, and feature maps made for a purpose."""

from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np

import mixope
from mixope.behaviours import Behaviour, FittedBehaviour
from mixope.engines import MemoryEngine
from mixope.estimators import state_action, state_ratio
from mixope.estimators.asking import answered
from mixope.estimators.features import estimators as feature_estimators
from mixope.estimators.features import ratio as feature_ratio
from mixope.estimators.features import value as feature_value
from mixope.estimators.features.ratio import RatioSystem
from mixope.estimators.features.value import ValueSystem
from mixope.features import OneHot
from mixope.session.questions import as_estimand, ask
from mixope.session.session import sample
from mixope.solvers.linear import solve_ratio
from mixope.worlds import continuous, linear_quadratic, simulate
from random_worlds import random_model

S, A = 5, 3
SYSTEM, TARGET = linear_quadratic.linear_quadratic(), linear_quadratic.target()


# --- ids, fully covered -------------------------------------------------------------------------------------------


@cache
def id_model(ends):
    generator = np.random.default_rng(29)
    return random_model(generator, [0.5, 0.3, 0.2, 0.0, 0.0], A, lambda s, t: (t == S - 1) & (s < 2) & ends)


def id_policies():
    """A target and two loggers of full support."""
    return np.random.default_rng(31).dirichlet(np.full(A, 4.0), size=(3, S))


@cache
def id_columns(ends):
    return simulate(id_model(ends), list(id_policies()[1:]), 60, 12, seed=7)


@dataclass(frozen=True)
class Counted(Behaviour):
    """π̂₀(a|s) = n(s,a)/n(s) of the sample by a loop: what tabular EMP divides by."""

    name = "counted"

    def fit(self, sample, weight, seed=0):
        table = {}
        for s, a, c in zip(sample.observation.tolist(), sample.action.tolist(), weight.tolist(), strict=True):
            table.setdefault(s, {}).setdefault(a, 0.0)
            table[s][a] += c
        return CountedFit(table)


@dataclass(frozen=True)
class CountedFit(FittedBehaviour):
    table: dict = field(repr=False)

    def log_prob(self, rows):
        pairs = zip(rows.observation.tolist(), rows.action.tolist(), strict=True)
        return np.log([self.table[s][a] / sum(self.table[s].values()) for s, a in pairs])


def drop_ridges(monkeypatch, ridge=1e-12, value_ridge=1e-10):
    """Solve without regularisation, as the tabular estimators do, and count rows as features do.

    On counts, a residual is about the mean of the other rows of its pair; features know no pairs.
    """
    for module in (state_ratio, state_action):
        monkeypatch.setattr(module, "left_out", np.ones_like)
    monkeypatch.setattr(state_ratio, "lone_error", lambda *given: 0.0)
    monkeypatch.setattr(feature_ratio, "RatioSystem", partial(RatioSystem, ridges=(ridge,)))
    monkeypatch.setattr(feature_value, "ValueSystem", partial(ValueSystem, ridges=(value_ridge,)))
    monkeypatch.setattr(feature_estimators, "solve_ratio", partial(solve_ratio, ridge=ridge))


# --- a linear–quadratic system: exact truth ------------------------------------------------------------------------


@cache
def lq_columns(n_loggers=1, episodes=20, horizon=50, seed=1):
    return continuous.simulate(SYSTEM, linear_quadratic.loggers(n_loggers), episodes, horizon, seed=seed)


def lq_logs(n_loggers=1, episodes=20, horizon=50, seed=1):
    return mixope.read(lq_columns(n_loggers, episodes, horizon, seed))


@dataclass
class Posed:
    """A question posed to logs: the problem that estimators see, and answers to what they ask."""

    problem: object
    rounds: object

    def solve(self, estimator):
        """By an estimator, or by any generator that asks."""
        start = (lambda: estimator.solve(self.problem)) if hasattr(estimator, "solve") else (lambda: estimator)
        return answered(start, self.rounds.ask)


def posed(logs, features=None, *, target=TARGET, gamma=None, engine=None):
    seen = sample(logs, engine or MemoryEngine(), features)
    (question,) = ask(logs, seen.labels, {"new": target}, estimand=as_estimand("average", gamma, None))
    return Posed(seen.problem(question), seen.rounds())


def posed_on_ids(logs, target, gamma=None):
    return posed(logs, OneHot(), target=mixope.TabularPolicy(target), gamma=gamma)


@dataclass(frozen=True)
class Monomials:
    """1, s_i and s_i s_j: crossed with quadratic actions they hold the q of every linear–quadratic system."""

    degree: int = 2

    def fit(self, observations, seed=0):
        return FittedMonomials(self.degree, observations.shape[1])


@dataclass(frozen=True)
class FittedMonomials:
    degree: int
    columns: int

    @property
    def size(self):
        return len(self.transform(np.zeros((1, self.columns)))[0])

    def transform(self, observations):
        s = np.asarray(observations, dtype=np.float64)
        d, parts = s.shape[1], [np.ones(len(s))]
        if self.degree >= 1:
            parts += [s[:, i] for i in range(d)]
        if self.degree >= 2:
            parts += [s[:, i] * s[:, j] for i in range(d) for j in range(i, d)]
        return np.stack(parts, axis=1)
