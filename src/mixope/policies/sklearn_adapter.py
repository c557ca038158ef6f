"""A fitted scikit-learn classifier as a policy: its classes are the actions, ``predict_proba`` their laws.

Pipelines and searches are classifiers too. Observations go in as the logs have them, ids as one column; a classifier
fitted on a data frame must have seen its columns in the order of the logs. Mixed states go in as a data frame, by the
names of the columns that the classifier was fitted on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError, MissingExtra, UsageError
from mixope.base.threads import Shared
from mixope.policies.callables import DiscreteCallablePolicy
from mixope.policies.keys import listed
from mixope.policies.laws import UnknownActions

# Laws computed in single precision sum to one no better than this.
SINGLE_PRECISION = 1e-4


def sklearn_policy(classifier: Any, *, unknown_actions: UnknownActions = "error") -> DiscreteCallablePolicy:
    """The policy π(a|s) = P(class a | s).

    :param classifier: anything fitted with ``predict_proba`` and ``classes_``.
    :param unknown_actions: a logged action that is no class is an ``"error"`` or has probability ``"zero"``.
    """
    actions = _classes(classifier)
    return DiscreteCallablePolicy(ClassLaws(classifier), actions, unknown_actions=unknown_actions)


@dataclass(frozen=True, eq=False)
class ClassLaws:
    """Observations in, laws over the classes out."""

    classifier: Any

    def __call__(self, observations: AnyArray) -> FloatArray:
        """Shape (n, A)."""
        return rounded_laws(_asked(self.classifier, "predict_proba", observations))


@dataclass(frozen=True, eq=False)
class ClassChoices:
    """Observations in, the class that is predicted out: for classifiers without probabilities."""

    model: Any

    def __call__(self, observations: AnyArray) -> AnyArray:
        """Shape (n,)."""
        return np.asarray(_asked(self.model, "predict", observations))


def _asked(classifier: Any, method: str, observations: AnyArray) -> Any:
    """What a method of the classifier answers about rows as it was fitted on."""
    rows = observations[:, None] if np.ndim(observations) == 1 else observations
    if observations.dtype.names:
        rows = _frame(observations, classifier)
    try:
        with _nameless():
            return getattr(classifier, method)(rows)
    except ValueError as error:
        raise DataError(
            f"{type(classifier).__name__} cannot take these observations",
            got=f"shape {np.shape(rows)}: {error}",
            hint="fit it on the observation columns of the logs, in their order",
        ) from error


@contextmanager
def _unnamed(_: object) -> Iterator[None]:
    """Without a warning where it was fitted on a data frame: the order of columns is the user's to keep, as said above.

    Filters of warnings belong to the process, so that threads which ask at a time share this one.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


_nameless = Shared(_unnamed)


def _frame(observations: AnyArray, classifier: Any) -> Any:
    """Columns by name as a data frame with those that the classifier was fitted on."""
    names, known = getattr(classifier, "feature_names_in_", None), observations.dtype.names or ()
    if names is None:
        raise DataError(
            f"{type(classifier).__name__} does not say which columns it was fitted on",
            expected=f"a classifier fitted on a data frame with columns among {listed(known)}",
            hint="fit it, or a pipeline with a ColumnTransformer, on a data frame; or give a function of the columns",
        )
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise MissingExtra("pandas", "a classifier on mixed states") from error
    strange = [str(name) for name in names if name not in known]
    if strange:
        raise DataError(
            f"{type(classifier).__name__} was fitted on a column that the states do not have",
            column=strange[0],
            expected=f"columns among {listed(known)}",
            hint="fit it on columns of the observation, by the names that they have in the logs",
        )
    return DataFrame({name: observations[name] for name in names})


def rounded_laws(values: Any) -> FloatArray:
    """Laws in double precision; sums that are off by single-precision rounding are divided out, larger faults stay."""
    laws = np.asarray(values, dtype=np.float64)
    if laws.ndim != 2:
        return laws
    sums = laws.sum(axis=1, keepdims=True)
    return np.asarray(laws / np.where(np.abs(sums - 1) < SINGLE_PRECISION, sums, 1.0), dtype=np.float64)


def _classes(classifier: Any) -> AnyArray:
    name = type(classifier).__name__
    if isinstance(classifier, type):
        raise UsageError(f"{classifier.__name__} is a class; fit an instance of it")
    if not hasattr(classifier, "predict_proba"):
        raise UsageError(f"{name} gives no probabilities: a policy needs predict_proba (SVC: probability=True)")
    if not hasattr(classifier, "classes_"):
        raise UsageError(f"{name} is not fitted: it has no classes_ yet; call fit(observations, actions) first")
    classes = classifier.classes_
    if isinstance(classes, list):
        raise UsageError(f"{name} predicts {len(classes)} labels at once; a policy needs a single one, the action")
    return np.asarray(classes)
