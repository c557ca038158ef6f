"""One treatment against the control on one metric: all that is said of it, from the same counts and scans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixope.answers.estimate import Estimate
from mixope.base.errors import DataError
from mixope.base.estimand import Estimand
from mixope.checks import Diagnostic, Verdict, verdict
from mixope.comparison import compare
from mixope.differences import Comparison
from mixope.engines import EmbeddedEngine, Engine
from mixope.experiments.absences import about_the_lost, coming_back_check, leaving_check
from mixope.experiments.counts import Counts, Histories, count
from mixope.experiments.drift import drift_check
from mixope.experiments.figures import Figures, figures
from mixope.experiments.forecast import LATER_PERIODS, LEAST_DAYS, ByDay, forecast
from mixope.experiments.history import history_check
from mixope.experiments.ordering import BUCKETS
from mixope.experiments.outcomes import Outcomes, count_outcomes
from mixope.experiments.pace import Pace, pace_of
from mixope.experiments.panel import Panel, memory
from mixope.experiments.records import ArmResult, Line, LongRun, Sensitivity, without_conclusion
from mixope.experiments.seen import by_day, naive
from mixope.experiments.sensitivity import Wanted, sensitivity_of
from mixope.logs.sources import quote
from mixope.policies.tabular import Constant
from mixope.uncertainty import Difference, probability_positive

UNBOUNDED = (
    "how far hidden reasons could move the difference is not computed: there are too many states, or too many periods"
)
ROUNDING = 1e-9
"""Of what a unit earns in a period."""
FOR_EVER = Estimand("average")
"""What a unit never changes (its country, say) splits the states into parts that are closed: every part counts by the
units that enter it."""


@dataclass(frozen=True)
class MetricQuestion:
    """What is asked of every arm and metric. ``day`` is the period whose value is asked for, if one is."""

    estimand: Estimand
    day: int | None
    level: float
    estimator: str
    engine: str | Engine | None
    seed: int


def on_metric(panel: Panel, metric: str, asked: MetricQuestion, ahead: int, notes: list[str]) -> list[ArmResult]:
    """All treatments on one metric, by the same scans."""
    histories = count(panel, metric)
    counts = histories.merged()
    names = panel.facts.names
    table = compare_arms(panel, metric, asked.estimand, asked.level, asked.estimator, asked.engine, asked.seed)
    seen, tested = _by_bucket(panel, metric), panel.facts.longest
    early = None if tested < LEAST_DAYS else count(panel, metric, f"step < {_first_half(tested)}").merged()
    wanted = Wanted(asked.estimand, asked.day)
    outcomes = count_outcomes(panel, metric, counts) if wanted.is_quick(counts) else None
    pace, found = pace_of(panel, metric), []
    for treatment in names:
        if treatment != panel.design.control:
            one = _One(panel, metric, treatment, asked, ahead, histories, pace, counts, early, seen, outcomes)
            result = one.result(table)
            found.append(result)
            notes.extend([*one.remarks, *one.left_out(result)])
    if outcomes is None:
        notes.append(UNBOUNDED)
    return found


def _first_half(periods: int) -> int:
    return (periods + 1) // 2


def compare_arms(
    panel: Panel,
    metric: str,
    estimand: Estimand = FOR_EVER,
    level: float = 0.95,
    estimator: str = "auto",
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Comparison:
    """Every arm as a policy, "always this arm", by the same scans."""
    names = panel.facts.names
    policies = {name: Constant(np.eye(len(names))[k], list(names)) for k, name in enumerate(names)}
    chosen = engine or EmbeddedEngine(memory_limit=memory())
    return compare(panel.logs(metric), policies, [estimator], estimand=estimand, level=level, engine=chosen, seed=seed)


def _by_bucket(panel: Panel, metric: str) -> ByDay:
    query = f"SELECT bucket, action, step, count(*), fsum({quote(f'metric {metric}')})"
    with panel.open() as (connection, panel_rows):
        table = connection.execute(f"{query} FROM {panel_rows} GROUP BY ALL ORDER BY ALL").fetchall()
    place = {name: k for k, name in enumerate(panel.facts.names)}
    rows, reward = (np.zeros((BUCKETS, len(place), panel.facts.longest)) for _ in range(2))
    for bucket, action, step, n, earned in table:
        rows[bucket, place[action], step], reward[bucket, place[action], step] = n, earned
    return ByDay(rows, reward)


@dataclass(frozen=True)
class _One:
    """One treatment on one metric."""

    panel: Panel
    metric: str
    treatment: str
    asked: MetricQuestion
    ahead: int
    histories: Histories
    pace: Pace | None
    counts: Counts
    early: Counts | None
    """Of the first half of the periods; None where there are too few."""
    seen: ByDay
    outcomes: Outcomes | None

    @property
    def control(self) -> str:
        return self.panel.design.control

    @property
    def pair(self) -> tuple[int, int]:
        names = self.panel.facts.names
        return names.index(self.treatment), names.index(self.control)

    @property
    def remarks(self) -> list[str]:
        """What is to be known of the question itself."""
        return about_the_lost(self.panel, self.figures.pair) if self._for_ever else []

    def left_out(self, result: ArmResult) -> list[str]:
        """The short cuts whose conditions do not hold."""
        because = self.figures.why_no_dq(result.long_run.effect.interval.width / 2)
        of = f"{self.treatment} on {self.metric}"
        return [] if because is None else [f"dq is left out for {of}: {because}"]

    @property
    def _for_ever(self) -> bool:
        return self.asked.estimand == FOR_EVER and self.asked.day is None

    @cached_property
    def figures(self) -> Figures:
        """What counts alone say."""
        return figures(self.counts, *self.pair, self.panel.facts.longest, self.ahead, self.asked.level)

    def result(self, table: Comparison) -> ArmResult:
        """All that is said of it."""
        plain = naive(self.panel, self.metric, self.treatment, self.control, self.asked.level)
        found, long_run = self.figures, self._long_run(table)
        half = long_run.effect.interval.width / 2
        lines = [Line("naive", plain, "what was seen during the test"), *found.lines(half)]
        lines.append(Line(long_run.estimator, long_run.effect, f"everybody always has the arm: {long_run.estimand}"))
        made = ArmResult(
            arm=self.treatment,
            metric=self.metric,
            naive=plain,
            long_run=long_run,
            lines=tuple(lines),
            days=found.days(by_day(self.panel, self.metric, self.treatment, self.control)),
            at_once=found.at_once,
            carried=found.carried,
            drivers=found.drivers,
            sensitivity=self._sensitivity(long_run),
        )
        return without_conclusion(made) if long_run.verdict is Verdict.UNSUPPORTED else made

    def _long_run(self, table: Comparison) -> LongRun:
        """The difference by the estimator, its checks, and those that only an experiment has."""
        first, second = (next(e for e in table if e.target == name) for name in (self.treatment, self.control))
        day = self.asked.day
        if day is None:
            effect, by = difference_of(table, self.treatment, self.control), first.estimator
            treated, plain = first.value, second.value
        else:
            effect, by, pair = self.figures.on_day(day), "chain", self.figures.pair
            treated, plain = (float(arm.path(day)[-1]) for arm in (pair.treated, pair.plain))
        effect, checks = self._rounded(effect), _worst(first, second)
        half = effect.interval.width / 2
        checks.append(history_check(self.histories, *self.pair, half, self.pace))
        checks.append(drift_check(self.counts, *self.pair))
        checks += [*self._forecasts(), leaving_check(self.panel, self.treatment, self.control)]
        if self._for_ever and self.panel.design.absent == "zero":
            checks.append(coming_back_check(self.panel, self.treatment, self.control))
        checks.sort(key=lambda check: ("fail", "warn", "pass").index(check.status))
        period = self.panel.design.period
        said = str(self.asked.estimand).replace(" steps", f" {period}s") if day is None else f"in {period} {day}"
        return LongRun(effect, verdict(tuple(checks)), by, said, treated, plain, tuple(checks))

    def _rounded(self, effect: Difference) -> Difference:
        """Zero where all that is left is rounding: in a product that everybody leaves, both arms earn nothing."""
        rounding = ROUNDING * float(np.abs(self.seen.reward).sum() / self.seen.rows.sum())
        sure = effect.interval
        if max(abs(sure.low), abs(sure.high)) > rounding:
            return effect
        return Difference(0.0, 0.0, replace(sure, low=0.0, high=0.0), probability_positive(0.0, 0.0, 1.0))

    def _forecasts(self) -> tuple[Diagnostic, ...]:
        tested = self.panel.facts.longest
        if self.early is None:
            said = f"the test has {tested} periods: too few to see whether early ones predict later ones"
            return (LATER_PERIODS.diagnostic(float(tested), float(LEAST_DAYS), "warn", said, "at least"),)
        found = forecast(self.early, self.seen, *self.pair, _first_half(tested))
        return found.check, found.levels

    def _sensitivity(self, long_run: LongRun) -> Sensitivity | None:
        """What would flip the decision, where there is one."""
        if long_run.verdict is Verdict.UNSUPPORTED:
            return None
        wanted = Wanted(self.asked.estimand, self.asked.day)
        return None if self.outcomes is None else sensitivity_of(self.outcomes, *self.pair, wanted, long_run)


def difference_of(table: Comparison, treatment: str, control: str) -> Difference:
    """The pair as the comparison has it, or turned round."""
    if not table.differences:
        reasons = [str(e.no_interval_because) for e in table if e.no_interval_because]
        got = reasons[0] if reasons else "no scores"
        raise DataError("The difference has no interval", expected="two units or more in each arm", got=got)
    pairs = {(p.first, p.second): p for p in table.differences[0].pairs}
    one = pairs[treatment, control] if (treatment, control) in pairs else pairs[control, treatment].reversed
    return Difference(one.value, one.standard_error, one.interval, one.probability_better)


def _worst(first: Estimate, second: Estimate) -> list[Diagnostic]:
    """Of each check, what is said of the arm for which it is worse."""
    order = ("fail", "warn", "pass")
    found: dict[str, Diagnostic] = {}
    for estimate in (first, second):
        for check in estimate.diagnostics:
            known = found.get(check.name)
            if known is None or order.index(check.status) < order.index(known.status):
                said = f"always {estimate.target}: {check.sentence}"
                found[check.name] = replace(check, sentence=said)
    return list(found.values())
