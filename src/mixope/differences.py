"""Which target is better, and how sure are we: joint inference on targets that the same episodes carry.

Scores s_{ek} of episode e for target k have the covariance Σ_e s_{ek} s_{el}. For a pair,

    value_k − value_l  ±  t_{level, episodes − 1} √ Σ_e (s_{ek} − s_{el})²

which for similar targets is far narrower than what two separate intervals suggest (√(se_k² + se_l²)). Joint intervals
cover all pairs at once: t is replaced by the quantile of the largest |t| over pairs. Probabilities and ranks come from
draws of a multivariate t around the values. One long episode is cut into blocks, which stand for episodes.

The scores say nothing of bias: a target whose mass is not covered by the logs is named in ``alerts``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import stdtr

from mixope.arrays import FloatArray
from mixope.errors import DataError, UsageError
from mixope.estimand import Estimand
from mixope.estimators import AnyEstimator, DoublyRobust, Solution, TrajectoryEstimator, make
from mixope.intervals import Interval, block_scores, few_episodes, quantile, standard_error
from mixope.intervals.blocks import SHORTEST
from mixope.problem import Problem
from mixope.resampling import order_rows
from mixope.tabular import Counted, count, solve_one, sum_scores
from mixope.targets import check_labels, check_level, resolve_policy

DRAWS = 20_000
UNCOVERED = 0.01
"""Target mass outside the logs above which a difference is said to be biased."""


@dataclass(frozen=True)
class Difference:
    """``first`` less ``second``; ``joint`` covers together with all other pairs."""

    first: str
    second: str
    value: float
    standard_error: float
    independent_standard_error: float
    interval: Interval
    joint: Interval
    probability_first_is_better: float

    @property
    def narrower(self) -> float:
        """How many times narrower than if the two targets had been evaluated on different logs."""
        return self.independent_standard_error / self.standard_error if self.standard_error > 0 else float("inf")


@dataclass(frozen=True)
class Ranking:
    """One target's place: 1 is best. ``ranks`` is the probability of each place, ``low`` and ``high`` at the level."""

    target: str
    value: float
    standard_error: float
    probability_best: float
    expected_rank: float
    low: int
    high: int
    ranks: tuple[float, ...]


@dataclass(frozen=True)
class Differences:
    """Every pair of targets, and their ranking, best first."""

    estimator: str
    estimand: Estimand
    level: float
    n_episodes: int
    pairs: tuple[Difference, ...]
    ranking: tuple[Ranking, ...]
    alerts: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, str]) -> Difference:
        """By (first, second), in the order in which the targets were given."""
        for pair in self.pairs:
            if (pair.first, pair.second) == key:
                return pair
        known = ", ".join(f"({p.first!r}, {p.second!r})" for p in self.pairs)
        raise KeyError(f"no difference for {key!r}; there are {known}")

    def __str__(self) -> str:
        lines = [f"differences by {self.estimator}, {self.estimand}, {self.n_episodes:,} episodes"]
        for p in self.pairs:
            lines.append(
                f"  {p.first} − {p.second}: {p.value:+.6g} {p.interval}"
                f"   P({p.first} is better) = {p.probability_first_is_better:.3f}"
            )
        for place, r in enumerate(self.ranking, start=1):
            span = f"{r.low}" if r.low == r.high else f"{r.low}–{r.high}"
            lines.append(f"  {place}. {r.target}: {r.value:.6g}   best with {r.probability_best:.3f}, rank {span}")
        return "\n".join([*lines, *(f"  note {alert}" for alert in self.alerts)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "estimator": self.estimator,
            "estimand": {k: v for k, v in asdict(self.estimand).items() if v is not None},
            "level": self.level,
            "n_episodes": self.n_episodes,
            "pairs": [asdict(pair) for pair in self.pairs],
            "ranking": [{**asdict(r), "ranks": list(r.ranks)} for r in self.ranking],
            "alerts": list(self.alerts),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The record as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


@dataclass(frozen=True)
class JointScores:
    """Values of several targets and their scores by cluster (clusters × targets)."""

    names: tuple[str, ...]
    values: FloatArray
    scores: FloatArray

    @property
    def degrees(self) -> int:
        """Of freedom of the t law."""
        return len(self.scores) - 1

    @property
    def covariance(self) -> FloatArray:
        """Σ_e s_e s_eᵀ."""
        return np.asarray(self.scores.T @ self.scores)

    def draws(self, n: int, seed: int) -> FloatArray:
        """Deviations of the values from the truth by the multivariate t law, shape (n, targets)."""
        generator = np.random.default_rng([seed, 17])
        spread, directions = np.linalg.eigh(self.covariance)
        normal = generator.standard_normal((n, len(self.values)))
        scale = np.sqrt(self.degrees / generator.chisquare(self.degrees, size=(n, 1)))
        return np.asarray((normal * np.sqrt(np.maximum(spread, 0.0))) @ directions.T * scale)


def compare_targets(
    logs: Any,
    targets: Mapping[str, Any],
    estimator: str | AnyEstimator = "auto",
    *,
    estimand: Estimand | None = None,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Differences:
    """Differences between all pairs of targets on the same logs (or their first scan), and a ranking."""
    check_level(level)
    if len(targets) < 2:
        raise UsageError(f"a difference needs at least two targets, got {len(targets)}")
    counted = logs if isinstance(logs, Counted) else count(logs)
    asked = estimand or Estimand()
    made = make(counted.automatic[0] if isinstance(estimator, str) and estimator == "auto" else estimator)
    solutions = _solve_all(counted, targets, made, asked, loggers or {}, seed)
    by_episode = sum_scores(counted, list(solutions.values()), seed).scores
    joint = join(counted, solutions, by_episode, made)
    corrects = isinstance(made, DoublyRobust) and bool(counted.transitions.factors)
    return Differences(
        estimator=made.name,
        estimand=asked,
        level=level,
        n_episodes=len(by_episode),
        pairs=pairwise(joint, level, seed),
        ranking=rank(joint, level, seed),
        alerts=_alerts(solutions, len(by_episode), corrects),
    )


def _solve_all(
    counted: Counted,
    targets: Mapping[str, Any],
    estimator: AnyEstimator,
    estimand: Estimand,
    loggers: Mapping[str, Any],
    seed: int,
) -> dict[str, Solution]:
    known = {str(label): resolve_policy(policy, counted.logs) for label, policy in loggers.items()}
    check_labels(known, counted.transitions.loggers)
    found = {}
    for name, policy in targets.items():
        problem = Problem(counted.transitions, resolve_policy(policy, counted.logs), estimand, known, seed=seed)
        found[name] = solve_one(counted, problem, estimator)
    return found


def join(
    counted: Counted, solutions: Mapping[str, Solution], by_episode: FloatArray, estimator: AnyEstimator
) -> JointScores:
    """Scores side by side: by episode, or by block where there is one episode."""
    for name, solution in solutions.items():
        if solution.no_interval_because or (solution.scores is None and solution.episode_scores is None):
            reason = solution.no_interval_because or "it has no scores"
            raise UsageError(f"'{estimator.name}' has no joint intervals ({name}): {reason}")
    values = np.array([solution.value for solution in solutions.values()])
    clusters = by_episode
    if len(by_episode) < 2:
        clusters = _block_scores(counted, list(solutions.values()), estimator)
    if not (np.all(np.isfinite(clusters)) and np.all(np.isfinite(values))):
        raise DataError("the values or scores of these targets are not finite", hint="look at each with evaluate")
    return JointScores(tuple(solutions), values, clusters)


def _block_scores(counted: Counted, solutions: list[Solution], estimator: AnyEstimator) -> FloatArray:
    if isinstance(estimator, TrajectoryEstimator) or counted.transitions.n_rows < SHORTEST:
        raise DataError(
            "these logs have one episode, which is too short to be cut into blocks"
            if not isinstance(estimator, TrajectoryEstimator)
            else f"'{estimator.name}' weighs whole episodes, and these logs have one",
            expected=f"two episodes, or one of at least {SHORTEST} steps and an estimator with scores by row",
            hint="log more episodes, or use 'emp'",
        )
    rows = order_rows(counted)
    return block_scores(np.stack([rows.scores(s.scores) for s in solutions if s.scores is not None], axis=1))


def pairwise(joint: JointScores, level: float, seed: int = 0) -> tuple[Difference, ...]:
    """Every pair once, in the order of the targets."""
    pairs = list(combinations(range(len(joint.names)), 2))
    spread = [standard_error(joint.scores[:, i] - joint.scores[:, j]) for i, j in pairs]
    single = quantile(level, joint.degrees)
    together = single if len(pairs) == 1 else max(single, _largest_of_all(joint, pairs, spread, level, seed))
    alone = np.sqrt(np.diag(joint.covariance))
    found = []
    for (i, j), error in zip(pairs, spread, strict=True):
        value = float(joint.values[i] - joint.values[j])
        found.append(
            Difference(
                first=joint.names[i],
                second=joint.names[j],
                value=value,
                standard_error=error,
                independent_standard_error=float(np.hypot(alone[i], alone[j])),
                interval=_around(value, single * error, level, "difference of clustered scores, t"),
                joint=_around(value, together * error, level, "difference of clustered scores, all pairs"),
                probability_first_is_better=_probability_positive(value, error, joint.degrees),
            )
        )
    return tuple(found)


def _around(value: float, half: float, level: float, method: str) -> Interval:
    return Interval(value - half, value + half, level, method)


def _largest_of_all(
    joint: JointScores, pairs: list[tuple[int, int]], spread: list[float], level: float, seed: int
) -> float:
    """The quantile of max |t| over pairs."""
    draws = joint.draws(DRAWS, seed)
    ratios = [np.abs(draws[:, i] - draws[:, j]) / e for (i, j), e in zip(pairs, spread, strict=True) if e > 0]
    return float(np.quantile(np.max(ratios, axis=0), level)) if ratios else 0.0


def _probability_positive(value: float, error: float, degrees: int) -> float:
    if error == 0.0:
        return 0.5 if value == 0.0 else float(value > 0.0)
    return float(stdtr(degrees, value / error))


def rank(joint: JointScores, level: float, seed: int = 0) -> tuple[Ranking, ...]:
    """Places by draws around the values, best first; the same seed gives the same probabilities."""
    believed = joint.values + joint.draws(DRAWS, seed)
    order = np.argsort(-believed, axis=1, kind="stable")
    place = np.argsort(order, axis=1, kind="stable") + 1
    errors = np.sqrt(np.diag(joint.covariance))
    found = []
    for k, name in enumerate(joint.names):
        low, high = np.quantile(place[:, k], [0.5 - level / 2, 0.5 + level / 2], method="inverted_cdf")
        found.append(
            Ranking(
                target=name,
                value=float(joint.values[k]),
                standard_error=float(errors[k]),
                probability_best=float(np.mean(place[:, k] == 1)),
                expected_rank=float(place[:, k].mean()),
                low=int(low),
                high=int(high),
                ranks=tuple(float(np.mean(place[:, k] == p)) for p in range(1, len(joint.names) + 1)),
            )
        )
    return tuple(sorted(found, key=lambda r: -r.value))


def _alerts(solutions: Mapping[str, Solution], n_episodes: int, corrects_coverage: bool) -> tuple[str, ...]:
    found = [
        f"{name}: {s.uncovered_mass:.1%} of the target's mass is on actions that were never logged; "
        + (
            "there the difference rests on the value model"
            if corrects_coverage
            else "the difference can be off by more than its interval shows"
        )
        for name, s in solutions.items()
        if s.uncovered_mass > UNCOVERED
    ]
    few = few_episodes(n_episodes)
    return (*found, few) if few else tuple(found)
