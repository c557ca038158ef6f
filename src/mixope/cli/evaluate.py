"""``mixope evaluate``: one target, one number, and whether to believe it."""

from __future__ import annotations

from typing import Annotated

import typer

from mixope.cli import inputs, output
from mixope.cli import options as o
from mixope.cli.output import complain, print_json, show, tell, working

NOT_SUPPORTED = 4


def command(
    context: typer.Context,
    logs: o.Paths,
    target: o.Target,
    estimator: o.Estimator = "auto",
    estimand: o.Estimand = o.EstimandName.average,
    gamma: o.Gamma = None,
    horizon: o.Horizon = None,
    level: o.Level = 0.95,
    interval: o.Interval = "auto",
    replicates: o.Replicates = 500,
    jobs: o.Jobs = None,
    planned: o.Planned = None,
    logger: o.Logger = [],  # noqa: B006 (typer's way to say: any number)
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
    confounding: Annotated[
        float | None,
        typer.Option(
            "--confounding",
            metavar="FACTOR",
            show_default=False,
            help="Also bound the value if hidden reasons changed the odds of the logged actions by up to this factor, "
            "such as 1.5, and say at which factor the answer could flip.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="VALUE",
            show_default=False,
            help="With --confounding: what the target is held against, instead of what the logs earn.",
        ),
    ] = None,
    outputs: o.Outputs = None,
    html: o.Html = None,
    backtest: o.WithBacktest = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if the verdict is that these logs do not support an answer.")
    ] = False,
    json: o.Json = False,
    volume: o.Volume = None,
) -> None:
    """What would this policy earn per step, judged from logs that other policies wrote?

    Prints a verdict, the value with its interval, and the diagnostics behind the verdict; --html writes them as a page.
    States and actions may be ids, factors or vectors of floats. Exit codes: 0 done, 2 usage,
    3 bad data, 4 not supported by these logs (with --strict).
    """
    from mixope.backtesting import backtest as predict_loggers
    from mixope.backtesting import same_question
    from mixope.checks import Verdict
    from mixope.evaluation import evaluate
    from mixope.inspection import coverage_of
    from mixope.seen import look
    from mixope.solvers.devices import check_device
    from mixope.uncertainty import choose_interval

    choose_interval(interval, replicates, jobs, planned=planned)  # a wrong name is told before anything is read
    check_device(device.value)
    output.check_page(html)
    inputs.check_outputs(outputs, [target, *logger])
    inputs.check_checkpoint(checkpoint)
    chosen = inputs.make_engine(engine, memory_limit, threads)
    with working("evaluating …") as notes:
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
        policy = inputs.read_target(target, words)
        known = inputs.read_loggers(logger, loggers, words)
        seen = look(rows, chosen, checkpoint=checkpoint)
        result = evaluate(
            seen,
            policy,
            inputs.make_estimator(estimator, form, rows),
            estimand=estimand.value,
            gamma=gamma,
            horizon=horizon,
            level=level,
            loggers=known,
            interval=choose_interval(interval, replicates, jobs, notes.progress, planned),
            device=device.value,
            seed=seed,
            confounding=confounding,
            threshold=threshold,
        )
        question = same_question(seen, result.estimand)
        tested = predict_loggers(seen, loggers=known, estimand=question, level=level, seed=seed) if backtest else None
        result = tested.judge(result) if tested else result
        notes.extend(output.taken(seen.engine))
        if html is not None:
            coverage = coverage_of(seen, policy)
            said = {"command": output.command_line(context), "coverage": coverage, "backtest": tested, "target": target}
            output.write_page(result, html, **said)
    if json:
        tell(notes)
        print_json({**result.to_dict(), **({"backtest": tested.to_dict()} if tested else {})})
    else:
        tell(notes, besides=result.remarks)
        show(result, target=target)
        if tested:
            output.console().print("\nbacktest: every logger predicted from the others", style="bold")
            show(tested)
    if html is not None:
        complain("report", str(html))
    if strict and result.verdict is Verdict.UNSUPPORTED:
        raise typer.Exit(NOT_SUPPORTED)
