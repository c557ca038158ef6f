"""A small log for tests of load."""

import numpy as np

from mixope.worlds import simulate, singlepath


def chain_log(seed, episodes, horizon, n_loggers=3):
    """Several loggers and a target on a small chain: target, loggers, columns."""
    model = singlepath()
    target, *loggers = np.random.default_rng(42).dirichlet(
        np.full(model.n_actions, 4.0), size=(n_loggers + 1, model.n_states)
    )
    return target, loggers, simulate(model, loggers, episodes, horizon, seed=seed)
