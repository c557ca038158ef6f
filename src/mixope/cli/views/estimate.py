"""An estimate on a terminal: the verdict and the number first, then what they rest on."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mixope.cli.views import parts
from mixope.estimate import Estimate
from mixope.logs import UNLABELLED
from mixope.report.text import number


def estimate_view(estimate: Estimate, target: str | None = None) -> Group:
    """The whole record; ``target`` is what the user calls the policy."""
    pieces: list[RenderableType] = [headline(estimate, target or estimate.target), diagnostics_table(estimate)]
    if {logger.label for logger in estimate.loggers} - {UNLABELLED}:
        pieces += [loggers_table(estimate)]
    alerts = parts.notes(estimate.alerts)
    return Group(*pieces, *([alerts] if alerts else []))


def headline(estimate: Estimate, target: str) -> Table:
    """What most readers came for."""
    value = Text.assemble((number(estimate.value), "bold"), f" {estimate.unit}, {estimate.estimand}")
    dropped = f" ({estimate.n_dropped:,} dropped)" if estimate.n_dropped else ""
    lines: list[tuple[str, str | Text]] = [
        ("verdict", parts.verdict(str(estimate.verdict))),
        ("value", value),
        ("interval", interval_words(estimate)),
        ("target", target),
        ("estimator", estimate.estimator),
        ("logs", f"{estimate.n_rows:,} rows{dropped}, {estimate.n_episodes:,} episodes"),
        ("loggers earned", f"{number(estimate.logged_mean)} a step"),
    ]
    lines += [
        ("beside", f"{other.estimator}: {number(other.value)}, {interval_words(other)}") for other in estimate.beside
    ]
    return parts.facts(*lines)


def interval_words(estimate: Estimate) -> str:
    """From … to … at a level, or why not."""
    found = estimate.interval
    if found is None:
        return f"none ({estimate.no_interval_because})"
    return f"{number(found.low)} to {number(found.high)} at {found.level:.4g} ({found.method})"


def diagnostics_table(estimate: Estimate) -> RenderableType:
    """One check a line."""
    if not estimate.diagnostics:
        return Text("\nno diagnostics: this is not an estimate of the target", style="dim")
    table = parts.table("", "check", "in words", folded=("in words",))
    for found in estimate.diagnostics:
        table.add_row(parts.status(found.status), found.name, found.sentence)
    return table


def loggers_table(estimate: Estimate) -> Table:
    """Who wrote how much, what it earned, and how much of the answer rests on it."""
    numbers = ("rows", "earned a step", "share of weight", "effective rows")
    table = parts.table("logger", *numbers, right=numbers)
    for logger in estimate.loggers:
        share = "–" if logger.weight_share is None else f"{logger.weight_share:.1%}"
        size = "–" if logger.effective_sample_size is None else f"{logger.effective_sample_size:,.0f}"
        table.add_row(logger.label, f"{logger.rows:,}", number(logger.logged_mean), share, size)
    return table
