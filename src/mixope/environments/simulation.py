"""Logs from a model: all episodes of all loggers advance together, one step at a time.

The columns are the canonical ones of a log. Row order is by episode, then by step. An episode ends at a terminated
transition, or is cut (``truncated``) after ``horizon`` steps.

Draws from many discrete laws at once take one binary search (:class:`Laws`). The laws are rows of probabilities laid
end to end. With F(i, ·) the cumulative sums of row i, the array i + F(i, ·) is sorted over all rows together, so the
entry drawn for row i by a uniform u is the first one above i + u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mixope.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.environments.model import Model
from mixope.errors import UsageError

Columns = dict[str, AnyArray]
Observed = Literal["id", "factors", "both"]


def simulate(
    model: Model, policies: Sequence[AnyArray], episodes: int, horizon: int, *, seed: int, observed: Observed = "id"
) -> Columns:
    """Logs of ``episodes`` episodes in total, shared as evenly as can be among the policies, in blocks.

    Policy j is called ``logger-j``; where the shares are uneven the first policies get one episode more. ``observed``
    says how states are written: as ``observation`` (an id), as ``observation.<factor>`` columns, or both.
    """
    logger = share_episodes(len(policies), episodes, horizon)
    stacked = np.stack([model.checked_policy(policy) for policy in policies])
    path = _walk(model, stacked, logger, horizon, np.random.default_rng(seed))
    rows = np.flatnonzero(path.lived.T)
    episode, step = np.divmod(rows, horizon)
    state, action, entry = (part.T.ravel()[rows] for part in (path.state, path.action, path.entry))
    terminated = model.terminated[entry]
    return {
        "policy_id": logger_names(len(policies))[logger[episode]],
        "episode_id": episode,
        "step": step,
        **_observations(model, "observation", state, observed),
        "action": action,
        "reward": model.reward[entry],
        **_observations(model, "next_observation", model.transition.indices[entry].astype(np.int64), observed),
        "terminated": terminated,
        "truncated": (step == horizon - 1) & ~terminated,
        "action_prob": stacked[logger[episode], state, action],
    }


@dataclass(frozen=True, eq=False)
class _Path:
    """What happened, each of shape (horizon, episodes): state, action, stored transition, and whether it happened."""

    state: IntArray
    action: IntArray
    entry: IntArray
    lived: BoolArray


def _walk(model: Model, policies: AnyArray, logger: IntArray, horizon: int, generator: np.random.Generator) -> _Path:
    acting, moving = action_laws(policies), transition_laws(model)
    starting = laws(model.start, np.array([0, model.n_states]))
    n_states, n_actions, episodes = model.n_states, model.n_actions, len(logger)
    state, action, entry = (np.empty((horizon, episodes), dtype=np.int64) for _ in range(3))
    lived = np.zeros((horizon, episodes), dtype=bool)
    following = model.transition.indices.astype(np.int64)
    ends, alive = model.ends, np.ones(episodes, dtype=bool)
    now = starting.draw(np.zeros(episodes, dtype=np.int64), generator.random(episodes))
    for t in range(horizon):
        uniforms = generator.random((2, episodes))
        cell = acting.draw(logger * n_states + now, uniforms[0])
        state[t], action[t], lived[t] = now, cell % n_actions, alive
        entry[t] = moving.draw(now * n_actions + action[t], uniforms[1])
        now = following[entry[t]]
        if ends:
            alive = alive & ~model.terminated[entry[t]]
    return _Path(state, action, entry, lived)


def _observations(model: Model, column: str, states: IntArray, observed: Observed) -> Columns:
    if observed not in ("id", "factors", "both"):
        raise UsageError(f"expected observed to be 'id', 'factors' or 'both', got {observed!r}")
    if observed != "id" and not model.factors:
        raise UsageError(f"{model.name} has no factors; use observed='id'")
    ids = {column: states} if observed != "factors" else {}
    factors = {f"{column}.{name}": values[states] for name, values in model.factors.items() if observed != "id"}
    return {**ids, **factors}


def share_episodes(loggers: int, episodes: int, horizon: int) -> IntArray:
    """The logger of every episode: as even shares as can be, in blocks, the first loggers with one episode more."""
    if episodes < loggers or horizon < 1 or not loggers:
        raise UsageError(
            "expected at least one policy, an episode for each and a horizon of at least 1 step,"
            f" got {loggers} policies, {episodes} episodes and a horizon of {horizon}"
        )
    return np.sort(np.arange(episodes) % loggers)


def logger_names(loggers: int) -> AnyArray:
    """Policy j is called ``logger-j``."""
    return np.array([f"logger-{j}" for j in range(loggers)])


@dataclass(frozen=True, eq=False)
class Laws:
    """Rows of probabilities, ready to be drawn from."""

    ladder: FloatArray
    last: IntArray

    def draw(self, rows: IntArray, uniforms: FloatArray) -> IntArray:
        """The position, among all entries, of one draw from each of ``rows``."""
        found = np.searchsorted(self.ladder, rows + uniforms, side="right")
        # i + u can round up to i + 1, the first entry of the next row.
        return np.minimum(found, self.last[rows])


def laws(probabilities: FloatArray, row_starts: IntArray) -> Laws:
    """Laws from entries laid end to end; row i is ``probabilities[row_starts[i]:row_starts[i + 1]]``."""
    lengths = np.diff(row_starts)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    sums = np.cumsum(probabilities)
    before = np.concatenate([[0.0], sums])[row_starts[:-1]]
    ladder = np.minimum(sums - before[rows], 1.0) + rows
    last = row_starts[1:] - 1
    last_possible = last - _trailing_zeros(probabilities, row_starts)
    ladder[last_possible] = np.arange(1, len(lengths) + 1)
    ladder = np.maximum.accumulate(ladder)
    return Laws(ladder, last_possible)


def transition_laws(model: Model) -> Laws:
    """The laws of a model's stored transitions, one row for each s·A + a."""
    return laws(model.transition.data, model.transition.indptr.astype(np.int64))


def action_laws(policies: FloatArray) -> Laws:
    """The action laws of stacked policies (…, A), one row for each leading index."""
    n_actions = policies.shape[-1]
    return laws(policies.ravel(), np.arange(policies.size // n_actions + 1) * n_actions)


def _trailing_zeros(probabilities: FloatArray, row_starts: IntArray) -> IntArray:
    """How many entries at the end of each row have probability 0."""
    positions = np.where(probabilities > 0, np.arange(len(probabilities)), -1)
    return row_starts[1:] - 1 - np.maximum.reduceat(positions, row_starts[:-1])
