"""What ``auto`` answers with: the default estimator, or a learned value where the default has little to say.

On vectors and mixed states the default is ``dr``, which weighs rows. Its checks are held-out evidence on the weights:
whether a ratio from some episodes balances the flow of the others, whether weights account for the mass, on how many
rows they rest. Where one of them fails, the logs do not support *weights*, and with many columns that says little about
the *value*: a value is then learned by networks (``fqe``), which needs no weights, and stands in front, with the
default beside it. Where all of them pass but the interval is wide (more than a tenth of the range of the rewards to
each side), or where they fail for some of several targets only, a value is learned too, and the one with the smaller
standard error, where both can be had, stands in front: both errors are those of fits on episodes that they had not
seen.

The total of an undiscounted episode is not learned unless it is asked for: nothing holds such a value in place where
networks see no end, and on a few hundred rows it was several times too large.

A learned value asks for caution always, and is refused itself where the target goes where nobody went. Learning takes
about half a minute of a processor, so that it is done only where it may help. All targets of a comparison are answered
by one estimator, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixope.answering import answer
from mixope.diagnostics import Verdict
from mixope.errors import Advice, UsageError
from mixope.estimate import Estimate
from mixope.estimators import Estimator
from mixope.intervals import IntervalChoice
from mixope.seen import Counted, Sampled
from mixope.survey import Survey

LEARNED: str | Estimator = "fqe"
ABOUT_WEIGHTS = (
    "effective sample size",
    "largest weight",
    "mean weight",
    "behaviour fit",
    "held-out stationarity",
    "cut weights",
    "reward range",
    "interval",
)
"""Checks that a value without weights may pass where one with weights does not."""
_FROM_SCORES = ("auto", "t", "normal")
_WIDE = 0.1
_FAILED = (
    "'fqe' was chosen, which needs no weights: the logs do not support those of {!r}, which stands beside it"
    " (failed: {})"
)
_NARROWER = "'fqe' was chosen: it has the smaller standard error; {!r} stands beside it"
_WIDER = (
    "a value was learned too, because an interval is wide or a target is refused; {!r} stands beside it and has the"
    " larger standard error"
)


def answer_automatically(
    seen: Counted | Sampled,
    targets: Mapping[str, Any],
    *,
    interval: IntervalChoice,
    alone: bool = False,
    **options: Any,
) -> list[Estimate]:
    """One estimate for each target, with what is shown beside it; ``alone`` without that of the default."""
    first, *others = seen.automatic
    found = answer(seen, targets, [first], beside=() if alone else others, interval=interval, **options)
    if isinstance(seen, Counted) or not _learnable(seen, interval) or found[0].estimand.needs_ends:
        return found
    failed, wide = _unsupported(found), _wide(found, seen.facts)
    if not (failed or wide):
        return found
    try:
        learned = answer(seen, targets, [LEARNED], interval=interval, **options)
    except UsageError as error:  # a target that gives densities only has no value to learn
        return [replace(one, notes=(*one.notes, Advice("no value was learned: ", error.named_reason))) for one in found]
    pairs = list(zip(learned, found, strict=True))
    both = [pair for pair in pairs if pair[1].verdict is not Verdict.UNSUPPORTED]
    if not both or _total_error(new for new, _ in both) < _total_error(old for _, old in both):
        why = _NARROWER if both else _FAILED
        return [_before(new, old, why.format(old.estimator, ", ".join(failed))) for new, old in pairs]
    return [_before(old, new, _WIDER.format(new.estimator)) for new, old in pairs]


def _unsupported(found: Sequence[Estimate]) -> tuple[str, ...]:
    """The checks on weights that some estimate fails, if these are all that it fails."""
    failed = [{check.name for check in one.diagnostics if check.status == "fail"} for one in found]
    refused = [names for one, names in zip(found, failed, strict=True) if one.verdict is Verdict.UNSUPPORTED]
    if not refused or any(names - set(ABOUT_WEIGHTS) for names in refused):
        return ()
    return tuple(name for name in ABOUT_WEIGHTS if any(name in names for names in refused))


def _wide(found: Sequence[Estimate], facts: Survey) -> bool:
    """Whether some interval says little: of values per step, by the range of the rewards."""
    reach = _WIDE * (facts.highest - facts.lowest)
    refused = any(one.verdict is Verdict.UNSUPPORTED for one in found)
    return not refused and any(
        one.interval is not None and one.interval.width > 2.0 * reach for one in found if one.estimand.kind != "episode"
    )


def _total_error(found: Iterable[Estimate]) -> float:
    """Of all targets together; nothing is known of one that has none."""
    return sum(np.inf if one.standard_error is None else one.standard_error for one in found)


def _learnable(seen: Sampled, interval: IntervalChoice) -> bool:
    """Whether nobody made features of the states by hand, and the interval can come from folds of episodes."""
    return seen.features is None and seen.facts.n_episodes > 1 and interval.name in _FROM_SCORES


def _before(first: Estimate, second: Estimate, why: str) -> Estimate:
    """One of them with the other beside it, and the reason for the choice."""
    beside = [replace(second, beside=()), *second.beside, *first.beside]
    return replace(first, beside=tuple(beside), notes=(why, *first.notes))
