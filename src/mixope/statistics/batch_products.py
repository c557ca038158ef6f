"""The moment product on the host: float32 batches into arrays that are allocated once, totals in float64.

    A = Σ c (φ(s) − γ ρ φ(s′)) φ(s)ᵀ,     e = Σ c φ,     h = Σ c ρ φ,     g = Σ c ρ r φ,     Σ c ρ φ over ended rows

A batch costs little more than its one matrix product if everything before it stays in cache and no array is allocated
on the way: bumps are made a few hundred rows at a time straight into the operands, the sum that normalises φ(s′) goes
into the factor γ c ρ that multiplies it anyway, and the vectors come from one thin product. Same sums as
:mod:`mixope.statistics.device_moments`, for NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mixope.arrays import AnyArray, FloatArray
from mixope.errors import UsageError
from mixope.features.bumps import FittedBumps
from mixope.features.protocol import FittedMap
from mixope.statistics.moments import Moments

Narrow: TypeAlias = npt.NDArray[np.float32]

ROWS = 8192
_BLOCK = 512
#: Heights that sum to less have lost digits: the state is far from every bump and is done again with the largest at 1
_FAINT = 1e-20
_VECTORS = ("e", "h", "g", "ended")


@dataclass(frozen=True)
class BatchProducts:
    """Running sums of one pass; ``add`` takes batches of any length and leaves nothing behind but the sums."""

    features: FittedMap
    gamma: float = 1.0
    rows: int = ROWS
    _state: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise UsageError(f"expected batches of at least one row, got {self.rows}")
        m, n = self.features.size, self.rows
        self._state.update(
            phi=np.empty((n, m), np.float32),
            difference=np.empty((n, m), np.float32),
            product=np.empty((m, m), np.float32),
            thin=np.empty((len(_VECTORS), m), np.float32),
            total=np.zeros((m, m)),
            vectors=np.zeros((len(_VECTORS), m)),
            weight=0.0,
            n_rows=0,
            bumps=_Bumps(self.features, min(_BLOCK, n)) if isinstance(self.features, FittedBumps) else None,
        )

    def add(
        self,
        states: AnyArray,
        following: AnyArray,
        ratio: AnyArray,
        reward: AnyArray,
        weight: AnyArray | None = None,
        ended: AnyArray | None = None,
    ) -> None:
        """Add rows: s, s′, ρ, r, c (1 unless given), and which of them ended (their s′ counts for nothing)."""
        c = np.ones(len(ratio)) if weight is None else weight
        over = np.zeros(len(ratio)) if ended is None else np.asarray(ended, dtype=np.float64)
        for low in range(0, len(ratio), self.rows):
            piece = slice(low, low + self.rows)
            self._add(states[piece], following[piece], ratio[piece], reward[piece], c[piece], over[piece])

    def _add(
        self, states: AnyArray, following: AnyArray, ratio: AnyArray, reward: AnyArray, c: AnyArray, over: AnyArray
    ) -> None:
        own, n = self._state, len(ratio)
        phi, difference = own["phi"][:n], own["difference"][:n]
        flow = c * ratio
        back = self.gamma * flow * (1.0 - over)
        self._fill(states, following, c, back, phi, difference)
        own["total"] += np.matmul(difference.T, phi, out=own["product"])
        columns = np.stack([c, flow, flow * reward, flow * over]).astype(np.float32)
        own["vectors"] += np.matmul(columns, phi, out=own["thin"])
        own["weight"] += float(c.sum())
        own["n_rows"] += n

    def _fill(
        self, states: AnyArray, following: AnyArray, c: AnyArray, back: AnyArray, phi: Narrow, difference: Narrow
    ) -> None:
        """φ(s) and c φ(s) − back φ(s′)."""
        bumps: _Bumps | None = self._state["bumps"]
        if bumps is None:
            phi[:], difference[:] = self.features.transform(states), self.features.transform(following)
            difference *= -back[:, None].astype(np.float32)
            difference += phi * c[:, None].astype(np.float32)
            return
        even, own = bool((c == 1.0).all()), c.astype(np.float32)[:, None]
        factor, lifted, ahead = back.astype(np.float32), bumps.lifted(states), bumps.lifted(following)
        for low in range(0, len(phi), bumps.rows):
            piece = slice(low, low + bumps.rows)
            here, gap = phi[piece], difference[piece]
            here *= (1 / bumps.heights(lifted[piece], states[piece], here))[:, None]
            gap *= (factor[piece] / bumps.heights(ahead[piece], following[piece], gap))[:, None]
            np.subtract(here if even else here * own[piece], gap, out=gap)

    def moments(self, belongs_to: str = "") -> Moments:
        """The sums so far."""
        own = self._state
        vectors = {name: vector.copy() for name, vector in zip(_VECTORS, own["vectors"], strict=True)}
        arrays: dict[str, FloatArray] = {"a": own["total"].copy(), **vectors, "n": np.asarray(own["weight"])}
        return Moments(arrays, own["n_rows"], belongs_to)


class _Bumps:
    """Heights of bumps, before they are normalised, by one product of (z, |z|², 1) with a table."""

    def __init__(self, features: FittedBumps, rows: int) -> None:
        half = 0.5 / features.widths**2
        self.features, self.rows = features, rows
        self.table = np.vstack(
            [2.0 * (features.centres * half[:, None]).T, -half, -half * np.sum(features.centres**2, axis=1)]
        ).astype(np.float32)
        self.ones = np.ones(features.size, np.float32)

    def lifted(self, states: AnyArray) -> Narrow:
        """(z, |z|², 1)."""
        z = (states - self.features.mean) / self.features.scale
        return np.column_stack([z, np.sum(z**2, axis=1), np.ones(len(z))]).astype(np.float32)

    def heights(self, lifted: Narrow, states: AnyArray, out: Narrow) -> Narrow:
        """exp(−|z − c|²/2w²) into ``out``; their sum over bumps is given back."""
        np.matmul(lifted, self.table, out=out)
        np.exp(out, out=out)
        total: Narrow = out @ self.ones
        faint = np.flatnonzero(total < _FAINT)
        if len(faint):
            out[faint] = self.features.transform(np.asarray(states[faint], dtype=np.float64))
            total[faint] = 1.0
        return total
