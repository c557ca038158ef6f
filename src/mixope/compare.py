"""Several targets, several estimators, one set of scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mixope.engines import Engine
from mixope.errors import UsageError
from mixope.estimand import Estimand, Kind
from mixope.estimate import Comparison
from mixope.estimators import REGISTRY, AnyEstimator
from mixope.evaluate import as_estimand, count, run


def compare(
    logs: Any,
    targets: Mapping[str, Any],
    estimators: Literal["all"] | Sequence[str | AnyEstimator] = ("auto",),
    *,
    estimand: Kind | Estimand = "average",
    gamma: float | None = None,
    horizon: int | None = None,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Comparison:
    """Evaluate every target with every estimator on the same logs.

    ``estimators="all"`` takes every estimator that these logs and this estimand allow; ``skipped`` says which do not
    apply and why.
    """
    if not targets:
        raise UsageError("no target was given; pass a mapping of names to policies")
    counted = count(logs, engine)
    question = as_estimand(estimand, gamma, horizon)
    skipped: list[tuple[str, str]] | None = None
    names: list[str | AnyEstimator] = list(REGISTRY)
    if estimators == "all":
        skipped = []
    else:
        automatic = "dr" if counted.transitions.factors else "emp"
        names = list(dict.fromkeys(automatic if e == "auto" else e for e in estimators))
    found = run(counted, targets, names, estimand=question, level=level, loggers=loggers, seed=seed, skipped=skipped)
    return Comparison(tuple(found), tuple(dict.fromkeys(skipped or ())))
