"""``mixope returns``: how the returns of episodes are spread, and what the worst of them return."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mixope.cli import inputs
from mixope.cli import options as o
from mixope.cli.output import check_picture, present, taken, working, write_picture


def command(
    logs: o.Paths,
    target: o.Targets,
    alpha: Annotated[
        float, typer.Option("--alpha", help="The share of the worst episodes whose mean return is shown.")
    ] = 0.1,
    estimand: o.Estimand = o.EstimandName.episode,
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
    seed: o.Seed = 0,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE",
            show_default=False,
            help="Draw risk against return, one point per target: a .png, .svg or .pdf.",
        ),
    ] = None,
    json: o.Json = False,
    volume: o.Volume = None,
) -> None:
    """How are the returns of a policy's episodes spread, and what do the worst of them return?

    The mean, the mean of the worst share --alpha of episodes (CVaR) and quantiles, each with its interval, for one
    target or several. Whole episodes are weighed, so that they should be short, or the targets close to the loggers.
    """
    from mixope.distributions import returns
    from mixope.seen import look

    check_picture(picture)
    named = inputs.name_targets(target)
    chosen = inputs.make_engine(engine, memory_limit, threads)
    with working("weighing episodes …") as notes:
        seen = look(inputs.read_logs(logs, column, done, ends, role, missing, format, encoding), chosen, seed=seed)
        words = inputs.PolicyWords(unknown_actions, trust, logs=seen.logs)
        result = returns(
            seen,
            {name: inputs.read_one_of(named, name, words) for name in named},
            alpha=alpha,
            estimand=estimand.value,
            gamma=gamma,
            horizon=horizon,
            level=level,
            loggers=inputs.read_loggers(logger, loggers, words),
            seed=seed,
        )
        notes.extend(taken(seen.engine))
        if picture is not None:
            write_picture(result, picture)
    present(result, notes, json, (), picture)
