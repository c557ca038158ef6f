"""What can be read as a policy, as a type: for editors and type checkers, and for whoever wraps ``read_policy``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from numpy.typing import ArrayLike

from mixope.policies.protocol import Policy


class Classifier(Protocol):
    """A fitted classifier as scikit-learn has them."""

    def predict_proba(self, observations: Any, /) -> Any:
        """Probabilities (n, classes)."""
        ...


class Predictor(Protocol):
    """A trained model that chooses actions, such as those of Stable-Baselines3 and d3rlpy."""

    def predict(self, observations: Any, /) -> Any:
        """Actions, perhaps with a state beside them."""
        ...


class Sparse(Protocol):
    """A sparse matrix as SciPy has them."""

    def tocsr(self) -> Any:
        """The same, by rows."""
        ...


class Table(Protocol):
    """A data frame or an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns."""
        ...


PolicySource: TypeAlias = (
    Policy
    | str
    | os.PathLike[str]
    | ArrayLike
    | Sparse
    | Mapping[Any, Any]
    | Table
    | Classifier
    | Predictor
    | Callable[..., Any]
)
"""A policy, a path, ``"module:name"``, ``"column:name"``, probabilities (S, A), columns by name, a rule by state, a
table, a classifier, a model that chooses, or a function."""
