"""Small worlds with rational laws, and logs whose counts are those laws exactly.

All probabilities are multiples of 1/10, so that n_j(s) π_j(a|s) P(s′|s,a) is a whole number of rows: an estimator
that is right in the limit must give the truth on these logs, to rounding. Every row is an episode of its own; those at
step 0 are the starts, and there are 10 μ₀(s) of them in state s for every logger.
"""

from dataclasses import dataclass

import numpy as np

import mixope
from mixope.worlds import Model, from_outcomes


def tenths(generator, *shape, least=0):
    """Random laws over the last axis, in tenths, each entry at least ``least`` tenths."""
    *outer, n = shape
    flat = generator.multinomial(10 - least * n, np.full(n, 1 / n), size=int(np.prod(outer, initial=1))) + least
    return flat.reshape(shape)


@dataclass(frozen=True, eq=False)
class World:
    model: Model
    target: np.ndarray
    loggers: tuple
    columns: dict

    @property
    def policy(self):
        return mixope.TabularPolicy(self.target)

    @property
    def known(self):
        return {f"logger-{j}": mixope.TabularPolicy(law / 10) for j, law in enumerate(self.loggers)}

    @property
    def logs(self):
        return mixope.read(self.columns)

    @property
    def factored_logs(self):
        """The same logs with two binary factors for an id."""
        columns = dict(self.columns)
        for name in ("observation", "next_observation"):
            ids = columns.pop(name)
            columns |= {f"{name}.high": ids // 2, f"{name}.low": ids % 2}
        return mixope.read(columns)

    @property
    def factored_policy(self):
        ids = np.arange(self.model.n_states)
        return mixope.TabularPolicy(self.target, np.stack([ids // 2, ids % 2], axis=1), factors=("high", "low"))


def world(seed, n_states=4, n_actions=2, n_loggers=2, ends=False):
    """A random world; with ``ends`` the last state is the end, seen only as a next state."""
    generator = np.random.default_rng(seed)
    moves = tenths(generator, n_states, n_actions, n_states, least=1)
    rewards = generator.integers(-5, 6, size=moves.shape).astype(float)
    target = tenths(generator, n_states, n_actions, least=1) / 10
    loggers = tuple(tenths(generator, n_states, n_actions, least=1) for _ in range(n_loggers))
    living = n_states - 1 if ends else n_states
    start = np.zeros(n_states, dtype=int)
    start[:living] = tenths(generator, living)
    s, a, t = (i.ravel() for i in np.indices(moves.shape))
    model = from_outcomes(
        "rational",
        shape=(n_states, n_actions),
        state=s,
        action=a,
        next_state=t,
        probability=moves.ravel() / 10,
        reward=rewards.ravel(),
        start=start / 10,
        terminated=(t == n_states - 1) & ends,
    )
    base = generator.integers(1, 4, size=(n_loggers, n_states))
    base[:, living:] = 0
    return World(model, target, loggers, _rows(moves, rewards, loggers, base, start, ends))


def _rows(moves, rewards, loggers, base, start, ends):
    n_states = len(moves)
    parts = []
    for j, law in enumerate(loggers):
        count = base[j][:, None, None] * law[:, :, None] * moves
        s, a, t = (np.repeat(i.ravel(), count.ravel()) for i in np.indices(count.shape))
        rank = np.arange(len(s)) - np.searchsorted(s, s)
        parts.append((np.full(len(s), j), s, a, t, rank < start[s], law[s, a] / 10))
    j, s, a, t, first, propensity = (np.concatenate(column) for column in zip(*parts, strict=True))
    return {
        "policy_id": np.array([f"logger-{k}" for k in range(len(loggers))])[j],
        "episode_id": np.arange(len(s)),
        "step": np.where(first, 0, 1),
        "observation": s,
        "action": a,
        "reward": rewards[s, a, t],
        "next_observation": t,
        "terminated": (t == n_states - 1) & ends,
        "truncated": np.zeros(len(s), dtype=bool),
        "action_prob": propensity,
    }


def closed_walk(seed, n_states=6, n_actions=2, steps=300, episodes=1):
    """A walk that ends where it began and tries every action of every state: s and s′ have the same counts."""
    generator = np.random.default_rng(seed)
    law = generator.dirichlet(np.full(n_states, 0.6), size=(n_states, n_actions))
    state, rows = 0, []
    todo = {(s, a) for s in range(n_states) for a in range(n_actions)}
    while len(rows) < steps or todo:
        waiting = [a for a in range(n_actions) if (state, a) in todo]
        action = waiting[0] if waiting else int(generator.integers(n_actions))
        todo.discard((state, action))
        after = int(generator.choice(n_states, p=0.9 * law[state, action] + 0.1 / n_states))
        rows.append((state, action, after, generator.normal() + state - action))
        state = after
    if state != 0:
        rows.append((state, 0, 0, generator.normal()))
    s, a, t, r = (np.array(column) for column in zip(*rows, strict=True))
    episode = np.arange(len(s)) * episodes // len(s)
    return {
        "policy_id": np.full(len(s), "walker"),
        "episode_id": episode,
        "step": np.arange(len(s)) - np.searchsorted(episode, episode),
        "observation": s,
        "action": a,
        "reward": r.astype(float),
        "next_observation": t,
        "terminated": np.zeros(len(s), dtype=bool),
        "truncated": np.zeros(len(s), dtype=bool),
    }


def counted_policy(columns, n_states, n_actions):
    """n(s,a)/n(s)."""
    counts = np.zeros((n_states, n_actions))
    np.add.at(counts, (columns["observation"], columns["action"]), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def random_policy(seed, n_states, n_actions):
    return np.random.default_rng([seed, 1]).dirichlet(np.ones(n_actions), size=n_states)
