"""States with few neighbours are taken out of a large chain, exactly: what is left is small and mixes fast.

Where few rows were logged in a state, most states have one or two ways on, and some hold the chain for long: an
iteration creeps through them, and factors of the whole matrix fill up. Written as rates, A = diag(N 1 + l) − N with N
the flow to other states and l what leaks. Take out states F, no two of which are neighbours; with D = (N 1 + l)_F and
C the other states,

    N′ = N_CC + N_CF D⁻¹ N_FC  (less its diagonal)       l′ = l_C + N_CF D⁻¹ l_F
    A x = b      b′ = b_C + N_CF D⁻¹ b_F                 x_F = D⁻¹ (b_F + N_FC x_C)
    x A = b      b′ = b_C + b_F D⁻¹ N_FC                 x_F = (b_F + x_C N_CF) D⁻¹

Nothing is subtracted, so that nothing cancels (Grassmann, Taksar and Heyman, 1985). A state with i ways in and o ways
out leaves at most i·o new ways behind: only those with few are taken out, the thinnest first, so that time and memory
are linear in the chain. :mod:`mixope.solvers.chain` solves what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixope.base.arrays import BoolArray, FloatArray, IntArray

_MOST_WAYS = (4, 9, 16, 36)
"""Ways in times ways out of the states that are taken out, from the first rounds to the last."""
_WORTHWHILE = 0.05
"""A round that takes out a smaller share of the states is the last with its limit."""


@dataclass(frozen=True)
class Round:
    """The states that went (``out``) and stayed, by their numbers in this round, D, and the flow between them."""

    out: IntArray
    stayed: IntArray
    rate: FloatArray
    leaving: sparse.csr_matrix
    """N_FC"""
    entering: sparse.csr_matrix
    """N_CF"""

    def shorten(self, right: FloatArray, trans: str) -> FloatArray:
        """b′."""
        passed = right[self.out] / self.rate
        return np.asarray(right[self.stayed] + (self.entering @ passed if trans == "N" else self.leaving.T @ passed))

    def lengthen(self, x: FloatArray, right: FloatArray | None, trans: str) -> FloatArray:
        """x on all states of this round; no ``right`` is zero."""
        found = np.empty(len(self.out) + len(self.stayed))
        arrived = self.leaving @ x if trans == "N" else self.entering.T @ x
        found[self.stayed] = x
        found[self.out] = (arrived if right is None else arrived + right[self.out]) / self.rate
        return found


@dataclass(frozen=True)
class Thinned:
    """What is left of A, as the chain D⁻¹ N and the rates D, and the rounds that led there.

    Nothing in the chain stays where it is, but for a state that is left alone: it has no rate, and 1 stands for it.
    """

    transition: sparse.csr_matrix
    rate: FloatArray
    rounds: Sequence[Round]

    def shorten(self, right: FloatArray, trans: str) -> tuple[FloatArray, list[FloatArray]]:
        """The right side for what is left, and those of all rounds."""
        sides = []
        for each in self.rounds:
            sides.append(right)
            right = each.shorten(right, trans)
        return right, sides

    def lengthen(self, x: FloatArray, sides: Sequence[FloatArray] | None, trans: str) -> FloatArray:
        """The solution on all states; ``sides`` is None where all are zero."""
        for number in reversed(range(len(self.rounds))):
            x = self.rounds[number].lengthen(x, None if sides is None else sides[number], trans)
        return x


def thin_out(matrix: sparse.csr_matrix, leak: FloatArray, least: int) -> Thinned:
    """Take out states of I − ``matrix`` until none with few neighbours or no more than ``least`` are left.

    ``leak`` is one less the sums of the rows: zeros for a chain that goes on for ever.
    """
    flow, rounds, random = _between_states(matrix), [], np.random.default_rng(0)
    for most in _MOST_WAYS:
        while flow.shape[0] > max(least, 1):
            rate = np.asarray(flow.sum(axis=1)).ravel() + leak
            chosen = _choose(flow, rate > 0, most, random)
            if np.count_nonzero(chosen) < _WORTHWHILE * len(chosen):
                break
            found = _round(flow, rate, chosen)
            passed = sparse.csr_matrix(found.entering @ sparse.diags_array(1.0 / found.rate))
            leak = leak[found.stayed] + passed @ leak[found.out]
            flow = _between_states(flow[found.stayed][:, found.stayed] + passed @ found.leaving)
            rounds.append(found)
    rate = np.asarray(flow.sum(axis=1)).ravel() + leak
    held = np.where(rate == 0, 1.0, 0.0)
    rate = rate + held
    transition = sparse.diags_array(1.0 / rate) @ flow + sparse.diags_array(held)
    return Thinned(_without_zeros(transition), rate, tuple(rounds))


def _without_zeros(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    found = sparse.csr_matrix(matrix)
    found.eliminate_zeros()
    return found


def _round(flow: sparse.csr_matrix, rate: FloatArray, chosen: BoolArray) -> Round:
    out, stayed = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    return Round(out, stayed, rate[out], flow[out][:, stayed], flow[stayed][:, out])


def _between_states(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Without its diagonal."""
    entries = sparse.coo_matrix(matrix)
    kept = (entries.row != entries.col) & (entries.data != 0)
    places = entries.row[kept], entries.col[kept]
    return sparse.csr_matrix((entries.data[kept], places), shape=matrix.shape)


def _choose(flow: sparse.csr_matrix, possible: BoolArray, most: int, random: np.random.Generator) -> BoolArray:
    """States with few ways in and out, no two of them neighbours, and never all: those that win a draw of lots."""
    back, n = flow.T.tocsr(), flow.shape[0]
    thin = possible & (np.diff(flow.indptr).astype(np.int64) * np.diff(back.indptr) <= most)
    lot = np.where(thin, random.permutation(n) + 1, 0)
    chosen = thin & (lot > _largest_next_to(flow, lot)) & (lot > _largest_next_to(back, lot))
    if chosen.all():
        chosen[-1] = False
    return np.asarray(chosen, dtype=np.bool_)


def _largest_next_to(flow: sparse.csr_matrix, lot: IntArray) -> IntArray:
    """The largest lot among the states that each leads to."""
    found, leads = np.zeros(flow.shape[0], dtype=lot.dtype), np.flatnonzero(np.diff(flow.indptr))
    if len(leads):
        found[leads] = np.maximum.reduceat(lot[flow.indices], flow.indptr[leads])
    return found
