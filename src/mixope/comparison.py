"""Several targets, several estimators, one set of scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mixope.engines import Engine
from mixope.errors import UsageError
from mixope.estimand import Estimand, Kind
from mixope.estimate import Comparison
from mixope.estimators import REGISTRY
from mixope.evaluation import answer, as_estimand, automatic, look
from mixope.features import FeatureMap


def compare(
    logs: Any,
    targets: Mapping[str, Any],
    estimators: str | Sequence[Any] = ("auto",),
    *,
    estimand: Kind | Estimand = "average",
    gamma: float | None = None,
    horizon: int | None = None,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    features: FeatureMap | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Comparison:
    """Evaluate every target with every estimator on the same logs.

    ``estimators="all"`` takes every estimator that these logs and this estimand allow; ``skipped`` says which do not
    apply and why.
    """
    if not targets:
        raise UsageError("no target was given; pass a mapping of names to policies")
    seen = look(logs, engine, features)
    every = isinstance(estimators, str) and estimators == "all"
    wanted = [estimators] if isinstance(estimators, str) else list(estimators)
    names = list(REGISTRY) if every else list(dict.fromkeys(automatic(seen)[0] if _auto(e) else e for e in wanted))
    skipped: list[tuple[str, str]] | None = [] if every else None
    question = as_estimand(estimand, gamma, horizon)
    options: dict[str, Any] = {"estimand": question, "level": level, "loggers": loggers, "seed": seed}
    found = answer(seen, targets, names, **options, skipped=skipped)
    return Comparison(tuple(found), tuple(dict.fromkeys(skipped or ())))


def _auto(estimator: Any) -> bool:
    return isinstance(estimator, str) and estimator == "auto"
