"""Gaussian draws seen through a box: actions that were clipped at a bound, or squashed into a range by tanh.

A clipped draw is only known to lie beyond its bound, which has the probability of all that does; a squashed one is
known, and its density has the slope of the squashing in it. Which of the two a sample of actions shows is found by
looking for atoms at its ends, and for piles without them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray
from mixope.base.errors import DataError
from mixope.policies.keys import first_rows

HALF_LOG_TAU = 0.5 * float(np.log(2 * np.pi))
#: The share of rows on one bound that makes it an atom, or within 1 % of the range from it that makes a pile.
ATOM = 0.005


@dataclass(frozen=True)
class Box:
    """How draws show in the actions, by component: the bounds of clipped and of squashed ones, ∓∞ without any."""

    low: FloatArray
    high: FloatArray
    squashed: BoolArray
    notes: tuple[str, ...] = ()

    def draws(self, actions: FloatArray) -> Draws:
        """The draws behind the actions, as far as the box lets them be seen."""
        width = self.high - self.low
        margin = np.where(np.isfinite(width), 1e-6 * np.where(np.isfinite(width), width, 0.0), 0.0)
        clipped = ~self.squashed
        self._check_inside(actions, margin)
        below, above = clipped & (actions <= self.low + margin), clipped & (actions >= self.high - margin)
        value, log_slope = actions.copy(), np.zeros_like(actions)
        for i in np.flatnonzero(self.squashed):
            value[:, i], log_slope[:, i] = _unsquash(actions[:, i], self.low[i], self.high[i])
        return Draws(value, log_slope, below, above, self.low, self.high)

    def recorded(self, draws: FloatArray) -> FloatArray:
        """The actions that draws (n, d) show as: clipped, or squashed into the range."""
        actions = np.clip(draws, np.where(self.squashed, -np.inf, self.low), np.where(self.squashed, np.inf, self.high))
        for i in np.flatnonzero(self.squashed):
            middle, width = (self.high[i] + self.low[i]) / 2, (self.high[i] - self.low[i]) / 2
            actions[:, i] = middle + width * np.tanh(draws[:, i])
        return np.asarray(actions)

    def _check_inside(self, actions: FloatArray, margin: FloatArray) -> None:
        """Squashed ones may lie beyond by a little, their bounds being those of the sample."""
        slack = np.where(self.squashed, np.inf, margin)
        outside: BoolArray = np.any((actions < self.low - slack) | (actions > self.high + slack), axis=1)
        if outside.any():
            raise DataError(
                "actions lie beyond a bound at which others were clipped",
                column="action",
                rows=first_rows(outside),
                total=int(outside.sum()),
                expected=f"from {self.low.tolist()} to {self.high.tolist()}",
                got=f"{actions[outside][0].tolist()}",
                hint="record all actions before clipping, or all after it",
            )


def boxes(actions: FloatArray) -> list[Box]:
    """Clipped where there are atoms; and a second one, squashed where actions pile up at an end without them."""
    n, d = actions.shape
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    notes = []
    for i in range(d):
        for bounds, end in ((low, actions[:, i].min()), (high, actions[:, i].max())):
            share = float(np.mean(actions[:, i] == end))
            if share * n >= max(ATOM * n, 5):
                bounds[i] = end
                notes.append(
                    f"{_component(i, d)}: {share:.1%} of actions are exactly {end:g}: treated as clipped there"
                )
    clipped = Box(low, high, np.zeros(d, dtype=np.bool_), tuple(notes))
    piled = np.array([_piled(actions[:, i]) for i in range(d)]) & np.isinf(low) & np.isinf(high)
    return [clipped, _squashed(clipped, actions, piled)] if piled.any() else [clipped]


def _squashed(clipped: Box, actions: FloatArray, piled: BoolArray) -> Box:
    """Clipped as before, squashed where piled."""
    low, high = clipped.low.copy(), clipped.high.copy()
    notes = list(clipped.notes)
    for i in np.flatnonzero(piled):
        low[i], high[i] = -_bound(-actions[:, i]), _bound(actions[:, i])
        where = f"{_component(int(i), len(piled))}: actions pile up at {low[i]:.4g} or {high[i]:.4g}"
        notes.append(f"{where}: treated as squashed by tanh")
    return Box(low, high, piled, tuple(notes))


def _bound(action: FloatArray) -> float:
    """The upper bound: a number of two digits if one is near, as boxes go; else a typical gap beyond the largest."""
    end, width = float(action.max()), float(np.ptp(action))
    step = 10.0 ** (np.floor(np.log10(max(abs(end), 1e-300))) - 1)
    bound = float(np.ceil(end / step) * step)
    return bound if bound - end <= 0.01 * width else end + width / len(action)


def _piled(action: FloatArray) -> bool:
    near = 0.01 * np.ptp(action)
    ends = float(np.mean(action < action.min() + near)), float(np.mean(action > action.max() - near))
    return max(ends) > ATOM


def _unsquash(action: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """With x = (a − c)/w: u = atanh x and log du/da = −log w(1 − x²); an action on a bound counts as just inside."""
    width = (high - low) / 2
    up = np.log(np.maximum((action - low) / width, 2.0**-25))
    down = np.log(np.maximum((high - action) / width, 2.0**-25))
    return (up - down) / 2, -np.log(width) - up - down


@dataclass(frozen=True)
class Draws:
    """Draws (n, d): their values, log |d draw / d action|, and which of them are only known to lie beyond a bound."""

    value: FloatArray
    log_slope: FloatArray
    below: BoolArray
    above: BoolArray
    low: FloatArray
    high: FloatArray

    def take(self, rows: IntArray) -> Draws:
        """Some of the rows."""
        return Draws(self.value[rows], self.log_slope[rows], self.below[rows], self.above[rows], self.low, self.high)

    def log_density(self, mean: FloatArray, log_variance: FloatArray) -> FloatArray:
        """log b(a|s), summed over components; a bound has the mass that lies beyond it."""
        from scipy.special import log_ndtr

        scale = np.exp(0.5 * log_variance)
        result = self.log_slope - 0.5 * ((self.value - mean) / scale) ** 2 - 0.5 * log_variance - HALF_LOG_TAU
        if self.below.any():
            result = np.where(self.below, log_ndtr((self.low - mean) / scale), result)
        if self.above.any():
            result = np.where(self.above, log_ndtr((mean - self.high) / scale), result)
        return np.asarray(result.sum(axis=1))

    def expected(self, i: int, mean: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[draw] and Var[draw] of component i given what was seen.

        Beyond high, with α = (high − μ)/σ and h = N(α)/(1 − Φ(α)): μ + σh and σ²(1 + αh − h²); beyond low, mirrored.
        """
        from scipy.special import log_ndtr

        value, variance = self.value[:, i].copy(), np.zeros(len(mean))
        for beyond, bound, sign in ((self.above[:, i], self.high[i], 1.0), (self.below[:, i], self.low[i], -1.0)):
            if beyond.any():
                alpha = sign * (bound - mean[beyond]) / scale[beyond]
                h = np.exp(-0.5 * alpha**2 - HALF_LOG_TAU - log_ndtr(-alpha))
                value[beyond] = mean[beyond] + sign * scale[beyond] * h
                variance[beyond] = scale[beyond] ** 2 * np.clip(1 + alpha * h - h**2, 0.0, 1.0)
        return value, variance


def _component(i: int, d: int) -> str:
    return "action" if d == 1 else f"action component {i}"
