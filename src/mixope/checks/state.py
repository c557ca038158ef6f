"""Is the recorded state all that matters for what comes next, and if it is not, does that move the value?

*Whether* is told by the rows of the logs alone (:mod:`mixope.requests.pasts`): sums by episode that have mean zero if
the state is all. *How much* is a matter of the target. Let δ = r + t − q(s,a) be what a row earned and led to beyond
its state and action, by the chain of the one-step counts; its mean is zero within every pair. The value moves if δ
follows how much like the target's the past of the row was. With w = ω(s) ρ(a|s) and ρ calibrated, so that ρ − 1 has
mean zero in every state,

    the step before          Σ w₂ δ / Σ w₂,   w₂ = ω(s₋₁) ρ₋₁ ρ: the doubly robust value with windows of two rows
    the last n, all before   Σ w δ Σ_{i≤n} (ρ₋ᵢ − 1) / Σ w: the same to first order, for any number of steps. Windows of
                             n rows multiply n ratios, and their variance with them; here they are added

are by how much, and their sums by episode say how surely. q is the mean of other episodes. The target's own actions
drive what is hidden then; what is hidden and goes its own way, whatever is done, hardly moves values.

A state that leaves something out is no fault in itself. It is a warning where it moves the value by more than half a
half-width of the interval, beyond chance, or where the step before explains more than a twentieth of δ; a failure
where it moves it by more than two.

What is hidden does its harm where nobody looked: at later steps than the logs followed. So a state that leaves
something out is also a warning where more than a quarter of the answer lies beyond these
(:mod:`mixope.estimators.counts.reach`), and what the chain goes on to there differs from what the last logged steps
earned by half a half-width of the value, or decides how long an episode lasts. Much of an answer may lie beyond healthy
logs, and nothing is said.

Where states are vectors, a past that explains a good part of what comes next is a warning
(:mod:`mixope.requests.vector_pasts`); by how much it moves the value is not known there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.base.errors import Advice, Setting
from mixope.checks.check import WORLDS, Check
from mixope.checks.evidence import Carried, Evidence
from mixope.checks.steadiness import LEAST, normal_of_t
from mixope.checks.verdicts import Diagnostic
from mixope.estimators.counts.occupancy import pooled
from mixope.estimators.counts.reach import Beyond
from mixope.estimators.state_ratio import state_ratio
from mixope.requests.pasts import (
    ACTION,
    ALIKE,
    EARLIER,
    LASTED,
    REWARD,
    STATE,
    WHOLE,
    WORTH,
    Pasts,
    Trace,
    earlier_sums,
    told_of,
)
from mixope.requests.problem import Problem
from mixope.requests.replay import FOLDS, Laid
from mixope.requests.vector_pasts import COLUMN, VectorTrace

TOLD = 3.0
"""Standard deviations from which the past is taken to tell more than the state; see the table in docs/trust.md."""
MOVES, SURELY = 2.0, 3.0
"""Standard deviations of a move of the value from which it warns, and fails."""
WARN, FAIL = 0.5, 2.0
"""Half-widths."""
EXPLAINED = 0.05
MUCH_BEYOND, TOLD_BEYOND = 0.25, 3.5
"""Of the answer; standard deviations from which the past then matters."""
OF_VALUE, OF_COLUMN = (2.5, 0.03, 0.002), (1.5, 0.08, 0.01)
"""On vectors: standard deviations; the share of what is left over, and of all there is, that the past must tell, of the
reward and of what a row is worth, and of how a column changes. See the table in docs/trust.md."""
STEPS = 4, 16
BEFORE = "the step before"
CAPPED = 5.0
"""Ratios above it count as it."""
ROUNDING, DIGITS = 1e-9, 1e-14
"""What floats leave over of residuals: of the spread of what rows are worth, and of its level."""


def carried(problem: Problem) -> Carried:
    """ω by state, ρ by pair, and the tail of every transition as it was logged."""
    flow, occupancy = problem.once(pooled)
    rows = problem.transitions
    tail, ratio = np.zeros(rows.n_groups), np.zeros(rows.n_pairs)
    tail[flow.groups] = occupancy.tail
    ratio[rows.pair[flow.groups]] = flow.ratio / flow.rows.rows
    kept = np.zeros(rows.n_groups, dtype=np.bool_)
    kept[flow.groups] = True
    if problem.followed is not None:
        logged, first = problem.followed.kept, slice(0, len(problem.followed.kept))
        of_logged, stays = np.zeros(problem.logged.n_groups), np.zeros(problem.logged.n_groups, dtype=np.bool_)
        of_logged[logged], stays[logged] = tail[first], kept[first]
        tail, kept = of_logged, stays
    by_code = ratio if problem.followed is None else _of_pairs(problem, ratio)
    return Carried(state_ratio(flow, occupancy), by_code, tail, kept, float(occupancy.law.sum()))


def _of_pairs(problem: Problem, ratio: FloatArray) -> FloatArray:
    """By the pairs of the logged groups, of which the transitions have fewer."""
    place = np.searchsorted(problem.logged.pair_code, problem.transitions.pair_code)
    found = np.zeros(problem.logged.n_pairs)
    found[place] = ratio
    return found


@dataclass(frozen=True)
class Move:
    """By how much a past moves the value, with its standard error, and in standard deviations."""

    past: str
    size: float
    error: float
    deviates: float
    scores: FloatArray = field(repr=False)
    """By cluster."""


def state_is_all(evidence: Evidence) -> Diagnostic | None:
    """The check of one estimate; None where rows are not in order, or the estimator rests on no state."""
    pasts, chain, interval = evidence.pasts, evidence.readings.carried, evidence.interval
    if pasts is None or chain is None or interval is None or not np.isfinite(interval.width):
        return None
    strongest = _strongest(pasts.traces)
    if strongest is None:
        return None
    told, trace = strongest
    delta, weight = _residuals(pasts.rows, chain)
    moves = [] if delta is None else beyond(evidence, _moves(pasts, chain, delta, weight))
    largest = max(moves, key=lambda move: abs(move.deviates), default=None)
    off = max(told, 0.0 if largest is None else abs(largest.deviates))
    if off <= TOLD:
        said = "given state and action, nothing that happened before tells what comes next"
        return MARKOV.diagnostic(0.0, WARN, "pass", f"{said} ({off:.1f} standard deviations)")
    said = _whether(told, trace) if told > TOLD else "the state is not all"
    half = max(interval.width / 2, 1e-300)
    if largest is not None and abs(largest.deviates) > MOVES and not evidence.is_rounding(largest.size):
        size = abs(largest.size) / half
        fail = FAIL if abs(largest.deviates) > SURELY else np.inf
        there = f"{evidence.value + largest.size:.3g}, {size:.2g} half-widths away"
        said += f"; counting what was done in {largest.past}, the value would be about {there}"
        return MARKOV.graded(size, WARN, fail, said + (_remedy(trace) if size > WARN else ""))
    known = [] if delta is None or remembers(evidence) else _explained(pasts, delta)
    explained = [t for t in known if (_z(t) or 0.0) > TOLD]
    share, by = max(((t.share or 0.0, t) for t in explained), key=lambda found: found[0], default=(0.0, trace))
    if share > EXPLAINED:
        said += f"; {by.past} explains {share:.0%} of what the value hangs on and the state leaves over{_remedy(by)}"
        return MARKOV.diagnostic(share, EXPLAINED, "warn", said)
    return MARKOV.diagnostic(0.0, WARN, "pass", f"{said}; it is not seen to move the value")


def state_within_reach(evidence: Evidence) -> Diagnostic | None:
    """The same, weighed together with how much of the answer lies beyond the logged steps; and on vectors."""
    if evidence.on_features:
        return state_of_vectors(evidence.vector_pasts)
    found, beyond, pasts = state_is_all(evidence), evidence.beyond, evidence.pasts
    if found is None or beyond is None or pasts is None or found.status == "fail":
        return found
    strongest = _strongest(pasts.traces)
    if strongest is None or strongest[0] <= TOLD_BEYOND or not _far_beyond(evidence, beyond):
        return found
    said = (
        f"{found.sentence}; {beyond.share:.0%} of the answer lies beyond step {beyond.steps}, where most episodes were"
        " no longer followed, and rests on the chain alone. What stands is the mean of the steps that were seen: "
    )
    asked = Advice(said, Setting("horizon", beyond.steps))
    if found.status == "warn":
        return replace(found, sentence=asked)
    return MARKOV.diagnostic(beyond.share, MUCH_BEYOND, "warn", asked)


def state_of_vectors(traces: tuple[VectorTrace, ...]) -> Diagnostic | None:
    """The check where states are vectors; None where nothing was looked at."""
    known = [(z, trace) for trace in traces if (z := deviates_of(trace.by_episode)) is not None]
    if not known:
        return None
    told = [(z, trace) for z, trace in known if _is_large(z, trace)]
    if not told:
        z = max(z for z, _ in known)
        said = "given state and action, what happened before tells little of what comes next"
        return MARKOV.diagnostic(0.0, EXPLAINED, "pass", f"{said} ({z:.1f} standard deviations)")
    z, trace = max(told, key=lambda found: found[1].share * found[1].left)
    of = trace.outcome if trace.outcome in (REWARD, WORTH) else f"the next {trace.outcome.removeprefix(COLUMN)}"
    said = (
        f"the state is not all: {trace.past} explains {trace.share:.0%} of what state and action leave over of {of}"
        f" ({z:.1f} standard deviations), most of it {trace.helps}. Put that into the state"
    )
    return MARKOV.diagnostic(trace.share, EXPLAINED, "warn", said)


def _is_large(z: float, trace: VectorTrace) -> bool:
    """Whether a good part of what is left over is told, and that is a part of all that features can be trusted with."""
    told, least, of_all = OF_VALUE if trace.outcome in (REWARD, WORTH) else OF_COLUMN
    return z > told and trace.share > least and trace.share * trace.left > of_all


def _far_beyond(evidence: Evidence, beyond: Beyond) -> bool:
    """Whether much of the answer rests on later steps, and these are not like the last ones."""
    if beyond.share <= MUCH_BEYOND or evidence.interval is None:
        return False
    if evidence.estimand.kind == "episode" or beyond.shift is None:
        return evidence.estimand.kind == "episode"
    half = max(evidence.interval.width / 2, 1e-300)
    return abs(beyond.shift) > WARN * half and not evidence.is_rounding(beyond.shift)


_REMEDIES = {
    ACTION: "the action before (or how often each was taken lately)",
    STATE: "the state before (or a finer record of it)",
    WHOLE: "the mean of what came before",
    EARLIER: "the mean of the states before",
    LASTED: "the step",
    ALIKE: "who this is",
}


def _remedy(trace: Trace) -> str:
    return f". Put {_REMEDIES[trace.past]} into the state"


def _whether(told: float, trace: Trace) -> str:
    share = "" if trace.share is None or not trace.share > 0 else f", {trace.share:.1%} of what the state leaves over"
    return f"the state is not all: {trace.past} helps to tell {trace.outcome}{share} ({told:.1f} standard deviations)"


def _strongest(traces: tuple[Trace, ...]) -> tuple[float, Trace] | None:
    known = [(z, k) for k, trace in enumerate(traces) if (z := _z(trace)) is not None]
    if not known:
        return None
    z, k = max(known)
    return z, traces[k]


def _z(trace: Trace) -> float | None:
    return deviates_of(trace.by_episode)


def deviates_of(by_episode: FloatArray) -> float | None:
    """A sum that has mean zero in every episode, in standard deviations: t with as many degrees as episodes count."""
    largest = float(np.abs(by_episode).max(initial=0.0))
    if not largest > 0:
        return None
    by_episode = by_episode / largest  # fourth powers follow
    squares = by_episode**2
    total = float(squares.sum())
    if np.count_nonzero(squares) < 2 * LEAST:
        return None
    count = total**2 / float(np.sum(squares**2))
    return normal_of_t(float(by_episode.sum()) / np.sqrt(total), max(count - 1.0, 1.0))


def _residuals(rows: Laid, chain: Carried) -> tuple[FloatArray | None, FloatArray]:
    """δ of every row about the means of other folds, and its weight ω ρ; None where nothing is left to chance."""
    kept = chain.kept[rows.group]
    worth = rows.reward + chain.tail[rows.group]
    level = float(worth[kept].mean()) if kept.any() else 0.0
    worth = worth - level  # with a discount next to 1 it is 10⁹ rewards, and every mean has it too
    delta = np.zeros(len(worth))
    for fold in range(FOLDS):
        fit, mine = kept & (rows.fold != fold), kept & (rows.fold == fold)
        n = sum_by(rows.pair[fit], rows.ones[fit], rows.n_pairs)
        mean = sum_by(rows.pair[fit], worth[fit], rows.n_pairs) / np.maximum(n, 1.0)
        delta[mine] = np.where(n[rows.pair[mine]] > 0, worth[mine] - mean[rows.pair[mine]], 0.0)
    rounding = max(ROUNDING * float(np.abs(worth[kept]).max(initial=0.0)), DIGITS * abs(level))
    delta = np.where(np.abs(delta) > rounding, delta, 0.0)
    weight = chain.omega[rows.state] * chain.ratio[rows.pair] * kept
    return (delta if delta.any() and weight.sum() > 0 else None), weight


def _moves(pasts: Pasts, chain: Carried, delta: FloatArray, weight: FloatArray) -> list[Move]:
    rows, total = pasts.rows, float(weight.sum())
    ratio = chain.ratio[rows.pair]
    found = []
    window = np.where(pasts.follows, np.append(0.0, weight[:-1]) * ratio * (weight > 0), 0.0)
    if window.sum() > 0:
        centre = float(window @ delta) / float(window.sum())
        followed = float(weight[pasts.follows].sum()) / total
        found.append(_move(rows, BEFORE, window * (delta - centre), float(window.sum()), followed, centre))
    lived, before = earlier_sums(np.minimum(ratio, CAPPED) - 1.0, rows.episode)
    longest = int(before.max(initial=0))
    for steps in STEPS:
        if longest > steps:
            recent = lived - np.where(before >= steps, _shifted(lived, steps), 0.0)
            found.append(_move(rows, f"the last {steps} steps", weight * delta * recent, total))
    if longest > 1:
        found.append(_move(rows, "all earlier steps", weight * delta * lived, total))
    mass = chain.mass
    return [Move(m.past, m.size * mass, m.error * mass, m.deviates, m.scores * mass) for m in found if m is not None]


def remembers(evidence: Evidence) -> bool:
    """Whether the value counts several steps together already."""
    return evidence.solution.ladder is not None and evidence.solution.ladder.used > 1


def beyond(evidence: Evidence, moves: list[Move]) -> list[Move]:
    """By how much further than memory has moved it; with the error of the difference, from the same clusters."""
    ladder = evidence.solution.ladder
    if ladder is None or not remembers(evidence):
        return moves
    size, scores = ladder.moved(evidence.clusters)
    found = []
    for move in moves:
        if move.past != BEFORE and len(move.scores) == len(scores):
            off = move.scores - scores
            error = float(np.sqrt(off @ off))
            further = move.size - size
            found.append(Move(move.past, further, error, further / max(error, 1e-300), off))
    return found


def _shifted(values: FloatArray, steps: int) -> FloatArray:
    return np.concatenate([np.zeros(steps), values[:-steps]])


def _move(
    rows: Laid, past: str, summand: FloatArray, total: float, share: float = 1.0, centre: float | None = None
) -> Move | None:
    by_episode = rows.summed(summand)
    size = float(by_episode.sum()) / total if centre is None else centre
    error = float(np.sqrt(by_episode @ by_episode)) / total
    shifted = by_episode if centre is None else by_episode + size * total / max(len(by_episode), 1)
    deviates = deviates_of(shifted)
    if deviates is None or error <= 0:
        return None
    return Move(past, share * size, share * error, deviates, by_episode * (share / total))


def _explained(pasts: Pasts, delta: FloatArray) -> list[Trace]:
    """What one step back explains of δ."""
    return [told_of(pasts.rows, delta, past, kind, pasts.follows) for past, kind in pasts.back]


MARKOV = Check(
    "state",
    "data",
    WORLDS,
    Advice(
        "put what the sentence names into the state: the action or the state before (",
        Setting("lags", 1),
        "), a running mean (",
        Setting("history", "reward"),
        "), a finer bin; ask for no more steps than were logged (",
        Setting("estimand", "horizon"),
        ")",
    ),
    state_within_reach,
)
