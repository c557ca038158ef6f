"""Do the longest episodes end because of their length?

A recorder that stops after L steps and marks the last row as an end leaves a trace without any model of the world: all
R episodes that come as far as L steps end exactly there. With h the share of the steps before that ended an episode,
chance makes R ends in a row with probability hᴿ. A world may do the same, with a clock or a fuel gauge in the state:
some number of the state then tells these rows from all others, and nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from mixope.base.arrays import BoolArray
from mixope.logs import CODED, EPISODE_KEYS
from mixope.requests.grouping import GroupSums
from mixope.requests.rows import Rows, episode_hash

LEAST = 20
"""Episodes below which lengths say nothing."""


@dataclass(frozen=True)
class Limit:
    """So many episodes have so many steps, more than any other, and end there; ``usual`` is h."""

    episodes: int
    steps: int
    usual: float

    @property
    def deviates(self) -> float:
        """How unlikely that is, in standard deviations of a normal law."""
        return float(-ndtri(min(max(self.usual**self.episodes, 1e-300), 1.0 - 1e-16)))


def limit_of(groups: GroupSums, sample: Rows) -> Limit | None:
    """From sums by episode and a sample of the rows.

    None where some of the longest episodes go on, or began before the logs do, or where the state tells the end.
    """
    rows, ended, starts = (groups.column(name) for name in ("rows", "ended", "starts"))
    longest = float(rows.max(initial=0.0))
    last = rows == longest
    whole = bool(np.all(ended[last] > 0) and np.all(starts[last] > 0))
    if len(rows) < LEAST or longest < 2 or not whole or _is_told(groups, sample, last):
        return None
    exposed = float(rows.sum() - last.sum())
    usual = (float(ended[~last].sum()) + 1.0) / (exposed + 1.0)  # one more, because none may have been seen
    return Limit(int(last.sum()), int(longest), usual)


def _is_told(groups: GroupSums, sample: Rows, last: BoolArray) -> bool:
    """Whether some column of the state tells the rows that end the longest episodes.

    A number does if it lies beyond all others there, a category if it is none of the others there.
    """
    if sample.observation.dtype.kind != "f" or sample.episode is None or groups.table is None:
        return True
    mine = sample.terminated & np.isin(sample.episode, episode_hash(groups.table, EPISODE_KEYS)[last])
    states = sample.observation.reshape(len(sample), -1)
    ends, others = states[mine], states[~mine]
    if not len(ends) or not len(others):
        return True
    above, below = ends.min(axis=0) > others.max(axis=0), ends.max(axis=0) < others.min(axis=0)
    classes = [k for k, role in enumerate(sample.roles or ()) if role in CODED]
    return bool(np.any(above | below) or any(not np.isin(ends[:, k], others[:, k]).any() for k in classes))
