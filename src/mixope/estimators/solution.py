"""What an estimator hands on: a value, how it weighed the rows, and scores by cluster that make an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.estimators.ladder import Ladder
from mixope.requests.replay import Replays
from mixope.requests.scores import ClusterScores
from mixope.requests.weights import WeightBin
from mixope.solvers.outcome import Outcome, Solved

Given = Literal["propensities", "policies"]
Combine = Callable[[Sequence[float], Sequence[float]], float]


@dataclass(frozen=True)
class Weights:
    """The importance weights of the rows, by part: Σ w, Σ w², and the largest single one (or a bound).

    The parts are loggers in a solution, and groups of rows on the way to one.
    """

    total: FloatArray
    squared: FloatArray
    largest: float

    def effective_sample_size(self, parts: FloatArray | None = None) -> float:
        """(Σ w)² / Σ w², of all rows or of some parts (a mask of zeros and ones)."""
        total, squared = (self.total, self.squared) if parts is None else (self.total * parts, self.squared * parts)
        denominator = float(squared.sum())
        return float(total.sum()) ** 2 / denominator if denominator > 0 else 0.0

    def by(self, number: IntArray, n: int) -> Weights:
        """Of larger parts, ``number`` of every one."""
        return Weights(sum_by(number, self.total, n), sum_by(number, self.squared, n), self.largest)


def _mean(shares: Sequence[float], values: Sequence[float]) -> float:
    return sum(s * v for s, v in zip(shares, values, strict=True))


def _most(shares: Sequence[float], values: Sequence[float]) -> float:
    return max(values)


def _sum(shares: Sequence[float], values: Sequence[float]) -> float:
    return sum(values)


def _farthest_from_one(shares: Sequence[float], values: Sequence[float]) -> float:
    return max(values, key=lambda value: abs(value - 1.0))


def _effective(shares: Sequence[float], values: Sequence[float]) -> float:
    """1 / Σ s²/n: of weights that are normalised within each part."""
    return 1.0 / sum(s**2 / max(v, 1e-300) for s, v in zip(shares, values, strict=True))


def _largest(shares: Sequence[float], values: Sequence[float]) -> float:
    return max(s * v for s, v in zip(shares, values, strict=True))


def _measure(combine: Combine = _most) -> Any:
    """A measure that need not be there, and how those of several parts become one."""
    return field(default=None, metadata={"combine": combine})


_NAMED = {"likeness": "likeness ", "by_class": "class "}
"""Measures that have a name each, and how they are marked where they are written."""


@dataclass(frozen=True)
class Measures:
    """What else an estimator measured on the way; what does not apply is None."""

    effective_sample_size: float | None = _measure(_effective)
    effective_episodes: float | None = _measure(_effective)
    largest_share: float | None = _measure(_largest)
    mean_weight: float | None = _measure(_farthest_from_one)
    episode_length: float | None = _measure(_mean)
    leaked_mass: float | None = _measure()
    behaviour_misfit: float | None = _measure()
    recorded_misfit: float | None = _measure()
    held_out: float | None = _measure()
    condition: float | None = _measure()
    stationarity_residual: float | None = _measure()
    truncated_ratios: float | None = _measure(_sum)
    clipped_calibrations: float | None = _measure(_sum)
    capped_densities: float | None = _measure(_sum)
    approximation: float | None = _measure(_mean)
    half_the_bumps: float | None = _measure(_mean)
    plug_in: float | None = _measure(_mean)
    corrected: float | None = _measure(_mean)
    uncorrected: float | None = _measure(_mean)
    ridge: float | None = _measure()
    order: float | None = _measure()
    sill: float | None = _measure()
    noise: float | None = _measure()
    noise_ratio: float | None = _measure()
    loss_fall: float | None = _measure()
    held_out_fall: float | None = _measure()
    seed_median: float | None = _measure(_mean)
    seed_spread: float | None = _measure()
    far_pairs: float | None = _measure()
    rare_rewards: float | None = _measure(_effective)
    frontier_mass: float | None = _measure(_mean)
    frontier_span: float | None = _measure(_mean)
    start_error: float | None = _measure()
    effective_ends: float | None = _measure(_effective)
    deciding_events: float | None = _measure(_effective)
    parked_share: float | None = _measure(_mean)
    parked_reward: float | None = _measure(_mean)
    classes: float | None = _measure()
    classes_gain: float | None = _measure()
    likeness: Mapping[str, float] = field(default_factory=dict)
    by_class: Mapping[str, float] = field(default_factory=dict)
    """Of classes of units: "1 share", "1 value", "1 units", …"""

    def to_dict(self) -> dict[str, float]:
        """Those that are there."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NAMED}
        plain = {name: float(value) for name, value in found.items() if value is not None}
        named = {f"{mark}{name}": value for of, mark in _NAMED.items() for name, value in getattr(self, of).items()}
        return {**plain, **named}

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields; likenesses and classes stand beside the others, each under its own name."""
        named = {
            of: {name.removeprefix(mark): value for name, value in written.items() if name.startswith(mark)}
            for of, mark in _NAMED.items()
        }
        return {**written, **named}


def combine_measures(parts: Sequence[Measures], shares: Sequence[float]) -> Measures:
    """Of an average over several parts: each measure by its own rule, where all parts have it."""
    found: dict[str, Any] = {}
    for each in fields(Measures):
        values = [getattr(part, each.name) for part in parts]
        if "combine" in each.metadata and all(value is not None for value in values):
            found[each.name] = each.metadata["combine"](shares, values)
    return Measures(**found)


@dataclass(frozen=True)
class Solution:
    """An estimate before it is dressed for a reader; scores are by cluster, weights by logger, whatever states are."""

    value: float
    weights: Weights | None = None
    scores: ClusterScores | None = None
    uncovered_mass: float = 0.0
    outside_mass: float = 0.0
    solved: Solved = field(default_factory=lambda: Solved(Outcome.CERTAIN, 0.0))
    measures: Measures = field(default_factory=Measures)
    no_interval_because: str | None = None
    known_bias: str | None = None
    weight_bins: tuple[WeightBin, ...] = ()
    degrees: float | None = None
    """Of freedom behind the scores, where they are fewer than the episodes: scores by fold, not by episode."""
    corrects_coverage: bool = False
    """Whether a value model stands in for what was never logged."""
    notes: tuple[str, ...] = ()
    """What a reader should know of the fits behind it."""
    normalised: bool = True
    """Whether weights are normalised, or a model stands behind them, so that rewards of one earn about one."""
    is_reference: bool = False
    """Whether this is a reference line and no estimate of the target."""
    trained_on: str | None = None
    """The GPU on which networks were trained; None where there are none, or the processor trained them."""
    given: Given | None = None
    """What was given of the loggers and is divided by; None where the behaviour is estimated from the rows."""
    otherwise: Callable[[], float] | None = field(default=None, repr=False, compare=False)
    """The value with a behaviour that is estimated from the rows instead: asked for where the given one does not fit
    them."""
    replays: Replays | None = field(default=None, repr=False, compare=False)
    """Whether its own model tells the path of the logs, where that is not the chain of all rows."""
    readings: Any = field(default=None, repr=False, compare=False)
    """What whoever asked read off the flow behind it, while that was there (``reader`` of the problem)."""
    ladder: Ladder | None = None
    """How far the value moves with memory, of an estimator that has some."""


def combine(parts: Sequence[Solution], shares: Sequence[float]) -> Solution:
    """The weighted average of several solutions, each on its own rows: values, scores and masses average alike."""

    return Solution(
        value=_mean(shares, [p.value for p in parts]),
        weights=combine_weights([p.weights for p in parts], shares),
        scores=_combine_scores([p.scores for p in parts], shares),
        uncovered_mass=_mean(shares, [p.uncovered_mass for p in parts]),
        outside_mass=_mean(shares, [p.outside_mass for p in parts]),
        solved=max((p.solved for p in parts), key=lambda s: (not s.ok, s.residual)),
        measures=combine_measures([p.measures for p in parts], shares),
        no_interval_because=next((p.no_interval_because for p in parts if p.no_interval_because), None),
        known_bias=next((p.known_bias for p in parts if p.known_bias), None),
        degrees=min((p.degrees for p in parts if p.degrees is not None), default=None),
        corrects_coverage=all(p.corrects_coverage for p in parts),
        notes=tuple(dict.fromkeys(note for p in parts for note in p.notes)),
        given=next((p.given for p in parts if p.given), None),
        otherwise=_otherwise(parts, shares),
    )


def average(arrays: Sequence[FloatArray | None], shares: Sequence[float]) -> FloatArray | None:
    """Of what all parts have; None where one has it not."""
    known = [s * x for s, x in zip(shares, arrays, strict=True) if x is not None]
    return np.asarray(np.sum(known, axis=0)) if len(known) == len(arrays) else None


def _combine_scores(parts: Sequence[ClusterScores | None], shares: Sequence[float]) -> ClusterScores | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return replace(
        known[0],
        by_cluster=np.asarray(np.sum([s * part.by_cluster for s, part in zip(shares, known, strict=True)], axis=0)),
        by_piece=average([part.by_piece for part in known], shares),
        start_error=_combine_errors([part.start_error for part in known]),
        late=average([part.late for part in known], shares),
    )


def _combine_errors(errors: Sequence[float | None]) -> float | None:
    """The largest, where it is known of all."""
    known = [error for error in errors if error is not None]
    return max(known) if len(known) == len(errors) else None


def _otherwise(parts: Sequence[Solution], shares: Sequence[float]) -> Callable[[], float] | None:
    """Of the average; a part whose behaviour is estimated stays as it is."""
    if all(part.otherwise is None for part in parts):
        return None
    return lambda: _mean(shares, [p.value if p.otherwise is None else p.otherwise() for p in parts])


def combine_weights(weights: Sequence[Weights | None], shares: Sequence[float]) -> Weights | None:
    """Each part's weights in shares of that part."""
    known = [w for w in weights if w is not None]
    if not known or len(known) < len(weights):
        return None
    scaled = [(s / float(w.total.sum()), w) for s, w in zip(shares, known, strict=True)]
    return Weights(
        np.sum([s * w.total for s, w in scaled], axis=0),
        np.sum([s**2 * w.squared for s, w in scaled], axis=0),
        max(s * w.largest for s, w in scaled),
    )
