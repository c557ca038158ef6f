"""A small world with random dynamics and rewards, for tests that need one whose every action is covered."""

import numpy as np

from mixope.worlds import from_outcomes


def random_model(generator, start, n_actions, ends):
    """``ends(state, next_state)`` says which transitions terminate; rewards have two decimals."""
    n = len(start)
    s, a, t = (i.ravel() for i in np.indices((n, n_actions, n)))
    return from_outcomes(
        "random",
        shape=(n, n_actions),
        state=s,
        action=a,
        next_state=t,
        probability=generator.dirichlet(np.full(n, 2.0), size=(n, n_actions)).ravel(),
        reward=np.round(generator.normal(size=n * n_actions * n), 2),
        start=np.asarray(start),
        terminated=ends(s, t),
    )
