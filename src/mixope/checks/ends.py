"""Are the ends of episodes in the logs what they seem: all of them, marked, and told by the state?

Estimators take the chance of an end to depend on the state and the action alone, and the episodes to be all that there
were. Five checks, at no further scan:

    unmarked stops    episodes that stop with neither a terminated nor a truncated row are taken as cut. If some of them
                      ended, every absorbing estimand is wrong. A stop at the length of the longest episode is a
                      recorder's limit, and needs no mark.
    episode lengths   the chain of every logger, its actions b_j(a|s) and the counted P(s′|s,a), predicts how many
                      episodes go on beyond the longest logged one:  E = G Σ_j Σ_s μ_j(s) P_j(length > L | s).
                      G is the share that no cut before L stops (Kaplan and Meier). The number that did, those cut at
                      L, is Poisson; far fewer than E means that long episodes are missing, or that something besides
                      the state (a limit of time that was marked as an end) ends them.
    ends at a limit   where states are vectors, no chain can be followed. But if all R episodes that came as far as the
                      longest, L steps, end there, and before it one end in so many steps is usual (h), this has the
                      chance hᴿ: a limit of time was marked as an end, unless some number of the state tells it.
    ends over steps   Σ (t − t̄)(1{ended} − p̂), t̄ and p̂ the means over the rows of the same (s, a), against its
                      variance over all orders of the rows in each (s, a):  Σ SS(t) SS(ended) / (n − 1)  (Mantel).
    ends at cuts      the same with the share of the episodes at risk that are cut at step t in the place of t: where a
                      recorder that stops marks some of the episodes as ended, ends follow its cuts. One-sided, and
                      held against a Poisson law with that mean and variance, because such ends may be few.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.special import gammainc, ndtri, pdtr

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, Setting
from mixope.checks.check import DAMAGED, Check, Made
from mixope.checks.evidence import Evidence, LogEvidence
from mixope.checks.verdicts import Diagnostic
from mixope.requests.episodes import EpisodeTotals
from mixope.requests.followed import follow_up
from mixope.requests.limits import Limit
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import ENDED, Transitions

STOPS = 0.01
"""The share of episodes with unmarked stops that warns; none fails, because all may have been cut."""
LENGTHS = 2.25, 10.0
STEPS = 3.5, 10.0
CUTS = 3.0, 10.0
"""Standard deviations; see the tables in docs/trust.md."""
LEAST = 20
"""Episodes, and ends, below which lengths and steps say nothing."""
MOST_STEPS = 10_000
"""Longer episodes are not followed step by step."""


def unmarked_stops(evidence: Evidence) -> Diagnostic | None:
    """The share of episodes that stop without a mark; None where nothing hangs on it, or nobody can know."""
    episodes, plans = evidence.survey.episodes, evidence.survey.logs.recorded.plans
    if any(plan.source.ends is not None for plan in plans):  # the user said it
        return None
    if evidence.estimand.restarts and not episodes.ended.any():
        return None
    stopped = (episodes.ended == 0) & (episodes.cut == 0) & (episodes.rows < episodes.rows.max())
    share = float(np.mean(stopped))
    if share == 0:
        return None
    n, m = int(stopped.sum()), len(stopped)
    silent = not any(plan.marked for plan in plans)
    ended, cut = Setting("ends", "terminated"), Setting("ends", "truncated")
    remedy = ("say ", ended, " or ", cut, " where the logs are read") if silent else ("mark their last rows",)
    said = f"{n:,} of {m:,} episodes ({share:.1%}) stop without a mark of an end or a cut, and are taken as cut; "
    return STOPPED.graded(share, STOPS, 1.0, Advice(said, *remedy))


def lengths_fit(transitions: Transitions, episodes: EpisodeTotals) -> Diagnostic | None:
    """Whether as many episodes outlast the longest as their loggers' chains predict; None where too few ended."""
    longest = int(episodes.rows.max(initial=0.0))
    if episodes.ended.sum() < LEAST or not (episodes.starts == 1).all() or longest > MOST_STEPS:
        return None
    expected = _never_cut(episodes) * _outlasting(transitions, longest)
    seen = float(np.count_nonzero((episodes.rows == longest) & (episodes.ended == 0)))
    z = float(-ndtri(min(max(float(pdtr(seen, expected)), 1e-300), 1.0 - 1e-16))) if expected > 0 else 0.0
    words = (
        f"{expected:.1f} episodes should go on beyond {longest:,} steps, the longest that was logged, and {seen:.0f} do"
        f" ({z:.1f} standard deviations); long episodes may be missing, or something that is not in the state ends them"
        if z > LENGTHS[0]
        else f"episode lengths match what the logged transitions predict ({z:.1f} standard deviations)"
    )
    return OUTLASTING.graded(z, *LENGTHS, words)


def ends_at_a_limit(limit: Limit | None) -> Diagnostic | None:
    """Whether the longest episodes all end at the same step, and nothing in the state tells it."""
    if limit is None:
        return None
    z = limit.deviates
    words = (
        f"all {limit.episodes:,} episodes that last {limit.steps:,} steps end there, which chance does not explain"
        f" ({z:.1f} standard deviations), and nothing in the state tells it; if the recorder stopped there, they are"
        " truncated, not terminated"
        if z > STEPS[0]
        else f"the longest episodes end as others do ({z:.1f} standard deviations)"
    )
    return AT_A_LIMIT.graded(z, *STEPS, words)


def _never_cut(episodes: EpisodeTotals) -> float:
    """G: the share of episodes that would be recorded beyond the longest if none of them ended."""
    length = episodes.rows.astype(np.int64)
    longest = int(length.max())
    cuts, stops = np.bincount(length[episodes.ended == 0], minlength=longest + 1), np.bincount(length)
    at_risk = cuts + len(length) - np.cumsum(stops)  # an end at the same step comes first
    before = slice(0, longest)
    return float(np.prod(1.0 - cuts[before] / np.maximum(at_risk[before], 1)))


def _outlasting(transitions: Transitions, steps: int) -> float:
    """How many episodes are alive after so many steps, by the chains of their loggers."""
    followed = follow_up(transitions, to_the_last=True)
    t = transitions if followed is None else followed.transitions
    goes_on = np.flatnonzero(t.next_state >= 0)
    share = t.rows / sum_by(t.pair, t.rows, t.n_pairs)[t.pair]
    alive = 0.0
    for j in range(len(t.loggers)):
        mine = t.rows * (t.logger == j)
        taken, visits = sum_by(t.pair, mine, t.n_pairs), sum_by(t.state, mine, t.n_states)
        acts = taken / np.maximum(visits[t.pair_state], 1.0)
        chance = (acts[t.pair] * share)[goes_on]
        chain = sparse.csr_array((chance, (t.next_state[goes_on], t.state[goes_on])), shape=(t.n_states,) * 2)
        law = sum_by(t.state, t.starts * (t.logger == j), t.n_states)
        for _ in range(steps):
            law = np.asarray(chain @ law)
        alive += float(law.sum())
    return alive


def ends_over_steps(transitions: Transitions, ordered: OrderedRows) -> Diagnostic | None:
    """Whether the same action in the same state ends an episode as often early as late; None where few end."""
    ended = (transitions.next_state == ENDED).astype(np.float64)[ordered.group]
    episodes = ordered.episodes
    step = (np.arange(len(ended)) - episodes.first[episodes.episode]).astype(np.float64)
    z = trend_in(transitions.pair[ordered.group], step, ended) if ended.sum() >= LEAST else None
    if z is None:
        return None
    bad = abs(z) > STEPS[0]
    said = f"the same actions in the same states {'do not ' if bad else ''}end episodes as often early as late"
    cause = "; episodes may be selected by their length, or something that is not in the state ends them" if bad else ""
    return OVER_STEPS.graded(abs(z), *STEPS, f"{said} ({z:+.1f} standard deviations){cause}")


def ends_at_cuts(transitions: Transitions, ordered: OrderedRows) -> Diagnostic | None:
    """Whether episodes end where others are cut, in the same states; None where few end or none is cut."""
    episodes, ended = ordered.episodes, (transitions.next_state == ENDED).astype(np.float64)[ordered.group]
    cut = np.bincount(episodes.length[~episodes.terminated] - 1, minlength=int(episodes.length.max(initial=0)))
    if ended.sum() < LEAST or not cut.any():
        return None
    at_risk = np.bincount(episodes.step, minlength=len(cut))
    z = surplus_in(transitions.pair[ordered.group], (cut / at_risk)[episodes.step], ended)
    if z is None:
        return None
    words = (
        f"episodes end where others are cut, more often than the same actions in the same states do ({z:.1f} standard"
        " deviations); some cuts may be marked as ends"
        if z > CUTS[0]
        else f"episodes do not end more often where others are cut ({z:.1f} standard deviations)"
    )
    return AT_CUTS.graded(z, *CUTS, words)


def surplus_in(stratum: IntArray, weight: FloatArray, happened: FloatArray) -> float | None:
    """Whether Σ weight over what happened is above its mean over all orders within strata, in standard deviations.

    With mean μ and variance v, Σ μ/v is taken for Poisson with the mean μ²/v.
    """
    n = sum_by(stratum, np.ones(len(stratum)))
    mean, share = ((sum_by(stratum, x) / np.maximum(n, 1.0))[stratum] for x in (weight, happened))
    spread = (sum_by(stratum, off**2) for off in (weight - mean, happened - share))
    variance = float(np.sum(np.prod(np.stack(list(spread)), axis=0) / np.maximum(n - 1.0, 1.0)))
    expected, seen = float(share @ weight), float(weight @ happened)
    if variance <= 0 or expected <= 0:
        return None
    tail = float(gammainc(seen * expected / variance, expected**2 / variance)) if seen > 0 else 1.0
    return float(-ndtri(min(max(tail, 1e-300), 1.0 - 1e-16)))


def trend_in(stratum: IntArray, at: FloatArray, happened: FloatArray) -> float | None:
    """Mantel's test of a trend within strata, in standard deviations; None where no stratum can tell."""
    n = sum_by(stratum, np.ones(len(stratum)))
    off, late = (x - (sum_by(stratum, x) / np.maximum(n, 1.0))[stratum] for x in (happened, at))
    variance = float(np.sum(sum_by(stratum, late**2) * sum_by(stratum, off**2) / np.maximum(n - 1.0, 1.0)))
    return float(late @ off) / np.sqrt(variance) if variance > 0 else None


def _in_order(judge: Callable[[Transitions, OrderedRows], Diagnostic | None]) -> Callable[[LogEvidence], Made]:
    """The judge of logs whose rows are counted and known in their order."""

    def judged(logs: LogEvidence) -> Diagnostic | None:
        if logs.transitions is None or logs.sums.ordered is None:
            return None
        return judge(logs.transitions, logs.sums.ordered)

    return judged


STOPPED = Check(
    "unmarked stops",
    "data",
    DAMAGED,
    Advice("mark the last rows, or say ", Setting("ends"), " when reading"),
    unmarked_stops,
)
OUTLASTING = Check(
    "episode lengths",
    "data",
    DAMAGED,
    "put the step into the state, where a visit number or a limit of time ends episodes; otherwise find the long"
    " episodes that are missing: often a join or a time-out lost them",
    judge_logs=lambda logs: None if logs.transitions is None else lengths_fit(logs.transitions, logs.sums.totals),
)
AT_A_LIMIT = Check(
    "ends at a limit",
    "data",
    DAMAGED,
    "mark the limit as truncated; or put the time left into the state",
    judge_logs=lambda logs: ends_at_a_limit(logs.sums.limit),
)
OVER_STEPS = Check(
    "ends over steps",
    "data",
    DAMAGED,
    "mark a limit of time as truncated; or put the time left into the state",
    judge_logs=_in_order(ends_over_steps),
)
AT_CUTS = Check(
    "ends at cuts",
    "data",
    DAMAGED,
    "mark the cuts as truncated; or put the time left into the state",
    judge_logs=_in_order(ends_at_cuts),
)
