"""``--html``: the result as a page, with the command that made it and what the logs cover of every target."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.errors import UsageError

if TYPE_CHECKING:
    import typer

    from mixope.backtesting import Backtest
    from mixope.estimate import Comparison, Estimate
    from mixope.inspection import Coverage
    from mixope.policies import Policy
    from mixope.tabular import Counted
    from mixope.vectors import Scanned

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
    seen: Counted | Scanned,
    targets: Mapping[str, Policy],
    backtest: Backtest | None = None,
) -> Path:
    """The page, whole or not at all."""
    coverage = coverage_by_target(seen, targets)
    return save(record, path, command=command_line(context), coverage=coverage, backtest=backtest)


def coverage_by_target(seen: Counted | Scanned, targets: Mapping[str, Policy]) -> dict[str, Coverage]:
    """What the logs cover of each, from the counts that the evaluation made; nothing where states are vectors."""
    from mixope.inspection import cover
    from mixope.tabular import Counted
    from mixope.targets import resolve_policy

    if not isinstance(seen, Counted):
        return {}
    return {name: cover(seen.transitions, resolve_policy(policy, seen.logs)) for name, policy in targets.items()}


def backtest_of(seen: Counted | Scanned, loggers: Mapping[str, Any] | None, level: float, seed: int) -> Backtest:
    """The backtest that goes with an evaluation, from the counts that it made."""
    from mixope.backtesting import backtest
    from mixope.tabular import Counted

    return backtest(seen if isinstance(seen, Counted) else seen.logs, loggers=loggers, level=level, seed=seed)


def as_json(result: Estimate, tested: Backtest | None) -> str:
    """One object; the backtest is a part of it."""
    import json

    if tested is None:
        return result.to_json()
    return json.dumps({**result.to_dict(), "backtest": tested.to_dict()}, indent=2, ensure_ascii=False)


def print_backtest(tested: Backtest | None) -> None:
    """Under an estimate, on a terminal."""
    if tested is None:
        return
    from mixope.cli.console import console
    from mixope.cli.views import parts
    from mixope.cli.views.backtest import backtest_view

    console().print(parts.heading("backtest: every logger predicted from the others"))
    console().print(backtest_view(tested))


def save(record: Estimate | Comparison | Backtest, path: Path, **extras: Any) -> Path:
    """Write a page; a place that cannot be written to is a matter of words."""
    try:
        return record.report(path, **extras)
    except OSError as error:
        raise UsageError(f"the report cannot be written to {path}: {error.strerror or error}") from None


def command_line(context: typer.Context) -> str:
    """The command as it was typed."""
    return shlex.join(["mixope", *context.meta.get(ARGUMENTS, ())])
