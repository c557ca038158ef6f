"""Garnet: a world drawn at random, in which no state is like another.

After Archibald, McKinnon & Thomas 1995: every action of every state leads to ``branches`` states, drawn without
replacement, with probabilities that are uniform on the simplex; its reward is uniform between 0 and 1. States have two
factors, row and column, that say nothing of how they behave: a world for asking what a method that learns from like
states does where there are none. Episodes start in any state and never end.
"""

from __future__ import annotations

import numpy as np

from mixope.base.errors import UsageError
from mixope.worlds.model import Model, from_outcomes

ROWS, COLUMNS = 6, 5


def garnet(actions: int = 4, branches: int = 3, drawn: int = 0) -> Model:
    """Thirty states; ``drawn`` is the number of the world, the same model whenever it is asked for."""
    n_states = ROWS * COLUMNS
    if actions < 1 or not 1 <= branches <= n_states:
        raise UsageError(f"expected at least 1 action and 1 to {n_states} branches, got {actions} and {branches}")
    generator, pairs = np.random.default_rng(drawn), n_states * actions
    state, action, _ = (index.ravel() for index in np.indices((n_states, actions, branches)))
    return from_outcomes(
        "garnet",
        shape=(n_states, actions),
        state=state,
        action=action,
        next_state=np.concatenate([generator.choice(n_states, branches, replace=False) for _ in range(pairs)]),
        probability=generator.dirichlet(np.ones(branches), pairs).ravel(),
        reward=np.repeat(generator.random(pairs), branches),
        start=np.full(n_states, 1 / n_states),
        factors={"row": np.arange(n_states) // COLUMNS, "column": np.arange(n_states) % COLUMNS},
    )
