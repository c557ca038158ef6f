"""Gaussian policies over real vectors, and the two laws they turn into when an action is kept in a box.

    plain      a = μ(s) + σ(s) e,  e ~ N(0, I)                 log π = Σ_i log N(a_i; μ_i, σ_i²)
    clipped    the same a, recorded after clipping to [l, h]   density inside; at a bound the mass that was cut off,
                                                               log Φ((l − μ)/σ) or log Φ((μ − h)/σ)
    squashed   a = c + w tanh(u),  u = μ(s) + σ(s) e           log π = Σ_i log N(u_i; μ_i, σ_i²) − log w(1 − tanh² u_i)

with c, w the middle and half width of the box. Components are independent given the state. Which law is right depends
on what was *recorded*: an environment that clips while the log keeps the raw draw is the plain case, box or no box.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, final

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.base.errors import DataError, UsageError
from mixope.policies.fingerprints import array_bytes, callable_parts, digest
from mixope.policies.keys import first_rows, refuse
from mixope.policies.laws import as_numbers, check_same_length, detached

Law = Literal["plain", "clipped", "squashed"]
"""What was recorded of an action that a Gaussian drew."""
Map = Callable[[AnyArray], Any]
"""Observations in, one row (n, d) per observation out."""

HALF_LOG_TAU = 0.5 * float(np.log(2 * np.pi))
# A bound stored in single precision is off by as much; an action this near to it, as a share of the box, is on it.
ON_BOUND = 1e-6
# tanh rounds to ±1 in single precision; such an action is taken to lie half a unit in the last place inside.
INSIDE = 2.0**-25


class Normal(ABC):
    """What the three laws share: a mean, a scale and a box, each checked where it enters."""

    def __init__(self, mean: Map, scale: Any, low: Any = None, high: Any = None) -> None:
        if not callable(mean):
            raise UsageError(
                f"expected a function of observations as the mean, got {type(mean).__name__}; "
                "LinearGaussianPolicy(weights, bias, scale) takes the parameters of a linear one"
            )
        self._mean = mean
        self._scale: Map | FloatArray = scale if callable(scale) else _checked_scale(_vector(scale, "scale"))
        self.low, self.high = _box(low, high)
        self._view: Map | None = None

    def through(self, view: Map) -> Normal:
        """The same law where observations come in another form: μ and σ see ``view(observations)``."""
        made = copy.copy(self)
        made._view = view if self._view is None else partial(_in_turn, view, self._view)
        return made

    def mean(self, observations: AnyArray) -> FloatArray:
        """μ(s), shape (n, d)."""
        return _rows(self._mean(self._seen(observations)), "mean", len(observations))

    def scale(self, observations: AnyArray) -> FloatArray:
        """σ(s), shape (n, d); (1, d) where it is the same in every state, d = 1 standing for all components."""
        if isinstance(self._scale, np.ndarray):
            return self._scale[None]
        return _checked_scale(_rows(self._scale(self._seen(observations)), "scale", len(observations)))

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for every row."""
        observations, taken = _finite(observations, "observations"), _columns(_finite(actions, "actions"), "actions")
        check_same_length(len(observations), len(taken))
        mean, scale = self._moments(observations)
        if mean.shape != taken.shape:
            raise DataError(
                "the actions do not have as many components as the policy's",
                expected=f"shape {mean.shape}",
                got=f"shape {np.shape(actions)}",
            )
        return np.asarray(self._log_densities(taken, mean, scale).sum(axis=1), dtype=np.float64)

    def sample(self, observations: AnyArray, generator: np.random.Generator) -> FloatArray:
        """One action for every row, shape (n, d), as it would be recorded."""
        mean, scale = self._moments(_finite(observations, "observations"))
        return self._recorded(mean + scale * generator.standard_normal(mean.shape))

    def at_noise(self, observations: AnyArray, noise: AnyArray) -> FloatArray:
        """The recorded action for given standard normal noise (one per row, or one for all): for quadrature."""
        mean, scale = self._moments(_finite(observations, "observations"))
        return self._recorded(mean + scale * noise)

    def executed(self, actions: AnyArray) -> FloatArray:
        """What an environment with this box does with a recorded action: clips it."""
        taken = _columns(np.asarray(actions, dtype=np.float64), "actions")
        return taken if self.low is None else np.clip(taken, self.low, self.high)

    def fingerprint(self) -> str:
        """Hash of the mean's and the scale's code or numbers, and of the box."""
        scale = [array_bytes(self._scale)] if isinstance(self._scale, np.ndarray) else callable_parts(self._scale)
        box = [] if self.low is None or self.high is None else [array_bytes(self.low), array_bytes(self.high)]
        return digest(self._law().encode(), *callable_parts(self._mean), b"scale", *scale, b"box", *box)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._law()}, {self.fingerprint()})"

    def _moments(self, observations: AnyArray) -> tuple[FloatArray, FloatArray]:
        mean, scale = self.mean(observations), self.scale(observations)
        if scale.shape[1] not in (1, mean.shape[1]):
            raise _misfit("scale", scale.shape[1], mean.shape[1])
        if self.low is not None and len(self.low) not in (1, mean.shape[1]):
            raise _misfit("box", len(self.low), mean.shape[1])
        return mean, scale

    def _seen(self, observations: AnyArray) -> AnyArray:
        return observations if self._view is None else self._view(observations)

    @abstractmethod
    def _law(self) -> str:
        """The name of the law."""

    @abstractmethod
    def _recorded(self, draws: FloatArray) -> FloatArray:
        """The recorded action of a draw from N(μ, σ²)."""

    @abstractmethod
    def _log_densities(self, actions: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
        """The logarithms by component, shape (n, d)."""


class GaussianPolicy(Normal):
    """a ~ N(μ(s), σ(s)²), plain or clipped.

    :param mean: a function of observations that gives (n, d), or (n,) for one component.
    :param scale: the standard deviation: a number, one per component, or a function of observations.
    :param low: with ``high``, the box of actions the environment executes; a number or one per component.
    :param clipped: whether actions were recorded after clipping to the box; plain laws do not look at it.
    """

    def __init__(self, mean: Map, scale: Any, *, low: Any = None, high: Any = None, clipped: bool = False) -> None:
        super().__init__(mean, scale, low, high)
        if clipped and self.low is None:
            raise UsageError("clipped=True needs the box: low=..., high=...")
        self.clipped = clipped

    def _law(self) -> str:
        return "clipped" if self.clipped else "plain"

    def _recorded(self, draws: FloatArray) -> FloatArray:
        return self.executed(draws) if self.clipped else draws

    def _log_densities(self, actions: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
        inside = _log_normal(actions, mean, scale)
        if not self.clipped or self.low is None or self.high is None:
            return inside
        from scipy.special import log_ndtr

        _check_inside(actions, self.low, self.high)
        margin = ON_BOUND * (self.high - self.low)
        below, above = log_ndtr((self.low - mean) / scale), log_ndtr((mean - self.high) / scale)
        at_low, at_high = actions <= self.low + margin, actions >= self.high - margin
        return np.where(at_low, below, np.where(at_high, above, inside))


@dataclass(frozen=True, eq=False)
class Linear:
    """The map s ↦ W s + b, (n, k) to (n, d)."""

    weights: FloatArray
    bias: FloatArray

    def __call__(self, observations: AnyArray) -> FloatArray:
        """W s + b for every row."""
        states = _columns(np.asarray(observations, dtype=np.float64), "observations")
        if states.shape[1] != self.weights.shape[1]:
            raise DataError(
                "the observations do not fit the weights",
                expected=f"(n, {self.weights.shape[1]})",
                got=f"shape {np.shape(observations)}",
            )
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused with its rows
            return np.asarray(states @ self.weights.T + self.bias, dtype=np.float64)


@final
class LinearGaussianPolicy(GaussianPolicy):
    """a ~ N(W s + b, σ²).

    :param weights: W, shape (d, k) for k-dimensional observations; (k,) for one component.
    :param bias: b, a number or shape (d,).
    """

    def __init__(
        self, weights: Any, bias: Any, scale: Any, *, low: Any = None, high: Any = None, clipped: bool = False
    ) -> None:
        matrix = np.atleast_2d(_finite(as_numbers(weights, "weights"), "weights"))
        offset = _vector(bias, "bias")
        if matrix.ndim != 2 or len(offset) not in (1, len(matrix)):
            raise DataError(
                "weights and bias do not fit",
                expected="weights (d, k) and bias (d,)",
                got=f"shapes {np.shape(weights)} and {np.shape(bias)}",
            )
        self.weights, self.bias = matrix, np.broadcast_to(offset, len(matrix)).copy()
        super().__init__(Linear(self.weights, self.bias), scale, low=low, high=high, clipped=clipped)


@final
class SquashedGaussianPolicy(Normal):
    """a = c + w tanh(u), u ~ N(μ(s), σ(s)²): the law of soft actor–critic, by default in the box ±1."""

    def __init__(self, mean: Map, scale: Any, *, low: Any = -1.0, high: Any = 1.0) -> None:
        super().__init__(mean, scale, low, high)

    def _law(self) -> str:
        return "squashed"

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        if self.low is None or self.high is None:
            raise UsageError("a squashed policy needs a box")
        return self.low, self.high

    def _recorded(self, draws: FloatArray) -> FloatArray:
        low, high = self._bounds()
        return np.asarray((low + high) / 2 + (high - low) / 2 * np.tanh(draws), dtype=np.float64)

    def _log_densities(self, actions: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
        """With x = (a − c)/w: u = ½ log(1+x) − ½ log(1−x) and 1 − tanh² u = (1+x)(1−x), both exact near the bounds."""
        low, high = self._bounds()
        _check_inside(actions, low, high)
        width = (high - low) / 2
        up = np.log(np.maximum((actions - low) / width, INSIDE))
        down = np.log(np.maximum((high - actions) / width, INSIDE))
        return np.asarray(_log_normal((up - down) / 2, mean, scale) - np.log(width) - up - down, dtype=np.float64)


def _log_normal(values: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # so far out the density is 0
        z = (values - mean) / scale
        return np.asarray(-0.5 * z * z - np.log(scale) - HALF_LOG_TAU, dtype=np.float64)


def _finite(values: Any, what: str) -> FloatArray:
    try:
        array = np.asarray(detached(values))
    except ValueError:
        raise DataError(f"the {what} have rows of different lengths", expected="floats (n, d)") from None
    if array.dtype.kind not in "fiub":
        raise DataError(f"the {what} are not numbers", expected="floats (n, d)", got=f"type {array.dtype}")
    with np.errstate(over="ignore"):
        array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        wrong = ~np.isfinite(array.reshape(len(array) if array.ndim else 1, -1)).all(axis=1)
        refuse(wrong, f"the {what} have NaN or infinite values", expected="finite numbers")
    return array


def _columns(array: FloatArray, what: str) -> FloatArray:
    """Shape (n, d); (n,) is one component."""
    if array.ndim == 1:
        return array[:, None]
    if array.ndim != 2:
        raise DataError(f"the {what} have the wrong shape", expected="(n, d)", got=f"shape {array.shape}")
    return array


def _in_turn(first: Map, then: Map, observations: AnyArray) -> Any:
    return then(first(observations))


def _rows(answer: Any, what: str, count: int) -> FloatArray:
    """The answer of a user's function, one row per observation."""
    array = _finite(answer, f"{what}s of the policy")
    if array.ndim not in (1, 2) or len(array) != count:
        raise DataError(
            f"the {what} has the wrong shape",
            expected=f"({count}, d) for {count} observations",
            got=f"shape {array.shape}",
        )
    return _columns(array, what)


def _vector(value: Any, what: str) -> FloatArray:
    array = np.atleast_1d(_finite(as_numbers(value, what), what))
    if array.ndim != 1 or len(array) == 0:
        raise DataError(f"the {what} has the wrong shape", expected="a number or (d,)", got=f"shape {array.shape}")
    return array


def _checked_scale(scale: FloatArray) -> FloatArray:
    wrong = scale <= 0
    if wrong.any():
        raise DataError(
            "the scale is not positive",
            rows=first_rows(np.asarray(wrong.any(axis=1))) if scale.ndim == 2 else (),
            expected="standard deviations above 0",
            got=f"{scale[wrong][0]:.6g}",
            hint="np.exp(...) if these are log standard deviations",
        )
    return scale


def _box(low: Any, high: Any) -> tuple[FloatArray | None, FloatArray | None]:
    if (low is None) != (high is None):
        raise UsageError("a box needs both low and high")
    if low is None:
        return None, None
    bottom, top = np.broadcast_arrays(_vector(low, "low"), _vector(high, "high"))
    if (bottom >= top).any():
        raise DataError("the box is empty", expected="low below high", got=f"low {low}, high {high}")
    return bottom.copy(), top.copy()


def _misfit(what: str, got: int, expected: int) -> DataError:
    return DataError(
        f"the {what} does not fit the mean", expected=f"1 or {expected} component(s)", got=f"{got} component(s)"
    )


def _check_inside(actions: FloatArray, low: FloatArray, high: FloatArray) -> None:
    margin = ON_BOUND * (high - low)
    outside: BoolArray = np.asarray(((actions < low - margin) | (actions > high + margin)).any(axis=1))
    refuse(
        outside,
        "actions lie outside the policy's box",
        actions,
        expected=f"from {low.tolist()} to {high.tolist()}",
        hint="clipped=False if the raw draws were recorded and the environment clips",
    )
