"""A backtest on a terminal: one line a logger, then the summary and the reasons where there is no prediction to use."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from mixope.backtesting import Backtest, BacktestRow
from mixope.cli.views import parts
from mixope.report.words import rounded


def backtest_view(result: Backtest) -> Group:
    """One line a logger, then the summary and the reasons where there is no prediction to use."""
    numbers = ("predicted", "earned", "z", "uncovered")
    table = parts.table(
        "logger", "predicted", "interval", "earned", "z", "uncovered", "agrees", "verdict", right=numbers,
        folded=("logger", "verdict"),
    )  # fmt: skip
    for row in result.rows:
        table.add_row(row.label, *_cells(row), parts.verdict(row.verdict))
    reasons = [("note", f"{row.label}: {row.note}") for row in result.rows if not row.supported and row.note]
    said = parts.remarks([*reasons, *(("note", note) for note in result.notes)])
    pieces: list[RenderableType] = [table, Text(result.summary, style="bold"), *([said] if said else [])]
    return Group(*pieces)


def _cells(row: BacktestRow) -> tuple[str | Text, ...]:
    half = None if row.low is None or row.high is None else (row.high - row.low) / 2
    answer = Text("yes", style="green") if row.covered else Text("no", style="red")
    return (
        rounded(row.predicted, half),
        "–" if row.low is None else f"{rounded(row.low, half)} to {rounded(row.high, half)}",
        rounded(row.earned, half),
        "–" if row.z is None else f"{row.z:+.1f}",
        f"{row.uncovered_mass:.2%}",
        answer if row.supported else Text("–"),
    )
