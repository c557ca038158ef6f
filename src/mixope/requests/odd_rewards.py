"""Rewards that no world gave: codes that stand for "missing", limits of a recorder, single rows that outweigh the rest.

From the rewards of all rows where these are in order, or of a sample. Three things are looked for:

    sentinel    one exact value in many rows, among rewards of which hardly two are alike (−1 among measured ones), or
                one written as a code (−999, 32767) far beyond all others, or one that stands alone: apart from all
                others by many times what these are apart. A value that the world gives belongs to an
                end of episodes, or to a place: most rows of the same transition (or, where states are numbers, the
                nearest rows) have it too. A code comes in any row. 0 is never one: nothing happened.
    limit       a share of the rows has exactly the highest reward, or the lowest, and the others come close to it and
                are hardly ever alike: a recorder may have cut off what lay beyond. Limits of 0, and those of rewards
                between 0 and 1 (or −1), are the world's.
    dominant    no more than two rows make half of Σ|r|, though others earn something too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.requests.rows import Rows
from mixope.requests.shifts import transitions_as_numbers
from mixope.requests.trajectories import OrderedRows

LEAST_ROWS = 100
"""Rows below which nothing is said."""
REPEATED, MOST_REPEATED = 0.005, 0.5
"""The share of the rows that a code has at least where it hides among other rewards, and at most."""
FEWEST = 5
ALIKE = 0.1
"""Of rewards that are measured, hardly two are alike: no more than this share repeat."""
CODE, BEYOND = 999, 10.0
"""A number of nines from here on, or the end of a range of integers, so many times as large as all other rewards."""
APART = {2: 3.0, 3: 1.0}
"""A negative number of so many nines is one that far from all others, in ranges of these; and not where it belongs."""
ALONE, VARIED = 10.0, 20
"""So is any number that far from so many others: it lies beyond them by ten times what they span."""
TOGETHER = 3
"""So many numbers at most may lie there side by side, as −998 and −999 do."""
AT_LIMIT = 0.05
NEAR = 0.1
"""Of a limit the nearest other reward is no farther than this share of the range of the others."""
AT_ENDS = 0.9
"""A value whose rows mostly end episodes is what an end earns."""
OWN_PLACE = 0.5
"""A value belongs to a place if so many more of the rows there have it than chance would make."""
DOMINANT, OTHERS = 2, 20
"""So few rows, beside at least so many others that earn anything: without these, rewards are rare, and real."""
_WITH, _BESIDE = 300, 1200
"""Rows with a value, and others, among which neighbours are looked for."""


@dataclass(frozen=True)
class OddValue:
    """A value, the rows that have it, and the nearest value that another row has."""

    value: float
    rows: int
    nearest: float


@dataclass(frozen=True)
class OddRewards:
    """What was found among so many rows."""

    looked_at: int
    sentinel: OddValue | None = None
    limit: OddValue | None = None
    dominant: OddValue | None = None
    """The largest reward by size, and how many rows make ``share`` of Σ|r|."""
    share: float = 0.0


Placed = Callable[[BoolArray], bool]
"""Whether some rows belong to a place."""


def odd_rewards(reward: FloatArray, ended: BoolArray, placed: Placed) -> OddRewards:
    """What is odd about rewards; ``ended`` says which rows end an episode."""
    n = len(reward)
    if n < LEAST_ROWS or not np.isfinite(reward).all():
        return OddRewards(n)
    values, which, counts = np.unique(reward, return_inverse=True, return_counts=True)
    seen = _Seen(reward, ended, values, which, counts, placed)
    dominant, share = _dominant(reward)
    return OddRewards(n, seen.sentinel(), seen.limit(), dominant, share)


def _dominant(reward: FloatArray) -> tuple[OddValue | None, float]:
    """The few rows that make half of Σ|r|, where they are no more than two."""
    size = np.sort(np.abs(reward))[::-1][: DOMINANT + 1]
    total = float(np.abs(reward).sum())
    rows = 1 + int(np.searchsorted(np.cumsum(size[:DOMINANT]), total / 2))
    if total == 0.0 or rows > DOMINANT or np.count_nonzero(reward) < OTHERS + rows:
        return None, 0.0
    largest = float(reward[np.abs(reward).argmax()])
    return OddValue(largest, rows, float(size[rows])), float(size[:rows].sum()) / total


@dataclass(frozen=True)
class _Seen:
    """The rewards with their distinct values, rising, and how often each came."""

    reward: FloatArray
    ended: BoolArray
    values: FloatArray
    which: IntArray
    counts: IntArray
    placed: Placed

    def sentinel(self) -> OddValue | None:
        """The most frequent value that is one."""
        n = len(self.reward)
        enough = (self.counts >= FEWEST) & (self.counts <= MOST_REPEATED * n) & (self.values != 0.0)
        often = np.flatnonzero(enough)[np.argsort(-self.counts[enough], kind="stable")][:20]
        edges = [k for k in (*range(TOGETHER), *range(-TOGETHER, 0)) if -len(enough) <= k < len(enough) and enough[k]]
        for k in dict.fromkeys([*often.tolist(), *(k % len(enough) for k in edges)]):
            if self._is_sentinel(int(k)):
                return self._odd(int(k))
        return None

    def _is_sentinel(self, k: int) -> bool:
        coded = self._is_code(k)
        hidden = self.counts[k] >= REPEATED * len(self.reward) and self._measured(k) and not self._is_limit(k)
        if not (coded or hidden or self._is_apart(k)) or self._at_ends(k):
            return False
        return coded or not self.placed(self.which == k)

    def _is_apart(self, k: int) -> bool:
        """Whether a value lies so far from all others that nothing leads there; sooner where it is a negative code."""
        far, others = self._apart(k)
        value = float(self.values[k])
        digits = str(int(-value)) if value < 0 and value == int(value) and value > -1e15 else ""
        enough = APART.get(min(len(digits), max(APART)), ALONE) if set(digits) == {"9"} else ALONE
        return others >= (VARIED if enough == ALONE else 3) and far >= enough

    def _apart(self, k: int) -> tuple[float, int]:
        """How far a value at either edge lies from the others, in ranges of these, and how many others there are.

        The few values beside it that repeat exactly, too, are no others.
        """
        n, found = len(self.values), (0.0, 0)
        for values, counts, place in (
            (self.values, self.counts, k),
            (-self.values[::-1], self.counts[::-1], n - 1 - k),
        ):
            for size in range(place + 1, min(TOGETHER, n - 2) + 1):
                span = float(values[-1] - values[size])
                if counts[:size].min() >= FEWEST and span > 0.0:
                    found = max(found, (float(values[size] - values[size - 1]) / span, n - size))
        return found

    def limit(self) -> OddValue | None:
        """The highest or the lowest value, where so many rows have it that something may be cut off."""
        for k in (len(self.values) - 1, 0):
            often = AT_LIMIT * len(self.reward) <= self.counts[k] <= MOST_REPEATED * len(self.reward)
            if often and self._is_limit(k) and self._measured(k) and not (self._is_natural(k) or self._at_ends(k)):
                return self._odd(k)
        return None

    def _odd(self, k: int) -> OddValue:
        return OddValue(float(self.values[k]), int(self.counts[k]), self._nearest(k))

    def _nearest(self, k: int) -> float:
        others = np.delete(self.values, k)
        return float(others[np.abs(others - self.values[k]).argmin()]) if len(others) else float("nan")

    def _measured(self, k: int) -> bool:
        """Whether the other rewards, but for 0 and another limit, are numbers of which hardly two are alike."""
        others = (np.arange(len(self.values)) != k) & (self.values != 0.0)
        for edge in (0, len(self.values) - 1):
            others[edge] &= self.counts[edge] < AT_LIMIT * len(self.reward)
        rows = int(self.counts[others].sum())
        return rows >= LEAST_ROWS // 2 and float(np.count_nonzero(others)) >= (1.0 - ALIKE) * rows

    def _is_code(self, k: int) -> bool:
        """Whether a value is written as one, and lies far beyond the others."""
        value, others = abs(float(self.values[k])), np.abs(np.delete(self.values, k))
        digits = str(int(value)) if value == int(value) and value < 1e15 else ""
        nines = len(digits) >= len(str(CODE)) and set(digits) == {"9"}
        edge = value in {float(2**bits - low) for bits in (15, 16, 31, 32) for low in (0, 1)}
        return (nines or edge) and len(others) > 1 and value >= BEYOND * float(others.max(initial=0.0))

    def _is_limit(self, k: int) -> bool:
        """Whether no reward lies beyond, and others come close."""
        if len(self.values) < 3 or k not in {0, len(self.values) - 1}:
            return False
        others = np.delete(self.values, k)
        return abs(self._nearest(k) - float(self.values[k])) <= NEAR * float(others[-1] - others[0])

    def _is_natural(self, k: int) -> bool:
        low, high, value = float(self.values[0]), float(self.values[-1]), float(self.values[k])
        return value == 0.0 or (low >= 0.0 and value == high == 1.0) or (high <= 0.0 and value == low == -1.0)

    def _at_ends(self, k: int) -> bool:
        return float(self.ended[self.which == k].mean()) >= AT_ENDS


def odd_in_order(ordered: OrderedRows, cell: IntArray, terminated: BoolArray) -> OddRewards:
    """From all rows of counted states; ``cell`` is the kind of transition of every group, ``terminated`` of its end."""
    mine = cell[ordered.group]
    size = sum_by(mine, np.ones(len(mine)))

    def placed(chosen: BoolArray) -> bool:
        """Of the other rows of the same transition, the share that has the value, less that of all rows."""
        alike = sum_by(mine, chosen.astype(np.float64), len(size))
        told = chosen & (size[mine] >= 2)
        others = (alike[mine[told]] - 1.0) / (size[mine[told]] - 1.0)
        return _is_own(float(others.mean()) if len(others) else 1.0, float(chosen.mean()))

    return odd_rewards(ordered.episodes.reward, terminated[ordered.group], placed)


def odd_in_sample(rows: Rows, seed: int = 0) -> OddRewards:
    """From a sample of rows whose states are numbers."""

    def placed(chosen: BoolArray) -> bool:
        return _near_alike(rows, chosen, seed)

    return odd_rewards(rows.reward, rows.terminated, placed)


def _near_alike(rows: Rows, chosen: BoolArray, seed: int) -> bool:
    """Whether the nearest row to one with the value mostly has it too."""
    generator = np.random.default_rng([seed, 8])
    mine, others = (generator.permutation(np.flatnonzero(part)) for part in (chosen, ~chosen))
    kept = np.concatenate([mine[:_WITH], others[:_BESIDE]])
    n = min(len(mine), _WITH)
    points = transitions_as_numbers(rows.take(kept))
    if points is None or n < 2:
        return False
    points = np.nan_to_num(points)
    spread = points.std(axis=0)
    points = (points - points.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    squares = np.sum(points**2, axis=1)
    apart = squares[:n, None] + squares[None, :] - 2.0 * points[:n] @ points.T
    apart[np.arange(n), np.arange(n)] = np.inf
    return _is_own(float(np.mean(apart.argmin(axis=1) < n)), (n - 1) / (len(kept) - 1))


def _is_own(share: float, chance: float) -> bool:
    return share - chance > OWN_PLACE * (1.0 - chance)
