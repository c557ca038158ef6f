"""``mixope compare``: several targets, several estimators, the same logs and the same scans."""

from __future__ import annotations

from typing import Annotated

import typer

from mixope.cli import inputs, reports
from mixope.cli import options as o
from mixope.cli.console import complain, console, print_json, tell, working
from mixope.errors import UsageError


def command(
    context: typer.Context,
    logs: o.Paths,
    target: o.Targets,
    estimator: Annotated[
        list[str],
        typer.Option(
            "--estimator", help="auto, or a name that `mixope estimators` lists; repeat it for several, or all."
        ),
    ] = ["auto"],  # noqa: B006 (typer's way to say: any number)
    estimand: o.Estimand = o.EstimandName.average,
    gamma: o.Gamma = None,
    horizon: o.Horizon = None,
    level: o.Level = 0.95,
    interval: o.Interval = "auto",
    replicates: o.Replicates = 500,
    jobs: o.Jobs = None,
    logger: o.Logger = [],  # noqa: B006
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
    outputs: o.Outputs = None,
    html: o.Html = None,
    json: o.Json = False,
) -> None:
    """Which of several policies is better, and do the estimators agree?

    One line for each target and estimator. Give --target old=old.csv --target new=new.csv, and any number of
    --estimator. With several targets: their differences, which the same episodes make far more certain than the values,
    and a ranking.
    """
    from mixope.comparison import compare
    from mixope.evaluation import look
    from mixope.intervals import choose_interval

    choose_interval(interval, replicates, jobs)  # a wrong name is told before anything is read
    everything = "all" in estimator
    if everything and len(estimator) > 1:
        raise UsageError("--estimator all stands alone")
    reports.check(html)
    named = inputs.name_targets(target)
    inputs.check_outputs(outputs, [*named.values(), *logger])
    with working("comparing …") as notes:
        rows = inputs.read_logs(logs, column, done)
        policies = {
            name: inputs.read_target(path, target_default, unknown_actions, trust, outputs)
            for name, path in named.items()
        }
        seen = look(rows, inputs.make_engine(engine, memory_limit, threads))
        result = compare(
            seen,
            policies,
            "all" if everything else [inputs.make_estimator(name, form, rows) for name in estimator],
            estimand=estimand.value,
            gamma=gamma,
            horizon=horizon,
            level=level,
            loggers=inputs.read_loggers(logger, loggers, unknown_actions, trust, outputs),
            interval=choose_interval(interval, replicates, jobs, notes.progress),
            seed=seed,
        )
        if html is not None:
            reports.write(result, html, context, seen, policies)
    if json:
        tell(notes)
        print_json(result.to_json())
    else:
        from mixope.cli.views.comparison import comparison_view

        tell(notes, besides=[alert for estimate in result for alert in estimate.alerts])
        console().print(comparison_view(result))
    if html is not None:
        complain("report", str(html))
