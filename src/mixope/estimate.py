"""Results: frozen records with everything a reader needs to use or refuse a number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.arrays import FloatArray
from mixope.diagnostics import Diagnostic, Verdict
from mixope.estimand import Estimand
from mixope.intervals import Interval
from mixope.report import html_fragment, write_html
from mixope.report.plain import plain
from mixope.report.text import comparison_text, estimate_text
from mixope.statistics.episodes import EpisodeTotals

if TYPE_CHECKING:
    from mixope.differences import Differences
    from mixope.estimators.weight_bins import WeightBin


@dataclass(frozen=True)
class LoggerShare:
    """One logger's part: its rows, what it earned, and how much of the estimate's weight rests on it."""

    label: str
    rows: int
    logged_mean: float
    weight_share: float | None = None
    effective_sample_size: float | None = None


@dataclass(frozen=True)
class Provenance:
    """Where a number comes from."""

    version: str
    seed: int
    engine: str
    logs_fingerprint: str
    target_fingerprint: str
    inputs: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Estimate:
    """What the target would earn per step, how sure we are, and whether the logs can carry it.

    ``scores`` are by episode, in the order of ``episodes``, which all estimates of a run share.
    """

    estimator: str
    estimand: Estimand
    target: str
    value: float
    standard_error: float | None
    interval: Interval | None
    n_rows: int
    n_episodes: int
    n_dropped: int
    loggers: tuple[LoggerShare, ...]
    effective_sample_size: float
    uncovered_mass: float
    outside_mass: float
    logged_mean: float
    verdict: Verdict
    diagnostics: tuple[Diagnostic, ...]
    solver: str
    residual: float
    measures: Mapping[str, float]
    alerts: tuple[str, ...]
    provenance: Provenance
    no_interval_because: str | None = None
    beside: tuple[Estimate, ...] = field(default=())
    band: tuple[float, float] | None = None
    weights: tuple[WeightBin, ...] = ()
    scores: FloatArray | None = field(default=None, repr=False, compare=False)
    episodes: EpisodeTotals | None = field(default=None, repr=False, compare=False)
    corrects_coverage: bool = field(default=False, repr=False)

    @property
    def unit(self) -> str:
        """Every value is per step."""
        return self.estimand.unit

    def __str__(self) -> str:
        return estimate_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; numbers that do not exist are None."""
        record: dict[str, Any] = {
            "estimator": self.estimator,
            "estimand": {k: v for k, v in asdict(self.estimand).items() if v is not None},
            "unit": self.unit,
            "target": self.target,
            "value": self.value,
            "standard_error": self.standard_error,
            "interval": self.interval.to_dict() if self.interval else None,
            "no_interval_because": self.no_interval_because,
            "outer_band": {"low": self.band[0], "high": self.band[1]} if self.band else None,
            "verdict": str(self.verdict),
            "n_rows": self.n_rows,
            "n_episodes": self.n_episodes,
            "n_dropped": self.n_dropped,
            "loggers": [asdict(logger) for logger in self.loggers],
            "effective_sample_size": self.effective_sample_size,
            "weights": [asdict(found) for found in self.weights],
            "uncovered_mass": self.uncovered_mass,
            "outside_mass": self.outside_mass,
            "logged_mean": self.logged_mean,
            "diagnostics": [d.to_dict() for d in self.diagnostics],
            "solver": self.solver,
            "residual": self.residual,
            "measures": dict(self.measures),
            "alerts": list(self.alerts),
            "provenance": {**asdict(self.provenance), "inputs": [dict(i) for i in self.provenance.inputs]},
        }
        if self.beside:
            record["beside"] = [_short(other) for other in self.beside]
        found: dict[str, Any] = plain(record)
        return found

    def report(self, path: str | Path, **extras: Any) -> Path:
        """Write a self-contained HTML page; ``extras``: command, truth, band, backtest, coverage."""
        return write_html(self, path, **{"band": self.band, **extras})

    def _repr_html_(self) -> str:
        return html_fragment(self)

    def to_json(self, indent: int | None = 2) -> str:
        """The record as one JSON object; numbers to twelve digits, so that the same command gives the same bytes."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


@dataclass(frozen=True)
class Comparison:
    """Several targets and estimators on the same logs; ``differences`` has one record an estimator with scores."""

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

    def __str__(self) -> str:
        return "\n".join([comparison_text(self), *map(str, self.differences)])

    def to_dict(self) -> dict[str, Any]:
        """One entry an estimate; ``ranking`` is by the first estimator that has differences."""
        differences = [found.to_dict() for found in self.differences]
        return {
            "estimates": [e.to_dict() for e in self.estimates],
            "differences": differences,
            "ranking": differences[0]["ranking"] if differences else [],
            "skipped": [{"estimator": name, "reason": reason} for name, reason in self.skipped],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The whole comparison as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def report(self, path: str | Path, **extras: Any) -> Path:
        """Write a self-contained HTML page; ``extras``: command, truth, band, backtest, coverage."""
        return write_html(self, path, **extras)

    def _repr_html_(self) -> str:
        return html_fragment(self)

    def to_arrow(self) -> Any:
        """One row an estimate, as a ``pyarrow.Table``."""
        import pyarrow as pa

        return pa.Table.from_pylist([_short(e) for e in self.estimates])

    def to_pandas(self) -> Any:
        """The same as a pandas data frame (pandas must be installed)."""
        return self.to_arrow().to_pandas()


def _short(estimate: Estimate) -> dict[str, Any]:
    interval = estimate.interval
    return {
        "target": estimate.target,
        "estimator": estimate.estimator,
        "estimand": str(estimate.estimand),
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "effective_sample_size": estimate.effective_sample_size,
        "uncovered_mass": estimate.uncovered_mass,
        "verdict": str(estimate.verdict),
    }
