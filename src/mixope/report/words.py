"""The words of a report: text made safe to show, numbers made short, and the sentences that explain a verdict."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from mixope.diagnostics import Verdict

if TYPE_CHECKING:
    from mixope.estimate import Estimate

_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""What XML, a terminal or UTF-8 cannot hold, and what turns the direction of the text after it."""


def clean(text: object) -> str:
    """Any text as one that can be shown: control characters and lone surrogates become �."""
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))


def rounded(value: float | None, spread: float | None = None) -> str:
    """A value to three digits of its spread (of itself, where there is none); a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return "–"
    if spread is None or not math.isfinite(spread) or spread <= 0:
        return f"{value:.4g}"
    decimals = 2 - math.floor(math.log10(spread))
    words = f"{value:.{decimals}f}" if 0 <= decimals <= 9 and abs(value) < 1e9 else f"{value:.3g}"
    return words if float(words) else words.removeprefix("-")


def whole(value: float | None) -> str:
    """A count, with commas."""
    return "–" if value is None or not math.isfinite(value) else f"{value:,.0f}"


def percent(value: float | None, digits: int = 2) -> str:
    """A share."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}%}"


def level_words(level: float) -> str:
    """0.95 as 95 %, 0.999 as 99.9 %."""
    return f"{100 * level:.4g}\N{NO-BREAK SPACE}%"


def value_words(estimate: Estimate) -> str:
    """The number with its unit and estimand."""
    spread = estimate.interval.width / 2 if estimate.interval else None
    return f"{rounded(estimate.value, spread)} {clean(estimate.unit)}, {clean(estimate.estimand)}"


def interval_words(estimate: Estimate) -> str:
    """From … to …, or why there is none."""
    found = estimate.interval
    if found is None:
        return f"no interval: {clean(estimate.no_interval_because or 'none was made')}"
    half = found.width / 2
    return f"{level_words(found.level)} interval {rounded(found.low, half)} to {rounded(found.high, half)}"


def meaning(estimate: Estimate) -> str:
    """What the number says, in one breath."""
    if estimate.verdict is Verdict.REFERENCE:
        return "This is what the logs average per step. It says nothing about a policy that did not write them."
    span = {
        "average": "in the long run",
        "discounted": "with later rewards discounted",
        "horizon": "over its first steps",
    }
    when = span.get(estimate.estimand.kind, "")
    spread = estimate.interval.width / 2 if estimate.interval else None
    earns = f"about {rounded(estimate.value, spread)} per step {when}".rstrip()
    said = f"If “{clean(estimate.target)}” acted where these logs were written, it would earn {earns}."
    return f"{said} The logs average {rounded(estimate.logged_mean, spread)} per step{_beside_the_logs(estimate)}."


def _beside_the_logs(estimate: Estimate) -> str:
    found = estimate.interval
    if found is None:
        return ""
    if found.low > estimate.logged_mean:
        return "; the whole interval lies above that"
    if found.high < estimate.logged_mean:
        return "; the whole interval lies below that"
    return "; the interval holds that number too"


def why(estimate: Estimate) -> str:
    """Why the verdict is what it is."""
    checks = estimate.diagnostics
    if estimate.verdict is Verdict.REFERENCE or not checks:
        return "A reference line is not judged."
    failed = [clean(d.sentence) for d in checks if d.status == "fail"]
    warned = [clean(d.sentence) for d in checks if d.status == "warn"]
    if failed:
        return f"Do not use this number. {len(failed)} of {len(checks)} checks failed: {'; '.join(failed)}."
    if warned:
        asks = "asks" if len(warned) == 1 else "ask"
        return f"Use it with care. {len(warned)} of {len(checks)} checks {asks} for caution: {'; '.join(warned)}."
    return f"All {len(checks)} checks passed."
