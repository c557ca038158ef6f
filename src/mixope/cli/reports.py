"""``--html``: the result as a page, with the command that made it and what the logs cover."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.errors import UsageError

if TYPE_CHECKING:
    import typer

    from mixope.engines import Engine
    from mixope.estimate import Comparison, Estimate
    from mixope.logs import Logs
    from mixope.policies import Policy

ARGUMENTS = "mixope.cli.arguments"
"""Where the context keeps the words of the command line."""
ENDINGS = (".html", ".htm")


def check(path: Path | None) -> None:
    """Before the work begins: a report never takes the place of something that is not one."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"--html {path} is a folder; name a file in it, such as {path / 'report.html'}")
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--html takes a name that ends in .html, got {str(path)!r}")


def write(
    record: Estimate | Comparison,
    path: Path,
    context: typer.Context,
    logs: Logs,
    targets: Sequence[Policy],
    engine: str | Engine | None,
) -> Path:
    """The page, whole or not at all; the coverage of a single target where states can be counted."""
    from mixope.inspection import coverage_of

    coverage = coverage_of(logs, targets[0], engine) if len(targets) == 1 else None
    return save(record, path, command=command_line(context), coverage=coverage)


def save(record: Estimate | Comparison, path: Path, **extras: Any) -> Path:
    """Write a page; a place that cannot be written to is a matter of words."""
    try:
        return record.report(path, **extras)
    except OSError as error:
        raise UsageError(f"the report cannot be written to {path}: {error.strerror or error}") from None


def command_line(context: typer.Context) -> str:
    """The command as it was typed."""
    return shlex.join(["mixope", *context.meta.get(ARGUMENTS, ())])
