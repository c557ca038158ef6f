"""What a backtest found: one line a logger, how the lines agree, and the summary in one sentence.

Of n loggers that could be predicted, k agree. If intervals hold at the level, k/n is near it; how near it must be
follows from the binomial law, and the Clopper–Pearson interval of k/n says what share these few loggers allow. Loggers
share their rows, so they are not quite independent: the interval is a guide.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from scipy.special import betaincinv

from mixope.diagnostics import Diagnostic, Verdict, verdict
from mixope.estimate import Estimate, Provenance
from mixope.rendering import ReportedRecord, plain

FAR = 4.0
"""Standard errors at which a prediction is wrong beyond chance, some ten loggers being looked at."""
EXPECTED_Z = math.sqrt(2 / math.pi)
"""E |z| of a standard normal: what the mean |z| is near to if predictions and intervals are right."""


@dataclass(frozen=True)
class BacktestRow:
    """One logger: predicted from the others, and what it earned. Without a prediction ``predicted`` is NaN."""

    label: str
    predicted: float
    low: float | None
    high: float | None
    earned: float
    earned_low: float | None
    earned_high: float | None
    covered: bool
    verdict: str
    uncovered_mass: float
    z: float | None = None
    estimand: str = ""
    policy: str = "counted"
    n_rows: int = 0
    n_episodes: int = 0
    note: str = ""

    @property
    def supported(self) -> bool:
        """Whether the others' rows can carry a prediction with an interval."""
        return self.z is not None and self.verdict != str(Verdict.UNSUPPORTED)


@dataclass(frozen=True)
class Backtest(ReportedRecord):
    """Every labelled logger held out in turn."""

    rows: tuple[BacktestRow, ...]
    estimator: str
    level: float
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None

    @property
    def supported(self) -> tuple[BacktestRow, ...]:
        """The loggers that could be predicted."""
        return tuple(row for row in self.rows if row.supported)

    @property
    def agree(self) -> int:
        """How many of those earned what was predicted, both errors counted."""
        return sum(row.covered for row in self.supported)

    @property
    def coverage(self) -> float | None:
        """The share of predictable loggers whose earnings agree with the prediction."""
        judged = len(self.supported)
        return self.agree / judged if judged else None

    @property
    def coverage_interval(self) -> tuple[float, float] | None:
        """The shares that these few loggers allow, at the level of the backtest (Clopper–Pearson)."""
        return share_interval(self.agree, len(self.supported), self.level) if self.supported else None

    @property
    def mean_abs_z(self) -> float | None:
        """The mean distance in standard errors; near 0.8 if predictions and intervals are right."""
        distances = [abs(row.z) for row in self.supported if row.z is not None]
        return sum(distances) / len(distances) if distances else None

    @property
    def check(self) -> Diagnostic | None:
        """The backtest as one more diagnostic of an estimate; None where no logger could be predicted."""
        judged = self.supported
        if not judged:
            return None
        worst = max(judged, key=lambda row: abs(row.z or 0.0))
        off = abs(worst.z or 0.0)
        words = f"every logger is predicted from the others to within {off:.1f} standard errors"
        if off > FAR:
            words = f"logger {worst.label} earned {off:.1f} standard errors off what the others' rows predict"
        return Diagnostic("backtest", off, FAR, "warn" if off > FAR else "pass", words)

    def judge(self, estimate: Estimate) -> Estimate:
        """The estimate with the backtest among its checks; unchanged where no logger could be predicted."""
        if self.check is None or not estimate.diagnostics:
            return estimate
        found = (*estimate.diagnostics, self.check)
        return replace(estimate, diagnostics=found, verdict=verdict(found))

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        judged, span = len(self.supported), self.coverage_interval
        if span is None:
            return f"none of {len(self.rows)} loggers can be predicted from the others"
        left = len(self.rows) - judged
        rest = f"; {left} cannot be predicted from the others" if left else ""
        return (
            f"{self.agree} of {judged} predictions agree with what was earned at level {self.level:.4g}"
            f" (so few allow a true share of {span[0]:.0%} to {span[1]:.0%}); mean distance"
            f" {self.mean_abs_z:.2f} standard errors ({EXPECTED_Z:.1f} if all is well){rest}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that do not exist are None."""
        span = self.coverage_interval
        record: dict[str, Any] = {
            "estimator": self.estimator,
            "level": self.level,
            "coverage": self.coverage,
            "coverage_interval": {"low": span[0], "high": span[1]} if span else None,
            "mean_abs_z": self.mean_abs_z,
            "supported": len(self.supported),
            "agree": self.agree,
            "summary": self.summary,
            "rows": [{**asdict(row), "supported": row.supported} for row in self.rows],
            "notes": list(self.notes),
            "provenance": asdict(self.provenance) if self.provenance else None,
        }
        found: dict[str, Any] = plain(record)
        return found


def share_interval(hits: int, trials: int, level: float) -> tuple[float, float]:
    """Clopper–Pearson: the shares p under which neither so few nor so many hits would surprise, each tail halved."""
    tail = (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high
