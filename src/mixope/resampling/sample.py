"""Replicates: the values of refits on resampled episodes, and the intervals they give.

Episodes are drawn within each logger, as often as it has episodes. Replicate b depends on (seed, b) alone: the
result does not depend on how many processes shared the work. BCa also wants the influence of every episode: its score,
or what leaving it out changes where an estimator has no scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.arrays import FloatArray
from mixope.counting import Counted, order_rows
from mixope.errors import DataError, UsageError
from mixope.estimand import Estimand
from mixope.estimators import AnyEstimator
from mixope.intervals import (
    Interval,
    IntervalChoice,
    Uncertainty,
    batch_means_interval,
    bca_interval,
    few_episodes,
    percentile_interval,
)
from mixope.intervals.bootstrap import Method
from mixope.resampling.episodes import EpisodeCounts
from mixope.resampling.processes import Progress, run_tasks
from mixope.resampling.refit import Refit, prepare
from mixope.targets import check_level


@dataclass(frozen=True)
class BootstrapSample:
    """The values of the replicates that had one; how many refused, and the first reasons."""

    estimate: float
    values: FloatArray
    failed: int
    reasons: tuple[str, ...]
    influence: FloatArray | None
    n_episodes: int
    seed: int

    @property
    def standard_error(self) -> float:
        """The spread of the replicates."""
        return float(np.std(self.values, ddof=1))

    def interval(self, level: float = 0.95, method: Method = "bca") -> Interval:
        """BCa or percentile; without an influence of the episodes there is no acceleration to correct."""
        if method not in ("bca", "percentile"):
            raise UsageError(f"the bootstrap method must be 'bca' or 'percentile', got {method!r}")
        if method == "percentile":
            found = percentile_interval(self.values, level)
        else:
            known = np.zeros(1) if self.influence is None else self.influence
            found = bca_interval(self.estimate, self.values, known, level)
        return replace(found, replicates=len(self.values), failed=self.failed)


def bootstrap(
    counted: Counted,
    target: Any,
    estimator: str | AnyEstimator,
    *,
    estimand: Estimand | None = None,
    loggers: Mapping[str, Any] | None = None,
    replicates: int = 500,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | Progress | None = False,
    counts: EpisodeCounts | None = None,
) -> BootstrapSample:
    """Refit on ``replicates`` resampled logs.

    ``jobs`` is the number of processes (None: one a core, none where the work is short). ``progress`` shows a bar on
    stderr (None: if that is a terminal), or calls a function with (done, total).
    """
    options: dict[str, Any] = {"estimand": estimand, "loggers": loggers, "seed": seed, "counts": counts}
    return resample(prepare(counted, target, estimator, **options), replicates, jobs=jobs, progress=progress)


def resample(
    refit: Refit, replicates: int = 500, *, jobs: int | None = None, progress: bool | Progress | None = False
) -> BootstrapSample:
    """The replicates of a prepared refit."""
    n = refit.counts.n_episodes
    if replicates < 1:
        raise UsageError(f"a bootstrap needs at least one replicate, got {replicates}")
    if n < 2:
        raise DataError(
            "a bootstrap of episodes needs at least two, these logs have one",
            hint="one long episode has blocks of steps: interval='blocks'",
        )
    estimate = refit.whole.value
    found = run_tasks(refit.replicate, range(replicates), jobs, progress)
    values = np.array([v for v in found if not isinstance(v, str)])
    reasons = [v for v in found if isinstance(v, str)]
    if len(values) < max(2, replicates // 2):
        raise DataError(
            f"{len(reasons)} of {replicates} resampled logs cannot be evaluated: {reasons[0] if reasons else ''}",
            expected="logs that still carry the target when some episodes are left out",
            hint="there is too little data for a bootstrap; more episodes, or a target nearer to the loggers",
        )
    return BootstrapSample(
        estimate, values, len(reasons), tuple(dict.fromkeys(reasons))[:5], influence(refit, jobs=jobs), n, refit.seed
    )


def influence(refit: Refit, *, jobs: int | None = None) -> FloatArray | None:
    """What each episode adds to the value: its score, or by leaving it out where an estimator has no scores."""
    solution = refit.whole
    if solution.episode_scores is not None:
        return solution.episode_scores
    if solution.scores is not None:
        return refit.counts.scores(solution.scores)
    found = run_tasks(refit.without, range(refit.counts.n_episodes), jobs)
    if any(isinstance(value, str) for value in found):
        return None
    left_out = np.array(found, dtype=np.float64)
    return np.asarray(left_out.mean() - left_out)


def refitted_uncertainty(refit: Refit, choice: IntervalChoice, level: float) -> Uncertainty:
    """The interval of refits, with a word on those that failed; too little data is a reason and no error."""
    try:
        sample = resample(refit, choice.replicates, jobs=choice.jobs, progress=choice.progress)
    except DataError as error:
        return Uncertainty(because=f"{error.problem}; {error.hint}")
    method: Method = "bca" if choice.name == "bca" else "percentile"
    said = [few_episodes(sample.n_episodes)]
    if sample.failed:
        why = "; ".join(sample.reasons)
        said.append(f"{sample.failed} of {choice.replicates} refits could not be solved and were left out: {why}")
    alerts = tuple(sentence for sentence in said if sentence)
    return Uncertainty(sample.interval(level, method), sample.standard_error, alerts=alerts)


def one_episode_interval(
    counted: Counted,
    target: Any,
    estimator: str | AnyEstimator,
    *,
    level: float = 0.95,
    estimand: Estimand | None = None,
    loggers: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Interval | None:
    """Batch means over the steps in order, for logs of one long episode; nothing where there are no scores by row."""
    check_level(level)
    refit = prepare(counted, target, estimator, estimand=estimand, loggers=loggers, seed=seed)
    solution = refit.whole
    if solution.scores is None:
        return None
    return batch_means_interval(solution.value, order_rows(counted).scores(solution.scores), level)
