"""How wrong the assumptions may be before the decision falls.

    confounding   hidden reasons, new at each step, turn the odds of an arm in a state by a factor of up to Γ
    markov        what the state leaves out makes steps up to Λ times as likely, or as rare, as they were seen
    coverage      a share of each arm's visits lies where it was never seen, and earns anything between the extremes

The first two are bounds of :mod:`mixope.solvers.reweighted` on the outcomes of each arm, where both arms may be hit at
once and by different reasons: the lowest difference is the lowest of the treatment less the highest of the control. The
third needs no chain: (1 − x) Δ − x (most − least) is zero at x = Δ/(Δ + most − least).

The sampling error of a bound comes from the same buckets as all others. The bound moves to first order with the shares
of outcomes, the mean rewards, the share of the arm in the state and the law of entry, and each bucket moves these by a
known amount, so that no bucket is left out in turn (the infinitesimal jackknife). At Γ = 1 the curve is what the
estimator reported; from there on it moves as the bounds and their errors do.

A **robustness value** is the factor, or share, at which zero enters: the bounds alone (``sign``), or the bounds with
their sampling error (``interval``). It is a property of the data and not a test: how strong hidden reasons really are
is nothing that a log can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.sparse import find

from mixope.answers.confounding import FACTORS, MOST_FACTOR, entered, factor_words
from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.estimand import Estimand
from mixope.experiments.chains import RETURN, chain_of, stuck
from mixope.experiments.counts import Counts
from mixope.experiments.outcomes import CLASSES, Outcomes, pairs_of
from mixope.experiments.records import Broken, LongRun, Robustness, Sensitivity, SensitivityPoint
from mixope.solvers.bounds import Side
from mixope.solvers.reweighted import Extreme, NodeOutcomes, Room, Sum, extreme
from mixope.solvers.reweighted_path import extreme_path

MOST_WORK = 2e6
"""Outcomes that may be looked at for one bound of both arms, of which more than a hundred are computed."""
STEP, ROUNDS = 2_000, 5
MOST_ROWS = 0.95


def sensitivity_of(outcomes: Outcomes, treatment: int, control: int, wanted: Wanted, long_run: LongRun) -> Sensitivity:
    """The curves and the robustness values of one difference."""
    arms = Arm.of(outcomes, treatment, wanted), Arm.of(outcomes, control, wanted)
    hidden, memory = (Assumption(arms, long_run, confounded) for confounded in (True, False))
    return Sensitivity(
        curve=tuple(hidden.point(factor) for factor in FACTORS),
        memory_curve=tuple(memory.point(factor) for factor in FACTORS),
        logged_factor=_logged(arms[0]),
        robustness=(
            _robustness("confounding", *hidden.values(), HIDDEN),
            _robustness("markov", *memory.values(), MEMORY),
            _coverage(long_run, outcomes.least, outcomes.most),
        ),
    )


@dataclass(frozen=True)
class Wanted:
    """What is to be bounded: an estimand, or what one period (``day``, from 1) earns."""

    estimand: Estimand
    day: int | None = None

    @property
    def counted(self) -> FloatArray | None:
        """How much every period counts, where their number is given."""
        if self.day is not None:
            return np.concatenate([np.zeros(self.day - 1), np.ones(1)])
        horizon = self.estimand.horizon
        return None if horizon is None else np.full(horizon, 1.0 / horizon)

    def extreme(self, steps: NodeOutcomes, room: Room, side: Side) -> Extreme:
        """By the solver that fits."""
        if self.counted is not None:
            return extreme_path(steps, room, self.counted, side)
        gamma = self.estimand.gamma
        return extreme(steps, room, Sum(1.0 - RETURN if gamma is None else gamma), side)

    def is_quick(self, counts: Counts) -> bool:
        """Whether a bound takes milliseconds; a step by itself takes as long as many outcomes."""
        outcomes = pairs_of(counts) * CLASSES
        length = self.day or self.estimand.horizon
        work = (outcomes + STEP) * length if length else outcomes * ROUNDS + counts.n_states**2
        return work <= MOST_WORK


@dataclass(frozen=True)
class Arm:
    """The steps of one arm, and where each group of the counts stands among them. Where units get stuck, the steps are
    those of the chain and stay as they are.

    ``share`` is the arm's share of the rows of a state; ``all_mean`` and ``mean`` are its mean reward over all rows and
    over those whose next state is known.
    """

    counts: Counts
    arm: int
    wanted: Wanted
    steps: NodeOutcomes
    share: FloatArray
    outcome: IntArray
    """Of every group the outcome; −1 for other arms, where units get stuck, and where no next state is known."""
    outcome_mean: FloatArray
    all_rows: FloatArray
    all_mean: FloatArray
    rows: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, outcomes: Outcomes, arm: int, wanted: Wanted) -> Arm:
        """Outcomes are next states and classes of the metric; last rows of units add to the mean reward alone."""
        counts, n = outcomes.counts, outcomes.counts.n_states
        mine = counts.arm == arm
        used = mine & (counts.next_state >= 0) & ~stuck(counts.take(mine))[counts.state]
        code = (counts.state * n + counts.next_state) * (int(outcomes.cut.max()) + 1) + outcomes.cut
        _, first, place = np.unique(code[used], return_index=True, return_inverse=True)
        outcome = np.full(len(code), -1, dtype=np.int64)
        outcome[used] = place.ravel()
        state, later = counts.state[used][first], counts.next_state[used][first]
        seen = sum_by(outcome[used], counts.rows[used])
        value = sum_by(outcome[used], counts.reward[used]) / seen
        all_rows, earned = (sum_by(counts.state[mine], x[mine], n) for x in (counts.rows, counts.reward))
        pooled = counts.reward.sum() / counts.rows.sum()
        all_mean = np.where(all_rows > 0, earned / np.maximum(all_rows, 1.0), pooled)
        rows = sum_by(state, seen, n)
        mean = np.where(rows > 0, sum_by(state, seen * value, n) / np.maximum(rows, 1.0), all_mean)
        chain = chain_of(counts, arm)
        unseen, ahead, shares = find(chain.moves.multiply((rows == 0)[:, None]))
        steps = NodeOutcomes(
            np.concatenate([state, unseen]),
            np.concatenate([later, ahead]),
            np.concatenate([seen / rows[state], shares]),
            np.concatenate([value + (all_mean - mean)[state], all_mean[unseen]]),
            chain.start,
        )
        share = np.where(rows > 0, all_rows / np.maximum(sum_by(counts.state, counts.rows, n), 1.0), 1.0)
        return cls(counts, arm, wanted, steps, share, outcome, value, all_rows, all_mean, rows, mean)

    @cached_property
    def in_state(self) -> FloatArray:
        """Rows of all arms."""
        return sum_by(self.counts.state, self.counts.rows, self.counts.n_states)

    def bound(self, factor: float, side: Side, confounded: bool) -> tuple[float, FloatArray]:
        """The bound, and what each bucket of units adds to its error."""
        known = self.share if confounded else np.zeros(self.steps.n_states)
        found = self.wanted.extreme(self.steps, Room(known, factor), side)
        return found.value, self._moved(found, confounded)

    def _moved(self, found: Extreme, confounded: bool) -> FloatArray:
        """To first order, by bucket: shares of outcomes, rewards, the arm's share of a state, the law of entry."""
        counts, state = self.counts, self.counts.state
        visits = self.steps.mean(found.by_reward)
        score = np.zeros(len(state))
        moving, mine = self.outcome >= 0, counts.arm == self.arm
        c, s = self.outcome[moving], state[moving]
        rows, reward = counts.rows[moving], counts.reward[moving]
        inner = rows * found.by_share[c] + found.by_reward[c] * (reward - rows * self.outcome_mean[c])
        score[moving] += (inner - visits[s] * (reward - rows * self.mean[s])) / self.rows[s]
        s = state[mine]
        score[mine] += visits[s] / self.all_rows[s] * (counts.reward[mine] - counts.rows[mine] * self.all_mean[s])
        if confounded:
            slope = np.where(self.rows > 0, found.by_known / np.maximum(self.in_state, 1.0), 0.0)
            score += slope[state] * counts.rows * (mine - self.share[state])
        entry = found.by_start - self.steps.start @ found.by_start
        score += entry[state] * counts.starts / counts.starts.sum()
        return sum_by(counts.bucket, score)


@dataclass(frozen=True)
class Bound:
    """One end of the difference: the treatment at this end, the control at its other, and with sampling error."""

    difference: float
    treatment: float
    control: float
    sure: float


@dataclass(frozen=True)
class Assumption:
    """One assumption, and how far the difference between treatment and control can move without it."""

    arms: tuple[Arm, Arm]
    long_run: LongRun
    confounded: bool

    @cached_property
    def plain(self) -> tuple[float, float, float]:
        """Treatment and control as the chains have them, and the standard error of their difference."""
        return self._chains(1.0, "low")

    def _chains(self, factor: float, side: Side) -> tuple[float, float, float]:
        treated, moved = self.arms[0].bound(factor, side, self.confounded)
        plain, also = self.arms[1].bound(factor, "high" if side == "low" else "low", self.confounded)
        return treated, plain, _error(self.arms[0].counts, moved - also)

    def bound(self, factor: float, side: Side) -> Bound:
        """From what was reported, as far as the bounds and their errors are from the plain values of the chains."""
        treated, plain, error = self._chains(factor, side)
        was_treated, was_plain, was_error = self.plain
        found = self.long_run.effect
        value = found.difference + (treated - was_treated) - (plain - was_plain)
        reach = (found.interval.low if side == "low" else found.interval.high) - found.difference
        return Bound(
            value,
            self.long_run.treatment + treated - was_treated,
            self.long_run.control + plain - was_plain,
            value + reach * (error / was_error if was_error > 0 else 1.0),
        )

    def point(self, factor: float) -> SensitivityPoint:
        """One point of the curve."""
        low, high = self.bound(factor, "low"), self.bound(factor, "high")
        return SensitivityPoint(
            factor=factor,
            low=low.difference,
            high=high.difference,
            sure_low=low.sure,
            sure_high=high.sure,
            treatment_low=low.treatment,
            treatment_high=high.treatment,
            control_low=high.control,
            control_high=low.control,
        )

    def values(self) -> tuple[float | None, float | None]:
        """The factors at which zero enters the bounds, and the bounds with sampling error; None: not up to the most."""
        side: Side = "low" if self.long_run.effect.value > 0 else "high"
        sign = 1.0 if side == "low" else -1.0

        @cache
        def bound(exponent: float) -> Bound:
            return self.bound(float(np.exp(exponent)), side)

        return (
            entered(lambda exponent: sign * bound(exponent).difference),
            entered(lambda exponent: sign * bound(exponent).sure),
        )


def _error(counts: Counts, moved: FloatArray) -> float:
    used = moved[np.unique(counts.bucket)]
    n = len(used)
    return float(np.sqrt(n / max(n - 1, 1) * np.sum((used - used.mean()) ** 2)))


def _logged(arm: Arm) -> float | None:
    """By how much the state that is logged moves the odds of the arm: no more than that in most rows."""
    overall = float(arm.all_rows.sum() / arm.in_state.sum())
    with np.errstate(divide="ignore"):
        turned = np.abs(np.log(arm.share / (1.0 - arm.share)) - np.log(overall / (1.0 - overall)))
    order = np.argsort(turned)
    most = turned[order][np.searchsorted(np.cumsum(arm.in_state[order]), MOST_ROWS * arm.in_state.sum())]
    return float(np.exp(most)) if np.isfinite(most) else None


HIDDEN = "hidden reasons changed the odds of an arm by a factor of {}"
MEMORY = "what the state leaves out made steps {} times as likely, or as rare, as they were seen"
MISSED = "{} of each arm's visits lay where it was never seen and earned anything from {least:.3g} to {most:.3g}"


def _robustness(assumption: Broken, sign: float | None, sure: float | None, clause: str) -> Robustness:
    """A factor and a sentence."""
    return Robustness(assumption, sign, sure, _sentence(clause, factor_words(sign), factor_words(sure), sure == 1.0))


def _coverage(long_run: LongRun, least: float, most: float) -> Robustness:
    """A share and a sentence."""
    found = long_run.effect
    clear = max(found.interval.low, -found.interval.high, 0.0)
    sign, sure = (x / (x + most - least) if x > 0 else 0.0 for x in (abs(found.difference), clear))
    clause = MISSED.format("{}", least=least, most=most)
    return Robustness("coverage", sign, sure, _sentence(clause, f"{sign:.2%}", f"{sure:.2%}", sure == 0.0))


def _sentence(clause: str, sign: str | None, sure: str | None, unclear: bool) -> str:
    """What it would take to flip the sign; together with chance it takes less."""
    if sign is None:
        said = f"The sign would hold even if {clause.format(f'{MOST_FACTOR:g}')}"
    elif unclear:
        said = f"The sign, which chance leaves open, could flip if {clause.format(sign)}"
    else:
        said = f"The decision could flip if {clause.format(sign)}"
    if unclear or sure is None or sure == sign:
        return f"{said}."
    return f"{said}; together with chance, {sure} is enough to leave it open."
