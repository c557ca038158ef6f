"""``mixope inspect``: what is in these logs, before any estimate."""

from __future__ import annotations

from typing import Annotated

import typer

from mixope.cli import inputs
from mixope.cli import options as o
from mixope.cli.output import complain, describe, on_command_line, print_json, show, taken, tell, working


def command(
    logs: o.Paths,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="POLICY", show_default=False, help="Also show what the logs cover of a policy."
        ),
    ] = None,
    column: o.Column = [],  # noqa: B006 (typer's way to say: any number)
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
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", help="Look for bad rows, broken or repeated episodes: three more scans."),
    ] = True,
    engine: o.Engine = None,
    memory_limit: o.MemoryLimit = None,
    threads: o.Threads = None,
    checkpoint: o.Checkpoint = None,
    outputs: o.Outputs = None,
    json: o.Json = False,
    volume: o.Volume = None,
) -> None:
    """Which column is what, who wrote how much, what was dropped and why, and what a target finds covered.

    Exits with 3 if the rows cannot be used, after showing what was found.
    """
    from mixope.engines import choose, with_checkpoint
    from mixope.inspection import inspect

    inputs.check_outputs(outputs, [] if target is None else [target])
    inputs.check_checkpoint(checkpoint)
    chosen = inputs.make_engine(engine, memory_limit, threads)
    with working("inspecting …") as notes:
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
        policy = None if target is None else inputs.read_target(target, words)
        scanning = with_checkpoint(choose(chosen, rows), checkpoint)
        found = inspect(rows, policy, scanning, check=check)
        notes.extend(taken(scanning))
    if json:
        tell(notes)
        failed = {} if found.error is None else describe(found.error, "", found.error.exit_code)
        print_json({**found.to_dict(), **failed})
    else:
        tell(notes, besides=found.notes)
        show(found)
    if found.error is not None and json:
        complain("error", found.error.text(on_command_line))
        raise typer.Exit(found.error.exit_code)
    if found.error is not None:
        raise found.error
