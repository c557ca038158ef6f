"""Small networks in NumPy, several of one shape side by side: two layers with layer normalisation, and a linear last.

    h₁ = silu(norm(x W₁ + b₁)),   h₂ = silu(norm(h₁ W₂ + b₂)),   q = h₂ · w + c

Gradients are written out, so that a plain install has them; at this size a matrix product takes longer than what
compiling it would save. Normalisation keeps h₂ bounded wherever x goes, which is what keeps a value that is fitted to
its own predictions from running away. They are trained in single precision, with sums in a fixed order, so that the
same seed gives the same bits; values are given in double precision, so that they do not depend on the rows beside them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import FloatArray

_EPSILON = 1e-5
_PIECE = 4096
"""Rows that are looked at together where only values are wanted."""

Parameters = list[FloatArray]
"""W₁, b₁, W₂, b₂, w, c, each with the networks along its first axis."""


@dataclass(frozen=True)
class Networks:
    """Some networks of one shape."""

    parameters: tuple[FloatArray, ...]

    def __len__(self) -> int:
        return len(self.parameters[0])

    def values(self, inputs: FloatArray) -> FloatArray:
        """q of rows (n, d), for every network: (networks, n)."""
        return valued(self.parameters, inputs[None])


def single(values: FloatArray) -> FloatArray:
    """In single precision."""
    found: FloatArray = values.astype(np.float32)
    return found


def new_networks(count: int, inputs: int, width: int, seed: int) -> Parameters:
    """Parameters to begin with: variances of He, and a last layer of zeros, so that −y is learned as y is."""
    generator = np.random.default_rng([seed, 61])

    def normal(*shape: int, scale: float) -> FloatArray:
        return np.asarray(scale * generator.standard_normal((count, *shape)), dtype=np.float32)

    zero: FloatArray = np.zeros((count, 1, width), dtype=np.float32)
    return [
        normal(inputs, width, scale=float(np.sqrt(2.0 / max(inputs, 1)))),
        zero.copy(),
        normal(width, width, scale=float(np.sqrt(2.0 / width))),
        zero.copy(),
        np.swapaxes(zero, 1, 2).copy(),
        zero[..., :1].copy(),
    ]


Layer = tuple[FloatArray, FloatArray, FloatArray]
"""norm(u), what it was divided by, and the sigmoid of it."""


def forward(parameters: tuple[FloatArray, ...] | Parameters, x: FloatArray) -> list[tuple[FloatArray, Layer]]:
    """The output of each hidden layer, with what its gradient needs."""
    first, first_bias, second, second_bias, *_ = parameters
    one = _layer(np.matmul(x, first) + first_bias)
    return [one, _layer(np.matmul(one[0], second) + second_bias)]


def _layer(u: FloatArray) -> tuple[FloatArray, Layer]:
    u = u - u.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.mean(u * u, axis=-1, keepdims=True) + np.float32(_EPSILON))
    u /= scale
    gate = np.reciprocal(1.0 + np.exp(-u))
    return u * gate, (u, scale, gate)


def _back(gradient: FloatArray, layer: Layer) -> FloatArray:
    """From the gradient of silu(norm(u)) to that of u."""
    normed, scale, gate = layer
    g = gradient * (gate * (1.0 + normed * (1.0 - gate)))
    g -= g.mean(axis=-1, keepdims=True) + normed * np.mean(g * normed, axis=-1, keepdims=True)
    g /= scale
    return g


def gradients(parameters: Parameters, x: FloatArray, y: FloatArray) -> Parameters:
    """Of the mean square of q(x) − y, half of it, for every network: x is (networks, n, d), y (networks, n)."""
    *_, second, _, last, level = parameters
    (h1, one), (h2, two) = forward(parameters, x)
    off = (np.matmul(h2, last) + level)[..., 0] - y
    off = (off / np.float32(y.shape[1]))[..., None]
    u2 = _back(off * np.swapaxes(last, 1, 2), two)
    u1 = _back(np.matmul(u2, np.swapaxes(second, 1, 2)), one)
    return [
        np.matmul(np.swapaxes(x, 1, 2), u1),
        u1.sum(axis=1, keepdims=True),
        np.matmul(np.swapaxes(h1, 1, 2), u2),
        u2.sum(axis=1, keepdims=True),
        np.matmul(np.swapaxes(h2, 1, 2), off),
        off.sum(axis=1, keepdims=True),
    ]


def valued(parameters: tuple[FloatArray, ...] | Parameters, x: FloatArray) -> FloatArray:
    """q of rows of each network's own: x is (networks, n, d), or (1, n, d) for all."""
    *_, last, level = parameters
    pieces = [x[:, low : low + _PIECE] for low in range(0, max(x.shape[1], 1), _PIECE)]
    found = [(np.matmul(forward(parameters, piece)[-1][0], last) + level)[..., 0] for piece in pieces]
    return np.concatenate(found, axis=1)


class Adam:
    """Adam's steps on some parameters, which are changed in place."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self._mean = [np.zeros_like(p) for p in parameters]
        self._square = [np.zeros_like(p) for p in parameters]
        self._count = 0

    def step(self, found: Parameters, rate: float, decay: float = 0.0) -> None:
        """One step along the gradients; weights, not biases, decay."""
        self._count += 1
        first, second = 1.0 - 0.9**self._count, 1.0 - 0.999**self._count
        size = np.float32(rate / first)
        for k, gradient in enumerate(found):
            mean, square = self._mean[k], self._square[k]
            mean += np.float32(0.1) * (gradient - mean)
            square += np.float32(0.001) * (gradient * gradient - square)
            if decay and k % 2 == 0:
                self.parameters[k] *= np.float32(1.0 - rate * decay)
            self.parameters[k] -= size * mean / (np.sqrt(square / np.float32(second)) + np.float32(1e-8))
