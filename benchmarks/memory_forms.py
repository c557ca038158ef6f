"""In which form are several steps counted together best? Plain windows beside residuals that remember.

    python benchmarks/memory_forms.py                          # 250 episodes, 12 logs of every world
    python benchmarks/memory_forms.py --episodes 1000 --logs 6

A sketch on dense arrays, apart from the library, of the long-run average of logs without ends (:mod:`hidden_worlds`):

    windows     d and V solved from windows of k rows to the next ones, the weights normalised in every first state
    residuals   η_1 + Σ w δ / Σ w, δ the residual of the one-step solution, w = ω(s₋ₖ₊₁) W
    both        windows of two rows solved, and the residuals of these remembered over k − 2 rows before

with W the ratio of the product of the target's probabilities to

    pool        the product of those of all rows together
    label       the product of those of the logger that wrote the episode
    mixture     Σ p(logger|s) Π π_logger of all loggers

Printed: root mean square error (bias) by world, form and k.
"""

from __future__ import annotations

import argparse

import numpy as np

from hidden_worlds import HIDDEN, MARKOV, HiddenWorld
from tables import markdown

LENGTHS = 1, 2, 3, 4
FORMS = ("windows, label", "windows, mixture", "both", "residuals, pool", "residuals, label", "residuals, mixture")


def stationary(chain: np.ndarray) -> np.ndarray:
    """d = d P."""
    n = len(chain)
    found = np.linalg.lstsq(np.vstack([chain.T - np.eye(n), np.ones(n)]), np.append(np.zeros(n), 1.0), rcond=None)[0]
    return np.clip(found, 0.0, None) / np.clip(found, 0.0, None).sum()


def potential(chain: np.ndarray, law: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """V = g + P V."""
    n = len(chain)
    return np.linalg.lstsq(np.eye(n) - chain + np.outer(np.ones(n), law), gain, rcond=None)[0]


class Log:
    """Counts of one log, and the ratios of its rows."""

    def __init__(self, world: HiddenWorld, episodes: int, seed: int) -> None:
        columns = world.write(episodes, seed)
        names = ("observation", "action", "reward", "next_observation", "episode_id")
        self.s, self.a, self.r, self.y, episode = (columns[name] for name in names)
        self.writer = columns.get("policy_id", np.zeros(len(self.s), dtype=int))
        self.n, actions = world.target.shape
        count = np.zeros((self.n, actions))
        np.add.at(count, (self.s, self.a), 1.0)
        mixture = count / np.maximum(count.sum(axis=1, keepdims=True), 1.0)
        target = world.target * (count > 0)
        target /= np.maximum(target.sum(axis=1, keepdims=True), 1e-300)
        of_logger = np.zeros((int(self.writer.max()) + 1, self.n, actions))
        np.add.at(of_logger, (self.writer, self.s, self.a), 1.0)
        visits = of_logger.sum(axis=2, keepdims=True)
        of_logger = np.where(visits > 0, of_logger / np.maximum(visits, 1.0), mixture)
        self.pooled = target[self.s, self.a] / mixture[self.s, self.a]
        self.own = target[self.s, self.a] / of_logger[self.writer, self.s, self.a]
        self.each = of_logger[:, self.s, self.a] / mixture[self.s, self.a]
        first = np.append(0, np.flatnonzero(np.diff(episode)) + 1)
        length = np.diff(np.append(first, len(self.s)))
        self.left = np.repeat(first + length, length) - np.arange(len(self.s))
        self.count, self.target = count, target

    def begin(self, k: int) -> np.ndarray:
        """Rows at which a window of k rows begins."""
        return np.flatnonzero(self.left >= k)

    def weights(self, begin: np.ndarray, k: int, form: str) -> list[np.ndarray]:
        """W of the first 1, 2, … k rows of every window."""
        share = np.zeros((len(self.each), self.n))
        np.add.at(share, (self.writer[begin], self.s[begin]), 1.0)
        share = (share / np.maximum(share.sum(axis=0), 1.0))[:, self.s[begin]]
        weight, products, found = np.ones(len(begin)), np.ones((len(self.each), len(begin))), []
        for u in range(k):
            weight = weight * (self.own if form == "label" else self.pooled)[begin + u]
            products = products * self.each[:, begin + u]
            found.append(weight / (share * products).sum(axis=0) if form == "mixture" else weight)
        return found

    def solved(self, k: int, form: str) -> tuple[float, np.ndarray, np.ndarray]:
        """η, d and D, the residual of every window, from windows of k rows."""
        begin = self.begin(k)
        weights, there = self.weights(begin, k, form), self.s[begin]
        mass = [np.bincount(there, w, minlength=self.n) for w in weights]
        scaled = [w / np.maximum(m, 1e-300)[there] for w, m in zip(weights, mass, strict=True)]
        chain, earned = np.zeros((self.n, self.n)), np.zeros(self.n)
        np.add.at(chain, (there, self.y[begin + k - 1]), scaled[-1])
        for u, w in enumerate(scaled):
            earned += np.bincount(there, w * self.r[begin + u], minlength=self.n)
        lost = mass[-1] <= 0
        chain[lost] = np.eye(self.n)[lost]
        law = stationary(chain)
        value = float(law @ earned) / k
        v = potential(chain, law, earned - k * value)
        visits, residual = np.bincount(there, minlength=self.n)[there], np.zeros(len(self.s))
        residual[begin] = visits * scaled[-1] * v[self.y[begin + k - 1]] - v[there]
        for u, w in enumerate(scaled):
            residual[begin] += visits * w * (self.r[begin + u] - value)
        return value, law, residual

    def remembered(self, k: int, form: str) -> float:
        """Residuals about the mean of their pairs."""
        value, law, _ = self.solved(1, "mixture")
        chain, earned = np.zeros((self.n, self.n)), np.zeros(self.n)
        share = self.target[self.s, self.a] / np.maximum(self.count[self.s, self.a], 1.0)
        np.add.at(chain, (self.s, self.y), share)
        np.add.at(earned, self.s, share * self.r)
        worth = self.r + potential(chain, law, earned - value)[self.y]
        total = np.zeros_like(self.count)
        np.add.at(total, (self.s, self.a), worth)
        delta = worth - (total / np.maximum(self.count, 1.0))[self.s, self.a]
        begin = self.begin(k)
        return value + self._mean(begin, law, self.weights(begin, k, form)[-1], delta[begin + k - 1])

    def both(self, k: int) -> float:
        """Windows of two rows, whose residuals have a mean of zero in every state, after k − 2 rows more."""
        value, law, residual = self.solved(min(k, 2), "mixture")
        if k <= 2:
            return value
        begin = self.begin(k)
        before = self.weights(begin, k - 2, "mixture")[-1]
        return value + self._mean(begin, law, before, residual[begin + k - 2]) / 2

    def _mean(self, begin: np.ndarray, law: np.ndarray, weight: np.ndarray, values: np.ndarray) -> float:
        here = self.s[begin]
        w = law[here] / np.bincount(here, minlength=self.n)[here] * weight
        return float(w @ values / w.sum()) if w.sum() > 0 else 0.0

    def value(self, form: str, k: int) -> float:
        """By one of the forms."""
        kind, _, weights = form.partition(", ")
        if kind == "both":
            return self.both(k)
        return self.solved(k, weights)[0] if kind == "windows" else self.remembered(k, weights)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=250)
    parser.add_argument("--logs", type=int, default=12, help="of every world; their seeds are 0, 1, …")
    given = parser.parse_args()
    lines = []
    for name, make in {**HIDDEN, **MARKOV}.items():
        if "end" in name or "without labels" in name:
            continue
        errors = np.zeros((given.logs, len(FORMS), len(LENGTHS)))
        for seed in range(given.logs):
            world = make(seed)
            log = Log(world, given.episodes, seed)
            errors[seed] = [[log.value(form, k) - world.value() for k in LENGTHS] for form in FORMS]
        for form, off in zip(FORMS, errors.transpose(1, 2, 0), strict=True):
            lines.append([name, form, *(f"{np.sqrt(np.mean(e**2)):.3f} ({np.mean(e):+.3f})" for e in off)])
    print(markdown(["world", "form", *(f"k = {k}" for k in LENGTHS)], lines))


if __name__ == "__main__":
    main()
