"""What a backtest found: one line a logger, how the lines agree, and the summary in one sentence.

Of n loggers that could be predicted, k agree. If intervals hold at the level, k/n is near it; how near it must be
follows from the binomial law, and the Clopper–Pearson interval of k/n says what share these few loggers allow. Loggers
share their rows, so they are not quite independent: the interval is a guide.

Whether the predictions are off by more than chance is judged once, and the table and the check say the same: Σ of the
squared deviates of all loggers is held against χ² (:mod:`mixope.backtesting.judging`), and the deviate of the farthest
logger against the most that so many loggers have by chance. A logger that is outside its level, but no farther than one
of so many may be, is shown as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from scipy.special import betaincinv, chdtrc, ndtr, ndtri

from mixope.answers.estimate import Estimate, Provenance
from mixope.base.estimand import Estimand
from mixope.base.rendering import ReportedRecord, Rows, plain
from mixope.base.restoring import restore
from mixope.checks import Check, Diagnostic, Verdict, verdict
from mixope.checks.check import WORLDS

WARN = 3.0
"""Standard deviations of a normal law beyond which the predictions are not off by chance."""
BEYOND_CHANCE = float(ndtr(-WARN))
BACKTEST = Check(
    "backtest",
    "backtest",
    WORLDS,
    "see the row of that logger: another population, another time, or a recorder's error",
)


@dataclass(frozen=True)
class BacktestRow:
    """One logger: predicted from the others, and what it earned. Without a prediction ``predicted`` is NaN.

    Of a prediction that the others' rows do not support nothing follows: ``covered``, ``z`` and ``deviate`` are None.
    """

    label: str
    predicted: float
    low: float | None
    high: float | None
    earned: float
    earned_low: float | None
    earned_high: float | None
    covered: bool | None
    verdict: str
    uncovered_mass: float
    z: float | None = None
    deviate: float | None = None
    """z on the scale of a normal law: few episodes make it smaller."""
    chance: float | None = None
    """The probability that one of so many loggers is as far off by chance."""
    estimand: str = ""
    policy: str = "counted"
    n_rows: int = 0
    n_episodes: int = 0
    note: str = ""

    @property
    def supported(self) -> bool:
        """Whether the others' rows can carry a prediction with an interval."""
        return self.z is not None and self.verdict != str(Verdict.UNSUPPORTED)

    @property
    def distance(self) -> float:
        """How far off it is, on the scale of a normal law; 0 where nothing was predicted."""
        return abs((self.z if self.deviate is None else self.deviate) or 0.0)

    @property
    def beyond_chance(self) -> bool:
        """Whether it is farther off than one of so many loggers may be."""
        return self.supported and self.chance is not None and self.chance < BEYOND_CHANCE


@dataclass(frozen=True)
class Backtest(ReportedRecord):
    """Every labelled logger held out in turn."""

    rows: tuple[BacktestRow, ...]
    estimator: str
    level: float
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None
    degrees: float | None = None
    """How many independent predictions these are worth; None where nobody knows, and they may all err together."""
    replays: tuple[Diagnostic, ...] = ()
    """What the counts of all rows predict of their loggers by step, and out of time, beside what was seen."""
    estimand: Estimand | None = None
    """What was asked of every logger; None where each is asked what its rows show as they are."""

    @property
    def unit(self) -> str:
        """Per step, or per episode."""
        return Estimand().unit if self.estimand is None else self.estimand.unit

    @property
    def subject(self) -> str:
        """What was predicted, each quantity with the loggers whose it is where there are several."""
        of: dict[str, list[str]] = {}
        for row in self.rows:
            of.setdefault(row.estimand, []).append(row.label)
        each = [f"{what} of {', '.join(labels)}" if len(of) > 1 else what for what, labels in of.items()]
        return f"{'; '.join(each)}, {self.unit}"

    @property
    def supported(self) -> tuple[BacktestRow, ...]:
        """The loggers that could be predicted."""
        return tuple(row for row in self.rows if row.supported)

    @property
    def agree(self) -> int:
        """How many of those earned what was predicted, both errors counted."""
        return sum(bool(row.covered) for row in self.supported)

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
    def chi_squared(self) -> float | None:
        """Σ deviate² over the loggers, on the scale of a χ² with ``degrees`` of freedom."""
        judged = self.supported
        return sum(row.distance**2 for row in judged) * self._degrees / len(judged) if judged else None

    @property
    def _degrees(self) -> float:
        return self.degrees or 1.0

    @property
    def probability(self) -> float | None:
        """How often chance makes predictions as far off as these, all loggers together."""
        statistic = self.chi_squared
        return None if statistic is None else float(chdtrc(self._degrees, statistic))

    @property
    def check(self) -> Diagnostic | None:
        """The backtest as one more diagnostic of an estimate; None where no logger could be predicted."""
        judged, together = self.supported, self.probability
        if together is None:
            return None
        least = min([together, *(row.chance for row in judged if row.chance is not None)])
        off = float(-ndtri(min(max(least, 1e-300), 1.0 - 1e-16)))
        return BACKTEST.diagnostic(off, WARN, "warn" if off > WARN else "pass", self._sentence(together))

    def _sentence(self, together: float) -> str:
        """What the check says: of the logger that is beyond chance, of all of them, of one that is not."""
        judged = self.supported
        worst = max(judged, key=lambda row: row.distance)
        off = abs(worst.z or 0.0)
        farthest = f"logger {worst.label} earned {off:.1f} standard errors off what the others' rows predict"
        if worst.beyond_chance:
            return farthest
        if together < BEYOND_CHANCE:
            return f"{self._all} are off by more than chance taken together; {farthest}"
        if self.agree == len(judged):
            return f"{self._all} agree with what was earned"
        return f"{farthest}, but among {len(judged)} that may be chance"

    @property
    def _all(self) -> str:
        n = len(self.supported)
        return "the prediction of the one logger" if n == 1 else f"the predictions of all {n} loggers from the others"

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
            f" (so few allow a true share of {span[0]:.0%} to {span[1]:.0%}); {self._together}{rest}"
        )

    @property
    def _together(self) -> str:
        """The χ² over loggers in words, and a logger that is off by more than chance though all together are not."""
        probability = self.probability or 0.0
        beyond = probability < BEYOND_CHANCE
        verdict = "are off by more than chance" if beyond else "are no farther off than chance"
        said = f"{probability:.2f}" if probability >= 0.005 else f"{probability:.0e}"
        alone = [row.label for row in self.supported if row.beyond_chance and not beyond]
        rest = f", but {', '.join(alone)} {'is' if len(alone) == 1 else 'are'} off by more than chance" if alone else ""
        law = f"χ² = {self.chi_squared:.1f} with {self._degrees:.1f} degrees, p = {said}"
        return f"together they {verdict} ({law}){rest}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that do not exist are None. What is derived, is from numbers as written."""
        rows, degrees = tuple(map(_as_written, self.rows)), plain(self.degrees)
        return self._written(replace(self, rows=rows, degrees=degrees, level=plain(self.level))._values())

    def _values(self) -> dict[str, Any]:
        span = self.coverage_interval
        return {
            "estimator": self.estimator,
            "estimand": self.estimand and {k: v for k, v in asdict(self.estimand).items() if v is not None},
            "unit": self.unit,
            "level": self.level,
            "coverage": self.coverage,
            "coverage_interval": {"low": span[0], "high": span[1]} if span else None,
            "mean_abs_z": self.mean_abs_z,
            "chi_squared": self.chi_squared,
            "degrees": self.degrees,
            "probability": self.probability,
            "supported": len(self.supported),
            "agree": self.agree,
            "summary": self.summary,
            "rows": [
                {**asdict(row), "supported": row.supported, "beyond_chance": row.beyond_chance} for row in self.rows
            ],
            "replays": [check.to_dict() for check in self.replays],
            "notes": list(self.notes),
            "provenance": asdict(self.provenance) if self.provenance else None,
        }

    def tables(self) -> dict[str, Rows]:
        """One row per logger."""
        return {"loggers": [{**asdict(row), "supported": row.supported} for row in self.rows]}


def _as_written(row: BacktestRow) -> BacktestRow:
    """With its numbers as JSON has them, so that what is derived from them is the same when they are read again."""
    found: BacktestRow = restore(BacktestRow, plain(asdict(row)), row.label)
    return found


def judged_together(rows: Sequence[BacktestRow]) -> tuple[BacktestRow, ...]:
    """The same lines, each with the probability that the farthest of so many is as far off (Bonferroni's bound)."""
    n = sum(row.supported for row in rows)

    def chance(row: BacktestRow) -> float | None:
        return None if not row.supported or row.deviate is None else min(1.0, 2 * n * float(ndtr(-abs(row.deviate))))

    return tuple(replace(row, chance=chance(row)) for row in rows)


def share_interval(hits: int, trials: int, level: float) -> tuple[float, float]:
    """Clopper–Pearson: the shares p under which neither so few nor so many hits would surprise, each tail halved."""
    tail = (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high
