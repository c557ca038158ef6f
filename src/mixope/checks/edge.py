"""How far could the value move with what happens in states that were reached but never left?

The logs stop there: an episode was cut, or a counter had its newest value. The guess is that it goes on as in the state
before. What hangs on it is measured in :mod:`mixope.estimators.counts.frontier`: the value if all these states earned
the lowest, then the highest mean reward of any state. What matters is that range relative to the half-width of the
interval, which knows nothing of it.
"""

from __future__ import annotations

from mixope.checks.check import VERDICTS, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic

WARN, FAIL = 0.5, 2.0
"""Shares of the half-width."""


def edge_of_the_logs(evidence: Evidence) -> Diagnostic | None:
    """The range against the half-width; None where the target never comes to such a state, or has no interval."""
    mass, span, interval = evidence.measures.frontier_mass, evidence.measures.frontier_span, evidence.interval
    if not mass or span is None or interval is None:
        return None
    span = 0.0 if evidence.is_rounding(span) else span
    half = interval.width / 2
    share = span / half if half > 0 else (0.0 if span == 0 else float("inf"))
    per = "per episode" if evidence.estimand.kind == "episode" else "of the target's steps"
    often = f"{mass:.3g} steps {per}" if evidence.estimand.kind == "episode" else f"{mass:.2%} {per}"
    said = f"{often} lie in states that were reached but never left, where the logs stop"
    moved = (
        "; all states earn the same, as far as can be told"
        if span == 0
        else f"; what these earn could move the value by {span:.3g}, {share:.2g} of the interval's half-width"
    )
    return EDGE.graded(share, WARN, FAIL, said + moved)


EDGE = Check(
    "edge of the logs",
    "coverage",
    f"{VERDICTS}#edge-of-the-logs",
    "ask for what the logs have seen: a horizon of as many steps as episodes have; a discount that is forgotten by"
    " then; cap the counter where states stop differing; log longer episodes",
    edge_of_the_logs,
)
