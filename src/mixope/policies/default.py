"""What a table answers for a state it does not list.

``None`` is no answer (an error), ``"uniform"`` all actions alike, an action that action always, a vector that law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import DataError, UnknownName
from mixope.policies.actions import ActionSet
from mixope.policies.probabilities import as_numbers
from mixope.policies.rows import plain

Default: TypeAlias = str | int | Sequence[float] | FloatArray | None


def default_law(default: Default, actions: ActionSet) -> FloatArray | None:
    """The law of states that are not in the table; see ``tabular.py``."""
    if default is None:
        return None
    if isinstance(default, str) and default == "uniform":
        return np.full(len(actions), 1 / len(actions))
    if isinstance(default, str | int | np.integer):
        return _certain(default, actions)
    law = as_numbers(default, "default probabilities")
    if law.shape != (len(actions),):
        raise DataError(
            "the default has the wrong shape",
            expected=f"{len(actions)} probabilities, one an action",
            got=f"shape {law.shape}",
        )
    checked: FloatArray = actions.laws(law[None], "default probabilities")[0]
    return checked


def _certain(action: str | int, actions: ActionSet) -> FloatArray:
    known = actions.values.tolist()
    if action not in known:
        raise UnknownName("default action", action, ["uniform", *(plain(name).strip("'") for name in known)])
    law: FloatArray = np.eye(len(known))[known.index(action)]
    return law
