"""The words of a report: text made safe to show, numbers made short, and the sentences that explain a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mixope.answers.estimate import Earned, Estimate
from mixope.backtesting import Backtest, BacktestRow
from mixope.base.errors import Advice
from mixope.checks import Diagnostic, Verdict
from mixope.differences.records import Rank
from mixope.uncertainty import Interval

SYMBOL = {"good": "✓", "caution": "!", "bad": "✕", "reference": "○"}
"""The kinds of outcome, from the best to what is not judged, each with its sign."""
_VERDICTS = {
    Verdict.TRUSTWORTHY: "good",
    Verdict.CAUTION: "caution",
    Verdict.UNSUPPORTED: "bad",
    Verdict.REFERENCE: "reference",
}
_STATUSES = {"pass": ("good", "ok"), "warn": ("caution", "caution"), "fail": ("bad", "failed")}
NO_CONCLUSION = "no conclusion"
"""In place of which is better, of an answer that is refused."""
NEXT = "what to do next"


def kind(found: Estimate | Diagnostic | Backtest | BacktestRow) -> str:
    """How something came out: good, caution, bad or reference."""
    match found:
        case Estimate():
            return kind_of_verdict(found.verdict)
        case Diagnostic():
            return _STATUSES[found.status][0]
        case BacktestRow():
            off = "bad" if found.beyond_chance else "caution"
            return "reference" if not found.supported else "good" if found.covered else off
    return "bad" if found.check is None else kind(found.check)  # None where nothing could be predicted


def kind_of_verdict(verdict: Verdict) -> str:
    """The same of a verdict alone."""
    return _VERDICTS[verdict]


def outcome(found: Diagnostic | BacktestRow) -> str:
    """The outcome of a check or of a prediction in a word."""
    if isinstance(found, Diagnostic):
        return _STATUSES[found.status][1]
    off = "no" if found.beyond_chance else "no, perhaps by chance"
    return "no prediction" if not found.supported else "yes" if found.covered else off


def by_urgency(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Those that failed, those that ask for caution, those that passed; each in the order of the checks."""
    return sorted(found, key=lambda check: list(_STATUSES)[::-1].index(check.status))


def remedies(found: Sequence[Diagnostic]) -> list[tuple[str, str]]:
    """What to do about the checks that did not pass, by their names, the most urgent first."""
    return [(check.name, check.remedy) for check in by_urgency(found) if check.remedy]


def demand(found: Diagnostic) -> str:
    """The value of a check and on which side of its threshold it should lie: must, where it failed."""
    must = "must" if found.status == "fail" else "should"
    return f"{_measured(found.value)}, {must} be {_side(found)}"


def _side(found: Diagnostic) -> str:
    limit = _measured(found.threshold)
    return f"within {limit} of 1" if found.bound == "within" else f"{found.bound} {limit}"


def _measured(value: float) -> str:
    """Three digits; counts as they are."""
    return "–" if math.isnan(value) else f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def state_words(names: Sequence[str], state: Sequence[object]) -> str:
    """A state by the names of its factors; an id by itself."""
    if len(names) != len(state):
        return ", ".join(map(str, state))
    return ", ".join(f"{name} = {value}" for name, value in zip(names, state, strict=True))


def judged(estimate: Estimate) -> bool:
    """Whether it is an estimate of the target, and no reference line."""
    return estimate.verdict is not Verdict.REFERENCE


def number(value: float | None) -> str:
    """Six significant digits, and no sign of 0; a dash where there is no number."""
    return "–" if value is None or math.isnan(value) else f"{value + 0.0:.6g}"


def span(low: float | None, high: float | None) -> str:
    """From … to …, or a dash."""
    return "–" if low is None or high is None else f"{number(low)} to {number(high)}"


def signed(value: float | None, digits: int = 2) -> str:
    """A number with its sign."""
    return "–" if value is None else f"{value:+.{digits}f}"


def times(factor: float) -> str:
    """How many times; a dash where that is without end."""
    return f"{factor:.1f} ×" if math.isfinite(factor) else "–"


def rounded(value: float | None, spread: float | None = None) -> str:
    """A value to three digits of its spread (of itself, where there is none); a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return "–"
    if spread is None or not math.isfinite(spread) or spread <= 0:
        return f"{value:.4g}"
    decimals = 2 - math.floor(math.log10(spread))
    words = f"{value:.{decimals}f}" if 0 <= decimals <= 9 and abs(value) < 1e9 else f"{value:.3g}"
    return words if float(words) else words.removeprefix("-")


def short(value: float | None, around: Interval | None) -> str:
    """A value to the digits that its interval leaves: two of its half-width."""
    if value is None or not math.isfinite(value):
        return "–"
    half = around.width / 2 if around else math.nan
    if not (math.isfinite(half) and half > 0):
        return f"{value:.4g}"
    decimals = 1 - math.floor(math.log10(half))
    if not 0 <= decimals <= 9 or abs(value) >= 1e9:
        return f"{value:,.0f}" if decimals < 0 and abs(value) < 1e9 else f"{value:.3g}"
    words = f"{value:,.{decimals}f}"
    return words if float(words.replace(",", "")) else words.removeprefix("-")


def plural(count: int, what: str) -> str:
    """So many of something: 1 row, 2 rows."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


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
    return f"{rounded(estimate.value, _half(estimate))} {estimate.unit}, {estimate.estimand}"


def interval_words(estimate: Estimate) -> str:
    """From … to …, or why there is none."""
    found, half = estimate.interval, _half(estimate)
    if found is None:
        return Advice("no interval: ", estimate.no_interval_because or "none was made")
    return f"{level_words(found.level)} interval {rounded(found.low, half)} to {rounded(found.high, half)}"


def _half(estimate: Estimate) -> float | None:
    return estimate.interval.width / 2 if estimate.interval else None


_WHEN = {
    "average": "in the long run",
    "discounted": "with later rewards discounted",
    "horizon": "over its first steps",
    "episode": "until it ends",
}


def meaning(estimate: Estimate) -> str:
    """What the number says, in one breath."""
    if not judged(estimate):
        return "This is what the logs average per step. It says nothing about a policy that did not write them."
    if estimate.verdict is Verdict.UNSUPPORTED:
        return _refused(estimate)
    about = f"about {rounded(estimate.value, _half(estimate))} {_per(estimate)} {_WHEN[estimate.estimand.kind]}"
    earns = f"{about} ({interval_words(estimate)})" if estimate.interval else about
    steps = f", in {length_words(estimate)} on average" if length_words(estimate) else ""
    said = f"If “{estimate.target}” acted where these logs were written, it would earn {earns}{steps}."
    missing = [] if estimate.interval else [" There is ", interval_words(estimate), "."]
    return Advice(said, *missing, " ", *_beside_the_logs(estimate))


def _refused(estimate: Estimate) -> str:
    """What was computed, as nothing to go by."""
    came = f"What was computed for “{estimate.target}”, {value_words(estimate)}, is no answer: nothing follows of it,"
    return Advice(f"{came} nor of its interval or its difference from what ran. ", *_beside_the_logs(estimate))


def of_units(estimate: Estimate) -> str:
    """How many units the episodes belong to, where they are named."""
    return "" if estimate.n_units is None else f" of {estimate.n_units:,} units"


def length_words(estimate: Estimate) -> str:
    """How long the target's episodes are on average, where their total is asked for."""
    length = estimate.measures.episode_length
    if length is None:
        return ""
    discounted = "" if estimate.estimand.discount == 1.0 else "discounted "
    return f"{length:.4g} {discounted}steps"


def _per(estimate: Estimate) -> str:
    return estimate.unit.removeprefix("reward ")


def _beside_the_logs(estimate: Estimate) -> list[str]:
    """The same of those who wrote the logs; the headline has the difference."""
    logs = estimate.against_logs
    if logs.value is None:
        return ["What those who wrote the logs earn cannot be said: ", logs.because or "it was not asked", "."]
    return [f"What ran, those who wrote the logs, earns {earned_words(logs)} {_per(estimate)}."]


def earned_words(found: Earned) -> str:
    """What somebody earns, with its interval; a dash where that is not known."""
    return around(found.value, found.interval)


def around(value: float | None, found: Interval | None) -> str:
    """A value with its interval, where it has one."""
    if found is None:
        return rounded(value)
    half = found.width / 2
    return f"{rounded(value, half)} ({rounded(found.low, half)} to {rounded(found.high, half)})"


def standing(rank: Rank) -> str:
    """Whether it may be the best, or why that is not known."""
    if rank.note is not None:
        return rank.note if rank.place is not None else f"not ranked: {rank.note}"
    return "not the best" if not rank.may_be_best else "the best" if rank.high == 1 else "may be the best"


NO_BOUND = "Nothing follows of an answer that is refused: there is nothing here that hidden reasons could turn."


def bounds_words(estimate: Estimate) -> tuple[str, ...]:
    """What hidden reasons could do to the answer, where that was asked; of a refused one nothing is concluded."""
    if estimate.confounding is None:
        return ()
    return (NO_BOUND,) if estimate.verdict is Verdict.UNSUPPORTED else estimate.confounding.sentences


def unanswered(estimate: Estimate) -> list[str]:
    """Why somebody has no value of its own, or no difference, each reason once."""
    reasons: dict[str, list[str]] = {}
    for name, found in estimate.rivals:
        if found.because and judged(estimate):
            reasons.setdefault(found.because, []).append(name)
    several = len(estimate.rivals)
    return [
        Advice(
            "no difference from " if any(_known(estimate, n) for n in names) else "no value of its own for ",
            _listed(names, several),
            ": ",
            because,
        )
        for because, names in reasons.items()
    ]


def _known(estimate: Estimate, name: str) -> bool:
    return any(found.value is not None for label, found in estimate.rivals if label == name)


def _listed(names: Sequence[str], of: int) -> str:
    return "any logger" if len(names) == of > 1 else ", ".join(names)


def why(estimate: Estimate) -> str:
    """Why the verdict is what it is."""
    checks = estimate.diagnostics
    if not judged(estimate) or not checks:
        return "A reference line is not judged."
    failed = [d.sentence for d in checks if d.status == "fail"]
    warned = [d.sentence for d in checks if d.status == "warn"]
    if failed:
        return Advice(f"Do not use this number. {len(failed)} of {len(checks)} checks failed: ", *_joined(failed), ".")
    if warned:
        asks = "asks" if len(warned) == 1 else "ask"
        said = f"Use it with care. {len(warned)} of {len(checks)} checks {asks} for caution: "
        return Advice(said, *_joined(warned), ".")
    return f"All {len(checks)} checks passed."


def _joined(sentences: Sequence[str]) -> list[str]:
    """Sentences with semicolons between them."""
    return [part for sentence in sentences for part in ("; ", sentence)][1:]
