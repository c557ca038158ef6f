"""The multinomial logit, to the last digits that rounding leaves: min ½|W|² + C Σ c_i (log Σ_k exp x_i·w_k − x_i·w_y).

A fit that is broken off is one that rounding decides: an iteration more on another processor, and the behaviour is
another one. So the minimum is found by Newton's method, in coordinates in which the columns are uncorrelated: columns
that say the same (the levels of a category add up to one, and so do their squares) are one there. Directions in which
columns do not vary beyond rounding are left out. Steps are found by conjugate gradients, which need products with the
rows only; in these coordinates a few do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import log_softmax

from mixope.base.arrays import FloatArray, IntArray, square

PRODUCTS = 200
"""Of conjugate gradients within a step of Newton."""
TOLERANCE = 1e-9
"""The slope at which it ends, beside that at the beginning."""
_SAME = 1e-10
"""Of the largest eigenvalue: what columns have in directions below is rounding."""


@dataclass(frozen=True)
class FittedLogit:
    """Weights of the columns, the constant last, one column per class; and whether the minimum was reached."""

    weights: FloatArray
    converged: bool

    def probs(self, design: FloatArray) -> FloatArray:
        """One row per row of the design."""
        return np.asarray(np.exp(log_softmax(design @ self.weights[:-1] + self.weights[-1], axis=1)))


def fit_logit(design: FloatArray, code: IntArray, weight: FloatArray, strength: float, steps: int = 60) -> FittedLogit:
    """Classes are 0 … K−1; ``strength`` is C. Constants have no ridge, and of two classes the difference has one."""
    total = float(weight.sum())
    share = weight / total
    mean = share @ design
    centred = design - mean
    values, vectors = np.linalg.eigh(square(centred * np.sqrt(share)[:, None]))
    kept = values > _SAME * max(float(values[-1]), 0.0)
    classes = int(code.max()) + 1
    ridge = (2.0 if classes == 2 else 1.0) / (strength * total)
    root = vectors[:, kept] / np.sqrt(values[kept] + ridge)
    rows = np.concatenate([centred @ root, np.ones((len(design), 1))], axis=1)
    penalty = np.append(ridge / (values[kept] + ridge), 0.0)[:, None]
    problem = _Problem(rows, np.eye(classes)[code], share[:, None], penalty)
    found, converged = problem.minimum(steps)
    weights = root @ found[:-1]
    return FittedLogit(np.vstack([weights, found[-1] - mean @ weights]), converged)


@dataclass(frozen=True)
class _Problem:
    """In coordinates in which the columns are uncorrelated; ``taken`` has a one in the class of each row."""

    rows: FloatArray
    taken: FloatArray
    share: FloatArray
    penalty: FloatArray

    def minimum(self, steps: int) -> tuple[FloatArray, bool]:
        """By Newton's method, steps halved until the loss does not grow; from the shares of the classes."""
        w = np.zeros((self.rows.shape[1], self.taken.shape[1]))
        w[-1] = np.log((self.share * self.taken).sum(axis=0))
        w[-1] -= w[-1].mean()
        loss, law = self._at(w)
        slope = self._slope(w, law)
        first = float(np.linalg.norm(slope))
        for _ in range(steps):
            size = float(np.linalg.norm(slope))
            if size <= TOLERANCE * max(first, 1e-300) or size < 1e-15:
                return w, True
            step = _solved(partial(self._curved, law), slope, 1e-3 * min(1.0, size / first))
            moved = self._moved(w, step, loss, slope)
            if moved is None:
                return w, size <= 1e3 * TOLERANCE * first
            w, loss, law, slope = moved
        return w, False

    def _moved(
        self, w: FloatArray, step: FloatArray, loss: float, slope: FloatArray
    ) -> tuple[FloatArray, float, FloatArray, FloatArray] | None:
        """As far as the loss falls; where its digits do not tell any more, as long as the slope does."""
        for t in 0.5 ** np.arange(12):
            after = w - t * step
            now, law = self._at(after)
            if now < loss or (now <= loss + 1e-12 * abs(loss)):
                sloping = self._slope(after, law)
                if now < loss - 1e-12 * abs(loss) or np.linalg.norm(sloping) < 0.5 * np.linalg.norm(slope):
                    return after, now, law, sloping
        return None

    def _at(self, w: FloatArray) -> tuple[float, FloatArray]:
        logs = log_softmax(self.rows @ w, axis=1)
        loss = -float(np.sum(self.share * self.taken * logs)) + 0.5 * float(np.sum(self.penalty * w**2))
        return loss, np.exp(logs)

    def _slope(self, w: FloatArray, law: FloatArray) -> FloatArray:
        return np.asarray(self.rows.T @ (self.share * (law - self.taken)) + self.penalty * w)

    def _curved(self, law: FloatArray, direction: FloatArray) -> FloatArray:
        """The second derivative along a direction."""
        along = self.rows @ direction
        turned = law * (along - (law * along).sum(axis=1, keepdims=True))
        return np.asarray(self.rows.T @ (self.share * turned) + self.penalty * direction)


def _solved(curved: Callable[[FloatArray], FloatArray], right: FloatArray, tolerance: float) -> FloatArray:
    """H x = b by conjugate gradients; b is a slope, which no direction without curvature has a part in."""
    x, left = np.zeros_like(right), right.copy()
    direction, size = left.copy(), float(np.sum(left**2))
    goal = size * tolerance**2
    for _ in range(PRODUCTS):
        along = curved(direction)
        bend = float(np.sum(direction * along))
        if bend <= 0.0:
            break
        x += size / bend * direction
        left -= size / bend * along
        before, size = size, float(np.sum(left**2))
        if size <= goal:
            break
        direction = left + size / before * direction
    return x
