"""``mixope experiment``: the long-run effect of a short test."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from mixope.cli import inputs
from mixope.cli import options as o
from mixope.cli.output import check_page, command_line, present, working, write_page

NOT_SUPPORTED = 4


class EffectName(StrEnum):
    """Which difference is asked for."""

    average = "average"
    discounted = "discounted"
    horizon = "horizon"
    day = "day"


class PeriodName(StrEnum):
    """What a period is."""

    hour = "hour"
    day = "day"
    week = "week"
    month = "month"
    visit = "visit"


def _named(option: str, words: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(option, metavar="COLUMN", show_default=False, help=words)
    return found


def command(
    context: typer.Context,
    table: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE", show_default=False, help="Files, folders or globs: one row per unit and period."
        ),
    ],
    arm: Annotated[str, _named("--arm", "The arm of a row.")],
    control: Annotated[
        str,
        typer.Option("--control", metavar="ARM", show_default=False, help="The arm that the others are set against."),
    ],
    unit: Annotated[str, _named("--unit", "The unit: a user, a shop; all its rows belong together.")],
    time: Annotated[str, _named("--time", "The period of a row: a whole number, a date or a time.")],
    metric: Annotated[list[str], _named("--metric", "What a unit earned in a period. Repeatable.")],
    state: Annotated[
        list[str],
        _named("--state", "What a unit is like at the beginning of a period; else the other columns. Repeatable."),
    ] = [],  # noqa: B006 (typer's way to say: any number)
    less: Annotated[list[str], _named("--less", "A metric of which less is better, such as a cost. Repeatable.")] = [],  # noqa: B006
    estimand: Annotated[
        EffectName,
        typer.Option(
            "--estimand",
            help="The difference per period in the long run; discounted (with --gamma); over the first periods (with "
            "--horizon); or in one period, the day --horizon.",
        ),
    ] = EffectName.average,
    gamma: o.Gamma = None,
    horizon: Annotated[
        int | None, typer.Option("--horizon", show_default=False, help="How many first periods, or which day.")
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", show_default=False, help="How far ahead the path of the difference goes.")
    ] = None,
    level: o.Level = 0.95,
    estimator: o.Estimator = "auto",
    period: Annotated[
        PeriodName,
        typer.Option(
            "--period", help="What a period is: dates and times are counted so; of a visit, --time is its number."
        ),
    ] = PeriodName.day,
    season: Annotated[
        int | None,
        typer.Option(
            "--season", show_default=False, help="Periods after which the world is where it was: 7 for days of a week."
        ),
    ] = None,
    lags: Annotated[int, typer.Option("--lags", help="Earlier periods of the states that are put beside them.")] = 0,
    exposure: Annotated[
        str | None, _named("--exposure", "Whether a unit really had its arm in a period; it is as the control if not.")
    ] = None,
    guardrail: Annotated[
        list[str],
        typer.Option(
            "--guardrail",
            metavar="METRIC<=BOUND",
            show_default=False,
            help="What must not become worse: a bound of the long-run difference of a metric, or METRIC>=BOUND. "
            "Repeatable.",
        ),
    ] = [],  # noqa: B006
    by: Annotated[
        str | None, _named("--by", "A column of the state: also say it of the units that entered with each value.")
    ] = None,
    bins: Annotated[int, typer.Option("--bins", help="Classes into which a state with many numbers is cut.")] = 5,
    missing: o.Missing = None,
    absent: o.Absent = None,
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential",
            help="The test is watched while it runs: intervals that hold however often one looks, and are wider. "
            "Others are for one look, at a time that was fixed in advance.",
        ),
    ] = False,
    planned: Annotated[
        int | None,
        typer.Option(
            "--planned",
            min=1,
            show_default=False,
            help="With --sequential: the rows (one per unit and period) that the test is planned to bring, fixed "
            "before they are seen; 100000 where nobody says.",
        ),
    ] = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    engine: o.Engine = None,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    seed: o.Seed = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if a difference is not supported by the data.")
    ] = False,
    html: o.Html = None,
    json: o.Json = False,
    volume: o.Volume = None,
) -> None:
    """What is the effect in the long run, after a test of two weeks?

    Treatment changes what units become, not only what they earn today. Each arm is taken as a policy, "always this
    arm", and its long run is estimated from how units went from state to state. Beside it stand the naive difference,
    the path from one to the other, and what speaks against it. Exit codes: 0 done, 2 usage, 3 bad data, 4 not supported
    (with --strict).
    """
    from mixope.experiments import experiment

    check_page(html)
    chosen = inputs.make_engine(engine, memory_limit, threads)
    with working("computing the long run …") as notes:
        result = experiment(
            inputs.open_table(table),
            arm=arm,
            control=control,
            unit=unit,
            time=time,
            metric=metric,
            state=state,
            less=less,
            estimand=estimand.value,
            gamma=gamma,
            horizon=horizon,
            days=days,
            level=level,
            estimator=estimator,
            period=period.value,
            season=season,
            lags=lags,
            exposure=exposure,
            guardrail=guardrail,
            by=by,
            bins=bins,
            missing=None if missing is None else missing.value,
            absent=None if absent is None else absent.value,
            sequential=sequential,
            planned=planned,
            format=None if format is None else format.value,
            encoding=encoding,
            engine=chosen,
            seed=seed,
        )
        if html is not None:
            write_page(result, html, command=command_line(context))
    present(result, notes, json, result.notes, html)
    if strict and any(arm.decision == "not supported" for arm in result.arms):
        raise typer.Exit(NOT_SUPPORTED)
