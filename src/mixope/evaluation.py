"""From logs and a target to an estimate, whatever the states are made of."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any

from mixope.answers.answering import answer
from mixope.answers.choosing import answer_automatically, with_memory
from mixope.answers.confounding import THRESHOLD, WHAT_LOGS_EARN, Reported, check_factor, confounding_of
from mixope.answers.estimate import Estimate
from mixope.base.arrays import is_number
from mixope.base.errors import Advice, Setting, UsageError
from mixope.base.estimand import Estimand, Kind
from mixope.base.keywords import offers_names
from mixope.checks import Verdict
from mixope.engines import Engine
from mixope.estimators import Estimator, Memory, canonical, check_memory
from mixope.features import FeatureMap
from mixope.logs import LogSource
from mixope.policies import PolicySource
from mixope.session.questions import as_estimand, ask
from mixope.session.session import Counted, look
from mixope.solvers.devices import Device, check_device
from mixope.uncertainty import IntervalChoice, choose_interval


@offers_names
def evaluate(
    logs: LogSource,
    target: PolicySource,
    estimator: str | Estimator = "auto",
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
    confounding: float | None = None,
    threshold: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    unit: str | None = None,
    lags: int = 0,
    history: str | Sequence[str] | None = None,
    memory: Memory | None = None,
) -> Estimate:
    """What ``target`` would earn per step, from ``logs`` that others wrote.

    :param logs: whatever :func:`mixope.read` takes, or what it gave.
    :param target: whatever :func:`mixope.read_policy` takes, or what it gave.
    :param estimator: a name (``mixope estimators`` lists them) or an object. ``"auto"`` is doubly robust EMP where
        states have factors or are vectors, and EMP for opaque ids; EMP is shown beside it. Where vectors do not support
        its weights, a learned value stands before it (:mod:`mixope.answers.choosing`).
    :param estimand: ``"average"`` (in the long run), ``"discounted"`` (with ``gamma``), ``"horizon"`` (the first
        ``horizon`` steps) or ``"episode"`` (the total until its end); ``gamma`` or ``horizon`` alone name theirs.
    :param level: of the interval.
    :param loggers: labels → the policies that wrote the logs, where they are known.
    :param features: a feature map for vector states (default: normalised bumps); given one, ids are treated as vectors
        too.
    :param interval: ``"t"``, ``"normal"``, ``"likelihood"`` (from scores by episode), ``"blocks"`` (of steps, for a few
        long episodes), ``"bca"`` or ``"percentile"`` (``replicates`` refits of everything on resampled episodes, in
        ``jobs`` processes); ``"auto"`` is t, or blocks where the logs are fewer than five long episodes. All of these
        are for one look at logs that are complete. ``"sequence"`` is for logs that grow and are looked at again and
        again: wider, and valid at all times together.
    :param planned: of a sequence, the number of episodes at which it is to be narrowest, fixed before they are seen.
    :param engine: where rows are added up: ``"embedded"`` (DuckDB, here), ``"processes"``, ``"dask"``, ``"ray"``,
        ``"spark"``, or an engine; None chooses by the logs.
    :param device: where moments of a million rows or more are added up and a learned value is trained: on a GPU if JAX
        sees one (``"auto"``), never (``"cpu"``), or always (``"gpu"``; moments of fewer rows too).
    :param seed: the same seed gives the same bytes.
    :param confounding: also bound the value if hidden reasons, which the logs do not show, changed the odds of the
        logged actions by a factor of up to this, such as 1.5: a curve, and the factor at which the target is no longer
        known to be better (or worse) than what the logs earn, or than ``threshold``. For states and actions that can be
        counted.
    :param threshold: a value that the target is held against instead of what the logs earn.
    :param checkpoint: a folder that keeps the answers of finished scans: the same job, started again, goes on from
        there. It is as trusted as code.
    :param unit: the column that says to whom an episode belongs (a user, a patient, a machine), where the same one may
        have several: their episodes are not independent, and the interval counts units.
    :param lags: so many earlier steps stand beside the state, where it leaves something out: the action then, and the
        state then (of numbers, by how much they changed). The target and known loggers see the state as it was logged.
    :param history: running means over the earlier rows of the episode that stand beside the state: ``"reward"``,
        ``"action"`` (how often each was taken), or numbers of the state by name. Where states are counted, in three
        classes.
    :param memory: count so many steps together, where the state may leave something out: residuals of the one-step
        solution are weighed by how much like the target's the last ``memory`` steps were. ``"auto"`` takes the smallest
        number that agrees with all longer ones. For ``emp``, ``bch-pooled`` and ``dr`` on states that can be counted;
        it takes one pass over the rows in order.
    :returns: the value with its interval, the verdict, and the checks behind it.

    >>> result = mixope.evaluate("logs/*.parquet", "target.csv")
    >>> print(f"{result.verdict}: {result.interval.low:.1f} to {result.interval.high:.1f} {result.unit}")
    trustworthy: 5.7 to 6.3 reward per step
    """
    choice = choose_interval(interval, replicates, jobs, planned=planned)
    asked = as_estimand(estimand, gamma, horizon)
    check_device(device)
    if memory is not None:
        check_memory(memory)
    _check_doubt(confounding, threshold)
    session = look(logs, engine, features, seed, checkpoint, unit, lags, history)
    counted = session.counted
    if confounding is not None and counted is None:
        raise UsageError(NOT_COUNTED)
    options: dict[str, Any] = {
        "estimand": asked,
        "level": level,
        "loggers": loggers,
        "interval": choice,
        "seed": seed,
        "device": device,
    }
    estimator = canonical(estimator)
    automatic = isinstance(estimator, str) and estimator == "auto"
    if memory is not None:
        automatic, (estimator,) = False, with_memory(session, [estimator], memory)
    make = answer_automatically if automatic else partial(answer, estimators=(estimator,))
    (found,) = make(session, {"target": target}, **options)
    _refuse_without(found, choice)
    if confounding is None or counted is None:
        return found
    return _doubted(counted, target, found, confounding, threshold)


NOT_COUNTED = Advice(
    "bounds under hidden confounding need states and actions that can be counted: where states do not repeat, no log"
    " tells how the outcomes of one state and action are spread, and any bound would rest on a model instead. Leave"
    " out ",
    Setting("confounding"),
)


def _check_doubt(confounding: float | None, threshold: float | None) -> None:
    """Before anything is read."""
    if confounding is not None:
        check_factor(confounding)
    if threshold is None:
        return
    if confounding is None:
        raise UsageError(Advice("a threshold is what bounds are held against: add ", Setting("confounding", 1.5)))
    if not is_number(threshold) or not isfinite(threshold):
        raise UsageError(f"threshold is a value that the target is held against, got {threshold!r}")


def _doubted(
    session: Counted, target: PolicySource, found: Estimate, factor: float, threshold: float | None
) -> Estimate:
    """With what the value may be under hidden confounding; one more scan tells how rewards are spread."""
    if found.verdict is Verdict.REFERENCE:
        raise UsageError(f"{found.estimator!r} is a reference line and no estimate of the target, so has no bounds")
    logs, difference = found.against_logs, found.against_logs.difference
    if threshold is not None:
        own = found.interval
        sure = own and replace(own, low=own.low - threshold, high=own.high - threshold)
        said = Reported(found.value, found.interval, float(threshold), THRESHOLD, sure)
    else:
        against = None if logs.value is None else WHAT_LOGS_EARN
        said = Reported(found.value, found.interval, logs.value, against, difference.interval if difference else None)
    (question,) = ask(
        session.logs, session.labels, {found.target: target}, estimand=found.estimand, columns=session.columns
    )
    bounds = confounding_of(session.problem(question), said, factor, session.reward_spread())
    if found.verdict is Verdict.UNSUPPORTED:  # of which nothing follows, so that nothing can flip
        bounds = replace(bounds, flips_at=None, open_at=None, sentences=bounds.sentences[:1])
    return replace(found, confounding=bounds)


def _refuse_without(estimate: Estimate, choice: IntervalChoice) -> None:
    """An interval that was asked for by name, and that this estimate cannot have."""
    if choice.name == "auto" or estimate.interval is not None:
        return
    otherwise = "" if choice.refits else ", or refit with 'bca' or 'percentile'"
    raise UsageError(
        Advice(
            f"{estimate.estimator!r} has no interval {choice.name!r} here: ",
            estimate.no_interval_because or "it has no scores",
            ". Leave the interval at 'auto' for the value without one",
            otherwise,
        )
    )
