"""A comparison on a terminal: one line an estimate, the truth beside it where it is known, and the differences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mixope.cli.views import parts
from mixope.diagnostics import Verdict
from mixope.differences import Difference, Differences
from mixope.differences.records import probability_words
from mixope.estimate import Comparison, Estimate
from mixope.report.words import rounded


def comparison_view(comparison: Comparison, truth: float | None = None) -> Group:
    """The table, then what was skipped and what should be known."""
    first = comparison.estimates[0]
    level = next((e.interval.level for e in comparison if e.interval), None)
    at = "" if level is None else f", intervals at {level:.4g}"
    head = Text(f"{first.estimand}, {first.unit}{at}; {first.n_rows:,} rows, {first.n_episodes:,} episodes")
    pieces: list[RenderableType] = [head, comparison_table(comparison, truth)]
    for found in comparison.differences:
        pieces += [*differences_view(found)]
    if len({e.target for e in comparison}) > 1 and not comparison.differences:
        pieces.append(Text("no differences: no estimator here has scores by episode for two targets", style="dim"))
    skipped = [("note", f"{name} was left out: {reason}") for name, reason in getattr(comparison, "skipped", ())]
    alerts = [("note", alert) for alert in dict.fromkeys(alert for e in comparison for alert in e.alerts)]
    said = parts.remarks([*skipped, *alerts])
    return Group(*pieces, *([said] if said else []))


def differences_view(found: Differences) -> list[RenderableType]:
    """Every pair, how much narrower it is than from separate logs, and the ranking in one sentence."""
    held = "intervals that hold together" if len(found.pairs) > 1 else "interval"
    head = parts.heading(f"differences by {found.estimator}, {held} at {found.level:.4g}")
    alerts = parts.notes(found.alerts)
    pieces: list[RenderableType] = [head, _pairs(found.pairs), Text(f"{found.summary}", style="bold")]
    if found.loggers:
        pieces += [parts.heading("against what loggers really earned"), _pairs(found.loggers)]
    return [*pieces, *([alerts] if alerts else [])]


def _pairs(pairs: Sequence[Difference]) -> Table:
    numbers = ("A − B", "narrower", "P(A > B)")
    table = parts.table(
        "A", "B", "A − B", "interval", "narrower", "P(A > B)", "so", right=numbers, folded=("A", "B", "so")
    )
    for pair in pairs:
        half = pair.joint.width / 2
        table.add_row(
            pair.first,
            pair.second,
            rounded(pair.value, half),
            f"{rounded(pair.joint.low, half)} to {rounded(pair.joint.high, half)}",
            f"{pair.narrower:.1f} ×" if math.isfinite(pair.narrower) else "–",
            probability_words(pair.probability_first_is_better),
            pair.conclusion,
        )
    return table


def comparison_table(comparison: Comparison, truth: float | None = None) -> Table:
    """Targets and estimators, the targets named only where there are several; with the truth, how far off each is."""
    several = len({e.target for e in comparison}) > 1
    middle = ("value", "interval", "ess", "uncovered") if truth is None else ("value", "off by", "interval", "holds it")
    numbers = ("value", "off by", "ess", "uncovered")
    names = (*(["target"] if several else []), "estimator", *middle, "verdict")
    table = parts.table(*names, right=numbers, folded=("target", "verdict"))
    for estimate in comparison:
        cells = _cells(estimate, truth)
        start = [estimate.target] if several else []
        table.add_row(*start, estimate.estimator, *(cells[name] for name in middle), _verdict(estimate))
    return table


def _cells(estimate: Estimate, truth: float | None) -> dict[str, str | Text]:
    reference = not estimate.diagnostics
    found = estimate.interval
    cells: dict[str, str | Text] = {
        "value": _short(estimate.value),
        "interval": f"{_short(found.low)} to {_short(found.high)}" if found else "–",
        "ess": "–" if reference else f"{estimate.effective_sample_size:,.0f}",
        "uncovered": "–" if reference else f"{estimate.uncovered_mass:.2%}",
    }
    if truth is not None:
        cells["off by"] = f"{estimate.value - truth:+.4f}"
        cells["holds it"] = _holds(estimate, truth)
    return cells


def _short(value: float) -> str:
    """Four digits, zeros kept so that columns line up."""
    return f"{value:#.4g}".removesuffix(".")


def _verdict(estimate: Estimate) -> Text:
    if not estimate.diagnostics:
        return Text("reference", style="dim")
    words = parts.verdict(str(estimate.verdict))
    return Text("not supported", style=words.style) if estimate.verdict is Verdict.UNSUPPORTED else words


def _holds(estimate: Estimate, truth: float) -> Text:
    if estimate.interval is None:
        return Text("–")
    inside = estimate.interval.low <= truth <= estimate.interval.high
    return Text("yes", style="green") if inside else Text("no", style="red")
