"""What ``auto`` answers with: the default estimator, or a learned value where the default has little to say.

On vectors and mixed states the default is ``dr``, which weighs rows. Its checks are held-out evidence on the weights:
whether a ratio from some episodes balances the flow of the others, whether weights account for the mass, on how many
rows they rest. Where one of them fails, the logs do not support *weights*, and with many columns that says little about
the *value*: a value is then learned by networks (``fqe``), which needs no weights, and stands in front, with the
default beside it. Where all of them pass but the interval is wide (more than a tenth of the range of the rewards to
each side), a value is learned too, and the one with the smaller standard error, where both can be had, stands in front:
both errors are those of fits on episodes that they had not seen.

The total of an undiscounted episode is not learned unless it is asked for: nothing holds such a value in place where
networks see no end, and on a few hundred rows it was several times too large.

A learned value asks for caution always, and is refused itself where the target goes where nobody went. Learning takes
about half a minute of a processor, so that it is done only where it may help.

Where states are counted and the check *state* says that what they leave out moves the value, the value that counts
several steps together (:mod:`mixope.estimators.memory`) is shown beside it, and a note says why.

Every target is chosen for by itself: which others were asked about changes nothing of its answer. Where the targets of
a comparison come out with different estimators, they are also answered by one and the same (:func:`in_common`), by
which they are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixope.answers.answering import Skipped, answer
from mixope.answers.estimate import Estimate
from mixope.base.errors import Advice, Setting, UsageError
from mixope.checks import Verdict
from mixope.estimators import Estimator, Memory, Remembering, make
from mixope.estimators.memory import COUNTED_ONLY
from mixope.requests.trajectories import MOST_ORDERED
from mixope.session.session import Session
from mixope.uncertainty import IntervalChoice

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
"""Intervals that can come from folds of episodes."""
_WIDE = 0.1
_FAILED = (
    "using 'fqe', which needs no importance weights, because those of {0!r} failed these checks: {1}."
    " {0!r} is shown for comparison"
)
_NARROWER = "using 'fqe', which has the smaller standard error; {!r} is shown for comparison"
_WIDER = (
    "a value was learned too, because the interval is wide; {!r} has the larger standard error and is shown for"
    " comparison"
)


def answer_automatically(
    session: Session,
    targets: Mapping[str, Any],
    *,
    interval: IntervalChoice,
    alone: bool = False,
    **options: Any,
) -> list[Estimate]:
    """One estimate for each target, with what is shown beside it; ``alone`` without that of the default.

    In place of an answer that is refused stands nothing, where ``skipped`` takes the refusals.
    """
    first, *others = session.automatic
    found = answer(session, targets, [first], beside=() if alone else others, interval=interval, **options)
    if session.counted is not None:
        return found if alone else _remembered(session, targets, found, interval, options)
    learnable = session.learns and interval.name in _FROM_SCORES
    if not learnable or not found or found[0].estimand.needs_ends:
        return found
    doubtful = {one.target for one in found if _unsupported(one) or _wide(one, *session.reward_range)}
    learned, reasons = _learned(session, targets, doubtful, interval, options)
    return [
        _chosen(one, learned[one.target]) if one.target in learned else _unlearned(one, reasons.get(one.target))
        for one in found
    ]


def _remembered(
    session: Session,
    targets: Mapping[str, Any],
    found: Sequence[Estimate],
    interval: IntervalChoice,
    options: Mapping[str, Any],
) -> list[Estimate]:
    """Where the check *state* warns, the value with memory beside the plain one; one more pass in order."""
    doubtful = {one.target for one in found if _state_moves(one) and one.n_rows <= MOST_ORDERED}
    if not doubtful:
        return list(found)
    refusals: Skipped = []
    some = {name: policy for name, policy in targets.items() if name in doubtful}
    with_refusals = {**options, "skipped": refusals, "interval": interval.without_refits}
    more = answer(session, some, [Remembering(make(found[0].estimator), "auto")], **with_refusals)  # type: ignore[arg-type]
    beside = {one.target: one for one in more}
    reasons = {one.target: one.error.reason for one in refusals}
    return [_beside(one, beside.get(one.target), reasons.get(one.target)) for one in found]


def _state_moves(one: Estimate) -> bool:
    """Whether the state leaves something out that moves this value."""
    return any(check.name == "state" and check.status != "pass" for check in one.diagnostics)


def _beside(one: Estimate, remembered: Estimate | None, because: str | None) -> Estimate:
    """With the value that counts several steps together, or why there is none."""
    if because is not None:
        return replace(one, notes=(*one.notes, Advice("steps were not counted together: ", because)))
    if remembered is None or remembered.memory is None or remembered.memory.used == 1:
        return one
    sure, said = remembered.interval, f"counting {remembered.memory.used} steps together the value is"
    around = "" if sure is None else f" ({sure.low:.3g} to {sure.high:.3g})"
    note = Advice(
        f"the state leaves something out that moves the value: {said} {remembered.value:.3g}{around}, shown beside as"
        f" {remembered.estimator!r}. Ask for it with ",
        Setting("memory", "auto"),
    )
    return replace(one, beside=(*one.beside, remembered), notes=(*one.notes, note))


def with_memory(session: Session, estimators: Sequence[str | Estimator], memory: Memory) -> list[Estimator]:
    """Estimators that count several steps together; ``auto`` is the default of these logs."""
    if session.counted is None:
        raise UsageError(COUNTED_ONLY)
    names = [session.automatic[0] if isinstance(each, str) and each == "auto" else each for each in estimators]
    return [Remembering(make(name), memory) for name in names]  # type: ignore[arg-type]


def in_common(
    session: Session, targets: Mapping[str, Any], chosen: Sequence[Estimate], **options: Any
) -> list[Estimate]:
    """One estimate for each target, all by one estimator, whatever was chosen for each of them.

    Of the default and the learned value it is the one that refuses fewer targets, and then the one whose standard
    errors are smaller together.
    """
    if len({one.estimator for one in chosen}) == 1:
        return list(chosen)
    first, interval = session.automatic[0], options.pop("interval")
    both = {(each.target, each.estimator): each for one in chosen for each in (one, *one.beside)}
    default = [both[one.target, first] for one in chosen]
    known = {target: each for (target, name), each in both.items() if name != first}
    more, _ = _learned(session, targets, {one.target for one in chosen} - set(known), interval, options)
    learned = [{**known, **more}[one.target] for one in chosen if one.target in known or one.target in more]
    if len(learned) < len(default):
        return default
    supported = [pair for pair in zip(default, learned, strict=True) if not any(map(_refused, pair))]
    refusals = [sum(map(_refused, group)) for group in (default, learned)]
    errors = [sum(map(_error, group)) for group in zip(*supported, strict=True)] if supported else [0.0, 0.0]
    return learned if (refusals[1], errors[1]) < (refusals[0], errors[0]) else default


def _learned(
    session: Session,
    targets: Mapping[str, Any],
    names: Collection[str],
    interval: IntervalChoice,
    options: Mapping[str, Any],
) -> tuple[dict[str, Estimate], dict[str, str]]:
    """Learned values of some targets; or why there is none, as of a target that gives densities only."""
    refusals: Skipped = []
    some = {name: policy for name, policy in targets.items() if name in names}
    with_refusals = {**options, "skipped": refusals}
    found = answer(session, some, [LEARNED], interval=interval, **with_refusals) if some else []
    return {one.target: one for one in found}, {one.target: one.error.reason for one in refusals}


def _chosen(old: Estimate, new: Estimate) -> Estimate:
    """The default or the learned value of one target, with the other beside it."""
    if _refused(old):
        return _before(new, old, _FAILED.format(old.estimator, ", ".join(_unsupported(old))))
    if _error(new) < _error(old):
        return _before(new, old, _NARROWER.format(old.estimator))
    return _before(old, new, _WIDER.format(new.estimator))


def _unlearned(one: Estimate, because: str | None) -> Estimate:
    """The default, and why no value was learned beside it where one was wanted."""
    return one if because is None else replace(one, notes=(*one.notes, Advice("no value was learned: ", because)))


def _unsupported(found: Estimate) -> tuple[str, ...]:
    """The checks on weights that a refused estimate fails, if these are all that it fails."""
    failed = {check.name for check in found.diagnostics if check.status == "fail"}
    if not _refused(found) or failed - set(ABOUT_WEIGHTS):
        return ()
    return tuple(name for name in ABOUT_WEIGHTS if name in failed)


def _wide(found: Estimate, lowest: float, highest: float) -> bool:
    """Whether the interval of a value per step says little, by the range of the rewards."""
    if _refused(found) or found.interval is None or found.estimand.kind == "episode":
        return False
    return found.interval.width > 2.0 * _WIDE * (highest - lowest)


def _refused(found: Estimate) -> bool:
    return found.verdict is Verdict.UNSUPPORTED


def _error(found: Estimate) -> float:
    """Nothing is known of one that has none."""
    return np.inf if found.standard_error is None else found.standard_error


def _before(first: Estimate, second: Estimate, why: str) -> Estimate:
    """One of them with the other beside it, and the reason for the choice."""
    beside = [replace(second, beside=()), *second.beside, *first.beside]
    return replace(first, beside=tuple(beside), notes=(why, *first.notes))
