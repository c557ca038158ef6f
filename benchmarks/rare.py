"""Rare rewards, rare ends, many short and a few long episodes: how often is a green answer wrong, a right one refused?

    python benchmarks/rare.py                                 # everything, about four processor minutes
    python benchmarks/rare.py --kind "rare rewards" --logs 50

Worlds of twelve states (ids) and three actions, drawn at random, unlike any of mixope's own environments, with exact
truths. *Rare rewards*: one row in 2,000 pays 100. *Rare ends*: a step earns 1 and about three (or thirty) ends are
expected in all; the question is the total of an episode. *Short episodes* are cut after ten steps, and *many states*
has eighty of them and four actions. *Long episodes* are one to three of 5,000 steps; the question is a discounted
value. *Plain* has rewards with normal noise, where nothing should change. Printed: how often the interval holds the
truth, its mean width, how often the verdict is trustworthy, trustworthy and wrong, right (the interval holds the truth)
and refused, and which checks refused or warned most.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import mixope
from mixope.base.errors import MixopeError
from tables import markdown

STATES, ACTIONS = 12, 3
MANY = 80, 4
"""States and actions where most pairs are logged a few times at most."""


@dataclass(frozen=True)
class World:
    """P(s′|s,a), the mean reward of (s, a), the chance of an end, the law of the starts; and how a reward is drawn."""

    moves: np.ndarray
    mean: np.ndarray
    ends: float
    start: np.ndarray
    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]

    def value(self, law: np.ndarray, kind: str, gamma: float | None) -> float:
        """Exact."""
        chain, reward = np.einsum("sa,sat->st", law, self.moves), np.sum(law * self.mean, axis=1)
        n = len(chain)
        if kind == "average":
            system = np.vstack([chain.T - np.eye(n), np.ones(n)])
            return float(np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0] @ reward)
        lasts = (1.0 - self.ends) * (1.0 if gamma is None else gamma)
        total = float(self.start @ np.linalg.solve(np.eye(n) - lasts * chain, reward))
        return total if kind == "episode" else (1.0 - (gamma or 0.0)) * total


def drawn(kind: str, generator: np.random.Generator, rows: int) -> World:
    """A world of this kind, with the rows that are to be logged in view."""
    states, actions = MANY if kind == "many states" else (STATES, ACTIONS)
    moves = generator.dirichlet(np.full(states, 0.1 if kind == "many states" else 0.5), size=(states, actions))
    start = generator.dirichlet(np.ones(states))
    if kind == "rare rewards":
        chance = generator.dirichlet(np.ones(STATES * ACTIONS)).reshape(STATES, ACTIONS) * STATES * ACTIONS / 2000
        return World(moves, 100 * chance, 0.0, start, lambda g, c: 100.0 * (g.random(len(c)) < c / 100))
    if kind in {"rare ends", "thirty ends"}:
        return World(
            moves, np.ones((STATES, ACTIONS)), (3 if kind == "rare ends" else 30) / rows, start, lambda g, m: m
        )
    mean = generator.normal(size=(states, actions))
    return World(moves, mean, 0.0, start, lambda g, m: m + g.normal(size=len(m)))


def logged(world: World, law: np.ndarray, episodes: int, steps: int, generator: np.random.Generator) -> dict:
    """Rows of a logger that follows ``law``; episodes are cut after so many steps, or end before."""
    states, actions = law.shape
    state = generator.choice(states, size=episodes, p=world.start)
    alive, parts = np.arange(episodes), []
    acts, goes = law.cumsum(axis=1), world.moves.cumsum(axis=2)
    for t in range(steps):
        s = state[alive]
        a = np.minimum((generator.random(len(s))[:, None] > acts[s]).sum(axis=1), actions - 1)
        s2 = np.minimum((generator.random(len(s))[:, None] > goes[s, a]).sum(axis=1), states - 1)
        end = generator.random(len(s)) < world.ends
        r = world.draw(generator, world.mean[s, a])
        parts.append((alive.copy(), np.full(len(s), t), s, a, r, s2, end, ~end & (t == steps - 1)))
        state[alive] = s2
        alive = alive[~end]
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    return dict(zip(names, (np.concatenate(column) for column in zip(*parts, strict=True)), strict=True))


@dataclass(frozen=True)
class Case:
    """A kind of logs and a question."""

    kind: str
    episodes: int
    steps: int
    estimand: str
    gamma: float | None = None

    def __str__(self) -> str:
        question = self.estimand if self.gamma is None else f"{self.estimand} γ {self.gamma:g}"
        return f"{self.kind} | {self.episodes:,} × {self.steps:,} | {question}"


CASES = (
    *(Case("rare rewards", m, 20, "average") for m in (50, 200, 500, 2000)),
    *(Case("rare ends", m, 20, "episode") for m in (50, 200, 500, 2000)),
    *(Case("thirty ends", m, 20, "episode") for m in (50, 200, 500, 2000)),
    *(
        Case("short episodes", m, 10, kind, g)
        for m in (50, 200)
        for kind, g in (("average", None), ("discounted", 0.9))
    ),
    *(Case("many states", 50, 10, kind, g) for kind, g in (("average", None), ("discounted", 0.9))),
    *(Case("long episodes", m, 5000, "discounted", g) for m in (1, 2, 3) for g in (0.9, 0.99)),
    *(Case("plain", m, 20, kind, g) for m in (50, 500) for kind, g in (("average", None), ("discounted", 0.95))),
)


def measured(case: Case, logs: int, seed: int) -> Iterator[str]:
    """One line of the table."""
    held, width, green, wrong, right, refused = 0, [], 0, 0, 0, 0
    fails: Counter[str] = Counter()
    warns: Counter[str] = Counter()
    for repetition in range(logs):
        generator = np.random.default_rng([seed, repetition])
        world = drawn(case.kind, generator, case.episodes * case.steps)
        states, actions = world.mean.shape
        behaviour, law = generator.dirichlet(np.ones(actions), size=(2, states))
        law = 0.5 * behaviour + 0.5 * law
        truth = world.value(law, case.estimand, case.gamma)
        columns = logged(world, behaviour, case.episodes, case.steps, generator)
        try:
            found = mixope.evaluate(
                columns, mixope.TabularPolicy(law), estimand=case.estimand, gamma=case.gamma, seed=repetition
            )
        except MixopeError:
            refused += 1
            continue
        holds = found.interval is not None and found.interval.low <= truth <= found.interval.high
        near = holds or (found.interval is None and abs(found.value - truth) < 0.05 * abs(truth))
        trusted, unsupported = found.verdict == "trustworthy", found.verdict.startswith("not supported")
        held, right = held + holds, right + near
        green, wrong, refused = green + trusted, wrong + (trusted and not holds), refused + unsupported
        width += [] if found.interval is None else [found.interval.width]
        fails.update(check.name for check in found.diagnostics if check.status == "fail")
        warns.update(check.name for check in found.diagnostics if check.status == "warn")
        held_and_refused[str(case)] += near and unsupported
    yield from (f"{100 * held / logs:.0f}", f"{np.mean(width):.3g}" if width else "–")
    yield from (f"{100 * green / logs:.0f}", f"{100 * wrong / logs:.1f}")
    yield f"{100 * held_and_refused[str(case)] / max(right, 1):.0f} ({refused} refused)"
    yield ", ".join(f"{name} {n}" for name, n in (*fails.most_common(2),)) or "–"
    yield ", ".join(f"{name} {n}" for name, n in (*warns.most_common(3),)) or "–"


held_and_refused: Counter[str] = Counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100, help="logs of each line (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="", help="only lines whose name holds this")
    given = parser.parse_args()
    head = ["logs", "held, %", "width", "green, %", "green and wrong, %", "right and refused, %", "failed", "warned"]
    rows = [
        [str(case).replace(" | ", ", "), *measured(case, given.logs, given.seed)]
        for case in CASES
        if given.kind in str(case)
    ]
    print(markdown(head, rows))


if __name__ == "__main__":
    main()
