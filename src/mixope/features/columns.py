"""Normalised bumps on the columns of a state, each column as far as it matters: the default features of mixed states.

    φ_m(s) = g_m(s) / Σ_k g_k(s),     g_m(s) = exp(−d²(s, c_m) / 2 w_m²),
    d²(s, c) = Σ numbers (r_k Δz_k)² + Σ categories r_k² [s_k ≠ c_k],     z the standardised number

The relevance r_k of a column is between 0 and 1 (:mod:`mixope.requests.relevance`): columns of noise hardly move a
state, so that landmarks and bumps are spent on the others. A category is one-hot columns times r_k/√2, which makes the
distance of two levels r_k; landmarks c_m and widths w_m are chosen as for vectors (:mod:`mixope.features.bumps`), and
the cost is linear in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.features.bumps import FittedBumps, default_size, place
from mixope.features.encoding import StateEncoding
from mixope.logs import CODED, Role


@dataclass(frozen=True)
class ColumnFeatures:
    """``size`` bumps (by default as many as the sample can carry) on columns with these roles and relevances.

    Roles and relevances come from the logs where they are not given: all columns matter alike only if nothing is known.
    """

    size: int | None = None
    roles: tuple[Role, ...] | None = None
    relevance: tuple[float, ...] | None = None
    neighbour: int = 3
    single: bool = False

    def on(self, roles: Sequence[Role] | None, relevance: FloatArray) -> ColumnFeatures:
        """The same with what is known of the logs, where nothing else was said."""
        known = self.relevance if self.relevance is not None else tuple(map(float, relevance))
        return replace(self, roles=self.roles or (None if roles is None else tuple(roles)), relevance=known)

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedColumns:
        """Encode, weigh, place the centres, choose the widths."""
        encoding = StateEncoding.fit(observations, self.roles)
        relevance = np.ones(len(encoding.roles)) if self.relevance is None else np.array(self.relevance)
        halved = np.array([role in CODED for role in encoding.roles])
        by_column = np.where(halved, relevance / np.sqrt(2.0), relevance)
        weight = by_column[list(encoding.source)] if encoding.size else np.zeros(0)
        states = encoding.transform(observations) * weight
        if not encoding.size:
            states, weight = np.zeros((len(observations), 1)), np.zeros(1)
        centres, widths = place(states, self.size or default_size(len(states)), self.neighbour, seed)
        bumps = FittedBumps(np.zeros(len(weight)), np.ones(len(weight)), centres, widths, self.single)
        return FittedColumns(encoding, weight, bumps)


@dataclass(frozen=True)
class FittedColumns:
    """An encoding, the weight of each of its columns, and bumps on what comes out."""

    encoding: StateEncoding
    weight: FloatArray
    bumps: FittedBumps

    @property
    def size(self) -> int:
        """The number of bumps."""
        return self.bumps.size

    def transform(self, observations: AnyArray) -> FloatArray:
        """φ of every row."""
        if not self.encoding.size:
            return self.bumps.transform(np.zeros((len(observations), 1)))
        return self.bumps.transform(self.encoding.transform(observations) * self.weight)
