"""Loggers that learned from their own rows: how often intervals hold the truth, and how often the check sees it.

    python benchmarks/adaptive.py                  # the published size
    python benchmarks/adaptive.py --repetitions 4  # a first look

Worlds with random moves and noisy rewards, two sizes; loggers that each learn by Q-learning from what they log, with a
share of random actions. *Learned* are their logs; *redrawn* are logs of the very same policies, step by step, drawn
anew: they differ in nothing but that no policy hangs on the rows. The target is a soft optimal policy. *t* is the plain
interval of ``emp``, *auto* the one that is wider where the check sees that loggers learned.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import mixope
from mixope.checks.learning import STRETCHED, WARN
from tables import markdown
from worlds_of_chance import Columns, pick

DISCOUNT = 0.9
RANDOM = 0.15


@dataclass(frozen=True)
class Setting:
    """States and actions, loggers with their episodes and steps, and the rate of learning (0: one over the visits)."""

    states: int
    actions: int
    loggers: int
    episodes: int
    steps: int
    rate: float

    def __str__(self) -> str:
        how = "1/visits" if self.rate == 0 else f"{self.rate:g}"
        return f"{self.states} × {self.actions}, {self.loggers} × {self.episodes} × {self.steps}, rate {how}"


SETTINGS = (
    Setting(12, 3, 4, 40, 20, 0.0),
    Setting(12, 3, 4, 40, 20, 0.3),
    Setting(6, 2, 4, 20, 20, 0.0),
    Setting(12, 3, 1, 200, 10, 0.0),
)


@dataclass(frozen=True)
class World:
    """P(s′|s,a), mean rewards, the start law."""

    moves: np.ndarray
    reward: np.ndarray
    start: np.ndarray

    def target(self, soft: float = 0.1) -> np.ndarray:
        """The soft optimal policy."""
        q = np.zeros_like(self.reward)
        for _ in range(300):
            best = q.max(axis=1, keepdims=True)
            value = best[:, 0] + soft * np.log(np.exp((q - best) / soft).sum(axis=1))
            q = self.reward + DISCOUNT * self.moves @ value
        odds = np.exp((q - q.max(axis=1, keepdims=True)) / soft)
        return odds / odds.sum(axis=1, keepdims=True)

    def average(self, policy: np.ndarray) -> float:
        """What it earns per step in the long run."""
        chain = np.einsum("sa,sat->st", policy, self.moves)
        equations = np.vstack([chain.T - np.eye(len(chain)), np.ones(len(chain))])
        law = np.linalg.lstsq(equations, np.append(np.zeros(len(chain)), 1.0), rcond=None)[0]
        return float(law @ (policy * self.reward).sum(axis=1))


def draw(setting: Setting, generator: np.random.Generator) -> World:
    shape = setting.states, setting.actions
    moves = generator.dirichlet(np.full(setting.states, 0.4), size=shape)
    return World(moves, 0.3 * generator.normal(size=shape), generator.dirichlet(np.ones(setting.states)))


def logs(
    world: World, setting: Setting, generator: np.random.Generator, played: list[np.ndarray] | None = None
) -> tuple[Columns, list[np.ndarray]]:
    """What loggers write that learn as they go, and the law they acted by at every step; or that follow these laws."""
    n = setting.loggers
    who, q, visits = np.arange(n), np.zeros((n, *world.reward.shape)), np.zeros((n, *world.reward.shape))
    rows, laws = [], []
    for episode in range(setting.episodes):
        state = pick(np.tile(world.start, (n, 1)), generator)
        for step in range(setting.steps):
            laws.append(_greedy(q) if played is None else played[len(laws)])
            action = pick(laws[-1][who, state], generator)
            after = pick(world.moves[state, action], generator)
            reward = world.reward[state, action] + generator.normal(size=n)
            cell = who, state, action
            visits[cell] += 1
            rate = 1.0 / visits[cell] if setting.rate == 0 else setting.rate
            q[cell] += rate * (reward + DISCOUNT * q[who, after].max(axis=1) - q[cell])
            rows.append((who, who * setting.episodes + episode, np.full(n, step), state, action, reward, after))
            state = after
    names = ("policy_id", "episode_id", "step", "observation", "action", "reward", "next_observation")
    columns = {name: np.stack(v, axis=1).ravel() for name, v in zip(names, zip(*rows, strict=True), strict=True)}
    columns["policy_id"] = np.char.add("logger-", columns["policy_id"].astype(str))
    cut = columns["step"] == setting.steps - 1
    return {**columns, "terminated": np.zeros_like(cut), "truncated": cut}, laws


def _greedy(q: np.ndarray) -> np.ndarray:
    best = (q == q.max(axis=-1, keepdims=True)).astype(float)
    return (1 - RANDOM) * best / best.sum(axis=-1, keepdims=True) + RANDOM / q.shape[-1]


def measured(columns: Columns, world: World, policy: np.ndarray) -> tuple[float, ...]:
    """The error in standard errors, whether t and auto hold, the width of auto over t, and what the check says."""
    truth, target = world.average(policy), mixope.TabularPolicy(policy)
    plain, auto = (mixope.evaluate(columns, target, "emp", interval=name) for name in ("t", "auto"))
    assert plain.interval is not None
    assert auto.interval is not None
    assert plain.standard_error is not None
    followed = next((d.value for d in auto.diagnostics if d.name == "loggers learned"), np.nan)
    held = [each.low <= truth <= each.high for each in (plain.interval, auto.interval)]
    off = (plain.value - truth) / plain.standard_error
    return off, *held, auto.interval.width / plain.interval.width, followed > STRETCHED, followed > WARN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=60, help="worlds for every setting")
    parser.add_argument("--settings", default="0,1,2,3", help="which of the settings, by number, with commas between")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lines = []
    for number in map(int, given.settings.split(",")):
        setting = SETTINGS[number]
        found: dict[str, list[tuple[float, ...]]] = {"learned": [], "redrawn": []}
        for repetition in range(given.repetitions):
            generator = np.random.default_rng([given.seed, number, repetition])
            world = draw(setting, generator)
            policy = world.target()
            learned, laws = logs(world, setting, generator)
            redrawn, _ = logs(world, setting, generator, laws)
            found["learned"].append(measured(learned, world, policy))
            found["redrawn"].append(measured(redrawn, world, policy))
        for name, values in found.items():
            mean = np.mean(values, axis=0)
            shares = [f"{x:.1%}" for x in (mean[1], mean[2], mean[4], mean[5])]
            lines.append([str(setting), name, f"{mean[0]:+.2f}", *shares[:2], f"{mean[3]:.2f}", *shares[2:]])
    head = ["world, loggers × episodes × steps", "logs", "bias in standard errors", "t holds", "auto holds"]
    print(markdown([*head, "width of auto over t", f"above {STRETCHED:g}", f"above {WARN:g}"], lines))


if __name__ == "__main__":
    main()
