"""The cells of the suite: a world, what is estimated there, and the log that answers it.

``cartpole-average`` is a pole that is put up again when it falls, for ever: a fall costs 1 (Gymnasium's
``sutton_barto_reward``), and the next state of the step that falls is a new start. ``cartpole-noise`` has 46 columns
beside the four, each a process x′ = .9 x + √.19 ε of its own that nothing depends on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from benchmarks.worlds.policies import Linear, read, stored
from benchmarks.worlds.rollouts import GAMMA, Law, log

NOISE_COLUMNS, PERSISTENCE = 46, 0.9


@dataclass(frozen=True)
class Cell:
    """A world, an estimand, and how many columns of noise stand beside the state."""

    name: str
    world: str
    estimand: str = "discounted"
    noise_columns: int = 0

    @property
    def stored(self) -> dict[str, Any]:
        """What the search found for the world."""
        found: dict[str, Any] = stored()[self.world]
        return found

    @property
    def law(self) -> Law:
        """How an episode of the log goes."""
        return Law(self.stored["environment"], restarts=self.estimand == "average")

    @property
    def question(self) -> dict[str, Any]:
        """As ``mixope.evaluate`` is asked."""
        return {"estimand": "average"} if self.estimand == "average" else {"estimand": "discounted", "gamma": GAMMA}

    def truths(self, policy: dict[str, Any]) -> tuple[float, float]:
        """The value of a stored policy in this cell, with its standard error."""
        return tuple(policy["average" if self.estimand == "average" else "discounted"])  # type: ignore[return-value]

    @property
    def logged_value(self) -> float:
        """What the loggers earn, who write equally many episodes: by simulation, not from a log."""
        return float(np.mean([self.truths(policy)[0] for policy in self.stored["loggers"]]))

    def policy(self, of: dict[str, Any]) -> Linear:
        """A stored policy that does not look at the columns of noise."""
        plain, more = read(self.stored, of), self.noise_columns
        weights = np.concatenate([plain.weights, np.zeros((len(plain.offset), more))], axis=1)
        centre, unit = np.append(plain.centre, np.zeros(more)), np.append(plain.unit, np.ones(more))
        return replace(plain, weights=weights, centre=centre, unit=unit)

    def targets(self) -> list[Linear]:
        """The target first, then the others that are to be ranked."""
        return [self.policy(of) for of in self.stored["targets"]]

    def log(self, episodes: int, seed: int) -> dict[str, np.ndarray]:
        """A log as columns; logs of other sizes and seeds share nothing with it."""
        loggers = [read(self.stored, of) for of in self.stored["loggers"]]
        columns = log(self.law, loggers, episodes, seed)
        if self.noise_columns:
            generator = np.random.default_rng([seed, episodes, 404])
            beside, following = noise(columns["step"] == 0, self.noise_columns, generator)
            columns["observation"] = np.concatenate([columns["observation"], beside], axis=1)
            columns["next_observation"] = np.concatenate([columns["next_observation"], following], axis=1)
        return columns


def noise(starts: np.ndarray, columns: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Columns of noise at each row and after it, anew where an episode starts."""
    fresh = np.sqrt(1 - PERSISTENCE**2) * generator.standard_normal((len(starts), columns))
    first = generator.standard_normal((len(starts), columns))
    now, after = np.empty_like(fresh), np.empty_like(fresh)
    for t, start in enumerate(starts):
        now[t] = first[t] if start else after[t - 1]
        after[t] = PERSISTENCE * now[t] + fresh[t]
    return now, after


CELLS = {
    cell.name: cell
    for cell in (
        Cell("cartpole-average", "cartpole", "average"),
        Cell("cartpole", "cartpole"),
        Cell("mountain-car", "mountain-car"),
        Cell("inverted-pendulum", "inverted-pendulum"),
        Cell("swimmer", "swimmer"),
        Cell("hopper", "hopper"),
        Cell("half-cheetah", "half-cheetah"),
        Cell("cartpole-noise", "cartpole", noise_columns=NOISE_COLUMNS),
    )
}
RANKED = ("hopper", "half-cheetah")
