"""From logs and a target to an estimate, whatever the states are made of."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from mixope.answering import answer
from mixope.choosing import answer_automatically
from mixope.engines import Engine
from mixope.errors import Advice, UsageError
from mixope.estimand import Estimand, Kind
from mixope.estimate import Estimate
from mixope.estimators import Estimator
from mixope.features import FeatureMap
from mixope.intervals import IntervalChoice, choose_interval
from mixope.logs import LogSource
from mixope.policies import PolicySource
from mixope.questions import as_estimand
from mixope.seen import look
from mixope.solvers.devices import Device, check_device


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
    checkpoint: str | os.PathLike[str] | None = None,
) -> Estimate:
    """What ``target`` would earn per step, from ``logs`` that others wrote.

    :param logs: whatever :func:`mixope.read` takes, or what it gave.
    :param target: whatever :func:`mixope.read_policy` takes, or what it gave.
    :param estimator: a name (``mixope estimators`` lists them) or an object. ``"auto"`` is doubly robust EMP where
        states have factors or are vectors, and EMP for opaque ids; EMP is shown beside it. Where vectors do not support
        its weights, a learned value stands before it (:mod:`mixope.choosing`).
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
    :param checkpoint: a folder that keeps the answers of finished scans: the same job, started again, goes on from
        there. It is as trusted as code.
    :returns: the value with its interval, the verdict, and the checks behind it.

    >>> result = mixope.evaluate("logs/*.parquet", "target.csv")
    >>> print(f"{result.verdict}: {result.interval.low:.1f} to {result.interval.high:.1f} {result.unit}")
    trustworthy: 5.7 to 6.3 reward per step
    """
    choice = choose_interval(interval, replicates, jobs, planned=planned)
    asked = as_estimand(estimand, gamma, horizon)
    check_device(device)
    seen = look(logs, engine, features, seed, checkpoint)
    options: dict[str, Any] = {
        "estimand": asked,
        "level": level,
        "loggers": loggers,
        "interval": choice,
        "seed": seed,
        "device": device,
    }
    automatic = isinstance(estimator, str) and estimator == "auto"
    make = answer_automatically if automatic else partial(answer, estimators=(estimator,))
    (found,) = make(seen, {"target": target}, **options)
    _refuse_without(found, choice)
    return found


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
