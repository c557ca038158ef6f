"""``mixope experiment``: the long-run effect of a short test."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar

import typer

from mixope.cli import inputs, signatures
from mixope.cli import options as o
from mixope.cli.output import check_page, command_line, present, working, write_page
from mixope.cli.signatures import HelpPanel, option

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


@dataclass(frozen=True)
class TestTable:
    """The table and the question, as the library takes them."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.answer
    arm: Annotated[str, option("The arm of a row.", metavar="COLUMN", panel=HelpPanel.logs)]
    control: Annotated[str, option("The arm that the others are set against.", metavar="ARM", panel=HelpPanel.logs)]
    unit: Annotated[
        str, option("The unit: a user, a shop; all its rows belong together.", metavar="COLUMN", panel=HelpPanel.logs)
    ]
    time: Annotated[
        str, option("The period of a row: a whole number, a date or a time.", metavar="COLUMN", panel=HelpPanel.logs)
    ]
    metric: Annotated[
        list[str], option("What a unit earned in a period. Repeatable.", metavar="COLUMN", panel=HelpPanel.logs)
    ]
    state: Annotated[
        list[str],
        option(
            "What a unit is like at the beginning of a period; else the other columns. Repeatable.",
            metavar="COLUMN",
            panel=HelpPanel.logs,
        ),
    ] = field(default_factory=list)
    less: Annotated[
        list[str],
        option("A metric of which less is better, such as a cost. Repeatable.", metavar="COLUMN", panel=HelpPanel.logs),
    ] = field(default_factory=list)
    estimand: Annotated[
        EffectName,
        option(
            "The difference per period in the long run; discounted (with --gamma); over the first periods (with"
            " --horizon); or in one period, the day --horizon.",
            panel=HelpPanel.question,
        ),
    ] = EffectName.average
    gamma: o.Gamma = None
    horizon: Annotated[int | None, option("How many first periods, or which day.", panel=HelpPanel.question)] = None
    days: Annotated[int | None, option("How far ahead the path of the difference goes.", panel=HelpPanel.question)] = (
        None
    )
    level: o.Level = 0.95
    estimator: o.Estimator = "auto"
    period: Annotated[
        PeriodName,
        option(
            "What a period is: dates and times are counted so; of a visit, --time is its number.", panel=HelpPanel.logs
        ),
    ] = PeriodName.day
    season: Annotated[int | None, option("Periods after which the world is where it was: 7 for days of a week.")] = None
    lags: Annotated[int, option("Earlier periods of the states that are put beside them.")] = 0
    exposure: Annotated[
        str | None,
        option(
            "Whether a unit really had its arm in a period; it is as the control if not.",
            metavar="COLUMN",
            panel=HelpPanel.logs,
        ),
    ] = None
    guardrail: Annotated[
        list[str],
        option(
            "What must not become worse: a bound of the long-run difference of a metric, or METRIC>=BOUND. Repeatable.",
            metavar="METRIC<=BOUND",
            panel=HelpPanel.question,
        ),
    ] = field(default_factory=list)
    by: Annotated[
        str | None,
        option(
            "A column of the state: also say it of the units that entered with each value.",
            metavar="COLUMN",
            panel=HelpPanel.question,
        ),
    ] = None
    bins: Annotated[int, option("Classes into which a state with many numbers is cut.")] = 5
    missing: o.Missing = None
    absent: o.Absent = None
    sequential: Annotated[
        bool,
        option(
            "The test is watched while it runs: intervals that hold however often one looks, and are wider. Others are"
            " for one look, at a time that was fixed in advance."
        ),
    ] = False
    planned: Annotated[
        int | None,
        option(
            "With --sequential: the rows (one per unit and period) that the test is planned to bring, fixed before they"
            " are seen; 100000 where nobody says.",
            min=1,
        ),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """As the library takes them."""
        return {name: value.value if isinstance(value, Enum) else value for name, value in vars(self).items()}


@signatures.command
def command(
    context: typer.Context,
    table: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE", show_default=False, help="Files, folders or globs: one row per unit and period."
        ),
    ],
    *,
    asked: TestTable,
    files: o.Files,
    workers: o.Workers,
    seed: o.Seed = 0,
    strict: Annotated[
        bool, option("Exit with 4 if a difference is not supported by the data.", panel=HelpPanel.output)
    ] = False,
    html: o.Html = None,
    printed: o.Printed,
) -> None:
    """What is the effect in the long run, after a test of two weeks?

    Treatment changes what units become, not only what they earn today. Each arm is taken as a policy, "always this
    arm", and its long run is estimated from how units went from state to state. Beside it stand the naive difference,
    the path from one to the other, and what speaks against it. Exit codes: 0 done, 2 usage, 3 bad data, 4 not supported
    (with --strict).
    """
    from mixope.experiments import experiment

    check_page(html)
    chosen = inputs.make_engine(workers)
    with working("computing the long run …") as notes:
        rows = inputs.open_table(table)
        result = experiment(rows, **asked.keywords(), **files.keywords(), engine=chosen, seed=seed)
        if html is not None:
            write_page(result, html, command=command_line(context))
    present(result, notes, printed.json, result.notes, html, full=printed.full)
    if strict and any(arm.decision == "not supported" for arm in result.arms):
        raise typer.Exit(NOT_SUPPORTED)
