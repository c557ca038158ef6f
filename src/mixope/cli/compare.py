"""``mixope compare``: several targets, several estimators, the same logs and the same scans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mixope.base.errors import UsageError
from mixope.cli import inputs, output
from mixope.cli import options as o
from mixope.cli.output import present, working


def command(
    context: typer.Context,
    logs: o.Paths,
    target: o.Targets,
    estimator: o.Estimators = ["auto"],  # noqa: B006 (typer's way to say: any number)
    estimand: o.Estimand = o.EstimandName.average,
    gamma: o.Gamma = None,
    horizon: o.Horizon = None,
    level: o.Level = 0.95,
    interval: o.Interval = "auto",
    replicates: o.Replicates = 500,
    jobs: o.Jobs = None,
    planned: o.Planned = None,
    logger: o.Logger = [],  # noqa: B006
    loggers: o.Loggers = None,
    column: o.Column = [],  # noqa: B006
    done: o.Done = None,
    ends: o.Ends = None,
    role: o.Role = [],  # noqa: B006
    missing: o.Missing = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    target_default: o.TargetDefault = None,
    target_column: o.TargetColumn = [],  # noqa: B006
    target_actions: o.TargetActions = None,
    target_epsilon: o.TargetEpsilon = None,
    target_scale: o.TargetScale = None,
    target_law: o.TargetLaw = None,
    unknown_actions: o.Unknown = o.UnknownActions.error,
    trust: o.Trust = False,
    engine: o.Engine = None,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    checkpoint: o.Checkpoint = None,
    device: o.Device = o.DeviceName.auto,
    seed: o.Seed = 0,
    form: o.Form = o.FormName.general,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="More than twelve targets: all pairs, not each with the best alone.")
    ] = False,
    risk: Annotated[
        float | None,
        typer.Option(
            "--risk",
            metavar="SHARE",
            show_default=False,
            help="Also set the mean return of an episode against that of the worst share of episodes, such as 0.1, "
            "under each target. Whole episodes are weighed, as by mixope returns.",
        ),
    ] = None,
    outputs: o.Outputs = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE",
            show_default=False,
            help="Draw the values with their intervals, or with --risk risk against return, one point per target: a "
            ".png, .svg or .pdf.",
        ),
    ] = None,
    html: o.Html = None,
    json: o.Json = False,
    volume: o.Volume = None,
) -> None:
    """Which of several policies is better, and do the estimators agree?

    One line for each target and estimator. Give --target old=old.csv --target new=new.csv, and any number of
    --estimator. With several targets: which to take, with the place of each and what is lost if the best few are
    taken; and their differences, which the same episodes make far more certain than the values. With --risk 0.1 also
    what the worst tenth of episodes returns under each of them.
    """
    from mixope.comparison import compare
    from mixope.inspection import coverage_of
    from mixope.seen import look
    from mixope.solvers.devices import check_device
    from mixope.uncertainty import choose_interval

    choose_interval(interval, replicates, jobs, planned=planned)  # a wrong name is told before anything is read
    check_device(device.value)
    everything = "all" in estimator
    if everything and len(estimator) > 1:
        raise UsageError("--estimator all stands alone")
    output.check_page(html)
    output.check_picture(picture)
    named = inputs.name_targets(target)
    inputs.check_outputs(outputs, [*named.values(), *logger])
    inputs.check_checkpoint(checkpoint)
    chosen = inputs.make_engine(engine, memory_limit, threads)
    with working("comparing …") as notes:
        rows = inputs.read_logs(logs, column, done, ends, role, missing, format, encoding)
        words = inputs.PolicyWords(
            unknown_actions,
            trust,
            outputs,
            target_default,
            target_column,
            target_actions,
            target_epsilon,
            target_scale,
            target_law,
            rows,
        )
        policies = {name: inputs.read_one_of(named, name, words) for name in named}
        seen = look(rows, chosen, checkpoint=checkpoint)
        result = compare(
            seen,
            policies,
            "all" if everything else [inputs.make_estimator(name, form, rows) for name in estimator],
            estimand=estimand.value,
            gamma=gamma,
            horizon=horizon,
            level=level,
            loggers=inputs.read_loggers(logger, loggers, words),
            interval=choose_interval(interval, replicates, jobs, notes.progress, planned),
            device=device.value,
            seed=seed,
            all_pairs=all_pairs,
            risk=risk,
        )
        notes.extend(output.taken(seen.engine))
        if html is not None:
            coverage = {name: coverage_of(seen, policy) for name, policy in policies.items()}
            output.write_page(result, html, command=output.command_line(context), coverage=coverage)
        drawn = None
        if picture is not None and result.no_risk_because is None:
            drawn = output.write_picture(result.risk or result, picture)
        elif picture is not None:
            notes.append(f"{picture} was not written: there is no risk against return to draw")
    besides = [alert for estimate in result for alert in estimate.remarks]
    present(result, notes, json, besides, html, drawn)
