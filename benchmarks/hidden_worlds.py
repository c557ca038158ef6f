"""Worlds whose recorded state is not all, beside those where it is; each with the exact value of a target.

The state that matters is (s, h); logs hold s. What the target and the loggers do depends on s alone, unless a world
says otherwise, so that nothing is confounded: coverage suffers because h is carried from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import mixope

STATES, ACTIONS, STEPS = 10, 3, 40
Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class HiddenWorld:
    """P[z, a, z'], mean rewards r[z, a], ends[z, a], first states μ₀, and ``shown``: the recorded state of every z."""

    moves: np.ndarray
    reward: np.ndarray
    ends: np.ndarray
    starts: np.ndarray
    shown: np.ndarray
    loggers: np.ndarray
    target: np.ndarray
    steps: int = STEPS
    noise: float = 1.0
    labelled: bool = True
    total: bool = False
    """Whether what is asked for is the total until the end of an episode, most of which the logs do not reach."""

    @property
    def asked(self) -> dict[str, str]:
        """The estimand."""
        return {"estimand": "episode"} if self.total else {}

    def value(self, horizon: int | None = None) -> float:
        """The average in the long run (restarting after an end), or the mean of the first steps."""
        act = self.target[self.shown]
        p = np.einsum("za,zay->zy", act * (1 - self.ends), self.moves)
        r, over = (act * self.reward).sum(axis=1), (act * self.ends).sum(axis=1)
        if horizon is not None:
            d, total = self.starts.copy(), 0.0
            for _ in range(horizon):
                total += float(d @ r)
                d = d @ p
            return total / horizon
        if self.total:
            return float(self.starts @ np.linalg.solve(np.eye(len(p)) - p, r))
        p = p + np.outer(over, self.starts)
        # the limit of discounted values, also where h is for ever
        gamma = 1 - 1e-7
        d = (1 - gamma) * np.linalg.solve(np.eye(len(p)) - gamma * p.T, self.starts)
        return float(d @ r)

    def write(self, episodes: int, seed: int) -> Columns:
        """Logs of several loggers in turn."""
        g = np.random.default_rng([seed, 7])
        n, logger = episodes, np.arange(episodes) % len(self.loggers)
        z = g.choice(len(self.starts), size=n, p=self.starts)
        alive, parts = np.arange(n), []
        reach, choose = self.moves.cumsum(axis=2), self.loggers.cumsum(axis=2)
        for t in range(self.steps):
            if not len(alive):
                break
            s = self.shown[z]
            a = np.minimum((g.random(len(z))[:, None] > choose[logger[alive], s]).sum(axis=1), ACTIONS - 1)
            reward = self.reward[z, a] + self.noise * g.normal(size=len(z))
            over = g.random(len(z)) < self.ends[z, a]
            later = np.minimum((g.random(len(z))[:, None] > reach[z, a]).sum(axis=1), len(self.starts) - 1)
            cut = np.full(len(z), t == self.steps - 1) & ~over
            parts.append((alive, np.full(len(z), t), s, a, reward, self.shown[later], over, cut))
            alive, z = alive[~over], later[~over]
        names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
        columns = {name: np.concatenate(c) for name, c in zip(names, zip(*parts, strict=True), strict=True)}
        order = np.lexsort((columns["step"], columns["episode_id"]))
        columns = {name: c[order] for name, c in columns.items()}
        return {**columns, "policy_id": logger[columns["episode_id"]]} if self.labelled else columns

    def policy(self) -> mixope.TabularPolicy:
        """What the target does in the recorded states."""
        return mixope.TabularPolicy(self.target)


def _policies(g: np.random.Generator, states: int, loggers: int = 2) -> tuple[np.ndarray, np.ndarray]:
    logged = g.dirichlet(np.full(ACTIONS, 2.0), size=(loggers, states))
    return logged, g.dirichlet(np.full(ACTIONS, 1.0), size=states)


def _kernel(g: np.random.Generator, states: int, to: int = 4) -> np.ndarray:
    moves = np.zeros((states, ACTIONS, states))
    for row in moves.reshape(-1, states):
        row[g.choice(states, min(to, states), replace=False)] = g.dirichlet(np.ones(min(to, states)))
    return moves


def _joined(kernels: np.ndarray, switch: np.ndarray) -> np.ndarray:
    """P[(s,h), a, (s',h')] from P_h[h, s, a, s'] and h's own chain."""
    n_h, s = kernels.shape[:2]
    p = np.einsum("hsay,hk->hsaky", kernels, switch)
    return p.reshape(n_h * s, ACTIONS, n_h * s)


def markov(
    states: int = STATES, *, end: float = 0.0, n_loggers: int = 2, steps: int = STEPS, labelled: bool = True
) -> Callable[[int], HiddenWorld]:
    """Nothing is hidden."""

    def make(seed: int) -> HiddenWorld:
        g = np.random.default_rng([seed, 1])
        loggers, target = _policies(g, states, n_loggers)
        moves, reward, starts = _kernel(g, states), g.normal(size=(states, ACTIONS)), g.dirichlet(np.ones(states))
        ends, shown = np.full((states, ACTIONS), end), np.arange(states)
        return HiddenWorld(moves, reward, ends, starts, shown, loggers, target, steps, labelled=labelled)

    return make


def hidden(
    keep: float, *, in_moves: bool = True, in_rewards: float = 1.0, end: float = 0.0, noise: float = 1.0
) -> Callable[[int], HiddenWorld]:
    """h of two kinds, kept from step to step with a chance; it changes moves, and rewards by action."""

    def make(seed: int) -> HiddenWorld:
        g = np.random.default_rng([seed, 2])
        loggers, target = _policies(g, STATES)
        one = _kernel(g, STATES)
        other = _kernel(g, STATES) if in_moves else one
        kernels = np.stack([one, 0.5 * one + 0.5 * other])
        moves = _joined(kernels, np.array([[keep, 1 - keep], [1 - keep, keep]]))
        r = g.normal(size=(STATES, ACTIONS))
        reward = np.concatenate([r, r + in_rewards * g.normal(size=(STATES, ACTIONS))])
        mu = g.dirichlet(np.ones(STATES))
        starts, shown = np.concatenate([mu, mu]) / 2, np.tile(np.arange(STATES), 2)
        return HiddenWorld(moves, reward, np.full(reward.shape, end), starts, shown, loggers, target, noise=noise)

    return make


def driven(keep: float, *, end: float = 0.0) -> Callable[[int], HiddenWorld]:
    """A slow variable (wear, tolerance) of four levels that the actions drive and rewards pay for; not recorded."""

    def make(seed: int) -> HiddenWorld:
        g = np.random.default_rng([seed, 3])
        loggers, target = _policies(g, STATES)
        target = 0.15 * target + 0.85 * np.eye(ACTIONS)[np.zeros(STATES, dtype=int)]
        base, levels = _kernel(g, STATES), 4
        p = np.zeros((levels, STATES, ACTIONS, levels, STATES))
        for h in range(levels):
            for a in range(ACTIONS):
                up = min(h + 1, levels - 1) if a == 0 else max(h - 1, 0)
                p[h, :, a, h] += keep * base[:, a]
                p[h, :, a, up] += (1 - keep) * base[:, a]
        r = g.normal(size=(STATES, ACTIONS))
        reward = np.concatenate([r - 0.7 * h for h in range(levels)])
        mu = g.dirichlet(np.ones(STATES))
        starts = np.concatenate([mu, np.zeros(STATES * (levels - 1))])
        n = levels * STATES
        shown = np.tile(np.arange(STATES), levels)
        return HiddenWorld(p.reshape(n, ACTIONS, n), reward, np.full((n, ACTIONS), end), starts, shown, loggers, target)

    return make


def line(shown_by: int, cells: int = 24) -> Callable[[int], HiddenWorld]:
    """A position on a line, pushed by the actions, recorded in bins of some cells."""

    def make(seed: int) -> HiddenWorld:
        g = np.random.default_rng([seed, 4])
        bins = -(-cells // shown_by)
        loggers, _ = _policies(g, bins)
        target = np.tile([0.15, 0.15, 0.7], (bins, 1))
        moves = np.zeros((cells, ACTIONS, cells))
        for z in range(cells):
            for a, push in enumerate((-1, 0, 1)):
                for step, chance in ((push, 0.7), (-1, 0.15), (1, 0.15)):
                    moves[z, a, min(max(z + step, 0), cells - 1)] += chance
        reward = np.repeat(np.sin(np.arange(cells) / 4.0)[:, None], ACTIONS, axis=1) + 0.2 * g.normal(size=ACTIONS)
        starts = np.zeros(cells)
        starts[: cells // 4] = 4.0 / cells
        ends = np.zeros((cells, ACTIONS))
        return HiddenWorld(moves, reward, ends, starts, np.arange(cells) // shown_by, loggers, target, noise=0.5)

    return make


def frail(differs: bool = True) -> Callable[[int], HiddenWorld]:
    """Patients of two kinds, one of which ends soon and the other late; asked for is what they earn until the end."""

    def make(seed: int) -> HiddenWorld:
        g = np.random.default_rng([seed, 9])
        loggers, target = _policies(g, STATES)
        moves = _joined(np.stack([_kernel(g, STATES)] * 2), np.eye(2))
        reward = np.tile(1.0 + 0.5 * g.normal(size=(STATES, ACTIONS)), (2, 1))
        ends = np.repeat([0.06, 0.008] if differs else [0.02, 0.02], STATES)[:, None] * np.ones(ACTIONS)
        starts = np.tile(g.dirichlet(np.ones(STATES)), 2) / 2
        shown = np.tile(np.arange(STATES), 2)
        return HiddenWorld(moves, reward, ends, starts, shown, loggers, target, total=True)

    return make


def aliased() -> Callable[[int], HiddenWorld]:
    """Twice as many states as are recorded: every two look alike, and lead elsewhere."""

    def make(seed: int) -> HiddenWorld:
        g = np.random.default_rng([seed, 5])
        n = 2 * STATES
        loggers, target = _policies(g, STATES)
        mu = g.dirichlet(np.ones(n))
        reward = 1.5 * g.normal(size=(n, ACTIONS))
        ends, shown = np.zeros((n, ACTIONS)), np.arange(n) // 2
        return HiddenWorld(_kernel(g, n, 3), reward, ends, mu, shown, loggers, target)

    return make


def last_action(size: float, *, moves_too: bool = True) -> Callable[[int], HiddenWorld]:
    """The action before is part of the state: it pays or costs, and moves."""

    def make(seed: int) -> HiddenWorld:
        g = np.random.default_rng([seed, 6])
        loggers, target = _policies(g, STATES)
        base = _kernel(g, STATES)
        p = np.zeros((ACTIONS, STATES, ACTIONS, ACTIONS, STATES))
        for h in range(ACTIONS):
            own = (1 - 0.4 * moves_too) * base + 0.4 * moves_too * _kernel(g, STATES)
            for a in range(ACTIONS):
                p[h, :, a, a] = own[:, a]
        r = g.normal(size=(STATES, ACTIONS))
        again = np.eye(ACTIONS)
        reward = np.concatenate([r + size * (again[h] - 1.0 / 3) for h in range(ACTIONS)])
        mu = g.dirichlet(np.ones(STATES))
        starts, n = np.tile(mu, ACTIONS) / ACTIONS, ACTIONS * STATES
        sharp = 0.2 * target + 0.8 * np.eye(ACTIONS)[np.zeros(STATES, dtype=int)]
        shown = np.tile(np.arange(STATES), ACTIONS)
        return HiddenWorld(p.reshape(n, ACTIONS, n), reward, np.zeros((n, ACTIONS)), starts, shown, loggers, sharp)

    return make


def cue(keep: float = 0.97) -> Callable[[int], HiddenWorld]:
    """What was done in state 0 is remembered, and paid for in the last state, long after."""

    def make(seed: int) -> HiddenWorld:
        g = np.random.default_rng([seed, 8])
        loggers, _ = _policies(g, STATES)
        target = np.tile([0.9, 0.05, 0.05], (STATES, 1))
        p = np.zeros((2, STATES, ACTIONS, 2, STATES))
        for h in range(2):
            for s in range(STATES):
                on = (s + 1) % STATES
                for a in range(ACTIONS):
                    to = (1 if a == 0 else 0) if s == 0 else h
                    p[h, s, a, to, on] += 0.9
                    p[h, s, a, to, s] += 0.1
        reward = np.zeros((2 * STATES, ACTIONS))
        reward[STATES - 1], reward[2 * STATES - 1] = -2.0, 4.0
        starts, n = np.zeros(2 * STATES), 2 * STATES
        starts[0] = 1.0
        shown = np.tile(np.arange(STATES), 2)
        return HiddenWorld(
            p.reshape(n, ACTIONS, n), reward, np.zeros((n, ACTIONS)), starts, shown, loggers, target, noise=0.5
        )

    return make


HIDDEN: Mapping[str, Callable[[int], HiddenWorld]] = {
    "a trait of the episode, in moves and rewards": hidden(1.0),
    "a trait of the episode, in moves": hidden(1.0, in_rewards=0.0),
    "a trait of the episode, in rewards": hidden(1.0, in_moves=False),
    "a trait, episodes that end": hidden(1.0, end=0.05),
    "a slow variable of its own": hidden(0.95),
    "wear that actions drive": driven(0.7),
    "slow wear": driven(0.9),
    "wear, episodes that end": driven(0.7, end=0.05),
    "a line in bins of 3": line(3),
    "a line in bins of 2": line(2),
    "states that look alike": aliased(),
    "the action before matters": last_action(1.5),
    "the action before matters a little": last_action(0.3, moves_too=False),
    "a cue long before the reward": cue(),
    "the frail end soon, asked until the end": frail(),
}
MARKOV: Mapping[str, Callable[[int], HiddenWorld]] = {
    "chain": markov(),
    "chain of 60 states": markov(60),
    "chain of 300 states": markov(300),
    "chain that ends": markov(end=0.08),
    "chain of one logger": markov(n_loggers=1),
    "chain, four loggers without labels": markov(n_loggers=4, labelled=False),
    "short episodes": markov(steps=6),
    "a line, recorded as it is": line(1),
    "all alike, asked until the end": frail(differs=False),
}
