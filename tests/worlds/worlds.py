"""Small random models and policies to test against brute force."""

import numpy as np

from mixope.worlds import from_outcomes


def random_policy(model, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(model.n_actions), size=model.n_states)


def random_model(seed, n_states=7, n_actions=3, ends=True):
    """A dense model with a reward for every transition and, with ``ends``, some that terminate."""
    generator = np.random.default_rng(seed)
    state, action, following = (index.ravel() for index in np.indices((n_states, n_actions, n_states)))
    return from_outcomes(
        "random",
        shape=(n_states, n_actions),
        state=state,
        action=action,
        next_state=following,
        probability=generator.dirichlet(np.ones(n_states), size=(n_states, n_actions)).ravel(),
        reward=generator.normal(size=len(state)),
        terminated=(generator.random(len(state)) < 0.15) & ends,
        start=generator.dirichlet(np.ones(n_states)),
    )
