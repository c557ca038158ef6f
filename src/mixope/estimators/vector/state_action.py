"""The state–action family on features: ζ(s,a) = max(θ·x(s,a), 0), x = φ(s) ⊗ ψ(a); no behaviour is needed.

    mwl        Σ ζ (x(s,a) − γ x(s′,π)) = (1−γ) E_μ₀ x(s,π), tests scaled to mean square one
    dualdice   the same with whitened tests: the quadratic term of its Lagrangian is ½ E ζ², with a multiplier for
               Σζ = N where the average is meant
    sadl       ζ = u π, u = θ·x, and a reference action law m for the tests:
               Σ u [m(a) x(s,a) − γ π(a|s) x(s′,m)] = (1−γ) E_μ₀ x(s,m);   ``form="occupancy"`` is the plain form above

All are linear systems; mwl and dualdice come from the moments of LSTD-Q without a further pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import UsageError
from mixope.estimators.solution import Solution
from mixope.estimators.vector.problem import VectorProblem
from mixope.estimators.vector.scores import score
from mixope.estimators.vector.value import cross
from mixope.policies import GaussianPolicy, Policy, uniform
from mixope.solvers.linear import solve_ratio
from mixope.solvers.outcome import Solved
from mixope.statistics.rows import Rows

_LARGEST = 1e6


@dataclass(frozen=True)
class PairRatio:
    """θ from the value model's moments; weighs rows by ζ."""

    problem: VectorProblem
    whiten_tests: bool

    @property
    def misfit(self) -> float | None:
        """There is no behaviour to fit."""
        return None

    @cached_property
    def whole(self) -> tuple[FloatArray, Solved, float]:
        """θ, how it was solved, the condition number."""
        value = self.problem.value
        sums, every = value.moments, np.ones(value.folds)
        n = float(sums["n"].sum())
        system = np.tensordot(every, sums["a"], axes=1).T / n
        average = self.problem.estimand.kind == "average"
        if average and sums["ended"].any():
            system = system - np.outer(value.start, every @ sums["ended"] / n)
        right = None if average else (1.0 - value.design.gamma) * value.start
        mean, gram = every @ sums["e"] / n, sums["gram"] / n
        return solve_ratio(system, right, mean, gram, whiten_tests=self.whiten_tests)

    def weight(self, rows: Rows) -> FloatArray:
        """c = 1."""
        return np.ones(len(rows))

    def weights(self, rows: Rows, crossed: bool = False) -> FloatArray:
        """ζ of every row."""
        return np.maximum(self.problem.value.design.taken(rows) @ self.whole[0], 0.0)


@dataclass(frozen=True)
class ReferenceRatio:
    """The paper's SADL: u = θ·x, tests under a reference action law."""

    problem: VectorProblem

    @property
    def misfit(self) -> float | None:
        """There is no behaviour to fit."""
        return None

    @cached_property
    def reference(self) -> Policy:
        """m: uniform over discrete actions, else a Gaussian like the logged actions."""
        sample = self.problem.scan.sample
        if sample.action.ndim == 1:
            return uniform(np.unique(sample.action))
        mean, spread = sample.action.mean(axis=0), np.maximum(sample.action.std(axis=0), 1e-6)
        return GaussianPolicy(lambda observations: np.tile(mean, (len(observations), 1)), spread)

    @cached_property
    def whole(self) -> tuple[FloatArray, Solved, float]:
        """θ by one pass of its own."""
        design, target = self.problem.value.design, self.problem.target

        def batch(rows: Rows) -> dict[str, FloatArray]:
            x, phi = design.taken(rows), design.states.transform(rows.next_observation)
            ahead = cross(phi, design.actions.under(self.reference, rows.next_observation))
            ahead[rows.terminated] = 0.0
            reference = np.exp(self.reference.log_prob(rows.observation, rows.action))
            probability = np.minimum(np.exp(target.log_prob(rows.observation, rows.action)), _LARGEST)
            flow = design.gamma * probability[:, None]
            difference = reference[:, None] * x - flow * ahead
            first = rows.observation[rows.start]
            begin = cross(design.states.transform(first), design.actions.under(self.reference, first))
            return {
                "a": difference.T @ x,
                "gram": x.T @ x,
                "e": x.T @ probability,
                "ended": x.T @ (probability * rows.terminated),
                "start": begin.sum(axis=0),
                "starts": np.asarray(float(len(first))),
            }

        sums = self.problem.scan.total("sadl", batch)
        n, start = float(sums.n_rows), sums["start"] / max(float(sums["starts"]), 1.0)
        if self.problem.estimand.kind != "average":
            return solve_ratio(sums["a"] / n, (1 - design.gamma) * start, sums["e"] / n, sums["gram"] / n)
        restarted = (sums["a"] - np.outer(start, sums["ended"])) / n
        return solve_ratio(restarted, None, sums["e"] / n, sums["gram"] / n)

    def weight(self, rows: Rows) -> FloatArray:
        """c = 1."""
        return np.ones(len(rows))

    def weights(self, rows: Rows, crossed: bool = False) -> FloatArray:
        """ζ = u π of every row."""
        u = np.maximum(self.problem.value.design.taken(rows) @ self.whole[0], 0.0)
        probability = np.exp(self.problem.target.log_prob(rows.observation, rows.action))
        return np.asarray(u * np.minimum(probability, _LARGEST))


@dataclass(frozen=True)
class VectorPairs:
    """A state–action estimator on features."""

    name: str
    form: Literal["paper", "occupancy"] = "occupancy"
    whiten_tests: bool = True

    def solve(self, problem: VectorProblem) -> Solution:
        """Solve for θ, then the shared score pass."""
        if problem.estimand.kind == "horizon":
            raise UsageError(f"{self.name!r} is for the average and the discounted value; it has no horizon")
        paper = self.form == "paper"
        ratio = ReferenceRatio(problem) if paper else PairRatio(problem, self.whiten_tests)
        return score(problem, ratio, self.name)


def mwl() -> VectorPairs:
    """Minimax weight learning, linear."""
    return VectorPairs("mwl", whiten_tests=False)


def dualdice() -> VectorPairs:
    """DualDICE, linear closed form."""
    return VectorPairs("dualdice")


def sadl(form: Literal["paper", "occupancy"] = "paper") -> VectorPairs:
    """SADL as the paper writes it, or in the plain occupancy form."""
    return VectorPairs("sadl", form)
