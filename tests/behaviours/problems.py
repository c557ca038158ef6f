"""Problems made of plain rows, so that slow loops can be held against behaviours."""

import numpy as np

import mixope
from mixope.engines import MemoryEngine
from mixope.requests.problem import Problem
from mixope.requests.transitions import encode, transition_grouping

S, A = 5, 3


def laws(seed, how_many, concentration=2.0):
    return np.random.default_rng(seed).dirichlet(np.full(A, concentration), size=(how_many, S))


def rows(seed, n=600, labels=("a", "b"), logger_laws=None):
    """Independent rows of several loggers; propensities as they were."""
    generator = np.random.default_rng(seed)
    law = laws([seed, 1], len(labels)) if logger_laws is None else logger_laws
    logger = generator.integers(len(labels), size=n)
    state = generator.integers(S, size=n)
    action = np.array([generator.choice(A, p=law[j, s]) for j, s in zip(logger, state, strict=True)])
    return {
        "policy_id": np.array(labels)[logger],
        "episode_id": np.arange(n),
        "step": np.zeros(n, dtype=int),
        "observation": state,
        "action": action,
        "reward": np.round(generator.normal(size=n), 2),
        "next_observation": generator.integers(S, size=n),
        "terminated": np.zeros(n, dtype=bool),
        "action_prob": law[logger, state, action],
    }


def problem(columns, target, loggers=None):
    logs = mixope.read(columns)
    sums = MemoryEngine().group_sums(logs, transition_grouping(logs.schema))
    known = {label: mixope.TabularPolicy(law) for label, law in (loggers or {}).items()}
    return Problem(encode(sums, logs.schema), mixope.TabularPolicy(target), loggers=known)


def plain(columns):
    """(label, s, a, r, s′, p) of every row."""
    names = ("policy_id", "observation", "action", "reward", "next_observation")
    propensity = columns.get("action_prob", np.full(len(columns["step"]), np.nan))
    return list(zip(*(columns[n].tolist() for n in names), propensity.tolist(), strict=True))


def by_group(found, columns, of_row):
    """Σ over the rows of every group of ``of_row``, by a loop, in the order of the groups."""
    sums = {}
    for row in plain(columns):
        label, s, a, _, t, _ = row
        sums[label, s, a, t] = sums.get((label, s, a, t), 0.0) + of_row(row)
    t = found.transitions
    keys = zip(t.logger, t.state, t.action, t.next_state, strict=True)
    return np.array([sums[t.loggers[j], s, a, n] for j, s, a, n in keys])
