"""The replay of logs that are too long to be put in order: from the sums by episode of the last scan alone.

A score table holds the residual of every transition against the counts of all rows,

    δ = r + κ V(s′) − mean of the same over the rows of its (s, a),      V(s) = r(s) + κ Σ_{s′} P(s′|s) V(s′),

κ the chance that an episode is followed for another step. The sum over all rows is zero; that over the early steps is
what was seen there less what the counts predict, and the later steps have the rest. The mean of a pair leans on what
came of its rows (:mod:`mixope.requests.replay`), by a share of a row for every pair. So pairs count that have at
least as many rows as the root of all: then there are at most as many pairs, and their leaning is small against chance.
What an episode adds is taken to be its own residuals, though the mean has a share in them, which is on the safe side.
Where nobody knows what came, a row went on as the others of its pair that did.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, sum_by
from mixope.requests.grouping import Aggregate, GroupSums
from mixope.requests.probes import Probes
from mixope.requests.quantities import within
from mixope.requests.replay import Replay
from mixope.requests.transitions import UNFOLLOWED, Transitions

SWEEPS = 64
"""Steps that are looked ahead."""
_KEPT, _AHEAD = "replayed", "replay_ahead"
_ROWS, _EARNED, _WORTH = "replay_rows", "replay_earned", "replay_worth"


@dataclass(frozen=True)
class EarlySteps:
    """What the last scan is to add up: over the first ``steps`` of every episode."""

    probes: Probes
    steps: int
    rows: float
    """Rows of pairs that count, at any step."""
    reward: float
    """What they earned."""
    of: float
    """All rows."""

    def read(self, groups: GroupSums, longest: int) -> Replay:
        """Early and later steps, from the sums by episode."""
        n, earned, worth = (groups.column(name) for name in (_ROWS, _EARNED, _WORTH))
        early, total = float(n.sum()), float((earned + worth).sum())
        rows = np.array([early, self.rows - early])
        seen = np.array([float(earned.sum()), self.reward - float(earned.sum())])
        by_episode = np.stack([earned + worth, -(earned + worth)], axis=1)
        return Replay(
            total=np.array([total, -total]),
            size=rows,
            by_episode=by_episode,
            fold=np.zeros(len(n), dtype=np.int64),
            seen=np.divide(seen, rows, out=np.zeros(2), where=rows > 0),
            rows=rows * self.of / max(self.rows, 1.0),
            first=np.array([0, self.steps]),
            last=np.array([self.steps, longest]) - 1,
        )


def early_steps(transitions: Transitions, base: int) -> EarlySteps | None:
    """The request for half of the mean number of steps; None where no first step was logged, or no pair is frequent."""
    t, of = transitions, transitions.n_rows
    starts, kept = float(t.starts.sum()), t.pair_rows >= np.sqrt(of)
    steps = round(of / starts / 2) if starts else 0
    if not steps or not kept.any():
        return None
    ahead, mine = _ahead(t, 1.0 - starts / of), kept[t.pair].astype(np.float64)
    mean = (sum_by(t.pair, t.reward + t.rows * ahead, t.n_pairs) / t.pair_rows)[t.pair]
    early = within(steps, base)
    probes = Probes(
        {_KEPT: mine, _AHEAD: mine * (ahead - mean)},
        (
            Aggregate(_ROWS, "sum", (_KEPT, early)),
            Aggregate(_EARNED, "sum", (_KEPT, "reward", early)),
            Aggregate(_WORTH, "sum", (_AHEAD, early)),
        ),
    )
    return EarlySteps(probes, steps, float(t.rows @ mine), float(t.reward @ mine), of)


def _ahead(t: Transitions, goes_on: float) -> FloatArray:
    """κ V(s′) of every group; 0 after an end, and where nobody knows what came, as after the others that went on."""
    n, alive, lost = t.n_states, t.next_state >= 0, t.next_state == UNFOLLOWED
    visits = sum_by(t.state, t.rows, n)
    seen = np.maximum(visits, 1.0)
    reward = sum_by(t.state, t.reward, n) / seen
    known, unknown = (sum_by(t.pair, t.rows * some, t.n_pairs) for some in (alive, lost))
    stands_for = np.divide(known + unknown, known, out=np.ones(t.n_pairs), where=known > 0)[t.pair]
    share = (t.rows * stands_for / seen[t.state])[alive]
    moves = sparse.csr_array((share, (t.state[alive], t.next_state[alive])), shape=(n, n))
    usual, unseen, value = visits / max(float(visits.sum()), 1.0), visits == 0, np.zeros(n)
    for _ in range(SWEEPS):
        value = reward + goes_on * (moves @ value)
        value[unseen] = usual @ value
    ahead = np.where(alive, goes_on * value[np.maximum(t.next_state, 0)], 0.0)
    went_on = np.full(t.n_pairs, goes_on * float(usual @ value))
    np.divide(sum_by(t.pair, t.rows * ahead, t.n_pairs), known, out=went_on, where=known > 0)
    return np.where(lost, went_on[t.pair], ahead)
