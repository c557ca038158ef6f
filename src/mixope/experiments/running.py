"""From the table of an experiment to its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from mixope.base.arrays import is_whole
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.base.keywords import offers_names
from mixope.engines import Engine
from mixope.experiments.absences import about_absences
from mixope.experiments.arms import FOR_EVER, MetricQuestion, on_metric
from mixope.experiments.design import Absent, ExperimentDesign, Period, names_of
from mixope.experiments.guardrails import as_rails, guarded
from mixope.experiments.panel import Panel, make_panel
from mixope.experiments.records import ArmResult, Experiment, Subgroup, as_cost
from mixope.experiments.subgroups import groups_of
from mixope.experiments.watching import about_looking, as_planned_rows, at_all_times
from mixope.logs import LogSource
from mixope.session.questions import as_estimand, check_level
from mixope.uncertainty import one_look_level

Kind = Literal["average", "discounted", "horizon", "day"]
AHEAD = 90
"""How many periods are looked ahead where nobody says."""
MOST_AHEAD = 10_000


@offers_names
def experiment(
    data: LogSource,
    *,
    arm: str,
    control: str,
    unit: str,
    time: str,
    metric: str | Sequence[str],
    state: str | Sequence[str] | None = None,
    less: str | Sequence[str] | None = None,
    estimand: Kind | Estimand = "average",
    gamma: float | None = None,
    horizon: int | None = None,
    days: int | None = None,
    level: float = 0.95,
    estimator: str = "auto",
    period: Period = "day",
    season: int | None = None,
    lags: int = 0,
    exposure: str | None = None,
    guardrail: str | Sequence[str] | None = None,
    by: str | None = None,
    bins: int = 5,
    missing: str | None = None,
    absent: Absent | None = None,
    sequential: bool = False,
    planned: int | None = None,
    format: str | None = None,
    encoding: str | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Experiment:
    """The long-run effect of a short experiment.

    Treatment changes who the units become, not only what they earn today. So each arm is taken as a policy, "always
    this arm", and its long run is estimated from the steps of units from state to state.

    :param data: a table with one row per unit and period; whatever :func:`mixope.read` takes.
    :param arm: the column with the arm of a row.
    :param control: the arm that the others are set against.
    :param unit: the column that names the unit (a user, a shop); all its rows belong together.
    :param time: the column with the period: whole numbers, dates or times.
    :param metric: the column with what a unit earned in a period, or several of them.
    :param state: columns with what a unit is like at the beginning of a period; the others of the table where none is
        named. Numbers with many values are cut into ``bins`` classes.
    :param less: metrics of which less is better, such as costs; of the others more is.
    :param estimand: ``"average"`` (per period, in the long run), ``"discounted"`` (with ``gamma``), ``"horizon"`` (per
        period over the first ``horizon``) or ``"day"`` (in the period ``horizon`` alone).
    :param days: how many periods the path of the difference is drawn out to.
    :param season: the number of periods after which the world is where it was: its place in it becomes a state.
    :param lags: so many earlier periods of the states are put beside them.
    :param exposure: a column that says in which periods a unit really had its arm.
    :param guardrail: what must not become worse, one or several: ``"complaints<=0.01"`` bounds the long-run difference.
    :param absent: what a period without a row means, after a unit has entered: ``"zero"``, it earned nothing (rows with
        metrics of 0 are added, and being away is part of the state), or ``"unknown"``, it was not watched.
    :param by: a column of the state: the same is also said of the units that entered with each of its values.
    :param sequential: the test is watched while it runs: intervals that hold however often one looks, and are wider.
        Others are for one look at a time that was fixed in advance.
    :param planned: of a sequential test, the number of rows (one per unit and period) that it is planned to bring,
        fixed before they are seen: there its intervals are narrowest.
    :returns: the naive difference, the long-run one with its interval and verdict, and how one becomes the other.

    >>> found = mixope.experiment("test.parquet", arm="variant", control="A", unit="user", time="day",
    ...                           metric="revenue", state=["level", "plan"])
    >>> found.main.decision
    'worse'
    """
    check_level(level)
    asked = MetricQuestion(*_estimand(estimand, gamma, horizon), level, estimator, engine, seed)
    rails = as_rails(guardrail)
    metrics = names_of(metric)
    every = tuple(dict.fromkeys((*metrics, *(rail.metric for rail in rails)))) if metrics else ()
    design = ExperimentDesign(
        unit, time, arm, str(control), every, names_of(state), period, season, lags, exposure, bins, missing, absent
    )
    costs = _costs(less, every)
    planned_rows = as_planned_rows(planned)
    panel = make_panel(data, design, format=format, encoding=encoding)
    if sequential:
        asked = replace(asked, level=one_look_level(panel.facts.rows / planned_rows, level))
    ahead = _ahead(days, horizon, panel.facts.longest)
    notes = [*panel.notes, *_remarks(panel), *about_looking(sequential, planned_rows)]

    def answers(part: Panel, names: Sequence[str]) -> list[ArmResult]:
        """Every treatment on every metric, with better and sure meaning what was asked for."""
        results = [result for name in names for result in on_metric(part, name, asked, ahead, notes)]
        results = [as_cost(result) if result.metric in costs else result for result in results]
        return [at_all_times(result, level) for result in results] if sequential else results

    found = answers(panel, every)
    groups = [] if by is None else groups_of(panel, by, notes)
    facts = panel.facts
    return Experiment(
        control=design.control,
        unit=unit,
        period=period,
        states=panel.states,
        level=level,
        units=facts.units,
        rows=facts.rows,
        tested=facts.longest,
        shares={name: units for name, units, _ in facts.arms},
        arms=tuple(result for result in found if result.metric in metrics),
        guardrails=tuple(guarded(rail, each) for rail in rails for each in found if each.metric == rail.metric),
        subgroups=tuple(
            Subgroup(str(by), value, units, each.arm, each.metric, each.naive, each.long_run)
            for value, units, part in groups
            for each in answers(part, metrics)
        ),
        notes=tuple(dict.fromkeys(notes)),
        provenance=panel.provenance(seed),
    )


def _estimand(estimand: Kind | Estimand, gamma: float | None, horizon: int | None) -> tuple[Estimand, int | None]:
    if estimand == "day":
        if horizon is None or not is_whole(horizon) or horizon < 1:
            raise UsageError(f"the value of one period needs its number as horizon, 30 say; got {horizon!r}")
        return as_estimand("horizon", None, horizon), int(horizon)
    asked = as_estimand(estimand, gamma, horizon)
    if asked.kind == "episode":
        raise UsageError("units of an experiment do not end: ask for 'average', 'discounted', 'horizon' or 'day'")
    return (FOR_EVER, None) if asked.kind == "average" else (asked, None)


def _costs(less: str | Sequence[str] | None, metrics: Sequence[str]) -> tuple[str, ...]:
    """Metrics of which less is better."""
    costs = names_of(less)
    for name in costs:
        if name not in metrics:
            raise UsageError(f"less of {name!r} is to be better, but the metrics are {', '.join(metrics)}")
    return costs


def _ahead(days: int | None, horizon: int | None, tested: int) -> int:
    if days is None:
        return max(AHEAD, 2 * tested, horizon or 0)
    if not is_whole(days) or not 1 <= days <= MOST_AHEAD:
        raise UsageError(f"days is a number of periods from 1 to {MOST_AHEAD:,}, got {days!r}")
    return max(int(days), horizon or 0)


def _remarks(panel: Panel) -> list[str]:
    facts, design = panel.facts, panel.design
    said = about_absences(panel)
    if not facts.fixed:
        said.append("units change their arm during the test: what they carry over is part of their state or is lost")
    if design.exposure is not None:
        said.append(
            f"arms count where {design.exposure!r} is true; if units choose their exposure by what the state does not"
            " show, the difference is theirs and not the arm's"
        )
    return said
