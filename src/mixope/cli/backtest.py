"""``mixope backtest``: every logger predicted from the others, beside what it really earned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mixope.cli import inputs
from mixope.cli import options as o
from mixope.cli.console import console, print_json, tell, working

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

    from mixope.backtesting import Backtest, BacktestRow

NOT_SUPPORTED = 4


def command(
    logs: o.Paths,
    estimator: Annotated[
        str, typer.Option("--estimator", help="auto, or a name that `mixope estimators` lists.")
    ] = "auto",
    level: o.Level = 0.95,
    logger: o.Logger = [],  # noqa: B006 (typer's way to say: any number)
    loggers: o.Loggers = None,
    column: o.Column = [],  # noqa: B006
    done: o.Done = None,
    unknown_actions: o.Unknown = o.UnknownActions.error,
    trust: o.Trust = False,
    engine: o.Engine = None,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    seed: o.Seed = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if no logger can be predicted from the others.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Would these logs have predicted what their own loggers earned?

    Each labelled logger is left out in turn, its policy is evaluated from the rows of the others, and the prediction is
    set beside what it earned. Policies that are not given with --logger are counted from the logger's own rows. Exit
    codes: 0 done, 2 usage, 3 bad data, 4 no logger can be predicted (with --strict).
    """
    from mixope.backtesting import backtest

    with working("backtesting …") as notes:
        result = backtest(
            inputs.read_logs(logs, column, done),
            loggers=inputs.read_loggers(logger, loggers, unknown_actions, trust),
            estimator=estimator,
            level=level,
            engine=inputs.make_engine(engine, memory_limit, threads),
            seed=seed,
        )
    if json:
        tell(notes)
        print_json(result.to_json())
    else:
        tell(notes, besides=result.notes)
        console().print(backtest_view(result))
    if strict and not result.supported:
        raise typer.Exit(NOT_SUPPORTED)


def backtest_view(result: Backtest) -> Group:
    """One line a logger, then the summary and the reasons where there is no prediction to use."""
    from rich.console import Group, RenderableType
    from rich.text import Text

    from mixope.cli.views import parts

    numbers = ("predicted", "earned", "z", "uncovered")
    table = parts.table(
        "logger", "predicted", "interval", "earned", "z", "uncovered", "agrees", "verdict", right=numbers,
        folded=("logger", "verdict"),
    )  # fmt: skip
    for row in result.rows:
        table.add_row(row.label, *_cells(row), parts.verdict(row.verdict))
    reasons = [("note", f"{row.label}: {row.note}") for row in result.rows if not row.supported and row.note]
    said = parts.remarks([*reasons, *(("note", note) for note in result.notes)])
    pieces: list[RenderableType] = [table, Text(result.summary, style="bold"), *([said] if said else [])]
    return Group(*pieces)


def _cells(row: BacktestRow) -> tuple[str | Text, ...]:
    from rich.text import Text

    from mixope.report.words import rounded

    half = None if row.low is None or row.high is None else (row.high - row.low) / 2
    answer = Text("yes", style="green") if row.covered else Text("no", style="red")
    return (
        rounded(row.predicted, half),
        "–" if row.low is None else f"{rounded(row.low, half)} to {rounded(row.high, half)}",
        rounded(row.earned, half),
        "–" if row.z is None else f"{row.z:+.1f}",
        f"{row.uncovered_mass:.2%}",
        answer if row.supported else Text("–"),
    )
