"""The moment pass on an accelerator, in JAX: one matrix product a chunk of rows, added up as pairs of float32.

    ratio         A = Σ c (ψ(s) − γ ρ ψ(s′)) φ(s)ᵀ,   e = Σ c φ,   h = Σ c ρ φ,   g = Σ c ρ r φ     with ψ = φ
    calibration   K = Σ c ρ φφᵀ,   m = Σ c φ,   k = Σ c ρ φ,   Σ c²(ρ − 1)²φ²

C − γB is *one* product: the difference is taken before it. Operands are rounded (to nearest, so that errors average out
over rows) to what the matrix units read, products are summed in float32 within a chunk, and chunks are added without
loss as an unevaluated pair high + low (Knuth's two-sum); the host puts the pair together in float64.

Features lie with rows along the last axis, (M, n): both operands of the product are then contiguous in the summed
index, the layout in which TF32 products run fastest (one H200, 1024²: 190 million rows a second, against 111 with rows
along the first axis). Needs NumPy and JAX, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.errors import MissingExtra, UnknownName, UsageError
from mixope.features.bumps import FittedBumps
from mixope.features.protocol import FittedMap
from mixope.statistics.moments import Moments

Precision = Literal["tf32", "float32", "bf16", "bf16x3"]
Pass = Literal["ratio", "calibration"]
PRECISIONS = ("tf32", "float32", "bf16", "bf16x3")
#: Rows a product: long enough to fill the matrix units, short enough for float32 sums
CHUNK = 1 << 16
_UNROLLED = 16


class DeviceBatch(NamedTuple):
    """n rows: states and next states (n, d), or features (M, n) where no map is given; ρ, r, c, and 1 after an end."""

    states: Any
    following: Any
    ratio: Any
    reward: Any
    weight: Any
    ended: Any


def device_batch(
    states: AnyArray,
    following: AnyArray,
    ratio: AnyArray,
    reward: AnyArray | None = None,
    weight: AnyArray | None = None,
    ended: AnyArray | None = None,
) -> DeviceBatch:
    """A batch in float32 on the host; reward and end are 0 and weights are 1 unless given."""
    n = len(ratio)
    filled = [
        np.full(n, default) if array is None else array for array, default in ((reward, 0.0), (weight, 1.0), (ended, 0))
    ]
    return DeviceBatch(*(np.asarray(a, dtype=np.float32) for a in (states, following, ratio, *filled)))


def load_jax(purpose: str = "moments on an accelerator") -> Any:
    """JAX, or the line that installs it."""
    try:
        return import_module("jax")
    except ImportError as error:
        raise MissingExtra("jax", purpose) from error


@dataclass(frozen=True)
class DeviceMoments:
    """A pass over batches: ``features`` fitted (or None: batches hold features already), chunks of ``chunk`` rows.

    ``gram`` adds Σ c φφᵀ to the ratio's moments, at the price of a second product.
    """

    features: FittedMap | None
    gamma: float = 1.0
    precision: Precision = "tf32"
    kind: Pass = "ratio"
    gram: bool = False
    chunk: int = CHUNK

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UnknownName("precision", self.precision, PRECISIONS)
        if self.chunk < 1:
            raise UsageError(f"expected chunks of at least one row, got {self.chunk}")

    def total(self, batches: Iterable[DeviceBatch], belongs_to: str = "") -> Moments:
        """The moments of all batches: device sums, put together in float64 on the host."""
        sums, n_rows = None, 0
        for batch in batches:
            n = len(batch.ratio)
            sums, n_rows = self.add(sums, self._padded(batch)), n_rows + n
        if sums is None:
            return Moments()
        return Moments(joined(sums), n_rows, belongs_to)

    def add(self, sums: Any, batch: DeviceBatch) -> Any:
        """Device sums with a batch of whole chunks added; the old sums' memory is reused."""
        return self._run(self.zero(batch) if sums is None else sums, batch)

    def zero(self, batch: DeviceBatch) -> Any:
        """Sums of no rows, as pairs."""
        jax = load_jax()
        first = DeviceBatch(*(_shape(jax, a, self._cut(a, self.chunk)) for a in batch))
        shapes = jax.eval_shape(self.chunk_sums, first)
        return {name: (jax.numpy.zeros(s.shape), jax.numpy.zeros(s.shape)) for name, s in shapes.items()}

    @cached_property
    def _run(self) -> Callable[[Any, DeviceBatch], Any]:
        jax = load_jax()

        def run(sums: Any, batch: DeviceBatch) -> Any:
            n = batch.ratio.shape[0]
            if n == self.chunk:
                return _added(sums, self.chunk_sums(batch))

            def step(sums: Any, start: Any) -> tuple[Any, None]:
                part = DeviceBatch(*(self._slice(jax, a, start) for a in batch))
                return _added(sums, self.chunk_sums(part)), None

            return jax.lax.scan(step, sums, self.chunk * jax.numpy.arange(n // self.chunk))[0]

        compiled: Callable[[Any, DeviceBatch], Any] = jax.jit(run, donate_argnums=0)
        return compiled

    def chunk_sums(self, batch: DeviceBatch) -> dict[str, Any]:
        """The moments of one chunk in float32.

        φ is rounded and written to memory once, for the product and the sums to read: left to itself the compiler makes
        the bumps again in every sum.
        """
        here = self._features(batch.states)
        phi = load_jax().lax.optimization_barrier(rounded(here, self.precision))
        if self.kind == "calibration":
            return calibration_sums(phi, batch, self.precision)
        ahead = self._features(batch.following)
        c, flow = batch.weight, batch.weight * batch.ratio
        difference = here * c - ahead * (self.gamma * flow * (1.0 - batch.ended))
        sums = ratio_sums(phi, difference, batch, self.precision)
        if self.gram:
            sums["gram"] = product(phi * batch.weight, phi, self.precision)
        return sums

    def _features(self, states: Any) -> Any:
        """φ with rows along the last axis."""
        if self.features is None:
            return states
        if isinstance(self.features, FittedBumps) and states.shape[1] <= _UNROLLED:
            return bump_columns(self.features, states)
        return self.features.transform(states).T

    def _by_last_axis(self, ndim: int) -> bool:
        return self.features is None and ndim == 2

    def _cut(self, array: Any, rows: int) -> tuple[int, ...]:
        """The shape of ``rows`` rows."""
        return (array.shape[0], rows) if self._by_last_axis(array.ndim) else (rows, *array.shape[1:])

    def _slice(self, jax: Any, array: Any, start: Any) -> Any:
        axis = 1 if self._by_last_axis(array.ndim) else 0
        return jax.lax.dynamic_slice_in_dim(array, start, self.chunk, axis)

    def _padded(self, batch: DeviceBatch) -> DeviceBatch:
        """Whole chunks: rows of weight 0 at the end (a copy of row 0, so that all their features are finite)."""
        n = len(batch.ratio)
        missing = -n % self.chunk
        if missing == 0:
            return batch
        index = np.append(np.arange(n), np.zeros(missing, dtype=np.int64))
        taken = DeviceBatch(*(np.take(a, index, axis=1 if self._by_last_axis(a.ndim) else 0) for a in batch))
        return taken._replace(weight=np.where(np.arange(n + missing) < n, taken.weight, 0.0).astype(np.float32))


def ratio_sums(phi: Any, difference: Any, batch: DeviceBatch, precision: Precision) -> dict[str, Any]:
    """A, e, h, g of one chunk from φ and c φ(s) − γ c ρ φ(s′), of shape (M, n); Σ c ρ φ over ended rows apart."""
    c, flow = batch.weight, batch.weight * batch.ratio
    return {
        "a": product(difference, phi, precision),
        "e": (phi * c).sum(axis=1),
        "h": (phi * flow).sum(axis=1),
        "g": (phi * (flow * batch.reward)).sum(axis=1),
        "ended": (phi * (flow * batch.ended)).sum(axis=1),
        "n": c.sum(),
    }


def calibration_sums(phi: Any, batch: DeviceBatch, precision: Precision) -> dict[str, Any]:
    """K, m, k and the spread of one chunk, by the names of :class:`~mixope.behaviours.row_calibration`."""
    c, mass = batch.weight, batch.weight * batch.ratio
    return {
        "gram": product(phi * mass, phi, precision),
        "plain": (phi * c).sum(axis=1),
        "weighted": (phi * mass).sum(axis=1),
        "spread": (phi**2 * (mass - c) ** 2).sum(axis=1),
    }


def product(left: Any, right: Any, precision: Precision) -> Any:
    """left · rightᵀ over the last axis, operands rounded as ``precision`` says, summed in float32.

    Left alone, the TF32 units may cut the low bits off, which shifts every product of positive features the same way;
    rounding to nearest first is part of the elementwise work before the product.
    """
    jax = load_jax()
    lax = jax.lax
    how: Any = lax.Precision.HIGHEST
    if jax.default_backend() == "gpu" and precision in ("tf32", "bf16x3"):
        presets = lax.DotAlgorithmPreset
        how = presets.TF32_TF32_F32 if precision == "tf32" else presets.BF16_BF16_F32_X3
    left, right = rounded(left, precision), rounded(right, precision)
    how = None if precision == "bf16" else how
    return lax.dot_general(left, right, (((1,), (1,)), ((), ())), precision=how, preferred_element_type="float32")


def rounded(array: Any, precision: Precision) -> Any:
    """To nearest in TF32 or bfloat16; unchanged in the others."""
    if precision == "tf32":
        return load_jax().lax.reduce_precision(array, exponent_bits=8, mantissa_bits=10)
    return array.astype("bfloat16") if precision == "bf16" else array


def bump_columns(features: FittedBumps, states: Any) -> Any:
    """Normalised bumps (M, n) with the distances written out coordinate by coordinate.

    Then everything up to the product is elementwise or a sum over bumps: nothing but φ itself passes through memory.
    """
    numpy = load_jax().numpy
    mean, scale, centres, widths = (
        np.asarray(x, dtype=np.float32) for x in (features.mean, features.scale, features.centres, features.widths)
    )
    half = (-0.5 / widths**2)[:, None]
    distance = sum(((states[:, k] - mean[k]) / scale[k] - centres[:, k][:, None]) ** 2 for k in range(states.shape[1]))
    logits = half * distance
    heights = numpy.exp(logits - logits.max(axis=0))
    return heights / heights.sum(axis=0)


def joined(sums: Any) -> dict[str, FloatArray]:
    """high + low of every pair, in float64 on the host."""
    return {
        name: np.asarray(high, dtype=np.float64) + np.asarray(low, dtype=np.float64)
        for name, (high, low) in sums.items()
    }


def _added(sums: Any, parts: dict[str, Any]) -> Any:
    """Two-sum: high + part exactly, what rounding takes off goes to low."""
    added = {}
    for name, part in parts.items():
        high, low = sums[name]
        total = high + part
        taken = total - high
        lost = (high - (total - taken)) + (part - taken)
        added[name] = (total, low + lost)
    return added


def _shape(jax: Any, array: Any, shape: tuple[int, ...]) -> Any:
    return jax.ShapeDtypeStruct(shape, array.dtype)
