"""One repetition of figure 1: a Taxi log, and the stationary law of the target that BCH and EMP learn from it.

    d̂(s) = ω(s) n(s) / Σ ω n,        distance in total variation  ½ Σ |d̂ − d|

n(s) being the visits and ω the learned ratio; a state that was never visited has d̂ = 0. An estimator hands on Σ ωρ of
every kind of transition, from which ω(s) = Σ_s ωρ / Σ_s ρ.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixope.arrays import FloatArray, sum_by
from mixope.environments import truth
from mixope.estimators import make as make_estimator
from mixope.experiments.experiment import Row
from mixope.experiments.methods import Form, make
from mixope.experiments.worlds import World, world

if TYPE_CHECKING:
    from mixope.estimators import Solution
    from mixope.problem import Problem

METHODS = ("bch", "emp")


@dataclass(frozen=True)
class Stationary:
    """``scatter`` says whether the whole law is kept, or only its distance."""

    environment: str
    episodes: int
    horizon: int
    form: Form
    scatter: bool
    seed: int
    repetition: int

    @property
    def seconds(self) -> float:
        """Measured 2026-11-15, one core."""
        return (2.0 if self.form == "paper" else 0.25) * float(np.sqrt(self.episodes * self.horizon / 40_000))

    def measure(self) -> list[Row]:
        """The distance of every method; where wanted, a row a state besides."""
        from mixope.estimand import Estimand
        from mixope.problem import Problem
        from mixope.tabular import count, solve_one

        here = world(self.environment, 1)
        name = zlib.crc32(f"{self.environment} {self.episodes} {self.horizon}".encode())
        seed = int(np.random.SeedSequence([self.seed, name, self.repetition]).generate_state(1)[0])
        counted = count(here.simulate(self.episodes, self.horizon, seed))
        problem = Problem(counted.transitions, here.target, Estimand("average"), here.loggers)
        exact = _exact(here)
        found: list[Row] = []
        for method in METHODS:
            solution = solve_one(counted, problem, make_estimator(make(method, self.form)))
            law = learned_law(problem, solution, method, len(exact))
            found.append({"method": method, "tv": float(0.5 * np.abs(law - exact).sum())})
            if self.scatter:
                found += [_point(method, s, law[s], exact[s]) for s in np.flatnonzero(exact + law > 0).tolist()]
        return found


def _point(method: str, state: int, estimated: float, exact: float) -> Row:
    return {"method": method, "state": state, "estimated": float(estimated), "exact": float(exact)}


def _exact(here: World) -> FloatArray:
    assert here.model is not None
    return truth.stationary(here.model, here.target.probabilities)


def learned_law(problem: Problem, solution: Solution, method: str, n_states: int) -> FloatArray:
    """d̂ on the states of the environment, in its own numbering."""
    rows = problem.transitions
    assert solution.weights is not None
    weighted = sum_by(rows.state, solution.weights.total, rows.n_states)
    visits = sum_by(rows.state, rows.rows, rows.n_states)
    ratio = sum_by(rows.state, _ratios(problem, method), rows.n_states)
    omega = np.divide(weighted, ratio, out=np.zeros(rows.n_states), where=ratio > 0)
    law = np.zeros(n_states)
    law[rows.observations.astype(np.int64)] = omega * visits
    return np.asarray(law / law.sum())


def _ratios(problem: Problem, method: str) -> FloatArray:
    """Σ ρ of every group: with logged propensities, or with the counted share of the action in its state."""
    rows, target = problem.transitions, problem.pair_target
    if method == "bch":
        assert rows.inverse is not None
        return np.asarray(target[rows.pair] * rows.inverse)
    of_pair, of_state = sum_by(rows.pair, rows.rows), sum_by(rows.state, rows.rows, rows.n_states)
    return np.asarray(target[rows.pair] * rows.rows * of_state[rows.state] / of_pair[rows.pair])
