"""The headline: is the target better than what ran, by how much, and how sure is that?

A verdict comes before a number: where the logs do not support an answer the headline says so, and has none. Where the
checks ask for caution a target *looks* better; where they passed it *is*.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixope.answers.estimate import Estimate
from mixope.checks import Verdict
from mixope.differences import Comparison, Differences, Selection
from mixope.report.difference_words import chance_words
from mixope.report.words import judged, level_words, rounded
from mixope.uncertainty import Difference, Interval

UNSUPPORTED = "Not supported by these logs"
MOST_NAMED = 4
"""Targets that a headline names."""


def title(found: Estimate) -> str:
    """The decision where no verdict stands above it."""
    refused = found.verdict is Verdict.UNSUPPORTED
    return f"{UNSUPPORTED}: {decision(found)}" if refused else decision(found)


def decision(found: Estimate) -> str:
    """Whether the target is better than what ran, by how much, and how sure; the verdict stands above it."""
    gain = found.against_logs.difference
    if not judged(found) or found.verdict is Verdict.UNSUPPORTED or gain is None:
        return claim(found)
    sure = chance_words("better", gain.probability_better)
    if gain.interval.low <= 0 <= gain.interval.high:
        return f"{claim(found)}: {_signed(gain.value, gain.interval, found.unit)}, {sure}"
    return f"{claim(found)}, by {_size(gain.value, gain.interval, found.unit)}, {sure}"


def claim(found: Estimate) -> str:
    """Whether the target is better than what ran, without a number."""
    who = f"“{found.target}”"
    if not judged(found):
        return "A reference line: what the logs average, not an estimate of the target"
    if found.verdict is Verdict.UNSUPPORTED:
        return f"These logs cannot tell whether {who} is better than what ran"
    gain = found.against_logs.difference
    if gain is None:
        return f"Whether {who} is better than what ran is not known: there is no difference with an interval"
    if gain.interval.low <= 0 <= gain.interval.high:
        return f"{who} cannot be told apart from what ran"
    return f"{who} {_verb(found)} {'better' if gain.value > 0 else 'worse'} than what ran"


def choice(compared: Comparison) -> str:
    """Of several targets: which is the best, and by how much it is better than the next."""
    names = list(dict.fromkeys(e.target for e in compared.estimates))
    chosen = compared.selections[0] if compared.selections else None
    if chosen is None:
        return f"{len(names):,} targets, none of which is judged"
    ranked, best = chosen.ranked, chosen.contenders
    if not ranked:
        return f"{UNSUPPORTED}: none of {len(names):,} targets can be ranked"
    first = f"“{ranked[0].target}”"
    if len(ranked) == 1:
        return f"{first} is the only one of {len(names):,} targets that these logs support"
    if not best:
        return f"{first} has the highest value of {len(ranked):,} targets; how sure that is, is not known"
    if len(best) > 1:
        return f"{_named(best)} cannot be told apart: at {level_words(chosen.level)} the best target is one of them"
    found = next((d for d in compared.differences if d.estimator == chosen.estimator), None)
    winner = next((e for e in compared.estimates if (e.target, e.estimator) == (best[0], chosen.estimator)), None)
    verb = "is" if winner is None else _verb(winner)
    of = f"{len(ranked):,} targets" if len(ranked) == len(names) else f"the {len(ranked):,} targets that are ranked"
    return f"“{best[0]}” {verb} the best of {of}{_ahead(best[0], chosen, found)}"


def _ahead(best: str, chosen: Selection, found: Differences | None) -> str:
    """By how much the best is better than the next, where that pair was compared."""
    second = next(rank.target for rank in chosen.ranked if rank.target != best)
    pairs: Sequence[Difference] = () if found is None else found.pairs
    pair = next((p for p in pairs if {p.first, p.second} == {best, second}), None)
    if found is None or pair is None:
        return ""
    pair = pair if pair.first == best else pair.reversed
    value, joint, unit = pair.value, pair.decisive, found.estimand.unit
    size = f"better than “{second}”, the next, by {_size(value, joint, unit)}"
    if joint.low <= 0:
        size = f"against “{second}”, the next, {_signed(value, joint, unit)}"
    return f": {size}, {chance_words('better', pair.probability_better)}"


def _verb(found: Estimate) -> str:
    return "is" if found.verdict is Verdict.TRUSTWORTHY else "looks"


def _size(value: float, interval: Interval, unit: str) -> str:
    """How large a difference is, with its interval, both without their sign."""
    ends = sorted((abs(interval.low), abs(interval.high)))
    return _around(abs(value), ends[0], ends[1], interval, unit)


def _signed(value: float, interval: Interval, unit: str) -> str:
    """A difference with its interval."""
    return f"a difference of {_around(value, interval.low, interval.high, interval, unit)}"


def _around(value: float, low: float, high: float, interval: Interval, unit: str) -> str:
    half = interval.width / 2
    at = level_words(interval.level)
    return f"{rounded(value, half)} {unit} ({at} interval {rounded(low, half)} to {rounded(high, half)})"


def _named(names: Sequence[str]) -> str:
    """All of a few, the first of many."""
    quoted = [f"“{name}”" for name in names[:MOST_NAMED]]
    more = len(names) - len(quoted)
    if more:
        return f"{', '.join(quoted)} and {more:,} more"
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
