"""A small network in NumPy: two hidden layers, the second one normalised, and a linear last.

    h₁ = relu(x W₁ + b₁),   h₂ = relu(norm(h₁ W₂ + b₂)),   q = h₂ · w + c

Gradients are written out, so that a plain install has them; at this size a matrix product takes longer than what
compiling it would save. Normalisation keeps h₂ bounded wherever x goes, which is what keeps a value that is fitted to
its own predictions from running away; the first layer has none, because a normalised one sees directions and hardly any
sizes of x. Sums are in a fixed order, so that the same seed gives the same bits, and in double precision: thousands of
steps magnify a rounding a million-fold, so that in single precision another processor finds another network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray

EPSILON = 1e-5
_FIRST_BIAS = 0.5
_PIECE = 4096
"""Rows that are looked at together where only values are wanted."""

Parameters = Sequence[FloatArray]
"""W₁, b₁, W₂, b₂, w, c."""


@dataclass(frozen=True)
class Networks:
    """Several networks of one shape."""

    members: tuple[Parameters, ...]

    def __len__(self) -> int:
        return len(self.members)

    def values(self, inputs: FloatArray) -> FloatArray:
        """q of rows (n, d), for every network: (networks, n)."""
        return np.stack([valued(parameters, inputs) for parameters in self.members])


def new_network(inputs: int, width: int, generator: np.random.Generator) -> list[FloatArray]:
    """Parameters to begin with: variances of He, and a last layer of zeros, so that −y is learned as y is."""

    def normal(*shape: int, scale: float) -> FloatArray:
        return scale * generator.standard_normal(shape)

    return [
        normal(inputs, width, scale=float(np.sqrt(2.0 / max(inputs, 1)))),
        normal(width, scale=_FIRST_BIAS),
        normal(width, width, scale=float(np.sqrt(2.0 / width))),
        np.zeros(width),
        np.zeros(width),
        np.zeros(1),
    ]


def forward(parameters: Parameters, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """h₁ and h₂ of rows, the normalised numbers before the second relu, and what they were divided by."""
    first, first_bias, second, second_bias, *_ = parameters
    one = x @ first
    one += first_bias
    np.maximum(one, 0.0, out=one)
    normed = one @ second
    normed += second_bias
    normed -= normed.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.einsum("ij,ij->i", normed, normed) / normed.shape[1] + EPSILON)[:, None]
    normed /= scale
    return one, np.maximum(normed, 0.0), normed, scale


def gradients(parameters: Parameters, x: FloatArray, y: FloatArray) -> list[FloatArray]:
    """Of the mean square of q(x) − y, half of it."""
    *_, second, _, last, level = parameters
    one, two, normed, scale = forward(parameters, x)
    off = (two @ last + level - y) / len(y)
    back = off[:, None] * last
    back *= normed > 0.0
    along = np.einsum("ij,ij->i", back, normed)[:, None] / normed.shape[1]
    back -= back.mean(axis=1, keepdims=True)
    back -= normed * along
    back /= scale
    earlier = back @ second.T
    earlier *= one > 0.0
    return [
        x.T @ earlier,
        earlier.sum(axis=0),
        one.T @ back,
        back.sum(axis=0),
        two.T @ off,
        off.sum(keepdims=True),
    ]


def valued(parameters: Parameters, x: FloatArray) -> FloatArray:
    """q of rows."""
    *_, last, level = parameters
    pieces = [x[low : low + _PIECE] for low in range(0, max(len(x), 1), _PIECE)]
    return np.concatenate([forward(parameters, piece)[1] @ last + level for piece in pieces])


class Adam:
    """Adam's steps on some parameters, which are changed in place."""

    def __init__(self, parameters: list[FloatArray]) -> None:
        self.parameters = parameters
        self._mean = [np.zeros_like(p) for p in parameters]
        self._square = [np.zeros_like(p) for p in parameters]
        self._count = 0

    def step(self, found: Parameters, rate: float, decay: float = 0.0) -> None:
        """One step along the gradients; weights, not biases, decay."""
        self._count += 1
        first, second = 1.0 - 0.9**self._count, 1.0 - 0.999**self._count
        size = rate / first
        for k, gradient in enumerate(found):
            mean, square = self._mean[k], self._square[k]
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            if decay and k % 2 == 0:
                self.parameters[k] *= 1.0 - rate * decay
            self.parameters[k] -= size * mean / (np.sqrt(square / second) + 1e-8)


class ParameterMean:
    """The mean of parameters over some steps."""

    def __init__(self, like: Parameters) -> None:
        self._total = [np.zeros(p.shape) for p in like]
        self._count = 0

    def add(self, parameters: Parameters) -> None:
        """One step more."""
        self._count += 1
        for k, now in enumerate(parameters):
            self._total[k] += now

    @property
    def parameters(self) -> list[FloatArray]:
        """The mean."""
        return [total / max(self._count, 1) for total in self._total]
