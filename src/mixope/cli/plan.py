"""``mixope plan``: how much more data until the answer is sharp enough."""

from __future__ import annotations

from typing import Annotated

import typer

from mixope.base.errors import UsageError
from mixope.cli import inputs
from mixope.cli import options as o
from mixope.cli.output import present, taken, working

EXPERIMENT = "Of an experiment: "


def _column(option: str, words: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(option, metavar="COLUMN", show_default=False, help=EXPERIMENT + words)
    return found


def command(
    logs: o.Paths,
    precision: Annotated[
        float,
        typer.Option("--precision", metavar="X", show_default=False, help="The value or difference is wanted to ± X."),
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="POLICY", show_default=False, help="The policy that is asked about."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="POLICY|logs",
            show_default=False,
            help="Another policy, or logs for what the logs earn themselves: the difference is planned for.",
        ),
    ] = None,
    estimator: o.Estimator = "auto",
    estimand: o.Estimand = o.EstimandName.average,
    gamma: o.Gamma = None,
    horizon: o.Horizon = None,
    level: o.Level = 0.95,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="The interval is to hold however often one looks.")
    ] = False,
    arm: Annotated[str | None, _column("--arm", "the arm of a row. The long-run difference is planned for.")] = None,
    control: Annotated[
        str | None,
        typer.Option("--control", metavar="ARM", show_default=False, help=EXPERIMENT + "the arm to compare with."),
    ] = None,
    treatment: Annotated[
        str | None,
        typer.Option("--treatment", metavar="ARM", show_default=False, help=EXPERIMENT + "which of several arms."),
    ] = None,
    unit: Annotated[str | None, _column("--unit", "the unit, such as a user.")] = None,
    time: Annotated[str | None, _column("--time", "the period of a row.")] = None,
    metric: Annotated[str | None, _column("--metric", "what a unit earned in a period.")] = None,
    state: Annotated[list[str], _column("--state", "what a unit is like before a period. Repeatable.")] = [],  # noqa: B006
    column: o.Column = [],  # noqa: B006
    done: o.Done = None,
    ends: o.Ends = None,
    role: o.Role = [],  # noqa: B006
    missing: o.Missing = None,
    absent: o.Absent = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    unknown_actions: o.Unknown = o.UnknownActions.error,
    trust: o.Trust = False,
    engine: o.Engine = None,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    volume: o.Volume = None,
) -> None:
    """How many episodes, users or days until the answer is known to ± X?

    From a pilot: logs with --target (and --against, for a difference), or the table of an experiment with --arm,
    --control, --unit, --time and --metric. The number comes with a range, because the pilot's own spread is uncertain.
    """
    from mixope.planning import plan, plan_experiment
    from mixope.seen import look

    if (target is None) == (arm is None):
        raise UsageError("say what is planned for: --target for logs, or --arm for the table of an experiment")
    chosen = inputs.make_engine(engine, memory_limit, threads)
    with working("planning …") as notes:
        if arm is not None:
            result = plan_experiment(
                inputs.open_table(logs),
                precision=precision,
                arm=arm,
                control=_said("control", control),
                unit=_said("unit", unit),
                time=_said("time", time),
                metric=_said("metric", metric),
                treatment=treatment,
                state=state,
                level=level,
                sequential=sequential,
                missing=None if missing is None else missing.value,
                absent=None if absent is None else absent.value,
                format=None if format is None else format.value,
                encoding=encoding,
            )
        else:
            seen = look(inputs.read_logs(logs, column, done, ends, role, missing, format, encoding), chosen)
            words = inputs.PolicyWords(unknown_actions, trust, logs=seen.logs)
            result = plan(
                seen,
                inputs.read_target(str(target), words),
                estimator,
                precision=precision,
                against=against if against in (None, "logs") else inputs.read_target(str(against), words),
                estimand=estimand.value,
                gamma=gamma,
                horizon=horizon,
                level=level,
                sequential=sequential,
                seed=seed,
            )
            notes.extend(taken(seen.engine))
    present(result, notes, json, result.notes)


def _said(name: str, value: str | None) -> str:
    """What an experiment cannot do without."""
    if value is None:
        raise UsageError(f"the table of an experiment also needs --{name}")
    return value
