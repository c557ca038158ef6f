"""From a solution to an estimate: interval, diagnostics, verdict, provenance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixope.arrays import FloatArray
from mixope.diagnostics import Diagnostic, Facts, diagnose, verdict
from mixope.estimand import Estimand
from mixope.estimate import Estimate, LoggerShare, Provenance
from mixope.estimators.solution import Solution
from mixope.intervals import IntervalChoice, Scores, Uncertainty, judge_scores
from mixope.policies import Policy
from mixope.survey import Survey
from mixope.version import __version__


@dataclass(frozen=True)
class Question:
    """What was asked of one estimator: about which target, at which level."""

    name: str
    target: Policy
    estimand: Estimand
    level: float
    seed: int


def assemble(
    survey: Survey,
    question: Question,
    estimator: str,
    solution: Solution,
    scores: FloatArray | None,
    loggers: tuple[LoggerShare, ...],
    *,
    uncertainty: Uncertainty | None = None,
    on_vectors: bool = False,
    further: tuple[Diagnostic, ...] = (),
) -> Estimate:
    """Dress a solution; ``scores`` are by episode (None where there are none), ``further`` checks are of the logs.

    Without an ``uncertainty`` the interval is that of t over the episodes.
    """
    usable = scores if scores is not None and bool(np.all(np.isfinite(scores))) else None
    sure = uncertainty or judge(survey, question, solution, Scores(scores))
    size = _effective_size(solution)
    facts = _facts(survey, solution, estimator, size)
    facts = replace(facts, on_vectors=on_vectors, n_blocks=sure.n_blocks)
    judged = diagnose(facts)
    found = (*judged, *further) if judged else ()
    return Estimate(
        estimator=estimator,
        estimand=question.estimand,
        target=question.name,
        value=solution.value,
        standard_error=sure.standard_error,
        interval=sure.interval,
        n_rows=survey.n_rows,
        n_episodes=survey.n_episodes,
        n_dropped=survey.n_dropped,
        loggers=loggers,
        effective_sample_size=size,
        uncovered_mass=solution.uncovered_mass,
        outside_mass=solution.outside_mass,
        logged_mean=survey.mean,
        verdict=verdict(found),
        diagnostics=found,
        solver=solution.solved.outcome.value,
        residual=solution.solved.residual,
        measures=solution.measures,
        alerts=(*survey.alerts, *sure.alerts),
        provenance=_provenance(survey, question),
        no_interval_because=sure.because,
        weights=solution.weight_bins,
        scores=usable,
        episodes=survey.episodes,
        corrects_coverage=solution.corrects_coverage,
    )


def judge(
    survey: Survey,
    question: Question,
    solution: Solution,
    scores: Scores,
    choice: IntervalChoice = IntervalChoice("t"),
) -> Uncertainty:
    """The interval of a solution from its scores; an estimator that has none says why."""
    if solution.no_interval_because:
        return Uncertainty(because=solution.no_interval_because)
    return judge_scores(choice, solution.value, scores, question.level, question.estimand, survey.n_episodes)


def _effective_size(solution: Solution) -> float:
    if solution.weights is not None:
        return solution.weights.effective_sample_size()
    return solution.measures.get("effective_sample_size", 0.0)


def _largest_share(solution: Solution) -> float | None:
    if "largest_share" in solution.measures:
        return solution.measures["largest_share"]
    if solution.weights is None:
        return None
    return solution.weights.largest / max(float(solution.weights.total.sum()), 1e-300)


def _facts(survey: Survey, solution: Solution, estimator: str, size: float) -> Facts:
    return Facts(
        value=solution.value,
        effective_sample_size=size,
        uncovered_mass=solution.uncovered_mass,
        outside_mass=solution.outside_mass,
        largest_share=_largest_share(solution),
        mean_weight=solution.measures.get("mean_weight"),
        leaked_mass=solution.measures.get("leaked_mass"),
        n_rows=survey.n_rows,
        n_episodes=survey.n_episodes,
        lowest_reward=survey.lowest,
        highest_reward=survey.highest,
        behaviour_misfit=solution.measures.get("behaviour_misfit"),
        solver_ok=solution.solved.ok,
        solver_message=solution.solved.outcome.value,
        residual=solution.solved.residual,
        corrects_coverage=solution.corrects_coverage,
        weighs_rows=solution.weights is not None or "effective_sample_size" in solution.measures,
        known_bias=solution.known_bias,
        unit_of_weight="episode" if "effective_episodes" in solution.measures else "row",
        is_reference=estimator == "logged-mean",
        held_out=solution.measures.get("held_out"),
    )


def _provenance(survey: Survey, question: Question) -> Provenance:
    return Provenance(
        version=__version__,
        seed=question.seed,
        engine=survey.engine,
        logs_fingerprint=survey.fingerprint,
        target_fingerprint=question.target.fingerprint(),
        inputs=survey.inputs,
    )
