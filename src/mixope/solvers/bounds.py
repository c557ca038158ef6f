"""The lowest and highest value of a chain that leaks: what is not known of a step may be anything.

From state s the chain follows the known part P(s, ·) (rows sum to less than one) and earns the known part r(s); with
the missing probability u(s) = 1 − Σ P(s, ·) an adversary pays a reward c and chooses the next state, the same law for
every s because only the value of the state matters. With A = I − γP, x = A⁻¹(r + u c) and y = A⁻¹ t the answer is a
minimum (maximum) over that one state k, with no iteration:

    discounted   V = x + γ m y,   t = u,   m = min_k x_k / (1 − γ y_k)      the worst value to land on; γ may be 1
    average      η = min_k x_k / y_k,   γ = 1,   t = the time a state takes   from one unknown step to the next
    horizon      V_t = r + u c + P V_{t+1} + u min V_{t+1}

For the discounted case: m = min_k (x_k + γ m y_k), and m ≤ x_k + γ m y_k is the same as m ≤ x_k/(1 − γ y_k).
For the average: from k the chain earns x_k in y_k steps until the adversary moves again (renewal and reward). Where
the known part can end an episode, the adversary may do so too: ``may_end`` adds a state of value 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray
from mixope.solvers.chain import Resolvent

Side = Literal["low", "high"]


@dataclass(frozen=True)
class Leaky:
    """A chain with its known reward and the probability of a step of which nothing is known."""

    transition: sparse.csr_matrix
    reward: FloatArray
    unknown: FloatArray
    may_end: bool = False

    def earned(self, unknown_reward: float) -> FloatArray:
        """r + u c."""
        return np.asarray(self.reward + self.unknown * unknown_reward)


def average_bound(chain: Leaky, unknown_reward: float, side: Side, time: FloatArray | None = None) -> float:
    """η: the extreme long-run average. The chain must be irreducible and leak somewhere; ``time`` defaults to ones."""
    known = Resolvent(chain.transition, 1.0)
    x = known.solve(chain.earned(unknown_reward))[0]
    y = known.solve(np.ones(len(x)) if time is None else time)[0]
    return _extreme(x / y, side)


def discounted_bound(chain: Leaky, unknown_reward: float, gamma: float, side: Side) -> FloatArray:
    """V: the extreme discounted value of every state, not normalised."""
    known = Resolvent(chain.transition, gamma)
    x, y = known.solve(chain.earned(unknown_reward))[0], known.solve(chain.unknown)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        landing = np.nan_to_num(x / np.maximum(1.0 - gamma * y, 0.0), nan=0.0, posinf=np.inf, neginf=-np.inf)
        worst = gamma * _extreme(landing, side, chain.may_end)
        return np.asarray(x + np.where(y > 0, worst * y, 0.0))


def horizon_bound(chain: Leaky, unknown_reward: float, steps: int, side: Side) -> FloatArray:
    """V_0: the extreme sum of the rewards of the first steps, from every state."""
    value, earned = np.zeros(len(chain.reward)), chain.earned(unknown_reward)
    for _ in range(steps):
        landing = _extreme(value, side, chain.may_end)
        value = earned + chain.transition @ value + chain.unknown * landing
    return value


def _extreme(values: FloatArray, side: Side, or_zero: bool = False) -> float:
    options = np.append(values, 0.0) if or_zero else values
    return float(options.min() if side == "low" else options.max())
