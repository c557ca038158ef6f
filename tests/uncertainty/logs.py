"""Small logs for tests of intervals, and their slow resampling: rows copied, files read anew."""

import numpy as np

import mixope
from mixope.worlds import gridworld, simulate, singlepath, walk


def chain_log(seed, episodes=24, horizon=15, model=None):
    """Two loggers and a target on a small chain: model, target, loggers, columns."""
    model = model or singlepath()
    generator = np.random.default_rng(42)
    laws = generator.dirichlet(np.full(model.n_actions, 4.0), size=(3, model.n_states))
    target, *loggers = laws
    return model, target, loggers, simulate(model, loggers, episodes, horizon, seed=seed)


def ending_log(seed, episodes=30):
    return chain_log(seed, episodes, 12, walk())


def factored_log(seed, episodes=16, horizon=30):
    """A grid with two factors, and the target as a policy on factors."""
    model = gridworld(slip=0.1)
    target, *loggers = np.random.default_rng(5).dirichlet(np.full(model.n_actions, 3.0), size=(3, model.n_states))
    columns = simulate(model, loggers, episodes, horizon, seed=seed, observed="factors")
    policy = mixope.TabularPolicy(target, np.stack(list(model.factors.values()), 1), factors=list(model.factors))
    return model, policy, columns


def resampled(columns, weight):
    """The rows of every episode, as often as its weight says, each copy an episode of its own."""
    chosen = np.repeat(np.arange(len(weight)), weight.astype(int))
    parts = [np.flatnonzero(columns["episode_id"] == e) for e in chosen]
    rows = np.concatenate(parts)
    copies = {name: values[rows] for name, values in columns.items()}
    return {**copies, "episode_id": np.repeat(np.arange(len(parts)), [len(p) for p in parts])}
