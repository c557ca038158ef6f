"""Results as text: what a terminal or a notebook cell shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mixope.estimate import Comparison, Estimate

_MARK = {"pass": "ok  ", "warn": "WARN", "fail": "FAIL"}


def number(value: float | None) -> str:
    """Six significant digits; a dash where there is no number."""
    return "–" if value is None or math.isnan(value) else f"{value:.6g}"


def interval_text(estimate: Estimate) -> str:
    """The interval, or why there is none."""
    if estimate.interval is None:
        return f"no interval ({estimate.no_interval_because})"
    return f"{estimate.interval} ({estimate.interval.method})"


def estimate_text(estimate: Estimate) -> str:
    """The verdict and the number first, then what they rest on."""
    lines = [
        f"{estimate.target}: {number(estimate.value)} {estimate.unit}, {estimate.estimand}   [{estimate.verdict}]",
        f"  interval     {interval_text(estimate)}",
        f"  estimator    {estimate.estimator}",
        f"  logs         {estimate.n_rows:,} rows, {estimate.n_episodes:,} episodes"
        + (f", {estimate.n_dropped:,} dropped" if estimate.n_dropped else ""),
        f"  logged mean  {number(estimate.logged_mean)}  (what the loggers earned)",
    ]
    if estimate.band:
        low, high = estimate.band
        lines.insert(2, f"  outer band   {number(low)} to {number(high)}  (whatever was never logged would earn)")
    for other in estimate.beside:
        lines.append(f"  beside       {other.estimator}: {number(other.value)}  {interval_text(other)}")
    lines += [f"  {_MARK[d.status]} {d.sentence}" for d in estimate.diagnostics]
    lines += [f"  note {alert}" for alert in estimate.alerts]
    return "\n".join(lines)


def comparison_text(comparison: Comparison) -> str:
    """A plain table, one line an estimate."""
    header = ("target", "estimator", "value", "interval", "ess", "uncovered", "verdict")
    rows = [header]
    for e in comparison.estimates:
        span = f"[{number(e.interval.low)}, {number(e.interval.high)}]" if e.interval else "–"
        ess = f"{e.effective_sample_size:,.0f}"
        rows.append((e.target, e.estimator, number(e.value), span, ess, f"{e.uncovered_mass:.2%}", str(e.verdict)))
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)
