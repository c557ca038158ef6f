"""Which behaviour stands for the mixture when none is named, and behaviours by name.

Counts where states are numbered; otherwise a classifier for discrete actions, and for continuous ones a Gaussian, or
where there are several loggers a mixture of experts. Its rounds of EM take a minute where states and actions have many
columns: there each labelled logger gets a Gaussian of its own. Where both can be had, experts did better
(docs/benchmarks.md). Recorded propensities do not enter:
that a mixture fitted to the actions does better than the true propensities is the idea of EMP.
:class:`~mixope.behaviours.logged.Logged` is there for estimators that want them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.base.errors import UnknownName, UsageError
from mixope.behaviours.classifier import ClassifierMixture
from mixope.behaviours.counted import CountedMixture
from mixope.behaviours.experts import MixtureOfExperts
from mixope.behaviours.gaussian import HeteroscedasticGaussian
from mixope.behaviours.known import KnownMixture
from mixope.behaviours.labelled import MOST_LOGGERS, MixtureOfLoggers
from mixope.behaviours.logged import Logged
from mixope.behaviours.per_logger import PerLogger
from mixope.behaviours.protocol import Behaviour, FittedBehaviour
from mixope.requests.rows import Rows

ACTION_KINDS = ("discrete", "continuous")


SMALL = 20
"""Columns of states times those of actions up to which experts are found in seconds."""


def default_mixture(action_kind: str, loggers: Collection[str] = (), columns: int = 1) -> Behaviour:
    """The model of rows whose states are not numbered.

    :param action_kind: ``"discrete"`` or ``"continuous"``.
    :param loggers: the labels in the logs.
    :param columns: those of states times those of actions.
    """
    if action_kind not in ACTION_KINDS:
        raise UnknownName("kind of action", action_kind, ACTION_KINDS)
    if action_kind == "discrete":
        return ClassifierMixture()
    n = len(set(loggers))
    if n <= 1:
        return HeteroscedasticGaussian()
    return MixtureOfLoggers() if columns > SMALL and n <= MOST_LOGGERS else MixtureOfExperts()


@dataclass(frozen=True)
class DefaultMixture(Behaviour):
    """The default mixture of whatever rows it is fitted to."""

    name = "mixture"

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedBehaviour:
        """Choose by the rows of positive weight."""
        if rows.pair is not None:
            return CountedMixture().fit(rows, weight, seed)
        kind = "discrete" if rows.action.ndim == 1 else "continuous"
        labels = np.unique(rows.logger[weight > 0]).tolist() if np.shape(weight) == (len(rows),) else ()
        columns = rows.observation[:1].size * rows.action[:1].size
        return default_mixture(kind, labels, columns).fit(rows, weight, seed)


def per_logger(behaviour: Behaviour | str = "mixture") -> PerLogger:
    """A behaviour for each logger: labels say who acted, so a mixture of one logger needs no rounds of EM."""
    return PerLogger(as_behaviour(behaviour))


BEHAVIOURS: Mapping[str, Callable[..., Behaviour]] = {
    "mixture": DefaultMixture,
    "logged": Logged,
    "per-logger": per_logger,
    "known-mixture": KnownMixture,
    "counted": CountedMixture,
    "classifier": ClassifierMixture,
    "gaussian": HeteroscedasticGaussian,
    "loggers": MixtureOfLoggers,
    "experts": MixtureOfExperts,
}


def behaviour_by_name(name: str, **options: Any) -> Behaviour:
    """The behaviour of that name with these options; an unknown name or option is an error that offers the nearest."""
    if name not in BEHAVIOURS:
        raise UnknownName("behaviour", name, BEHAVIOURS)
    known = signature(BEHAVIOURS[name]).parameters
    for option in options:
        if option not in known:
            raise UnknownName(f"option of the behaviour {name!r}", option, known)
    return BEHAVIOURS[name](**options)


def as_behaviour(given: Behaviour | str) -> Behaviour:
    """A behaviour, or the one of that name."""
    if isinstance(given, str):
        return behaviour_by_name(given)
    if not isinstance(given, Behaviour):
        raise UsageError(f"expected a behaviour or one of the names {', '.join(BEHAVIOURS)}, got {given!r}")
    return given
