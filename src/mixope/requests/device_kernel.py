"""The programmes of :mod:`mixope.requests.device_moments`: from points and factors of a piece to its sums.

Bumps are made by a kernel that keeps their logarithms on the chip, twice: once to find their sum, once to write them;
on JAX's processor by the same formula in plain JAX. Features are filled up to a multiple of ``TILE`` with bumps that
are zero everywhere, so that all products have full tiles.

Importing this module imports JAX.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas

from mixope.features.points import Points
from mixope.requests.device_plan import CutPlan, DevicePlan, ProductPlan, Side, Sides, SquarePlan, SumPlan, TotalPlan
from mixope.requests.rows import FOLDS

Precision = Literal["float32", "tf32", "bfloat16"]
"""Of products: float32 as three products of halves, or a single one that rounds features to 11 bits, or to 8."""
TILE = 64
"""Bumps are made so many at a time, for as many rows."""
_NOWHERE = -1e30
_LOG2_E = float(np.log2(np.e))


class BumpTable(NamedTuple):
    """The bumps of a map: log₂ φ = table · (z, |z|², 1, 0 …), less that of their sum; and 1 where a bump is one."""

    lifted: Any
    real: Any


class FoldRows(NamedTuple):
    """Rows of one fold, along the last axis: points by encoding, those of the next states unless chained, factors."""

    points: tuple[Any, ...]
    ahead: tuple[Any, ...]
    factors: Any


def padded_size(points: Points) -> int:
    """Bumps of a map, with those that fill up the last tile."""
    return -(-len(points.widths) // TILE) * TILE


def table_of(points: Points) -> BumpTable:
    """In single precision, ready to be sent."""
    half, (size, d) = _LOG2_E * 0.5 / points.widths**2, points.centres.shape
    lifted = np.zeros((padded_size(points), -(-(d + 2) // 16) * 16), dtype=np.float32)
    lifted[:size, :d] = 2.0 * half[:, None] * points.centres
    lifted[:size, d] = -half
    lifted[:, d + 1] = _NOWHERE
    lifted[:size, d + 1] = -half * (points.centres**2).sum(axis=1)
    return BumpTable(lifted, (np.arange(len(lifted)) < size).astype(np.float32))


def zeros(plan: DevicePlan, device: Any) -> tuple[Any, ...]:
    """Totals of no rows."""
    with jax.default_device(device):
        return tuple(jnp.zeros(_shape(plan, each), dtype=jnp.float32) for each in plan.sums)


def _shape(plan: DevicePlan, each: SumPlan) -> tuple[int, ...]:
    match each:
        case CutPlan():
            return (1,)
        case ProductPlan(left, right, by_fold):
            sizes = (plan.sizes[sides[0].features] * sides[0].width for sides in (left, right))
            return (FOLDS if by_fold else 1, *sizes)
        case SquarePlan(side, _, _, by_fold):
            size = plan.sizes[side.features] * side.width
            return (FOLDS if by_fold else 1, size + 1, size)
        case TotalPlan(sides, by_fold):
            return (FOLDS if by_fold else 1, sides[0].width * plan.sizes[sides[0].features])


@partial(jax.jit, donate_argnums=0)
def added(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Two totals; the first is overwritten."""
    return tuple(a + b for a, b in zip(left, right, strict=True))


@lru_cache(maxsize=32)
def programme(plan: DevicePlan, encodings: tuple[int, ...], lag: int, precision: Precision, on_chip: bool) -> Any:
    """One piece added to the totals, which are overwritten; ``lag`` columns after a row is its next state, if any."""
    return jax.jit(partial(_step, plan, encodings, lag, precision, on_chip), donate_argnums=0)


def _step(
    plan: DevicePlan,
    encodings: tuple[int, ...],
    lag: int,
    precision: Precision,
    on_chip: bool,
    totals: tuple[Any, ...],
    tables: tuple[BumpTable, ...],
    etas: tuple[Any, ...],
    sheet: FoldRows,
    fold: Any,
) -> tuple[Any, ...]:
    features = partial(bumps, on_chip=on_chip, precision=precision)
    here = tuple(features(table, sheet.points[k]) for table, k in zip(tables, encodings, strict=True))
    if lag:
        ahead = tuple(jnp.pad(phi[:, lag:], ((0, 0), (0, lag))) for phi in here)
    else:
        ahead = tuple(features(table, sheet.ahead[k]) for table, k in zip(tables, encodings, strict=True))
    gates = tuple(1.0 + _exact(eta[None], here[k])[0] for eta, k in zip(etas, plan.gates, strict=True))
    real = tuple(table.real for table in tables)
    return FeaturePiece(here, ahead, gates, sheet.factors, real, lag, precision).added(plan, totals, fold)


class FeaturePiece(NamedTuple):
    """A piece while it is worked on: its features are there."""

    here: tuple[Any, ...]
    ahead: tuple[Any, ...]
    gates: tuple[Any, ...]
    factors: Any
    real: tuple[Any, ...]
    lag: int
    precision: Precision

    def added(self, plan: DevicePlan, totals: tuple[Any, ...], fold: Any) -> tuple[Any, ...]:
        """The totals with this piece."""
        return tuple(self._added(each, total, fold) for each, total in zip(plan.sums, totals, strict=True))

    def _added(self, each: SumPlan, total: Any, fold: Any) -> Any:
        match each:
            case CutPlan(gate, where):
                return total + jnp.sum((self.gates[gate] < 0) * self.factors[where])
            case ProductPlan(left, right, by_fold):
                product = self._product(self._columns(left), self._columns(right))
                return total.at[fold if by_fold else 0].add(product)
            case SquarePlan(by_fold=by_fold):
                square, mean = self._square(each)
                k = fold if by_fold else 0
                return total.at[k, :-1].add(square).at[k, -1].add(mean)
            case TotalPlan(sides, by_fold, squared):
                found = sum(self._total(side, self._factor(side), squared) for side in sides)
                return total.at[fold if by_fold else 0].add(found)

    def _square(self, plan: SquarePlan) -> tuple[Any, Any]:
        """Σ w (x − μ)(x − μ)ᵀ and Σ w x."""
        side, weight = plan.side, self.factors[plan.weight]
        real = self.real[side.features]
        centre = (jnp.asarray(plan.centre)[:, None] * (real / jnp.sum(real))[None]).reshape(-1)
        off = (self._crossed(side) - centre[:, None]) * jnp.sqrt(weight)
        factor = weight[None] if side.first < 0 else weight * self._factor(side)
        return self._product(off, None), self._total(side, factor, squared=False)

    def _product(self, left: Any, right: Any | None) -> Any:
        """left rightᵀ, or left leftᵀ."""
        if self.precision != "float32":
            kind = jnp.float32 if self.precision == "tf32" else jnp.bfloat16
            left = left.astype(kind)
            return product(left, left if right is None else right.astype(kind))
        (high, low), (tall, small) = _halves(left), _halves(left if right is None else right)
        across = product(high, small)
        return product(high, tall) + across + (across.T if right is None else product(low, tall))

    def _total(self, side: Side, factor: Any, squared: bool) -> Any:
        """Σ φ ⊗ f: factors times φ, in full single precision, so that no columns are made."""
        if side.following and self.lag:
            phi, factor = self.here[side.features], jnp.pad(factor[:, : -self.lag], ((0, 0), (self.lag, 0)))
        else:
            phi = (self.ahead if side.following else self.here)[side.features]
        phi = phi.astype(jnp.float32)
        each = phi**2 if squared else phi
        return jnp.concatenate([jnp.sum(each * factor[k], axis=1) for k in range(side.width)])

    def _factor(self, side: Side) -> Any:
        factor = self.factors[side.first : side.first + side.width]
        return factor if side.gate < 0 else factor * jnp.maximum(self.gates[side.gate], 0.0)

    def _columns(self, sides: Sides) -> Any:
        return sum(self._crossed(side) for side in sides)

    def _crossed(self, side: Side) -> Any:
        phi = (self.ahead if side.following else self.here)[side.features]
        if side.first < 0:
            return phi
        factor = self._factor(side)
        if side.width == 1:
            return phi * factor
        return (phi[None] * factor[:, None]).reshape(side.width * phi.shape[0], phi.shape[1])


def _halves(values: Any) -> tuple[Any, Any]:
    """The first eleven bits, and the rest: what a product in TF32 takes without rounding, and what it hardly rounds."""
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32) & jnp.uint32(0xFFFFE000)
    high = jax.lax.bitcast_convert_type(bits, jnp.float32)
    return high, values - high


def product(left: Any, right: Any) -> Any:
    """left rightᵀ, added up in single precision."""
    return jax.lax.dot_general(left, right, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)


def _exact(left: Any, right: Any) -> Any:
    """left · right, in full single precision."""
    return jnp.matmul(left, right.astype(jnp.float32), precision=jax.lax.Precision.HIGHEST)


def bumps(table: BumpTable, points: Any, on_chip: bool, precision: Precision = "float32") -> Any:
    """φ (size, n) of points (d, n); with products in bfloat16, φ is no better than that."""
    d, n = points.shape
    rest = table.lifted.shape[1] - d - 2
    lifted = jnp.concatenate([points, jnp.sum(points**2, axis=0)[None], jnp.ones((1, n)), jnp.zeros((rest, n))])
    kind = jnp.bfloat16 if precision == "bfloat16" else jnp.float32
    if on_chip and n % TILE == 0:
        return in_tiles(table.lifted, lifted, kind)
    logs = _exact(table.lifted, lifted)
    heights = jnp.exp2(logs - jnp.max(logs, axis=0))
    return (heights / jnp.sum(heights, axis=0)).astype(kind)


def in_tiles(table: Any, lifted: Any, kind: Any, *, interpret: bool = False) -> Any:
    """The kernel, for a tile of rows at a time."""
    (size, width), n = table.shape, lifted.shape[1]
    return pallas.pallas_call(
        _tile,
        grid=(n // TILE,),
        in_specs=[
            pallas.BlockSpec((size, width), lambda i: (0, 0)),
            pallas.BlockSpec((width, TILE), lambda i: (0, i)),
        ],
        out_specs=pallas.BlockSpec((size, TILE), lambda i: (0, i)),
        out_shape=jax.ShapeDtypeStruct((size, n), kind),
        interpret=interpret,
    )(table, lifted)


def _tile(table: Any, lifted: Any, out: Any) -> None:
    """All bumps of some rows: largest logarithm and sum in one go over the tiles of bumps, then the bumps."""
    points, tiles = lifted[...], out.shape[0] // TILE

    def logs(k: Any) -> Any:
        part = table[pallas.ds(k * TILE, TILE), :]
        return jnp.dot(part, points, precision=jax.lax.Precision.HIGHEST, preferred_element_type=jnp.float32)

    def look(k: Any, found: tuple[Any, Any]) -> tuple[Any, Any]:
        (top, total), here = found, logs(k)
        above = jnp.maximum(top, jnp.max(here, axis=0))
        return above, total * jnp.exp2(top - above) + jnp.sum(jnp.exp2(here - above[None]), axis=0)

    def write(k: Any, nothing: Any) -> Any:
        out[pallas.ds(k * TILE, TILE), :] = jnp.exp2(logs(k) - norm[None]).astype(out.dtype)
        return nothing

    begin = jnp.full((TILE,), _NOWHERE, jnp.float32), jnp.zeros((TILE,), jnp.float32)
    top, total = jax.lax.fori_loop(0, tiles, look, begin)
    norm = top + jnp.log2(total)
    jax.lax.fori_loop(0, tiles, write, 0)
