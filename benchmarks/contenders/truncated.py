"""Weights of the correction are cut at a level that the data choose, and the interval pays for what is cut.

    η_c = Σ w_c (r + V(s′) − q(s,a)) / Σ w_c,     w_c = min(w, c)

runs from the plug-in value (all weights alike) to ``dr`` (none cut). If the value is right, all of them are right, and
the cut ones vary less. c minimises an estimated error: the variance of η_c, and the square of η_c − η less what chance
makes of that difference. The bias that is left, at least a standard error of the difference, widens the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from benchmarks.contenders.weighted import ratios

from mixope.base.arrays import FloatArray
from mixope.estimators.asking import Asking
from mixope.estimators.counts.flow import Flow
from mixope.estimators.counts.occupancy import Occupancy, pooled
from mixope.estimators.counts.solution import CountedSolution, scored
from mixope.estimators.counts.value_model import fit_value
from mixope.estimators.doubly_robust import _corrected
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.features.scores import Weigher, score
from mixope.estimators.solution import Measures, Solution
from mixope.estimators.state_ratio import state_ratio, state_ratio_solution
from mixope.requests.problem import Problem
from mixope.requests.rows import Rows
from mixope.requests.transitions import BASIS

LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""In units of the mean weight."""


@dataclass(frozen=True)
class TruncatedWeights:
    """``dr`` on vectors, or its linear form on factors, with cut weights; ``owns`` whether the interval is widened."""

    name: str = "truncated dr"
    owns: bool = True

    def solve(self, problem: Problem | FeatureProblem) -> Solution | Asking[Solution]:
        """All levels, and the one that seems best."""
        return problem.either(lambda counted: scored(counted, self._on_counts(counted)), self._on_features)

    def _on_counts(self, problem: Problem) -> CountedSolution:
        flow, occupancy = pooled(problem)
        fit, plain = fit_value(flow), state_ratio_solution(flow, occupancy)
        found = [_corrected(cut(flow, occupancy, level), occupancy, plain, fit) for level in (*LEVELS, np.inf)]
        by_row = [row_scores(flow, each) for each in found]
        best, measures = self._choose([each.solution for each in found], by_row)
        return found[best].saying(corrects_coverage=True, measures=measures)

    def _on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        (ratio, report), coarse, model = yield from ratios(problem)
        found = []
        for level in (*LEVELS, np.inf):
            fewer = None if coarse is None else (CutRatio(coarse[0], level), coarse[1])
            cut_ratio = CutRatio(ratio, level)
            found.append((yield from score(problem, cut_ratio, report, model, doubly_robust=True, coarse=fewer)))
        scores = [each.scores.by_cluster for each in found if each.scores is not None]
        best, measures = self._choose(found, scores)
        return replace(found[best], measures=measures)

    def _choose(self, found: Sequence[Solution], scores: Sequence[FloatArray]) -> tuple[int, Measures]:
        errors, biases = estimated_errors([each.value for each in found], scores)
        best = int(np.argmin(errors))
        known = found[best].measures
        if not self.owns:
            return best, known
        return best, replace(known, approximation=float(np.hypot(known.approximation or 0.0, biases[best])))


def estimated_errors(values: Sequence[float], scores: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Squared error of each value, and the size of bias to allow for; the last one is taken to have none."""
    variance = np.array([np.sum(each**2) for each in scores])
    apart = np.array([np.sum((each - scores[-1]) ** 2) for each in scores])
    gap = (np.array(values) - values[-1]) ** 2
    return variance + np.maximum(gap - apart, 0.0), np.sqrt(np.maximum(gap - apart, apart))


def cut(flow: Flow, occupancy: Occupancy, level: float) -> Flow:
    """The flow with weights above the level cut, and the others grown so that they add up to the same."""
    omega = state_ratio(flow, occupancy)[flow.rows.state]
    w, n = omega * flow.ratio / flow.rows.rows, flow.rows.rows
    mean = float(w @ n) / float(n.sum())
    kept = np.divide(np.minimum(w, level * mean), w, out=np.ones_like(w), where=w > 0)
    kept = kept * float(w @ n) / float((w * kept) @ n)
    return replace(flow, ratio=flow.ratio * kept, ratio_reward=flow.ratio_reward * kept)


def row_scores(flow: Flow, found: CountedSolution) -> FloatArray:
    """Scores of the kept groups, as many as they have rows: residuals of different rows are uncorrelated."""
    table, rows = np.asarray(found.scores)[flow.groups], flow.rows
    each = table[:, BASIS.index("rows")] + table[:, BASIS.index("reward")] * rows.reward / rows.rows
    return np.asarray(each * np.sqrt(rows.rows))


@dataclass(frozen=True)
class CutRatio:
    """A ratio whose weights are cut; they average about one."""

    ratio: Weigher
    level: float

    def weight(self, rows: Rows) -> FloatArray:
        """c, as it was."""
        return self.ratio.weight(rows)

    def weights(self, rows: Rows, fold: int | None = None) -> FloatArray:
        """min(w, c) of every row."""
        return np.minimum(self.ratio.weights(rows, fold), self.level * rows.times)
