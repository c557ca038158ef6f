"""Several targets, several estimators, one set of scans; and which target is better.

The estimates keep their scores by episode (of a few long episodes, by step), so differences between targets cost no
further scan. The outer band of a target comes from the counts and is solved once per target.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mixope.answers.answering import Refusal, Skipped, answer
from mixope.answers.choosing import answer_automatically, in_common, with_memory
from mixope.answers.estimate import Estimate
from mixope.base.errors import Advice, DataError, MixopeError, UsageError
from mixope.base.estimand import Estimand, Kind
from mixope.base.keywords import offers_names
from mixope.differences import Comparison, Contested, Differences, contests_of
from mixope.distributions import Returns, check_share, spread
from mixope.engines import Engine
from mixope.estimators import Estimator, Memory, canonical, check_memory, entries
from mixope.features import FeatureMap
from mixope.logs import LogSource
from mixope.policies import PolicySource
from mixope.session.questions import as_estimand
from mixope.session.session import Session, look
from mixope.solvers.devices import Device, check_device
from mixope.uncertainty import Difference, IntervalChoice, choose_interval, sequence_around

ONE_LOOK = "joint intervals, places and regret are for one look; the interval of each difference alone is for all times"


@offers_names
def compare(
    logs: LogSource,
    targets: Mapping[str, PolicySource] | PolicySource,
    estimators: str | Sequence[str | Estimator] = ("auto",),
    *,
    estimand: Kind | Estimand = "average",
    gamma: float | None = None,
    horizon: int | None = None,
    level: float = 0.95,
    loggers: Mapping[str, PolicySource] | None = None,
    features: FeatureMap | None = None,
    interval: str | IntervalChoice = "auto",
    replicates: int = 500,
    jobs: int | None = None,
    planned: int | None = None,
    engine: str | Engine | None = None,
    device: Device = "auto",
    seed: int = 0,
    all_pairs: bool = False,
    risk: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    unit: str | None = None,
    lags: int = 0,
    history: str | Sequence[str] | None = None,
    memory: Memory | None = None,
) -> Comparison:
    """Evaluate every target with every estimator on the same logs, and rank the targets.

    With two targets or more, ``differences`` has their differences with joint intervals, and ``selections`` says which
    targets to take: the place of each with its uncertainty, and what is lost if the best few are taken.

    :param logs: whatever :func:`mixope.read` takes, or what it gave.
    :param targets: names → whatever :func:`mixope.read_policy` takes; or one policy, which is then called "target". (A
        policy that is itself a mapping is given by name.)
    :param estimators: one or several, by name or as objects; ``"all"`` takes every estimator that these logs and this
        estimand allow. ``skipped`` says which do not apply and why. ``"auto"`` answers for each target as
        :func:`mixope.evaluate` does; where it chooses different estimators, all targets are also answered by one of
        them, by which they are compared.
    :param all_pairs: differences of all pairs of more than twelve targets, not only of the best and each of the others.
    :param risk: also set risk against return: the mean return of an episode and the mean of the worst share ``risk``
        of episodes (CVaR), under each target, as :func:`mixope.returns` has them. Beside a long-run average, which has
        no episodes, it is the total of an episode that is returned. Where that cannot be said, the rest stands, and
        ``no_risk_because`` says why.
    :returns: one estimate per target and estimator, target by target, with the differences and the places.

    All other arguments are those of :func:`mixope.evaluate`; an estimator that has no such interval says why.

    >>> table = mixope.compare("logs/*.parquet", {"new": "target.csv", "old": "old.csv"}, "emp")
    >>> table.selections[0].contenders
    ('new',)
    >>> table["old", "emp"].verdict
    <Verdict.TRUSTWORTHY: 'trustworthy'>
    """
    choice = choose_interval(interval, replicates, jobs, planned=planned)
    asked = as_estimand(estimand, gamma, horizon)
    check_device(device)
    if memory is not None:
        check_memory(memory)
    if risk is not None:
        check_share(risk, "risk")
    session = look(logs, engine, features, seed, checkpoint, unit, lags, history)
    named = _named(targets)
    _check_targets(named, 1)
    wanted = [canonical(each) for each in (estimators if isinstance(estimators, list | tuple) else [estimators])]
    every = isinstance(estimators, str) and wanted == ["all"]
    names = [name for name, entry in entries().items() if not entry.slow] if every else _distinct(wanted)
    if memory is not None:
        names = _distinct(with_memory(session, names, memory))
    options: dict[str, Any] = {
        "estimand": asked,
        "level": level,
        "loggers": loggers,
        "interval": choice,
        "seed": seed,
        "device": device,
    }
    found = _estimates(session, named, names, options)
    if not every:
        _check_answered(named, found)
    contests = [_saying(each, found.chosen) for each in contests_of(found.compared, level, seed, all_pairs)]
    spread_of, because = (None, None) if risk is None else _risk(session, named, asked, risk, level, loggers, seed)
    return Comparison(
        estimates=found.shown,
        skipped=tuple(dict.fromkeys((refusal.estimator, refusal.reason) for refusal in found.skipped)),
        differences=tuple(_watched(found, choice) for _, found in contests if found is not None),
        selections=tuple(selection for selection, _ in contests),
        risk=spread_of,
        no_risk_because=because,
    )


def _risk(
    session: Session,
    targets: Mapping[str, Any],
    asked: Estimand,
    share: float,
    level: float,
    loggers: Mapping[str, Any] | None,
    seed: int,
) -> tuple[Returns | None, str | None]:
    """How the returns of episodes are spread under every target; or why that cannot be said."""
    estimand = Estimand("episode") if asked.kind == "average" else asked
    try:
        return spread(session, targets, estimand, share, level=level, loggers=loggers, seed=seed), None
    except MixopeError as error:
        hint = error.hint if isinstance(error, DataError) else None
        return None, error.named_reason if hint is None else Advice(error.named_reason, "; ", hint)


@dataclass(frozen=True)
class _Found:
    """All estimates of a comparison: what ``auto`` chose for each target, and those by which targets are compared."""

    chosen: tuple[Estimate, ...]
    compared: tuple[Estimate, ...]
    shown: tuple[Estimate, ...]
    """Target by target; what was chosen stands first, and once."""
    skipped: tuple[Refusal, ...]


def _estimates(
    session: Session, targets: Mapping[str, Any], names: Sequence[Any], options: Mapping[str, Any]
) -> _Found:
    """Every estimator on every target. What ``auto`` chose for a target has nothing to do with the other targets."""
    skipped: Skipped = []
    chosen, common = [], []
    if any(map(_auto, names)):
        chosen = answer_automatically(session, targets, alone=True, skipped=skipped, **options)
        answered = {one.target: targets[one.target] for one in chosen}
        common = in_common(session, answered, chosen, **options) if chosen else []
    have = {one.estimator for one in common}
    others = [name for name in names if not (_auto(name) or (isinstance(name, str) and name in have))]
    compared = [*common, *answer(session, targets, others, skipped=skipped, **options)]
    if not compared:
        if len({refusal.estimator for refusal in skipped}) == 1:
            raise skipped[0].error
        reasons = "; ".join(dict.fromkeys(refusal.reason for refusal in skipped))
        raise UsageError(f"no estimator can answer from these logs ({reasons or 'none was named'})")
    asked = {*have, *(name for name in others if isinstance(name, str))}
    answers = {(one.target, one.estimator) for one in chosen if one.estimator in asked}
    order = {name: place for place, name in enumerate(targets)}
    shown = sorted(
        [*chosen, *(one for one in compared if (one.target, one.estimator) not in answers)],
        key=lambda one: order[one.target],
    )
    return _Found(tuple(chosen), tuple(compared), tuple(shown), tuple(skipped))


def _check_answered(targets: Mapping[str, Any], found: _Found) -> None:
    """A target on which every estimator refuses is an error, though the others have answers."""
    answered = {one.target for one in found.shown}
    for name in targets:
        if name not in answered:
            raise next(refusal.error for refusal in found.skipped if refusal.target == name)


def _saying(contest: Contested, chosen: Sequence[Estimate]) -> Contested:
    """With a word where the answers that ``auto`` chose are by several estimators, and these targets by one of them."""
    selection, differences = contest
    answers: dict[str, list[str]] = {}
    for one in chosen:
        answers.setdefault(one.estimator, []).append(one.target)
    if len(answers) < 2 or selection.estimator not in answers:
        return contest
    each = " and ".join(f"{', '.join(names)} by {estimator}" for estimator, names in answers.items())
    said = (
        f"'auto' answers for each target by itself: {each}. So that they can be compared, places and differences are"
        f" those by {selection.estimator} for all of them"
    )
    selection = replace(selection, alerts=(said, *selection.alerts))
    return selection, None if differences is None else replace(differences, selection=selection)


def _watched(found: Differences, choice: IntervalChoice) -> Differences:
    """Each difference with an interval that holds at all times, where such intervals are wanted."""
    if not choice.anytime:
        return found

    def always(pair: Difference) -> Difference:
        clock, degrees = found.n_episodes / choice.planned, found.n_episodes - 1.0
        said = "difference of clustered scores"
        sure = sequence_around(pair.value, pair.standard_error, clock, found.level, degrees, said)
        return replace(pair, interval=sure)

    pairs, loggers = (tuple(map(always, several)) for several in (found.pairs, found.loggers))
    return replace(found, pairs=pairs, loggers=loggers, alerts=(*found.alerts, ONE_LOOK))


@offers_names
def compare_targets(
    logs: LogSource, targets: Mapping[str, PolicySource], estimator: str | Estimator = "auto", **options: Any
) -> Differences:
    """Differences between targets by one estimator, and their places; ``options`` as for ``compare``."""
    _check_targets(targets, 2)
    found = compare(logs, targets, [estimator], **options)
    if not found.differences:
        reasons = [(f"{e.target}: ", e.no_interval_because, "; ") for e in found if e.no_interval_because]
        why = [part for reason in reasons for part in reason][:-1] or ["its scores cannot be set side by side"]
        raise UsageError(Advice(f"{found.estimates[0].estimator!r} has no joint intervals (", *why, ")"))
    return found.differences[0]


def _named(targets: Any) -> Any:
    """Targets by name; one policy alone is called "target". Several without names stay, to be refused."""
    return targets if targets is None or isinstance(targets, Mapping | list | tuple) else {"target": targets}


def _check_targets(targets: object, least: int) -> None:
    """Names and policies, and enough of them."""
    if not isinstance(targets, Mapping):
        raise UsageError(f"targets maps names to policies, such as {{'new': policy}}; got a {type(targets).__name__}")
    if len(targets) < least:
        few = "no target was given" if least == 1 else f"a difference needs at least two targets, got {len(targets)}"
        raise UsageError(f"{few}; pass a mapping of names to policies")


def _distinct(estimators: Sequence[Any]) -> list[Any]:
    """Each of them once; estimators of a user's own need not be hashable."""
    return [each for place, each in enumerate(estimators) if each not in estimators[:place]]


def _auto(estimator: Any) -> bool:
    return isinstance(estimator, str) and estimator == "auto"
