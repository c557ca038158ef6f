"""``mixope inspect``: what is in these logs, before any estimate."""

from __future__ import annotations

from typing import Annotated

import typer

from mixope.cli import inputs, signatures
from mixope.cli import options as o
from mixope.cli.output import complain, describe, on_command_line, print_json, show, taken, tell, working
from mixope.cli.signatures import HelpPanel, option


@signatures.command
def command(
    logs: o.Paths,
    *,
    target: Annotated[
        str | None, option("Also show what the logs cover of a policy.", metavar="POLICY", panel=HelpPanel.policy)
    ] = None,
    columns: o.PastColumns,
    files: o.Files,
    target_table: o.TargetTable,
    policies: o.PolicyFiles,
    check: Annotated[
        bool,
        option("Look for bad rows, broken or repeated episodes: three more scans.", "--check/--no-check"),
    ] = True,
    workers: o.Workers,
    checkpoint: o.Checkpoint = None,
    outputs: o.Outputs = None,
    printed: o.Printed,
) -> None:
    """Which column is what, who wrote how much, what was dropped and why, and what a target finds covered.

    Exits with 3 if the rows cannot be used, after showing what was found.
    """
    from mixope.engines import choose, with_checkpoint
    from mixope.inspection import inspect

    inputs.check_outputs(outputs, [] if target is None else [target])
    inputs.check_checkpoint(checkpoint)
    chosen = inputs.make_engine(workers)
    with working("inspecting …") as notes:
        rows = inputs.read_logs(logs, columns, files, columns.unit)
        reader = inputs.PolicyReader(policies, rows, target_table, outputs)
        policy = None if target is None else reader.target(target)
        scanning = with_checkpoint(choose(chosen, rows), checkpoint)
        found = inspect(rows, policy, scanning, check=check, **columns.past())
        notes.extend(taken(scanning))
    if printed.json:
        tell(notes)
        failed = {} if found.error is None else describe(found.error, "", found.error.exit_code)
        print_json({**found.to_dict(), **failed})
    else:
        tell(notes, besides=found.notes)
        show(found, full=printed.full)
    if found.error is not None and printed.json:
        complain("error", found.error.text(on_command_line))
        raise typer.Exit(found.error.exit_code)
    if found.error is not None:
        raise found.error
