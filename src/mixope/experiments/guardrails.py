"""Guardrails: what must not become worse, whatever the metric says; judged on the long-run difference.

complaints<=0.01      in the long run, treatment may add at most 0.01 complaints per unit and period
visits>=-0.02         and may cost at most 0.02 visits
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mixope.base.errors import UsageError
from mixope.experiments.records import ArmResult, Guardrail, Side

_SAID = re.compile(r"\s*(.+?)\s*(<=|>=|≤|≥)\s*(\S+)\s*")
SIDES: dict[str, Side] = {"<=": "at most", "≤": "at most", ">=": "at least", "≥": "at least"}


@dataclass(frozen=True)
class Rail:
    """A metric and the bound of its difference."""

    metric: str
    side: Side
    bound: float


def as_rails(given: str | Sequence[str] | None) -> tuple[Rail, ...]:
    """From words such as ``complaints<=0.01``."""
    texts = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    return tuple(map(_parsed, texts))


def _parsed(text: str) -> Rail:
    found = _SAID.fullmatch(str(text))
    try:
        bound = float(found[3]) if found else math.nan
    except ValueError:
        bound = math.nan
    if found is None or not math.isfinite(bound):
        raise UsageError(f"a guardrail is METRIC<=BOUND or METRIC>=BOUND, such as 'complaints<=0.01'; got {text!r}")
    return Rail(found[1], SIDES[found[2]], bound)


def guarded(rail: Rail, result: ArmResult) -> Guardrail:
    """Held, broken, or open: the whole interval is on one side, on the other, or on both."""
    effect, sign = result.long_run.effect, 1.0 if rail.side == "at most" else -1.0
    ends = sorted(sign * end for end in (effect.interval.low, effect.interval.high))
    bound = sign * rail.bound
    status = "open"
    if result.decision != "not supported":
        status = "held" if ends[1] <= bound else "broken" if ends[0] > bound else "open"
    return Guardrail(rail.metric, result.arm, rail.side, rail.bound, effect, result.long_run.verdict, status)
