"""Which behaviour stands for the mixture when none is named.

Recorded propensities do not enter: that a mixture fitted to the actions does better than the true propensities is the
idea of EMP. :class:`~mixope.behaviours.logged_rows.LoggedRows` is there for estimators that want them.
"""

from __future__ import annotations

from collections.abc import Collection

from mixope.behaviours.classifier_rows import ClassifierRows
from mixope.behaviours.experts_rows import MixtureOfExperts
from mixope.behaviours.gaussian_rows import HeteroscedasticGaussian
from mixope.behaviours.rows_protocol import RowBehaviour
from mixope.errors import UnknownName


def default_row_behaviour(action_kind: str, loggers: Collection[str] = ()) -> RowBehaviour:
    """A classifier for discrete actions; a Gaussian for continuous ones, or experts where there are several loggers.

    :param action_kind: ``"discrete"`` or ``"continuous"``.
    :param loggers: the labels in the logs.
    """
    if action_kind not in ("discrete", "continuous"):
        raise UnknownName("kind of action", action_kind, ("discrete", "continuous"))
    if action_kind == "discrete":
        return ClassifierRows()
    return MixtureOfExperts() if len(set(loggers)) > 1 else HeteroscedasticGaussian()
