"""What an experiment found: the naive difference, the long-run one, how it develops, and what speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, cast

from mixope.answers.estimate import Provenance
from mixope.base.moved import renamed
from mixope.base.rendering import ReportedRecord, Rows
from mixope.checks import Diagnostic, Verdict
from mixope.uncertainty import Difference

SURE = 0.95
__getattr__ = renamed(__name__, {"Effect": "mixope.uncertainty.Difference"})
Broken = Literal["confounding", "markov", "coverage"]
"""An assumption that may not hold."""
Side = Literal["at most", "at least"]


def _written(effect: Difference) -> dict[str, Any]:
    """Plain values, under the names that experiments have."""
    return {"difference" if name == "value" else name: value for name, value in effect.to_dict().items()}


@dataclass(frozen=True)
class Line:
    """One way to compute the difference: ``naive``, ``surrogate``, ``dq``, or an estimator of the long run."""

    name: str
    effect: Difference
    meaning: str

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        sure = self.effect.interval
        return {
            "method": self.name,
            "difference": self.effect.value,
            "low": sure.low,
            "high": sure.high,
            "probability_better": self.effect.probability_better,
            "meaning": self.meaning,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"name": self.name, "effect": _written(self.effect), "meaning": self.meaning}


@dataclass(frozen=True)
class LongRun:
    """The difference in the long run, what each arm earns there, and whether to believe it."""

    effect: Difference
    verdict: Verdict
    estimator: str
    estimand: str
    treatment: float
    control: float
    checks: tuple[Diagnostic, ...]

    def to_dict(self) -> dict[str, Any]:
        """The effect beside the rest."""
        return {
            **_written(self.effect),
            "verdict": str(self.verdict),
            "estimator": self.estimator,
            "estimand": self.estimand,
            "treatment": self.treatment,
            "control": self.control,
            "checks": [check.to_dict() for check in self.checks],
        }

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields; the effect stands beside the others."""
        return {**written, "effect": written}


@dataclass(frozen=True)
class Day:
    """One period since entry: the difference that was seen (None after the test) and the one that the arms predict."""

    day: int
    seen: float | None
    seen_error: float | None
    predicted: float
    low: float
    high: float


@dataclass(frozen=True)
class Driver:
    """A state and what it adds to the long-run difference: at once, and by units that move there or away."""

    state: Mapping[str, str]
    at_once: float
    carried: float
    control_share: float
    treatment_share: float


@dataclass(frozen=True)
class SensitivityPoint:
    """What is possible where hidden reasons change the odds of an arm by up to a factor.

    ``low`` and ``high`` bound the difference, ``sure_low`` and ``sure_high`` include its sampling error; then the
    bounds of each arm.
    """

    factor: float
    low: float
    high: float
    sure_low: float
    sure_high: float
    treatment_low: float
    treatment_high: float
    control_low: float
    control_high: float


@dataclass(frozen=True)
class Robustness:
    """How far an assumption may be violated before the decision could flip.

    A factor for ``confounding`` and ``markov`` (None: not up to the largest that is looked for), a share of visits for
    ``coverage``. At ``sign`` zero enters the bounds, at ``interval`` the bounds with their sampling error.
    """

    assumption: Broken
    sign: float | None
    interval: float | None
    sentence: str


@dataclass(frozen=True)
class Sensitivity:
    """The difference without the assumptions that no log can prove: curves, and what it takes.

    ``curve`` is over hidden confounding and ``memory_curve`` over what the state leaves out, as factors on how likely
    steps are; both begin at a factor of 1, which is what was reported. ``logged_factor`` helps to judge the others: by
    how much the state that *is* logged moves the odds of the arm, in 95 % of the rows no more than that; None where
    some states have one arm only.
    """

    curve: tuple[SensitivityPoint, ...]
    logged_factor: float | None
    robustness: tuple[Robustness, ...]
    memory_curve: tuple[SensitivityPoint, ...] = ()

    def __getitem__(self, assumption: Broken) -> Robustness:
        return next(found for found in self.robustness if found.assumption == assumption)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "curve": [asdict(point) for point in self.curve],
            "memory_curve": [asdict(point) for point in self.memory_curve],
            "logged_factor": self.logged_factor,
            "robustness": [asdict(found) for found in self.robustness],
        }


@dataclass(frozen=True)
class ArmResult:
    """One treatment against the control, on one metric."""

    arm: str
    metric: str
    naive: Difference
    long_run: LongRun
    lines: tuple[Line, ...]
    days: tuple[Day, ...]
    at_once: Difference
    carried: Difference
    drivers: tuple[Driver, ...]
    sensitivity: Sensitivity | None = None
    """None where the data support no decision that could flip; or where it is not computed, and a note says why."""
    less_is_better: bool = False
    """The metric is a cost: complaints, say, or time to wait."""

    @property
    def decision(self) -> str:
        """Better, worse, or not to be told; nothing where the data cannot carry it."""
        return "not supported" if self.long_run.verdict is Verdict.UNSUPPORTED else self.says(self.long_run.effect)

    def says(self, effect: Difference) -> str:
        """What an interval alone says of the treatment: better, worse or unclear."""
        low, high = effect.interval.low, effect.interval.high
        if self.less_is_better:
            low, high = -high, -low
        return "better" if low > 0 else "worse" if high < 0 else "unclear"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "arm": self.arm,
            "metric": self.metric,
            "decision": self.decision,
            "less_is_better": self.less_is_better,
            "naive": _written(self.naive),
            "long_run": self.long_run.to_dict(),
            "lines": [line.to_dict() for line in self.lines],
            "days": [asdict(day) for day in self.days],
            "at_once": _written(self.at_once),
            "carried": _written(self.carried),
            "drivers": [asdict(driver) for driver in self.drivers],
            "sensitivity": None if self.sensitivity is None else self.sensitivity.to_dict(),
        }


@dataclass(frozen=True)
class Guardrail:
    """A bound on the long-run difference of a metric, and whether it is ``held``, ``broken`` or ``open``."""

    metric: str
    arm: str
    side: Side
    bound: float
    effect: Difference
    verdict: Verdict
    status: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "effect": _written(self.effect), "verdict": str(self.verdict)}

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        sure = self.effect.interval
        return {
            "arm": self.arm,
            "metric": self.metric,
            "status": self.status,
            "side": self.side,
            "bound": self.bound,
            "difference": self.effect.value,
            "low": sure.low,
            "high": sure.high,
            "verdict": str(self.verdict),
        }


@dataclass(frozen=True)
class Subgroup:
    """The units that entered with one value of a column: what was seen of them, and their long run."""

    column: str
    value: str
    units: int
    arm: str
    metric: str
    naive: Difference
    long_run: LongRun

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        own = {name: getattr(self, name) for name in ("column", "value", "units", "arm", "metric")}
        return {**own, "naive": _written(self.naive), "long_run": self.long_run.to_dict()}

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        effect = self.long_run.effect
        return {
            "column": self.column,
            "value": self.value,
            "units": self.units,
            "arm": self.arm,
            "metric": self.metric,
            "naive": self.naive.value,
            "difference": effect.value,
            "low": effect.interval.low,
            "high": effect.interval.high,
            "verdict": str(self.long_run.verdict),
        }


Part = TypeVar("Part")
Found = TypeVar("Found")


def with_each(part: Part, kind: type[Found], change: Callable[[Found], Found]) -> Part:
    """A record in which everything of one kind is changed, wherever it lies."""
    if isinstance(part, kind):
        return cast(Part, change(part))
    if isinstance(part, tuple):
        return type(part)(with_each(each, kind, change) for each in part)
    if is_dataclass(part) and not isinstance(part, type):
        found = {each.name: with_each(getattr(part, each.name), kind, change) for each in fields(part)}
        return replace(part, **found)
    return part


def without_conclusion(result: ArmResult) -> ArmResult:
    """The same where the data do not support an answer: differences without the probability that treatment is better.

    Also that of what was seen: it was a fact of the days of the test, and beside a refusal would be read as the answer.
    """
    return with_each(result, Difference, lambda found: found.without_conclusion)


def as_cost(result: ArmResult) -> ArmResult:
    """The same where less of the metric is better."""
    turned = with_each(result, Difference, lambda found: found.as_cost)
    return replace(turned, less_is_better=True)


@dataclass(frozen=True)
class Experiment(ReportedRecord):
    """All treatments and metrics of one experiment."""

    control: str
    unit: str
    period: str
    states: tuple[str, ...]
    level: float
    units: int
    rows: int
    tested: int
    """The longest that a unit was watched, in periods."""
    shares: Mapping[str, int]
    """Units by arm."""
    arms: tuple[ArmResult, ...]
    guardrails: tuple[Guardrail, ...] = ()
    subgroups: tuple[Subgroup, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None

    @property
    def main(self) -> ArmResult:
        """The first treatment on the first metric."""
        return self.arms[0]

    def to_dict(self) -> dict[str, Any]:
        """One object; with a single treatment, its parts on the first metric also stand at the top."""
        first = self.main.to_dict() if len({arm.arm for arm in self.arms}) == 1 else {}
        return self._written(
            {
                **{name: first[name] for name in ("naive", "long_run", "sensitivity") if name in first},
                "control": self.control,
                "unit": self.unit,
                "period": self.period,
                "states": list(self.states),
                "level": self.level,
                "units": self.units,
                "rows": self.rows,
                "tested": self.tested,
                "shares": dict(self.shares),
                "arms": [arm.to_dict() for arm in self.arms],
                "guardrails": [rail.to_dict() for rail in self.guardrails],
                "subgroups": [group.to_dict() for group in self.subgroups],
                "notes": [str(note) for note in self.notes],
                "provenance": None if self.provenance is None else asdict(self.provenance),
            }
        )

    def tables(self) -> Mapping[str, Rows]:
        """The lines of every arm, the days, the drivers, the checks, and what it takes to flip the decision."""
        known = [(arm, arm.sensitivity) for arm in self.arms if arm.sensitivity is not None]
        return {
            "lines": [{**_key(arm), **line.row()} for arm in self.arms for line in arm.lines],
            "days": [{**_key(arm), **asdict(day)} for arm in self.arms for day in arm.days],
            "drivers": [
                {**_key(arm), **d.state, **{k: v for k, v in asdict(d).items() if k != "state"}}
                for arm in self.arms
                for d in arm.drivers
            ],
            "checks": [{**_key(arm), **check.row()} for arm in self.arms for check in arm.long_run.checks],
            "sensitivity": [
                {**_key(arm), "assumption": assumption, **asdict(point)}
                for arm, found in known
                for assumption, curve in (("confounding", found.curve), ("markov", found.memory_curve))
                for point in curve
            ],
            "guardrails": [rail.row() for rail in self.guardrails],
            "subgroups": [group.row() for group in self.subgroups],
            "robustness": [{**_key(arm), **asdict(each)} for arm, found in known for each in found.robustness],
        }


def _key(arm: ArmResult) -> dict[str, str]:
    return {"arm": arm.arm, "metric": arm.metric}
