"""``mixope evaluate``: one target, one number, and whether to believe it."""

from __future__ import annotations

from typing import Annotated

import typer

from mixope.cli import inputs
from mixope.cli import options as o
from mixope.cli.console import console, print_json, tell, working

NOT_SUPPORTED = 4


def command(
    logs: o.Paths,
    target: o.Target,
    estimator: Annotated[
        str, typer.Option("--estimator", help="auto, or a name that `mixope estimators` lists.")
    ] = "auto",
    estimand: o.Estimand = o.EstimandName.average,
    gamma: o.Gamma = None,
    horizon: o.Horizon = None,
    level: o.Level = 0.95,
    logger: o.Logger = [],  # noqa: B006 (typer's way to say: any number)
    loggers: o.Loggers = None,
    column: o.Column = [],  # noqa: B006
    done: o.Done = None,
    target_default: o.TargetDefault = None,
    unknown_actions: o.Unknown = o.UnknownActions.error,
    trust: o.Trust = False,
    engine: o.Engine = None,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    seed: o.Seed = 0,
    form: o.Form = o.FormName.general,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if the verdict is that these logs do not support an answer.")
    ] = False,
    json: o.Json = False,
) -> None:
    """What would this policy earn per step, judged from logs that other policies wrote?

    Prints a verdict, the value with its interval, and the diagnostics behind the verdict. Exit codes: 0 done, 2 usage,
    3 bad data, 4 not supported by these logs (with --strict).
    """
    from mixope.diagnostics import Verdict
    from mixope.evaluation import evaluate

    with working("evaluating …") as notes:
        result = evaluate(
            inputs.read_logs(logs, column, done),
            inputs.read_target(target, target_default, unknown_actions, trust),
            inputs.make_estimator(estimator, form),
            estimand=estimand.value,
            gamma=gamma,
            horizon=horizon,
            level=level,
            loggers=inputs.read_loggers(logger, loggers, unknown_actions, trust),
            engine=inputs.make_engine(engine, memory_limit, threads),
            seed=seed,
        )
    if json:
        tell(notes)
        print_json(result.to_json())
    else:
        from mixope.cli.views.estimate import estimate_view

        tell(notes, besides=result.alerts)
        console().print(estimate_view(result, target))
    if strict and result.verdict is Verdict.UNSUPPORTED:
        raise typer.Exit(NOT_SUPPORTED)
