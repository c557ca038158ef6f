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
from mixope.features import FeatureMap
from mixope.intervals import IntervalChoice, choose_interval
from mixope.questions import as_estimand
from mixope.seen import look
from mixope.solvers.devices import Device, check_device


def evaluate(
    logs: Any,
    target: Any,
    estimator: Any = "auto",
    *,
    estimand: Kind | Estimand = "average",
    gamma: float | None = None,
    horizon: int | None = None,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    features: FeatureMap | None = None,
    interval: str | IntervalChoice = "auto",
    replicates: int = 500,
    jobs: int | None = None,
    engine: str | Engine | None = None,
    device: Device = "auto",
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Estimate:
    """What ``target`` would earn per step, from ``logs`` that others wrote.

    ``estimator="auto"`` is doubly robust EMP where states have factors or are vectors, and EMP for opaque ids; EMP is
    shown beside it. Where vectors do not support its weights, a learned value stands before it
    (:mod:`mixope.choosing`). ``loggers`` maps labels to the policies that wrote the logs, where they are known.
    ``features`` is a feature map for vector states (default: normalised bumps); given one, ids are treated as vectors
    too.
    ``interval`` is "t", "normal", "likelihood" (from scores by episode), "blocks" (of steps, for a few long episodes),
    "bca" or "percentile" (``replicates`` refits of everything on resampled episodes, in ``jobs`` processes); "auto" is
    t, or blocks where the logs are fewer than five long episodes.
    ``device`` is where moments of a million rows or more are added up and a learned value is trained: on a GPU if JAX
    sees one ("auto"), never ("cpu"), or always ("gpu"; moments of fewer rows too).
    ``checkpoint`` is a folder that keeps the answers of finished scans: the same job, started again, goes on from
    there. It is as trusted as code.
    """
    choice = choose_interval(interval, replicates, jobs)
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
