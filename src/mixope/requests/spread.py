"""How the rewards of one kind of step are spread, from sums: safe where it matters how far they lie apart.

Counts keep n, Σ r, the least l and the most h of the rewards of a group of rows. One more scan adds up what lies
above some knots c, S(c) = Σ (r − c)⁺. Between the knots (l and h among them, where S is n (r̄ − l) and 0) the
straight line lies above S, and it is the S of a law at the knots alone: every reward is shared out between the two
knots around it, so that it has the same mean. That law is spread at least as far as the rewards themselves (in convex
order), and the more knots there are, the closer it comes; it is exact where all rewards lie on knots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.logs import Schema
from mixope.requests.grouping import Aggregate, Grouping
from mixope.requests.quantities import above
from mixope.requests.transitions import Transitions, transition_grouping

KNOTS = 16
"""Even ones between the least and the most reward; and of those that are the least or the most of a group, so many."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Knots:
    """The law of rewards at knots: of every entry its group, its reward and the rows behind it."""

    group: IntArray
    reward: FloatArray
    rows: FloatArray


@dataclass(frozen=True)
class Spread:
    """Knots, rising, and Σ (r − c)⁺ for every group and knot: shape (groups, knots)."""

    knots: FloatArray
    above: FloatArray

    @classmethod
    def unknown(cls, groups: int) -> Spread:
        """Nothing but the least and the most of every group."""
        return cls(np.zeros(0), np.zeros((groups, 0)))

    def merged(self, groups: IntArray, into: IntArray, n: int) -> Spread:
        """Some of the groups, added up."""
        columns = [sum_by(into, column[groups], n) for column in self.above.T]
        return Spread(self.knots, np.stack(columns, axis=1) if columns else np.zeros((n, 0)))

    def laws(self, rows: FloatArray, total: FloatArray, least: FloatArray, most: FloatArray) -> Knots:
        """The law of every group at its least, its most and the knots between them."""
        n = len(rows)
        edge = np.maximum(total - rows * least, 0.0)
        at, slope = least, -rows
        height, entries = edge, []
        for knot, column in zip((*self.knots, np.inf), (*self.above.T, np.zeros(n)), strict=True):
            here = np.clip(knot, least, most)
            found = np.where(knot <= least, edge, np.where(knot >= most, 0.0, column))
            wide = here - at
            new = np.divide(found - height, wide, out=slope.copy(), where=wide > 0)
            entries.append((at, new - slope))
            at, slope, height = here, new, found
        entries.append((at, -slope))
        mass = np.stack([each for _, each in entries])
        kept = np.nonzero(mass > ROUNDING * rows)
        reward = np.stack([np.broadcast_to(each, n) for each, _ in entries])
        shares = mass[kept] / sum_by(kept[1], mass[kept], n)[kept[1]]
        return Knots(kept[1], reward[kept], shares * rows[kept[1]])


def useful_knots(rows: Transitions) -> FloatArray:
    """Where to ask; nowhere if every group earned one number only."""
    if not np.any(rows.lowest < rows.highest):
        return np.zeros(0)
    ends = np.unique(np.concatenate([rows.lowest, rows.highest]))
    if len(ends) > KNOTS:
        ends = np.quantile(np.concatenate([rows.lowest, rows.highest]), np.linspace(0, 1, KNOTS), method="nearest")
    return np.unique(np.concatenate([ends, np.linspace(ends[0], ends[-1], KNOTS)]))


def spread_grouping(schema: Schema, knots: FloatArray) -> Grouping:
    """What lies above every knot, by the same keys as the counts."""
    known = transition_grouping(schema)
    sums = (Aggregate(f"above {k}", "sum", (above(float(knot)),)) for k, knot in enumerate(knots))
    return Grouping(known.keys, (Aggregate("rows", "count"), *sums), known.belongs_to)
