"""From logs and a target to an estimate, whatever the states are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixope.engines import Engine, choose
from mixope.errors import UsageError
from mixope.estimand import Estimand, Kind
from mixope.estimate import Estimate
from mixope.features import FeatureMap
from mixope.intervals import IntervalChoice, choose_interval
from mixope.logs import Logs, read
from mixope.partial import outer_band
from mixope.tabular import Counted, count, run
from mixope.targets import check_level
from mixope.vectors import AUTOMATIC, Scanned, run_vectors, scan

ROUNDING = 1e-12
"""Mass below this is what sums of probabilities leave."""


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
    seed: int = 0,
) -> Estimate:
    """What ``target`` would earn per step, from ``logs`` that others wrote.

    ``estimator="auto"`` is doubly robust EMP where states have factors or are vectors, and EMP for opaque ids; EMP is
    shown beside it. ``loggers`` maps labels to the policies that wrote the logs, where they are known. ``features`` is
    a feature map for vector states (default: normalised bumps); given one, ids are treated as vectors too.
    ``interval`` is "t", "normal", "likelihood" (from scores by episode), "blocks" (of steps, for a few long episodes),
    "bca" or "percentile" (``replicates`` refits of everything on resampled episodes, in ``jobs`` processes); "auto" is
    t, or blocks where the logs are fewer than five long episodes.
    """
    choice = choose_interval(interval, replicates, jobs)
    seen = look(logs, engine, features)
    names = automatic(seen) if isinstance(estimator, str) and estimator == "auto" else (estimator,)
    question = as_estimand(estimand, gamma, horizon)
    options: dict[str, Any] = {"estimand": question, "level": level, "loggers": loggers, "seed": seed}
    first, *others = answer(seen, {"target": target}, names[:1], interval=choice, beside=names[1:], **options)
    _refuse_without(first, choice)
    first = replace(first, beside=tuple(others))
    return _banded(first, seen, target) if isinstance(seen, Counted) else first


def _refuse_without(estimate: Estimate, choice: IntervalChoice) -> None:
    """An interval that was asked for by name, and that this estimate cannot have."""
    if choice.name == "auto" or estimate.interval is not None:
        return
    raise UsageError(
        f"{estimate.estimator!r} has no interval {choice.name!r} here: {estimate.no_interval_because}. Leave the"
        " interval at 'auto' for the value without one"
        + ("" if choice.refits else ", or refit with 'bca' or 'percentile' where states can be counted")
    )


def _banded(estimate: Estimate, seen: Counted, target: Any) -> Estimate:
    """Where something is uncovered: the least and the most the target could earn, whatever was not seen."""
    if estimate.uncovered_mass + estimate.outside_mass <= ROUNDING or estimate.estimator == "logged-mean":
        return estimate
    band = outer_band(seen, target, estimand=estimate.estimand)
    return replace(estimate, band=(band.low, band.high))


def look(logs: Any, engine: str | Engine | None = None, features: FeatureMap | None = None) -> Counted | Scanned:
    """The first scan: counts where states can be counted, a survey of the episodes where they are vectors.

    Logs that were looked at before are not read again.
    """
    if isinstance(logs, Counted | Scanned):
        if features is None:
            return logs
        logs, engine = logs.logs, engine or logs.engine
    logs = logs if isinstance(logs, Logs) else read(logs)
    schema = logs.schema
    if features is not None or schema.observation_kind == "vector" or schema.action_kind == "continuous":
        return scan(logs, choose(engine, logs), features)
    return count(logs, engine)


def automatic(seen: Counted | Scanned) -> tuple[str, ...]:
    """The default estimator and what is shown beside it."""
    return seen.automatic if isinstance(seen, Counted) else AUTOMATIC


def answer(
    seen: Counted | Scanned, targets: Mapping[str, Any], estimators: Sequence[Any], **options: Any
) -> list[Estimate]:
    """Every estimator on every target; ``interval`` among the options is an :class:`IntervalChoice`."""
    check_level(options["level"])
    if isinstance(seen, Counted):
        found = run(seen, targets, estimators, **options)
    else:
        found = run_vectors(seen, targets, estimators, **options)
    choice = options.get("interval", IntervalChoice())
    return [_with_reason(estimate, choice) for estimate in found]


def _with_reason(estimate: Estimate, choice: IntervalChoice) -> Estimate:
    """Say so where an interval that was asked for by name is not there."""
    if choice.name == "auto" or estimate.interval is not None:
        return estimate
    said = f"{estimate.estimator} has no interval {choice.name!r}: {estimate.no_interval_because}"
    return replace(estimate, alerts=(*estimate.alerts, said))


def as_estimand(estimand: Kind | Estimand, gamma: float | None, horizon: int | None) -> Estimand:
    """A named estimand with its parameter; gamma or horizon alone name theirs."""
    if isinstance(estimand, Estimand):
        if gamma is not None or horizon is not None:
            raise UsageError("give gamma and horizon inside the Estimand, or the estimand by name")
        return estimand
    if estimand == "average" and gamma is not None and horizon is None:
        estimand = "discounted"
    if estimand == "average" and horizon is not None and gamma is None:
        estimand = "horizon"
    return Estimand(estimand, gamma, horizon)
