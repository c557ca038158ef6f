"""Results: frozen records with everything a reader needs to use or refuse a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mixope.answers.confounding import Confounding
from mixope.answers.pictures import Pictures
from mixope.base.arrays import FloatArray
from mixope.base.estimand import Estimand
from mixope.base.moved import renamed
from mixope.base.rendering import Flat, ReportedRecord, Rows
from mixope.checks import Diagnostic, Verdict
from mixope.estimators.counts.reach import Beyond
from mixope.estimators.ladder import MemoryUsed
from mixope.estimators.solution import Measures
from mixope.requests.episodes import EpisodeTotals
from mixope.requests.weights import WeightBin
from mixope.uncertainty import Difference, Interval

ALL_LOGS = "all logs"
__getattr__ = renamed(__name__, {"Advantage": "mixope.uncertainty.Difference"})


@dataclass(frozen=True)
class Earned:
    """What a logger, or all of them together, earned under the estimand of the target; and the target less that.

    ``method`` says how the value was had, ``because`` why something is missing. ``scores`` are by episode, like those
    of the estimate.
    """

    value: float | None = None
    interval: Interval | None = None
    difference: Difference | None = None
    method: str | None = None
    because: str | None = None
    scores: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def without_conclusion(self) -> Earned:
        """The same against a target whose answer is refused."""
        return replace(self, difference=self.difference and self.difference.without_conclusion)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "value": self.value,
            "interval": self.interval.to_dict() if self.interval else None,
            "difference": self.difference.to_dict() if self.difference else None,
            "method": self.method,
            "because": self.because,
        }


@dataclass(frozen=True)
class LoggerShare:
    """One logger's part: its rows, what it earned, and how much of the estimate's weight rests on it.

    ``logged_mean`` is per step, whatever is estimated; ``earned`` is under the estimand of the target.
    """

    label: str
    rows: int
    logged_mean: float
    weight_share: float | None = None
    effective_sample_size: float | None = None
    earned: Earned = Earned()

    @property
    def value(self) -> float | None:
        """What it earned under the estimand of the target."""
        return self.earned.value

    @property
    def interval(self) -> Interval | None:
        """Of that value."""
        return self.earned.interval

    @property
    def difference(self) -> Difference | None:
        """The target less this logger."""
        return self.earned.difference

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "earned"}
        return {**own, **self.earned.to_dict()}

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields; what it earned stands beside the others."""
        return {**written, "earned": written}

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        own, gain = self.interval, self.difference
        return {
            "logger": self.label,
            "rows": self.rows,
            "logged_mean": self.logged_mean,
            "weight_share": self.weight_share,
            "effective_sample_size": self.effective_sample_size,
            "value": self.value,
            "low": own.low if own else None,
            "high": own.high if own else None,
            "difference": gain.value if gain else None,
            "difference_low": gain.interval.low if gain else None,
            "difference_high": gain.interval.high if gain else None,
            "probability_better": gain.probability_better if gain else None,
        }


@dataclass(frozen=True)
class Provenance:
    """Where a number comes from."""

    version: str
    seed: int
    engine: str
    logs_fingerprint: str
    target_fingerprint: str
    inputs: tuple[Mapping[str, Any], ...] = ()
    trained_on: str | None = None
    """The GPU on which networks were trained, if one was."""


@dataclass(frozen=True)
class Estimate(ReportedRecord):
    """What the target would earn, how sure we are, and whether the logs can carry it.

    ``scores`` are by episode, in the order of ``episodes``, or by unit: for all estimates of a run by the same ones.
    ``step_scores`` are there where the interval rests on blocks of steps.
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
    measures: Measures
    alerts: tuple[str, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    no_interval_because: str | None = None
    beside: tuple[Estimate, ...] = field(default=())
    band: tuple[float, float] | None = None
    no_band_because: str | None = None
    weights: tuple[WeightBin, ...] = ()
    scores: FloatArray | None = field(default=None, repr=False, compare=False)
    step_scores: FloatArray | None = field(default=None, repr=False, compare=False)
    counted: bool = field(default=True, repr=False, compare=False)
    """Whether states and actions were counted: if not, nobody knows what was never logged."""
    degrees: float | None = field(default=None, repr=False, compare=False)
    """Of freedom behind the scores, where they are fewer than the episodes."""
    episodes: EpisodeTotals | None = field(default=None, repr=False, compare=False)
    corrects_coverage: bool = field(default=False, repr=False)
    against_logs: Earned = Earned()
    """What all loggers together earned, and the target less that."""
    pictures: Pictures = field(default=Pictures(), repr=False, compare=False)
    """What a report draws besides."""
    n_units: int | None = None
    """Users, patients or machines to whom the episodes belong, where they are named and some have several."""
    beyond_logged: Beyond | None = None
    """What lies later than most episodes were followed, where that is known."""
    confounding: Confounding | None = None
    """What the value may be if hidden reasons chose the logged actions, where that was asked for."""
    memory: MemoryUsed | None = None
    """How many steps are counted together, and how far the value moves with it, of an estimator with memory."""

    @property
    def rivals(self) -> tuple[tuple[str, Earned], ...]:
        """Those whom the target is set against: every logger, and all of them together where there are several."""
        each = tuple((logger.label, logger.earned) for logger in self.loggers)
        return each if len(each) == 1 else (*each, (ALL_LOGS, self.against_logs))

    @property
    def unit(self) -> str:
        """Per step, or per episode."""
        return self.estimand.unit

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know: alerts about the logs, and notes on the question that was asked."""
        return (*self.alerts, *self.notes)

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
            "no_outer_band_because": self.no_band_because,
            "confounding": self.confounding.to_dict() if self.confounding else None,
            "counted": self.counted,
            "verdict": str(self.verdict),
            "n_rows": self.n_rows,
            "n_episodes": self.n_episodes,
            "n_dropped": self.n_dropped,
            "loggers": [logger.to_dict() for logger in self.loggers],
            "against_logs": self.against_logs.to_dict(),
            "effective_sample_size": self.effective_sample_size,
            "weights": [asdict(found) for found in self.weights],
            "pictures": asdict(self.pictures),
            "uncovered_mass": self.uncovered_mass,
            "outside_mass": self.outside_mass,
            "logged_mean": self.logged_mean,
            "diagnostics": [d.to_dict() for d in self.diagnostics],
            "solver": self.solver,
            "residual": self.residual,
            "measures": self.measures.to_dict(),
            "alerts": list(self.alerts),
            "notes": list(self.notes),
            "provenance": {**asdict(self.provenance), "inputs": [dict(i) for i in self.provenance.inputs]},
        }
        if self.n_units is not None:
            record["n_units"] = self.n_units
        if self.memory is not None:
            record["memory"] = asdict(self.memory)
        if self.beyond_logged is not None:
            record["beyond_logged"] = asdict(self.beyond_logged)
        if self.beside:
            record["beside"] = [other.summary() for other in self.beside]
        return self._written(record)

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields; the outer band has other names, and those beside it are summaries."""
        band, beside = written.get("outer_band"), written.get("beside", ())
        return {
            **written,
            "band": [band.get("low"), band.get("high")] if isinstance(band, Mapping) else band,
            "no_band_because": written.get("no_outer_band_because"),
            "beside": [_of_summary(found, written) for found in beside] if isinstance(beside, list) else beside,
        }

    def tables(self) -> dict[str, Rows]:
        """One row per estimate (the answer, and those beside it), per check, per logger, per factor of confounding."""
        whose = {"target": self.target, "estimator": self.estimator}
        return {
            "estimates": [found.summary() for found in (self, *self.beside)],
            "checks": [{**whose, **found.row()} for found in self.diagnostics],
            "loggers": [{**whose, **found.row()} for found in self.loggers],
            "confounding": [{**whose, **asdict(each)} for each in (self.confounding.curve if self.confounding else ())],
            "memory": [{**whose, **asdict(each)} for each in (self.memory.steps if self.memory else ())],
        }

    def __format__(self, spec: str) -> str:
        """The value in a format for numbers, ``f"{result:.2f}"``; without one, what ``print`` shows."""
        return format(self.value, spec) if spec else str(self)

    def summary(self) -> Flat:
        """The most important fields, flat: one line of a table; printed, one line per field."""
        fields = {
            "target": self.target,
            "estimator": self.estimator,
            "estimand": str(self.estimand),
            "value": self.value,
            "standard_error": self.standard_error,
            "low": self.interval.low if self.interval else None,
            "high": self.interval.high if self.interval else None,
            "effective_sample_size": self.effective_sample_size,
            "uncovered_mass": self.uncovered_mass,
            "verdict": str(self.verdict),
        }
        return Flat(fields)


def _of_summary(summary: Any, answer: Mapping[str, Any]) -> Any:
    """The JSON of an estimate of which only the summary was written; the logs are those of the answer beside it."""
    if not isinstance(summary, Mapping):
        return summary
    of_logs = ("estimand", "n_rows", "n_episodes", "n_dropped", "logged_mean", "alerts", "provenance", "counted")
    unknown: dict[str, Any] = {"diagnostics": [], "measures": {}, "outside_mass": None, "residual": None}
    theirs, low, high = answer.get("interval"), summary.get("low"), summary.get("high")
    level = theirs.get("level") if isinstance(theirs, Mapping) else None
    interval = {"low": low, "high": high, "level": level, "method": "as it was written"}
    return {
        **{name: answer[name] for name in of_logs if name in answer},
        **unknown,
        "solver": "not written",
        **summary,
        "estimand": answer.get("estimand"),
        "interval": None if low is None or high is None else interval,
        "loggers": _without_weights(answer.get("loggers")),
        "notes": ["Only the summary of this estimate was written: its checks and weights are not known."],
    }


def _without_weights(loggers: Any) -> Any:
    """Rows and rewards are the same whichever estimator is asked."""
    names = ("label", "rows", "logged_mean")
    known = [found for found in loggers if isinstance(found, Mapping)] if isinstance(loggers, list) else []
    return [{name: found.get(name) for name in names} for found in known]
