"""Prediction and earnings side by side.

A prediction is z standard errors off on both errors together, z² = (predicted − earned)² / (se² of the prediction +
se² of what was earned), and *covered* means that z is inside the level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mixope.arrays import FloatArray
from mixope.assembly import Question, assemble, judge
from mixope.backtesting.earnings import earned
from mixope.backtesting.holding import HeldOut, strange_rows, without
from mixope.backtesting.records import BacktestRow
from mixope.diagnostics import Verdict
from mixope.estimate import Estimate
from mixope.estimators import Estimator
from mixope.intervals import Interval, Scores, clustered_interval, standard_error
from mixope.intervals.approximation import widen
from mixope.statistics.episodes import EpisodeTotals
from mixope.statistics.transitions import Transitions
from mixope.survey import LoggerSummary, Survey


@dataclass(frozen=True)
class Predictor:
    """What all predictions of a backtest share."""

    rows: Transitions
    survey: Survey
    episodes: EpisodeTotals
    estimator: Estimator
    level: float
    seed: int

    def predict(self, held: HeldOut, scores: FloatArray | None) -> BacktestRow:
        """One line; ``scores`` are by episode of the others."""
        mine = self.episodes.of(held.number)
        value, own = earned(mine, self.episodes, held.estimand.horizon)
        around = clustered_interval(value, own, self.level)
        estimate = self._estimate(held, scores)
        z, covered = _agreement(estimate, value, around, standard_error(own))
        found = estimate.interval if estimate else None
        return BacktestRow(
            label=self.rows.loggers[held.number],
            predicted=estimate.value if estimate else math.nan,
            low=found.low if found else None,
            high=found.high if found else None,
            earned=value,
            earned_low=around.low if around else None,
            earned_high=around.high if around else None,
            covered=covered,
            verdict=str(estimate.verdict if estimate else Verdict.UNSUPPORTED),
            uncovered_mass=estimate.uncovered_mass if estimate else strange_rows(self.rows, held.number),
            z=z,
            estimand=str(held.estimand),
            policy="known" if held.known else "counted",
            n_rows=int(mine.rows.sum()),
            n_episodes=len(mine.rows),
            note=held.refusal or _worst(estimate),
        )

    def _estimate(self, held: HeldOut, scores: FloatArray | None) -> Estimate | None:
        if held.solution is None:
            return None
        others, solution = self._others(held.number), held.solution
        question = Question(self.rows.loggers[held.number], held.policy, held.estimand, self.level, self.seed)
        sure = judge(others, question, solution, Scores(scores))
        return assemble(
            others,
            question,
            self.estimator.name,
            solution,
            scores,
            (),
            uncertainty=widen(sure, solution.value, solution.measures.get("approximation", 0.0), others.n_episodes),
        )

    def _others(self, logger: int) -> Survey:
        """The others' rows, as the logs of a prediction."""
        rest = without(self.rows, logger)
        summaries = zip(rest.loggers, rest.logger_rows(), rest.logger_means(), strict=True)
        return replace(
            self.survey,
            n_rows=int(rest.n_rows),
            n_episodes=int(np.sum(self.episodes.logger != logger)),
            loggers=tuple(LoggerSummary(label, int(n), float(mean)) for label, n, mean in summaries),
            lowest=float(rest.lowest.min()),
            highest=float(rest.highest.max()),
            alerts=(),
            episodes=None,
        )


def _agreement(
    estimate: Estimate | None, value: float, around: Interval | None, own_error: float
) -> tuple[float | None, bool]:
    """z and whether it is inside the level; both intervals are symmetric, so their halves add as errors do."""
    if estimate is None or estimate.interval is None or around is None or estimate.standard_error is None:
        return None, False
    off, error = estimate.value - value, math.hypot(estimate.standard_error, own_error)
    if abs(off) <= 1e-9 * max(abs(value), 1.0):
        return 0.0, True
    halves = math.hypot(estimate.interval.high - estimate.value, around.high - value)
    return off / error if error > 0 else math.copysign(math.inf, off), abs(off) <= halves


def _worst(estimate: Estimate | None) -> str:
    """The sentence of the first failure, else of the first warning."""
    found = () if estimate is None else estimate.diagnostics
    return next((d.sentence for status in ("fail", "warn") for d in found if d.status == status), "")
