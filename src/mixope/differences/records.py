"""What a comparison of targets says: all estimates, every pair, every target against every logger, and the ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mixope.estimand import Estimand
from mixope.estimate import Estimate
from mixope.intervals import Interval
from mixope.rendering import Record, ReportedRecord, plain

MOST_LISTED = 12
"""Targets or pairs that a sentence names."""


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
        """How many times narrower than if the two had been evaluated on different logs."""
        return self.independent_standard_error / self.standard_error if self.standard_error > 0 else float("inf")

    @property
    def conclusion(self) -> str:
        """Which is better, all pairs considered, or that these episodes cannot tell."""
        if self.standard_error == 0.0 and self.value == 0.0:
            return "the same on every episode"
        if self.joint.low > 0:
            return f"{self.first} is better"
        return f"{self.second} is better" if self.joint.high < 0 else "cannot be told apart"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; ``narrower`` is None where the two are the same on every episode."""
        spans = {"interval": self.interval.to_dict(), "joint": self.joint.to_dict()}
        return {**asdict(self), **spans, "narrower": self.narrower, "conclusion": self.conclusion}


@dataclass(frozen=True)
class Ranking:
    """One target's place: 1 is best. ``low`` and ``high`` are at the level.

    ``ranks`` is the probability of each place; of many targets, of the first twelve places.
    """

    target: str
    value: float
    standard_error: float
    probability_best: float
    expected_rank: float
    low: int
    high: int
    ranks: tuple[float, ...]

    @property
    def span(self) -> str:
        """The places it may have."""
        return f"{self.low}" if self.low == self.high else f"{self.low}–{self.high}"


@dataclass(frozen=True)
class Differences(Record):
    """Pairs of targets, their ranking, best first, and every target less what each logger earned.

    ``compared`` says which pairs there are: all of them, or, of many targets, the best less each of the others.
    """

    estimator: str
    estimand: Estimand
    level: float
    n_episodes: int
    pairs: tuple[Difference, ...]
    ranking: tuple[Ranking, ...]
    loggers: tuple[Difference, ...] = ()
    alerts: tuple[str, ...] = ()
    compared: Literal["all pairs", "with the best"] = "all pairs"

    def __getitem__(self, key: tuple[str, str]) -> Difference:
        """By (first, second), in the order in which the targets were given; the second may be a logger.

        Of many targets the first is the best.
        """
        for pair in (*self.pairs, *self.loggers):
            if (pair.first, pair.second) == key:
                return pair
        known = _listed([f"({p.first!r}, {p.second!r})" for p in (*self.pairs, *self.loggers)])
        ask = "" if self.compared == "all pairs" else "; all pairs are made with all_pairs=True"
        raise KeyError(f"no difference for {key!r}; there are {known}{ask}")

    @property
    def summary(self) -> str:
        """The ranking in one sentence."""
        best = self.ranking[0]
        sure = f"{best.target} is best with probability {probability_words(best.probability_best)}"
        places = _listed([f"{r.target} ({r.span})" for r in self.ranking])
        return f"{sure}; places at level {self.level:.4g}: {places}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        record: dict[str, Any] = {
            "estimator": self.estimator,
            "estimand": {k: v for k, v in asdict(self.estimand).items() if v is not None},
            "level": self.level,
            "n_episodes": self.n_episodes,
            "compared": self.compared,
            "pairs": [pair.to_dict() for pair in self.pairs],
            "ranking": [asdict(place) for place in self.ranking],
            "loggers": [pair.to_dict() for pair in self.loggers],
            "alerts": list(self.alerts),
        }
        found: dict[str, Any] = plain(record)
        return found


@dataclass(frozen=True)
class Comparison(ReportedRecord):
    """Several targets and estimators on the same logs; ``differences`` has one record per estimator with scores."""

    estimates: tuple[Estimate, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    differences: tuple[Differences, ...] = ()

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        """By (target, estimator)."""
        for estimate in self.estimates:
            if (estimate.target, estimate.estimator) == key:
                return estimate
        known = ", ".join(f"({e.target!r}, {e.estimator!r})" for e in self.estimates)
        raise KeyError(f"no estimate for {key!r}; there are {known}")

    def to_dict(self) -> dict[str, Any]:
        """One entry per estimate; ``ranking`` is by the first estimator that has differences."""
        differences = [found.to_dict() for found in self.differences]
        return {
            "estimates": [e.to_dict() for e in self.estimates],
            "differences": differences,
            "ranking": differences[0]["ranking"] if differences else [],
            "skipped": [{"estimator": name, "reason": reason} for name, reason in self.skipped],
        }

    def to_arrow(self) -> Any:
        """One row per estimate, as a ``pyarrow.Table``."""
        import pyarrow as pa

        return pa.Table.from_pylist([e.summary() for e in self.estimates])

    def to_pandas(self) -> Any:
        """The same as a pandas data frame (pandas must be installed)."""
        return self.to_arrow().to_pandas()


def _listed(names: Sequence[str]) -> str:
    """All of them, or the first and how many there are besides."""
    rest = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


def probability_words(chance: float) -> str:
    """Three digits, never rounded to certainty: < 0.001, > 0.999."""
    return "< 0.001" if chance < 0.001 else "> 0.999" if chance > 0.999 else f"{chance:.3f}"
