"""``mixope backtest``: every logger predicted from the others, beside what it really earned."""

from __future__ import annotations

from typing import Annotated

import typer

from mixope.cli import inputs
from mixope.cli import options as o
from mixope.cli.output import check_page, command_line, present, taken, working, write_page

NOT_SUPPORTED = 4


def command(
    context: typer.Context,
    logs: o.Paths,
    estimator: o.Estimator = "auto",
    estimand: o.BacktestEstimand = None,
    gamma: o.Gamma = None,
    horizon: o.Horizon = None,
    level: o.Level = 0.95,
    logger: o.Logger = [],  # noqa: B006 (typer's way to say: any number)
    loggers: o.Loggers = None,
    column: o.Column = [],  # noqa: B006
    done: o.Done = None,
    ends: o.Ends = None,
    role: o.Role = [],  # noqa: B006
    missing: o.Missing = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    unknown_actions: o.Unknown = o.UnknownActions.error,
    trust: o.Trust = False,
    engine: o.Engine = None,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    checkpoint: o.Checkpoint = None,
    seed: o.Seed = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if no logger can be predicted from the others.")
    ] = False,
    html: o.Html = None,
    json: o.Json = False,
    volume: o.Volume = None,
) -> None:
    """Would these logs have predicted what their own loggers earned?

    Each labelled logger is left out in turn, its policy is evaluated from the rows of the others, and the prediction is
    set beside what it earned; --html writes them as a page. Policies that are not given with --logger are counted from,
    or fitted to, the logger's own rows. Exit codes: 0 done, 2 usage, 3 bad data, 4 no logger can be
    predicted (with --strict).
    """
    from mixope.backtesting import backtest
    from mixope.seen import look

    check_page(html)
    inputs.check_checkpoint(checkpoint)
    chosen = inputs.make_engine(engine, memory_limit, threads)
    with working("backtesting …") as notes:
        rows = inputs.read_logs(logs, column, done, ends, role, missing, format, encoding)
        seen = look(rows, chosen, seed=seed, checkpoint=checkpoint)
        result = backtest(
            seen,
            loggers=inputs.read_loggers(logger, loggers, inputs.PolicyWords(unknown_actions, trust, logs=seen.logs)),
            estimator=estimator,
            estimand=None if estimand is None else estimand.value,
            gamma=gamma,
            horizon=horizon,
            level=level,
            seed=seed,
        )
        notes.extend(taken(seen.engine))
        if html is not None:
            write_page(result, html, command=command_line(context))
    present(result, notes, json, result.notes, html)
    if strict and not result.supported:
        raise typer.Exit(NOT_SUPPORTED)
