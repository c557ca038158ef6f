"""How wrong the value may be if hidden reasons chose the logged actions.

An estimate believes that two rows of one state and action differ by chance alone. If whoever acted saw more than the
log (a doctor who looked at the patient), it may be wrong however many rows there are. The marginal sensitivity model
says how wrong: hidden reasons, new at every step, turn the odds of the logged actions by a factor of at most Γ. The
bounds of the counted chain are those of :mod:`mixope.solvers.reweighted`, with one node for each state and action.

    curve        the lowest and highest value for Γ from 1, which is what was reported, to the factor that was asked for
    robustness   the Γ at which the target is no longer known to be on its side of a threshold: what the logs earn

**Rewards within a step.** Rewards of one step (s, a, s′) that vary count as they do, up to the space between some knots
(:mod:`mixope.requests.spread`): the bounds are exact where a step earns one number or one of two, elsewhere a little
wide, and never too narrow.

**Sampling error.** To first order a bound moves with the shares of outcomes after each pair, the shares of actions in
each state and the law of starts, which are multinomial and independent of each other:

    Var = Σ_pairs Var_p(by_share)/n(s, a)  +  Σ_s Var_b(by_known)/n(s)  +  Var_μ(by_start)/episodes

The interval that was reported is widened by the ratio of this error to that at Γ = 1. Estimators other than the counted
chain keep their value at Γ = 1 and move as the chain does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, is_number, sum_by
from mixope.base.errors import UsageError
from mixope.estimators.counts.flow import Flow
from mixope.estimators.counts.occupancy import pooled
from mixope.requests.problem import Problem
from mixope.requests.spread import Spread
from mixope.solvers.bounds import Side
from mixope.solvers.reweighted import Average, Extreme, NodeOutcomes, Room, Total, extreme
from mixope.solvers.reweighted_path import extreme_path
from mixope.uncertainty import Interval

FACTORS = (1.0, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Where a curve has its points."""
MOST_FACTOR = 20.0
"""Factors at which something flips are not looked for beyond this."""
EXACT = 1e-4
WHAT_LOGS_EARN, THRESHOLD = "what the logs earn themselves", "the threshold"


@dataclass(frozen=True)
class ConfoundingPoint:
    """The bounds at one factor; those that are ``sure`` count chance too, where there is an interval."""

    factor: float
    low: float
    high: float
    sure_low: float | None
    sure_high: float | None


@dataclass(frozen=True)
class Confounding:
    """What the value may be under hidden confounding of up to a ``factor`` on the odds of the logged actions.

    ``threshold`` is what the target is held against, ``against`` what that is. At a factor of ``flips_at`` the bounds
    reach it, at ``open_at`` the bounds with their sampling error (1: chance alone leaves it open); None where that is
    not so up to a factor of 20, or where there is no threshold or no interval.
    """

    factor: float
    curve: tuple[ConfoundingPoint, ...]
    threshold: float | None
    against: str | None
    flips_at: float | None
    open_at: float | None
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Reported:
    """The estimate whose assumption is in doubt, the threshold, and the interval of the value less the threshold."""

    value: float
    interval: Interval | None
    threshold: float | None = None
    against: str | None = None
    difference: Interval | None = None


def check_factor(factor: float) -> None:
    """A factor on odds."""
    if not is_number(factor) or not 1.0 <= factor < float("inf"):
        said = "confounding is a factor on the odds of the logged actions, at least 1, such as 1.5"
        raise UsageError(f"{said}; got {factor!r}")


def confounding_of(problem: Problem, reported: Reported, factor: float, spread: Spread | None = None) -> Confounding:
    """The curve up to a factor, and what it takes to reach the threshold; ``spread`` is that of the rewards."""
    moved = Moved(Confounded.of(problem, spread), reported)
    curve = tuple(moved.point(each) for each in (*(f for f in FACTORS if f < factor), factor))
    flips, opens = moved.crossings() if reported.threshold is not None else (None, None)
    said = [_range(curve[-1]), *_crossed(reported, flips, opens)]
    return Confounding(float(factor), curve, reported.threshold, reported.against, flips, opens, tuple(said))


@dataclass(frozen=True)
class Confounded:
    """The chain of a target of which hidden reasons may have chosen the steps; a node is a state and an action."""

    steps: NodeOutcomes
    known: FloatArray
    """b(a|s), by node."""
    rows: FloatArray
    """By node."""
    state_rows: FloatArray
    """By state, those of actions that the target never takes too."""
    episodes: float
    way: Average | Total | None
    counted: FloatArray | None
    """How much every step counts, where their number is given."""

    @classmethod
    def of(cls, problem: Problem, spread: Spread | None = None) -> Confounded:
        """All rows under the counted mixture, on the states where the target can be followed.

        Where nothing is known of the ``spread`` of rewards, they lie at the ends of their range.
        """
        flow, _ = pooled(problem)
        asked, whole = flow.problem.estimand, flow.whole.transitions
        steps, pair, rows = _outcomes(flow, _of_transitions(problem, spread) or Spread.unknown(whole.n_groups))
        in_state = sum_by(whole.state, whole.rows, whole.n_states)
        place = np.searchsorted(whole.pair_code, flow.rows.pair_code[pair])
        known = whole.pair_rows[place] / in_state[whole.pair_state[place]]
        horizon = asked.horizon
        way = Average(flow.restarts) if asked.restarts else Total(asked.discount, asked.scale) if asked.sums else None
        counted = None if horizon is None else np.full(horizon, 1.0 / horizon)
        episodes = max(float(whole.starts.sum()), 1.0)
        return cls(steps, known, rows, in_state[flow.states], episodes, way, counted)

    def bound(self, factor: float, side: Side) -> tuple[float, float]:
        """The bound, and its standard error."""
        found = self._extreme(Room(self.known, factor), side)
        return found.value, float(np.sqrt(self._variance(found)))

    def _extreme(self, room: Room, side: Side) -> Extreme:
        if self.way is not None:
            return extreme(self.steps, room, self.way, side)
        assert self.counted is not None
        return extreme_path(self.steps, room, self.counted, side)

    def _variance(self, found: Extreme) -> float:
        """To first order, from shares of outcomes, of actions and of starts."""
        home = self.steps.home
        assert home is not None
        outcomes = float(np.sum(self.steps.mean(found.by_share**2) / self.rows))
        mean, square = (sum_by(home, self.known * found.by_known**power, self.steps.n_states) for power in (1, 2))
        actions = float(np.sum(np.maximum(square - mean**2, 0.0) / self.state_rows))
        start = self.steps.start
        starts = float(start @ found.by_start**2 - (start @ found.by_start) ** 2)
        return outcomes + actions + max(starts, 0.0) / self.episodes


def _of_transitions(problem: Problem, spread: Spread | None) -> Spread | None:
    """How the rewards of the transitions are spread, where that of the groups as they were logged is known."""
    if spread is None or problem.followed is None:
        return spread
    columns = [problem.followed.added_up(column) for column in spread.above.T]
    above = np.stack(columns, axis=1) if columns else np.zeros((problem.transitions.n_groups, 0))
    return replace(spread, above=above)


def _outcomes(flow: Flow, spread: Spread) -> tuple[NodeOutcomes, IntArray, FloatArray]:
    """What follows every pair that the target takes: next states, with the law of their rewards at knots.

    Also of every node its pair among those of the flow, and its rows.
    """
    rows, n = flow.rows, len(flow.states)
    used = np.flatnonzero(flow.problem.pair_target[rows.pair] > 0)
    pair, node = (found.ravel() for found in np.unique(rows.pair[used], return_inverse=True))
    later = np.where(rows.next_state[used] >= 0, flow.number[rows.next_state[used]], -1)
    _, first, place = np.unique(node * (n + 1) + later + 1, return_index=True, return_inverse=True)
    place, cells = place.ravel(), len(first)
    seen, earned = (sum_by(place, values[used], cells) for values in (rows.rows, rows.reward))
    least, most = np.full(cells, np.inf), np.full(cells, -np.inf)
    np.minimum.at(least, place, rows.lowest[used])
    np.maximum.at(most, place, rows.highest[used])
    law = spread.merged(flow.groups[used], place, cells).laws(seen, earned, least, most)
    node, later = node[first][law.group], later[first][law.group]
    pair_rows = sum_by(node, law.rows, len(pair))
    home, taken = flow.number[rows.pair_state[pair]], flow.problem.pair_target[pair]
    steps = NodeOutcomes(
        node=node,
        next_state=later,
        share=law.rows / pair_rows[node],
        reward=law.reward,
        start=flow.start if flow.restarts or not flow.problem.estimand.restarts else np.full(n, 1.0 / n),
        home=home,
        taken=taken / sum_by(home, taken, n)[home],
    )
    return steps, pair, pair_rows


@dataclass(frozen=True)
class Moved:
    """What was reported, as far as the chain moves from its plain value."""

    chain: Confounded
    reported: Reported

    @cached_property
    def plain(self) -> tuple[float, float]:
        """Value and standard error of the chain as it was seen."""
        return self.chain.bound(1.0, "low")

    def bound(self, factor: float, side: Side) -> tuple[float, float]:
        """The bound of what was reported, and how many times its error is that at a factor of one."""
        value, error = self.chain.bound(factor, side)
        was, was_error = self.plain
        return self.reported.value + value - was, error / was_error if was_error > 0 else 1.0

    def point(self, factor: float) -> ConfoundingPoint:
        """One point of the curve."""
        sure, value = self.reported.interval, self.reported.value
        (low, wider), (high, wide) = self.bound(factor, "low"), self.bound(factor, "high")
        return ConfoundingPoint(
            float(factor),
            low,
            high,
            None if sure is None else low + wider * (sure.low - value),
            None if sure is None else high + wide * (sure.high - value),
        )

    def crossings(self) -> tuple[float | None, float | None]:
        """The factors at which the threshold enters the bounds, and the bounds with their sampling error."""
        threshold = self.reported.threshold or 0.0
        off, sure = self.reported.value - threshold, self.reported.difference
        side: Side = "low" if off > 0 else "high"
        sign = 1.0 if side == "low" else -1.0

        @cache
        def bound(exponent: float) -> tuple[float, float]:
            return self.bound(float(np.exp(exponent)), side)

        flips = entered(lambda exponent: sign * (bound(exponent)[0] - threshold))
        if sure is None:
            return flips, None
        reach = (sure.low if side == "low" else sure.high) - off
        return flips, entered(lambda e: sign * (bound(e)[0] - threshold + reach * bound(e)[1]))


def entered(clear: Callable[[float], float]) -> float | None:
    """The factor at which what is clear of zero no longer is; 1 where it never was, None where it always is.

    ``clear`` takes the logarithm of a factor.
    """
    from scipy.optimize import brentq

    most = float(np.log(MOST_FACTOR))
    if not clear(0.0) > 0:
        return 1.0
    if clear(most) > 0:
        return None
    return float(np.exp(brentq(clear, 0.0, most, xtol=EXACT)))


def factor_words(value: float | None) -> str | None:
    """To two digits of what it is above one."""
    return None if value is None else f"{1.0 + float(f'{value - 1.0:.2g}'):g}"


HIDDEN = "if hidden reasons changed the odds of the logged actions by a factor of {}"


def _range(last: ConfoundingPoint) -> str:
    said = f"The value would lie between {last.low:.4g} and {last.high:.4g} {HIDDEN.format(f'up to {last.factor:g}')}"
    if last.sure_low is None or last.sure_high is None:
        return f"{said}."
    return f"{said}; counting chance too, between {last.sure_low:.4g} and {last.sure_high:.4g}."


def _crossed(reported: Reported, flips: float | None, opens: float | None) -> list[str]:
    """What it takes until the target is no longer known to be on its side of the threshold."""
    if reported.threshold is None:
        return []
    above = reported.value > reported.threshold
    held = f"{'above' if above else 'below'} {reported.against} ({reported.threshold:.4g})"
    if opens == 1.0:
        return [f"Chance alone leaves open whether the target is {held}."]
    if flips is None:
        said = f"The target would stay {held} even {HIDDEN.format(f'{MOST_FACTOR:g}')}"
    else:
        said = f"The target would no longer be known to be {held} {HIDDEN.format(factor_words(flips))}"
    if opens is None or opens == flips:
        return [f"{said}."]
    return [f"{said}; together with chance, {factor_words(opens)} is enough."]
