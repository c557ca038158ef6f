"""The long run of a chain: average reward η, stationary law d and differential value V, from one factorisation.

    d = d P,   Σ d = 1,   η = Σ d r,        V = r − η + P V,   Σ d V = 0.

Fix a recurrent *anchor* state k and let P₋ be P without its row and column. I − P₋ is invertible, because k is reached
from everywhere with probability 1, and serves both equations (up to scale, and up to a constant):

    d₋ (I − P₋) = P(k, ·)₋  with d(k) = 1,        (I − P₋) V₋ = (r − η)₋  with V(k) = 0.

Only what is reached from the start law counts: the chain must have one closed class there. States that could be caught
in another closed class have no differential value relative to η (NaN).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from mixope.arrays import BoolArray, FloatArray, IntArray
from mixope.environments.chain import Chain
from mixope.errors import UsageError

ANCHOR_STEPS = 64


@dataclass(frozen=True, eq=False)
class LongRun:
    """η, d (0 outside the recurrent class) and V (NaN where the chain may end up elsewhere)."""

    average: float
    stationary: FloatArray
    differential_value: FloatArray


def solve(chain: Chain) -> LongRun:
    """η, d and V by the equations above."""
    home, domain = _recurrent_class(chain)
    anchor = _often_visited(chain, home)
    rest = np.flatnonzero(domain & (np.arange(len(home)) != anchor))
    P = chain.matrix
    lu = splu(sparse.csc_array(sparse.eye_array(len(rest)) - P[rest][:, rest]))
    d = np.zeros(len(home))
    d[anchor] = 1.0
    leaving = P[[anchor]].toarray()[0, rest]
    d[rest] = lu.solve(leaving, trans="T")  # type: ignore[call-overload]  # the stubs do not know of trans
    d = np.where(home, np.maximum(d, 0.0), 0.0)
    d /= d.sum()
    average = float(d @ chain.reward)
    V = np.full(len(home), np.nan)
    V[anchor] = 0.0
    V[rest] = lu.solve(chain.reward[rest] - average)
    return LongRun(average, d, V - d[home] @ V[home])


def _recurrent_class(chain: Chain) -> tuple[BoolArray, BoolArray]:
    """The closed class reached from the start, and the states that end up in it for sure."""
    count, label = csgraph.connected_components(chain.matrix, directed=True, connection="strong")
    closed = _closed_classes(chain.matrix, label.astype(np.int64), count)
    reached = _reachable(chain.matrix, np.flatnonzero(chain.start > 0))
    classes = np.unique(label[reached & closed[label]])
    if len(classes) != 1:
        raise UsageError(
            f"the long run depends on chance: the policy can end up in {len(classes)} separate closed classes;"
            " ask for a discounted or horizon value, or give the policy full support"
        )
    home = label == classes[0]
    elsewhere = closed[label] & ~home
    doomed = _reachable(sparse.csr_array(chain.matrix.T), np.flatnonzero(elsewhere))
    return home, ~doomed


def _closed_classes(matrix: sparse.csr_array, label: IntArray, count: int) -> BoolArray:
    """Which strongly connected components have no way out."""
    edges = matrix.tocoo()
    leaves = label[edges.row] != label[edges.col]
    closed = np.ones(count, dtype=bool)
    closed[label[edges.row[leaves]]] = False
    return closed


def _reachable(matrix: sparse.csr_array, sources: IntArray) -> BoolArray:
    """The states reached from any of the sources, the sources included."""
    found = np.zeros(matrix.shape[0], dtype=bool)
    found[sources] = True
    frontier = found
    while frontier.any():
        step = (frontier.astype(np.float64) @ matrix) > 0
        frontier = step & ~found
        found = found | frontier
    return found


def _often_visited(chain: Chain, home: BoolArray) -> int:
    """A recurrent state of large mass: an anchor that is rarely visited would make I − P₋ nearly singular."""
    law, visits = chain.start, np.zeros(len(home))
    for _ in range(ANCHOR_STEPS):
        law = law @ chain.matrix
        visits += law
    return int(np.where(home, visits, -1.0).argmax())
