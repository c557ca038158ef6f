"""Where the logs were and where the target goes: shares of states, from the weights of the rows.

The share of the target is Σ w over the rows of a state: with the right weights the rows are the target's own.
"""

from __future__ import annotations

import numpy as np

from mixope.answers.pictures.records import Visit, Visits
from mixope.base.arrays import sum_by
from mixope.estimators import Weights
from mixope.requests.transitions import Transitions

MOST_STATES = 12


def visits(transitions: Transitions, weights: Weights | None, most: int = MOST_STATES) -> Visits | None:
    """The states that matter most to either, from weights by transition; None where there are none."""
    if weights is None or len(weights.total) != transitions.n_groups or not float(weights.total.sum()) > 0:
        return None
    logged, target = (
        sum_by(transitions.state, mass, transitions.n_states) / float(mass.sum())
        for mass in (transitions.rows, weights.total)
    )
    order = np.argsort(-np.maximum(logged, target), kind="stable")[:most]
    names = tuple(name.partition(".")[2] or name for name in transitions.factors)
    states = tuple(
        Visit(tuple(np.atleast_1d(transitions.observations[k]).tolist()), float(logged[k]), float(target[k]))
        for k in order.tolist()
    )
    return Visits(names, states, int(np.count_nonzero(logged)))
