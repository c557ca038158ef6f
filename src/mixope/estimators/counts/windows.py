"""Windows: rows of one episode in a row, how likely the target was to do what was done in them, and which are missing.

A window of j rows that begins at row i weighs, relative to the logs,

    W_i = Π_{u<j} π(a|s) / b_i,     b_i = Π p_u (recorded),  or  Σ_l p(l|s_i) Π_{u<j} π_l(a|s)

with p(l|s) the share of logger l among the windows that begin in s, and π_l its policy, counted or known. The actions
of one episode hang together through who wrote it, so that the product of the mixture's probabilities is right for one
row only; the mixture of the loggers' products is right for any number, and for one row it is the same. Where there is
one logger it is Π π₀. To divide by π_l of the logger that wrote the row is right, too, and has more variance.

A window that ends with its episode, because the process ended, ran its length: it counts with nothing to come. One that
was cut by the recorder is missing; whether it was cut has nothing to do with what came of it. So the windows that ended
early count as often as they would have been seen, had they gone on,

    G(i + j) / G(length),       G(t) = Π_{u≤t} (1 − episodes cut after u rows / episodes that went on to u rows),

by logger (Kaplan and Meier's estimate of when the recorder stops).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by

_LEAST, _TINY = -1e300, 1e-300


@dataclass(frozen=True)
class Paths:
    """The rows of all episodes in order: state, log of the target's ratio, and of every logger's to the same mixture.

    ``ratio`` is π/b of the row, with b its own probability, or the mixture of all loggers where ``loggers`` holds
    π_l/b of everybody (loggers × rows). ``length`` and ``ended`` are by episode, ``logger`` is who wrote it.
    """

    state: IntArray
    ratio: FloatArray
    length: IntArray
    ended: BoolArray
    logger: IntArray
    loggers: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return len(self.state)

    @cached_property
    def first(self) -> IntArray:
        """The first row of every episode."""
        return np.asarray(np.cumsum(self.length) - self.length, dtype=np.int64)

    @cached_property
    def episode(self) -> IntArray:
        """The episode of every row."""
        return np.repeat(np.arange(len(self.length)), self.length)

    @cached_property
    def left(self) -> IntArray:
        """Rows of the episode from every row on, itself among them."""
        return np.asarray((self.first + self.length)[self.episode] - np.arange(self.n_rows))

    @cached_property
    def _ratios(self) -> Products:
        return Products(self.ratio)

    @cached_property
    def _by_logger(self) -> tuple[Products, ...]:
        return () if self.loggers is None else tuple(map(Products, self.loggers))

    @cached_property
    def _watched(self) -> FloatArray:
        """G(t) by logger, for as many steps again as the longest episode has."""
        n, longest = int(self.logger.max(initial=0)) + 1, int(self.length.max(initial=0))
        watched = np.ones((n, 2 * longest + 2))
        for j in range(n):
            mine = self.logger == j
            cut = np.bincount(self.length[mine & ~self.ended], minlength=longest + 1).astype(np.float64)
            over = np.bincount(self.length[mine], minlength=longest + 1)
            on = np.append(np.cumsum(over[::-1])[::-1], 0.0)[1:] + cut
            stops = np.divide(cut, on, out=np.zeros(longest + 1), where=on > 0)
            watched[j, : longest + 1] = np.cumprod(1.0 - stops)
            watched[j, longest + 1 :] = watched[j, longest] if cut.any() else 1.0
        return watched

    def windows(self, begin: IntArray, rows: int) -> Windows:
        """Those of so many rows that begin there and were seen to their end."""
        left = self.left[begin]
        whole = left >= rows
        early = ~whole & self.ended[self.episode[begin]]
        seen = whole.astype(np.float64)
        cut = begin[early]
        own, at = self.logger[self.episode[cut]], cut - self.first[self.episode[cut]]
        asked = np.minimum(at + rows - 1, self._watched.shape[1] - 1)
        known = self._watched[own, self.length[self.episode[cut]] - 1]
        seen[early] = np.divide(self._watched[own, asked], known, out=np.zeros(len(cut)), where=known > 0)
        kept = seen > 0
        begin, seen, whole = begin[kept], seen[kept], whole[kept]
        last = begin + np.minimum(self.left[begin], rows) - 1
        return Windows(begin, last, whole, seen, self._weights(begin, last, seen))

    def _weights(self, begin: IntArray, last: IntArray, seen: FloatArray) -> FloatArray:
        """W, but for a factor that all of them share."""
        logs = self._ratios.logs(begin, last)
        if self._by_logger:
            below = self._mixture(begin, last, seen)
            logs = np.where(np.isneginf(logs) | np.isneginf(below), -np.inf, logs - np.maximum(below, _LEAST))
        top = float(logs.max(initial=-np.inf))
        return np.exp(logs - top) if np.isfinite(top) else np.zeros(len(logs))

    def _mixture(self, begin: IntArray, last: IntArray, seen: FloatArray) -> FloatArray:
        """log Σ_l p(l|s) Π π_l/b."""
        state, writer = self.state[begin], self.logger[self.episode[begin]]
        total, found = sum_by(state, seen), np.full(len(begin), -np.inf)
        for j, products in enumerate(self._by_logger):
            share = sum_by(state, seen * (writer == j), len(total)) / np.maximum(total, _TINY)
            with np.errstate(divide="ignore"):
                found = np.logaddexp(found, np.log(share)[state] + products.logs(begin, last))
        return found


@dataclass(frozen=True)
class Windows:
    """Where windows begin and end; ``whole`` are those of full length, ``seen`` how often each counts.

    ``weight`` is W, but for a factor that all of them share.
    """

    begin: IntArray
    last: IntArray
    whole: BoolArray
    seen: FloatArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.begin)


class Products:
    """Products of consecutive numbers that are not negative, from running sums of their logarithms."""

    def __init__(self, values: FloatArray) -> None:
        zero = ~(values > 0)
        self._total = np.append(0.0, np.cumsum(np.log(np.where(zero, 1.0, values))))
        self._zeros = np.append(0, np.cumsum(zero))

    def logs(self, begin: IntArray, last: IntArray) -> FloatArray:
        """The logarithm of the product from one place to another, both included."""
        none = self._zeros[last + 1] > self._zeros[begin]
        return np.where(none, -np.inf, self._total[last + 1] - self._total[begin])
