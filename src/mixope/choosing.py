"""What ``auto`` answers with: the default estimator, or a learned value where the logs do not support the default.

On vectors and mixed states the default is ``dr``, which weighs rows. Its checks are held-out evidence on the weights:
whether a ratio from some episodes balances the flow of the others, whether weights account for the mass, on how many
rows they rest. Where one of them fails, the logs do not support *weights*, and with many columns that says little about
the *value*: so a value is learned by networks (``fqe``), which needs no weights, and stands in front, with the default
beside it. It asks for caution always, and is refused itself where the target goes where nobody went. Learning takes
about half a minute, so that it is done only where it is needed.

All targets of a comparison are answered by one estimator, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixope.answering import answer
from mixope.diagnostics import Verdict
from mixope.errors import Advice, MixopeError, UsageError
from mixope.estimate import Estimate
from mixope.intervals import IntervalChoice
from mixope.seen import Counted, Sampled

LEARNED = "fqe"
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
    why = _unsupported(found)
    if not why or not _learnable(seen, interval):
        return found
    try:
        learned = answer(seen, targets, [LEARNED], interval=interval, **options)
    except UsageError as error:  # a target that gives densities only has no value to learn
        return [replace(one, notes=(*one.notes, _not_learned(error))) for one in found]
    return [_before(new, old, why) for new, old in zip(learned, found, strict=True)]


def _unsupported(found: Sequence[Estimate]) -> tuple[str, ...]:
    """The checks on weights that some estimate fails, if these are all that it fails."""
    failed = [{check.name for check in one.diagnostics if check.status == "fail"} for one in found]
    refused = [names for one, names in zip(found, failed, strict=True) if one.verdict is Verdict.UNSUPPORTED]
    if not refused or any(names - set(ABOUT_WEIGHTS) for names in refused):
        return ()
    return tuple(name for name in ABOUT_WEIGHTS if any(name in names for names in refused))


def _learnable(seen: Counted | Sampled, interval: IntervalChoice) -> bool:
    """Whether states are columns, none of which were made features by hand, and the interval can come from folds."""
    plain = isinstance(seen, Sampled) and seen.features is None and seen.facts.n_episodes > 1
    return plain and interval.name in _FROM_SCORES


def _before(learned: Estimate, weighted: Estimate, why: Sequence[str]) -> Estimate:
    """The learned value, with the weighted one beside it and the reason for the choice."""
    beside = (replace(weighted, beside=()), *weighted.beside)
    said = (
        f"{LEARNED!r} was chosen: the logs do not support the weights of {weighted.estimator!r}, which stands beside it"
        f" (failed: {', '.join(why)}). A learned value needs no weights"
    )
    return replace(learned, beside=beside, notes=(said, *learned.notes))


def _not_learned(error: MixopeError) -> str | Advice:
    return Advice("no value was learned instead: ", error.reason)
