"""``mixope backtest``: every logger predicted from the others, beside what it really earned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from mixope.cli import inputs, signatures
from mixope.cli import options as o
from mixope.cli.output import check_page, command_line, present, taken, working, write_page
from mixope.cli.signatures import HelpPanel, option

NOT_SUPPORTED = 4


@dataclass(frozen=True)
class BacktestOptions(o.QuestionOptions):
    """What is predicted of every logger."""

    estimand: Annotated[
        o.EstimandName | None,
        option(
            "What is predicted of every logger, as for mixope evaluate: the question that the target is to be asked."
            " Without it, what each logger's rows show as they are: the mean of the first steps where all episodes were"
            " cut after as many, else the average.",
            panel=HelpPanel.question,
        ),
    ] = None


@signatures.command
def command(
    context: typer.Context,
    logs: o.Paths,
    *,
    estimator: o.Estimator = "auto",
    memory: o.Memory = None,
    question: BacktestOptions,
    loggers: o.Loggers,
    columns: o.PastColumns,
    files: o.Files,
    policies: o.PolicyFiles,
    workers: o.Workers,
    checkpoint: o.Checkpoint = None,
    seed: o.Seed = 0,
    strict: Annotated[
        bool, option("Exit with 4 if no logger can be predicted from the others.", panel=HelpPanel.output)
    ] = False,
    html: o.Html = None,
    printed: o.Printed,
) -> None:
    """Would these logs have predicted what their own loggers earned?

    Each labelled logger is left out in turn, its policy is evaluated from the rows of the others, and the prediction is
    set beside what it earned; --html writes them as a page. Policies that are not given with --logger are counted from,
    or fitted to, the logger's own rows. Exit codes: 0 done, 2 usage, 3 bad data, 4 no logger can be
    predicted (with --strict).
    """
    from mixope.backtesting import backtest
    from mixope.session.session import look

    check_page(html)
    inputs.check_checkpoint(checkpoint)
    remembered = inputs.read_memory(memory)
    chosen = inputs.make_engine(workers)
    with working("backtesting …") as notes:
        rows = inputs.read_logs(logs, columns, files, columns.unit)
        seen = look(rows, chosen, seed=seed, checkpoint=checkpoint, **columns.past())
        known = inputs.PolicyReader(policies, rows).loggers(loggers)
        result = backtest(seen, loggers=known, estimator=estimator, memory=remembered, **question.keywords(), seed=seed)
        notes.extend(taken(seen.engine))
        if html is not None:
            write_page(result, html, command=command_line(context))
    present(result, notes, printed.json, result.notes, html, full=printed.full)
    if strict and not result.supported:
        raise typer.Exit(NOT_SUPPORTED)
