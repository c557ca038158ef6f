"""``dr`` on factors that predicts what an unlogged action *changes*: r + γV(s′) less most of γV(s), not r + γV(s′).

The default predicts what an unlogged pair is worth from the same action in states that share factors. Where states
differ in value more than actions do, most of that is the value of the state itself, which its other actions tell. With
K the predicting part of the map G, D the share of the target that is predicted and S from states to logged pairs,

    V = R + γ T V,      T = G P̂ + θ (D − K S),      θ = .7

With θ = 1 a state whose only logged action leads back to it would keep its mass, as in EMP.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from mixope.base.arrays import AnyArray, FloatArray, sum_by
from mixope.behaviours import CountedMixture
from mixope.estimators.asking import Asking
from mixope.estimators.counts.completed_part import CompletedPart, part_to_complete
from mixope.estimators.counts.completion import Completed, Completion, Map, _less, _solve, make_map
from mixope.estimators.counts.kriging import Likeness, first_guess, measure_likeness
from mixope.estimators.counts.solution import CountedSolution, scored
from mixope.estimators.doubly_robust import _scores, _weights
from mixope.estimators.solution import Measures, Solution
from mixope.estimators.state_ratio import solve_on_counts
from mixope.requests.problem import Problem

SHARE = 0.7


@dataclass(frozen=True)
class Anchored:
    """The estimator, for the average."""

    name: str = "anchored dr"

    def solve(self, problem: Problem) -> Asking[Solution]:
        """Likeness from a first guess, then the value."""
        return scored(problem, self._on_counts(problem))

    def _on_counts(self, problem: Problem) -> CountedSolution:
        part = part_to_complete(problem)
        if not part.n_unseen:
            return solve_on_counts(problem, CountedMixture())
        mean = float(part.rows.reward.sum() / part.rows.rows.sum())
        less = _less(part, mean)
        likeness = _likeness(_solve(anchored_map(less, first_guess(part.factors.shape[1]))))
        found = replace(_solve(anchored_map(less, likeness)), zero=mean)
        unit, visits = found.pair_weight / part.pair_rows, np.zeros(problem.transitions.n_states)
        visits[part.states] = found.law
        solution = Solution(
            value=found.value + mean,
            solved=found.solved,
            measures=Measures(approximation=found.unseen_error()),
            corrects_coverage=True,
        )
        return CountedSolution(solution, _scores(found, unit), _weights(part, unit), visits=visits)


class AnchoredMap(Map):
    """G, with another chain."""

    @cached_property
    def chain(self) -> Completed:
        """T as above."""
        return AnchoredChain(self)

    @cached_property
    def lacking(self) -> FloatArray:
        """D."""
        found = np.zeros(len(self.part.states))
        for _, kriging in self.actions:
            found[kriging.unseen] += kriging.chance[kriging.unseen]
        return found

    def predicted(self, y: FloatArray) -> FloatArray:
        """K y."""
        return self.forward(y) - sum_by(self.part.pair_state, self._logged * y, len(self.part.states))


class AnchoredChain(Completed):
    """T = G P̂ + θ (D − K S)."""

    map: AnchoredMap

    def forward(self, v: FloatArray) -> FloatArray:
        """T v."""
        kept = self.map.lacking * v - self.map.predicted(v[self.part.pair_state])
        return np.asarray(super().forward(v) + SHARE * kept)

    def backward(self, law: FloatArray) -> FloatArray:
        """law T."""
        taken = sum_by(self.part.pair_state, self.map.predicting(law), self.n)
        return np.asarray(super().backward(law) + SHARE * (self.map.lacking * law - taken))

    @cached_property
    def _factor(self) -> tuple[FloatArray, AnyArray]:
        moved = np.stack([self.forward(unit) for unit in np.eye(self.n)], axis=1)
        factor, pivots = linalg.lu_factor(np.eye(self.n) - self.gamma * moved + self.share[None, :])
        return factor, np.asarray(pivots, dtype=np.int64)


def anchored_map(part: CompletedPart, likeness: Likeness) -> AnchoredMap:
    """The same kriging."""
    made = make_map(part, likeness)
    return AnchoredMap(made.part, made.likeness, made.actions)


def _likeness(found: Completion) -> Likeness:
    """Of what pairs change."""
    part, rows, chain = found.part, found.part.rows, found.map.chain
    v = chain.solve(chain.reward, "N")
    known = sum_by(rows.pair_action, np.maximum(part.pair_rows - 1.0, 0.0), len(rows.actions))
    noise = float(known @ found.noise) / max(float(known.sum()), 1.0)
    worth = found.pair_worth - SHARE * v[part.pair_state]
    return measure_likeness(part.factors, part.pair_state, rows.pair_action, part.pair_rows, worth, noise)
