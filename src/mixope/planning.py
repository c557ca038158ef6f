"""How much data until a value or a difference is known to ± x? From the scores of a pilot.

With the pilot's standard error se from n₀ episodes, n episodes give se √(n₀/n), and the half-width of the interval is
that times the t quantile (of a watched test: times the boundary of the sequence at its plan). Turned round,

    n = n₀ (q se / x)²

The pilot's se is itself an estimate: df se²/χ² with df degrees of freedom, so that n comes with a range in which it
lies with 90 %. What features cannot follow does not shrink with n. Of an experiment two ways are open: more units, by
the same law, and more days, by how its error fell in the days that were seen (:mod:`mixope.experiments.lengths`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

from mixope.answers.estimate import Estimate
from mixope.base.arrays import is_number
from mixope.base.errors import Advice, DataError, UsageError
from mixope.base.keywords import offers_names
from mixope.base.rendering import Record, Rows
from mixope.checks import Verdict
from mixope.comparison import compare
from mixope.differences import Comparison
from mixope.estimators import Estimator
from mixope.experiments.arms import compare_arms, difference_of
from mixope.experiments.design import Absent, ExperimentDesign, Period, names_of
from mixope.experiments.lengths import errors_by_length
from mixope.experiments.panel import make_panel
from mixope.logs import LogSource
from mixope.policies import PolicySource
from mixope.session.questions import check_level
from mixope.uncertainty import degrees_of_freedom, quantile, sequence_reach, standard_error

SURE = 0.9
"""Of the range in which the amount of data lies."""
FLAT = 0.05
"""A power below this: more periods do not help."""
MOST_TIMES = 3.0
"""Beyond so many times the length that was seen, an extrapolation is worth little."""


@dataclass(frozen=True)
class Need:
    """How much of one thing (episodes, users, days) is needed; None where no amount of it is enough.

    ``have`` is what the pilot has; ``low`` and ``high`` are the range of ``need``. ``power`` is s in half-width² ∝
    amount⁻ˢ: 1 for what is independent.
    """

    what: str
    have: int
    need: int | None
    low: int | None
    high: int | None
    power: float = 1.0


@dataclass(frozen=True)
class Plan(Record):
    """What it takes to know a value or a difference to ± ``precision``."""

    question: str
    precision: float
    level: float
    sequential: bool
    value: float
    standard_error: float
    half_width: float
    """Of the interval that the pilot has."""
    verdict: Verdict
    needs: tuple[Need, ...]
    notes: tuple[str, ...] = ()

    @property
    def need(self) -> int | None:
        """How much of the first thing is needed."""
        return self.needs[0].need

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        found = {**asdict(self), "verdict": str(self.verdict)}
        return self._written({**found, "needs": [asdict(need) for need in self.needs], "notes": list(self.notes)})

    def tables(self) -> Mapping[str, Rows]:
        """One row per thing that is needed."""
        return {"needs": [asdict(need) for need in self.needs]}


@dataclass(frozen=True)
class _Pilot:
    """What is asked, what the pilot found, and the precision that is wanted of it."""

    value: float
    error: float
    degrees: float
    precision: float
    level: float
    sequential: bool
    fixed: float = 0.0
    """An error that more data do not mend, as a standard error."""

    def reach(self, n: float) -> float:
        """Half of an interval in standard errors, if it rests on n clusters."""
        degrees = max(n - 1.0, 1.0)
        return sequence_reach(1.0, self.level, degrees) if self.sequential else quantile(self.level, degrees)

    def half_width(self, n: float, times: float = 1.0) -> float:
        """From n clusters whose standard error is so many times the pilot's."""
        return self.reach(n) * float(np.hypot(times * self.error, self.fixed))

    def times(self, n: float) -> float | None:
        """How many times smaller the squared standard error must be; None if what is fixed is too much."""
        left = (self.precision / self.reach(n)) ** 2 - self.fixed**2
        return self.error**2 / left if left > 0 else None

    def clusters(self, what: str, have: int) -> Need:
        """More of what is independent."""
        need, low, high = (_ceiling(self._solved(have, times)) for times in (1.0, *self._spread))
        return Need(what, have, need, low, high)

    def periods(self, what: str, have: int, power: float, units: int) -> Need:
        """A longer test of the same units."""
        times = self.times(units)
        if power < FLAT or times is None:
            return Need(what, have, None, None, None, power)
        need, low, high = (_ceiling(have * (times * t) ** (1.0 / power)) for t in (1.0, *self._spread))
        return Need(what, have, need, low, high, power)

    @property
    def _spread(self) -> tuple[float, float]:
        """The true squared standard error over the pilot's: df/χ², at both ends."""
        tails = (0.5 - SURE / 2, 0.5 + SURE / 2)
        low, high = (self.degrees / float(chdtri(self.degrees, tail)) for tail in tails)
        return low, high

    def _solved(self, have: int, times: float) -> float | None:
        """n with n = n₀ t(n): the quantile depends a little on n itself."""
        n = float(have)
        for _ in range(20):
            found = self.times(n)
            if found is None:
                return None
            n = max(have * found * times, 2.0)
        return n


def _ceiling(n: float | None) -> int | None:
    return None if n is None else int(np.ceil(n - 1e-9))


@offers_names
def plan(
    logs: LogSource,
    target: PolicySource,
    estimator: str | Estimator = "auto",
    *,
    precision: float,
    against: PolicySource | str | None = None,
    level: float = 0.95,
    sequential: bool = False,
    **options: Any,
) -> Plan:
    """How many episodes until the value of a target, or a difference, is known to ± ``precision``.

    :param logs: a pilot: logs of the kind that more of will be recorded, by the same loggers in the same shares.
    :param target: the policy that is asked about.
    :param precision: half the width of the interval that is wanted.
    :param against: another policy, for the difference of the two; ``"logs"`` for that with what the logs earn
        themselves; None for the value alone.
    :param sequential: the interval is to hold however often one looks, which takes more data.

    All other arguments are those of :func:`mixope.compare`.

    >>> mixope.plan("pilot/*.parquet", "new.csv", against="old.csv", precision=0.1).need
    1840
    """
    check_level(level)
    check_precision(precision)
    with_logs = isinstance(against, str) and against == "logs"
    targets = {"target": target} if against is None or with_logs else {"target": target, "against": against}
    table = compare(logs, targets, [estimator], level=level, **options)
    value, error, degrees, question = _found(table, with_logs)
    first = table.estimates[0]
    fixed = float(np.sqrt(sum((e.measures.approximation or 0.0) ** 2 for e in table)))
    pilot = _Pilot(value, error, degrees, float(precision), level, sequential, fixed)
    return Plan(
        question,
        float(precision),
        level,
        sequential,
        value,
        error,
        pilot.half_width(first.n_units or first.n_episodes),
        _worst(table.estimates),
        (pilot.clusters("episodes" if first.n_units is None else "units", first.n_units or first.n_episodes),),
        (*_about_pilot(table.estimates), *_about_fixed(pilot)),
    )


def check_precision(precision: float) -> None:
    """Half of a width."""
    if not is_number(precision) or not 0 < precision < np.inf:
        raise UsageError(f"precision is half the width of the interval that is wanted, above 0; got {precision!r}")


def _found(table: Comparison, with_logs: bool) -> tuple[float, float, float, str]:
    """The value or difference, its standard error and degrees of freedom, and what it is."""
    first = table.estimates[0]
    scores = [e.scores for e in table if e.scores is not None and e.interval is not None]
    if len(scores) < len(table.estimates) or first.n_episodes < 2:
        because = next((e.no_interval_because for e in table if e.no_interval_because), None) or "it has no scores"
        raise UsageError(Advice(f"{first.estimator!r} says nothing of its precision, from which to plan: ", because))
    what = f"{first.unit}, {first.estimand}"
    if with_logs:
        gain = first.against_logs.difference
        if gain is None:
            because = first.against_logs.because or "it has no scores"
            raise UsageError(Advice("what the logs earn cannot be set against the target: ", because))
        return gain.value, gain.standard_error, degrees_of_freedom(scores[0]), f"the target less the logs, {what}"
    if len(scores) == 1:
        return first.value, standard_error(scores[0]), degrees_of_freedom(scores[0]), f"the value of the target, {what}"
    apart = scores[0] - scores[1]
    value = first.value - table.estimates[1].value
    return value, standard_error(apart), degrees_of_freedom(apart), f"the target less the other, {what}"


def _worst(estimates: Sequence[Estimate]) -> Verdict:
    """Of the estimates that the plan rests on."""
    order = (Verdict.UNSUPPORTED, Verdict.CAUTION, Verdict.TRUSTWORTHY, Verdict.REFERENCE)
    return min((e.verdict for e in estimates), key=order.index)


def _about_pilot(estimates: Sequence[Estimate]) -> tuple[str, ...]:
    """More of the same logs mend chance, and nothing else."""
    if _worst(estimates) is not Verdict.UNSUPPORTED:
        return ()
    failed = dict.fromkeys(check.name for e in estimates for check in e.diagnostics if check.status == "fail")
    return (
        f"the pilot does not support an answer ({', '.join(failed)}): more episodes of the same loggers make the"
        " interval narrower, not right. Record some of what the target does first",
    )


def _about_fixed(pilot: _Pilot) -> tuple[str, ...]:
    if not pilot.fixed:
        return ()
    return (f"an error of about {pilot.fixed:.3g} comes from the features, and more episodes alone do not mend it",)


@offers_names
def plan_experiment(
    data: LogSource,
    *,
    precision: float,
    arm: str,
    control: str,
    unit: str,
    time: str,
    metric: str,
    treatment: str | None = None,
    state: str | Sequence[str] | None = None,
    level: float = 0.95,
    sequential: bool = False,
    period: Period = "day",
    season: int | None = None,
    lags: int = 0,
    exposure: str | None = None,
    bins: int = 5,
    missing: str | None = None,
    absent: Absent | None = None,
    format: str | None = None,
    encoding: str | None = None,
) -> Plan:
    """How many units, or how many days, until the long-run difference is known to ± ``precision``.

    :param data: the table of a test that runs or has run, as for :func:`mixope.experiment`.
    :param treatment: the arm that is set against the control, where there are several.

    All other arguments are those of :func:`mixope.experiment` and :func:`mixope.plan`.
    """
    check_level(level)
    check_precision(precision)
    metrics, states = names_of(metric), names_of(state)
    design = ExperimentDesign(
        unit, time, arm, str(control), metrics, states, period, season, lags, exposure, bins, missing, absent
    )
    panel = make_panel(data, design, format=format, encoding=encoding)
    facts, treated = panel.facts, _treatment(panel.facts.names, design.control, treatment)
    power = errors_by_length(panel, metric, treated).power
    table = compare_arms(panel, metric, level=level)
    effect = difference_of(table, treated, design.control)
    pilot = _Pilot(effect.value, effect.standard_error, facts.units - 1.0, float(precision), level, sequential)
    both = [e for e in table if e.target in (treated, design.control)]
    longer = pilot.periods(f"{period}s", facts.longest, power, facts.units)
    return Plan(
        f"{treated} less {design.control} in the long run, {metric} per {unit} and {period}",
        float(precision),
        level,
        sequential,
        pilot.value,
        pilot.error,
        pilot.half_width(facts.units),
        _worst(both),
        (pilot.clusters(f"{unit}s", facts.units), longer),
        (*panel.notes, *_about_pilot(both), *_about_length(longer)),
    )


def _treatment(names: Sequence[str], control: str, wanted: str | None) -> str:
    others = [name for name in names if name != control]
    if wanted is None and len(others) == 1:
        return others[0]
    if wanted not in others:
        listed = ", ".join(map(repr, others))
        raise DataError("Which treatment is planned for is not clear", expected=f"one of {listed}", got=repr(wanted))
    return str(wanted)


def _about_length(need: Need) -> tuple[str, ...]:
    if need.need is None:
        return (f"more {need.what} of the same units would hardly help: the error fell little while the test ran",)
    said = f"the number of {need.what} is an extrapolation: the squared error is taken to fall by the power"
    far = f"; {need.need / need.have:.1f} times the length seen is far" if need.need > MOST_TIMES * need.have else ""
    seen = f"{need.power:.2f} of the length, as in the later half of the test, and its range leaves that doubt out"
    return (f"{said} {seen}{far}",)
