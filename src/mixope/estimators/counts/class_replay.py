"""Do classes of units replay the logs? Rewards by step, as their chains predict them, beside those that were seen.

What those who wrote the logs did is part of the chain of each class: P_c(s, s′) and r_c(s) are counted over all its
rows. With the share p_c and the start law μ_c of class c, of the episodes that have not ended before step t

    predicted_t = Σ_c p_c μ_c P_cᵗ r_c / Σ_c p_c μ_c P_cᵗ 1

and what was seen less what was predicted is added up by unit in three bands of steps. Classes are fitted to the path
by nothing but the transitions of single rows and who they belong to: where units change, or where there is more to the
past than a few classes say, path and prediction part. The prediction is taken as known, so that the error is rather
too large: what is seen to be off is off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.requests.replay import BANDS, Replay, Replays, band_of_steps
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import Transitions


def replay_classes(
    parts: Sequence[Transitions], share: FloatArray, ordered: OrderedRows, loggers: tuple[str, ...]
) -> Replays:
    """The path of all classes together, beside the rows in their order; ``parts`` are the logs of the classes."""
    episodes = ordered.episodes
    step, reward = episodes.step, episodes.reward
    n_steps = int(step.max()) + 1
    off = reward - predicted_path(parts, share, n_steps)[step]
    band = band_of_steps(step, BANDS, n_steps)[step]
    code = episodes.episode * BANDS + band
    by_episode = sum_by(code, off, episodes.n_episodes * BANDS).reshape(-1, BANDS)
    rows = np.bincount(band, minlength=BANDS).astype(np.float64)
    seen = sum_by(band, reward, BANDS) / np.maximum(rows, 1.0)
    first = np.array([step[band == k].min(initial=n_steps) for k in range(BANDS)])
    last = np.array([step[band == k].max(initial=0) for k in range(BANDS)])
    fold = np.zeros(episodes.n_episodes, dtype=np.int64)
    return Replays(
        Replay(by_episode.sum(axis=0), rows, by_episode, fold, seen, rows, first, last), None, None, None, loggers
    )


def predicted_path(parts: Sequence[Transitions], share: FloatArray, n_steps: int) -> FloatArray:
    """By step."""
    earned, alive = np.zeros(n_steps), np.zeros(n_steps)
    for part, p in zip(parts, share, strict=True):
        moves, reward = _logged_chain(part)
        law = p * part.start_law
        for t in range(n_steps):
            earned[t] += law @ reward
            alive[t] += law.sum()
            law = moves @ law
    return np.asarray(np.divide(earned, alive, out=np.zeros(n_steps), where=alive > 0))


def _logged_chain(part: Transitions) -> tuple[sparse.csr_matrix, FloatArray]:
    """Pᵀ and r by state; from a state that nobody left, on as all rows together."""
    n, alive = part.n_states, np.flatnonzero(part.next_state >= 0)
    rows, earned = sum_by(part.state, part.rows, n), sum_by(part.state, part.reward, n)
    left, per_row = rows > 0, 1.0 / np.maximum(rows, np.finfo(float).tiny)
    share = part.rows[alive] * per_row[part.state[alive]]
    moves = sparse.csr_matrix((share, (part.next_state[alive], part.state[alive])), shape=(n, n))
    lost: IntArray = np.flatnonzero(~left)
    if len(lost):
        usual = (moves @ rows / rows.sum())[:, None]
        unseen = sparse.csr_matrix((np.ones(len(lost)), (np.zeros(len(lost), dtype=int), lost)), shape=(1, n))
        moves = moves + sparse.csr_matrix(usual) @ unseen
    return moves, np.where(left, earned * per_row, float(earned.sum() / rows.sum()))
