"""Logs from a model: all episodes of all loggers advance together, one step at a time.

The columns are the canonical ones of a log. Row order is by episode, then by step. An episode ends at a terminated
transition, or is cut (``truncated``) after ``horizon`` steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mixope.arrays import AnyArray, BoolArray, IntArray
from mixope.environments.model import Model
from mixope.environments.sampling import action_laws, laws, transition_laws
from mixope.errors import UsageError

Columns = dict[str, AnyArray]
Observed = Literal["id", "factors", "both"]


def simulate(
    model: Model,
    policies: Sequence[AnyArray],
    episodes: int,
    horizon: int,
    *,
    seed: int,
    observed: Observed = "id",
) -> Columns:
    """Logs of ``episodes`` episodes in total, shared as evenly as can be among the policies, in blocks.

    Policy j is called ``logger-j``; where the shares are uneven the first policies get one episode more. ``observed``
    says how states are written: as ``observation`` (an id), as ``observation.<factor>`` columns, or both.
    """
    if episodes < len(policies) or horizon < 1 or not policies:
        raise UsageError(
            "expected at least one policy, an episode for each and a horizon of at least 1 step,"
            f" got {len(policies)} policies, {episodes} episodes and a horizon of {horizon}"
        )
    stacked = np.stack([model.checked_policy(policy) for policy in policies])
    logger = np.sort(np.arange(episodes) % len(policies))
    path = _walk(model, stacked, logger, horizon, np.random.default_rng(seed))
    rows = np.flatnonzero(path.lived.T)
    episode, step = np.divmod(rows, horizon)
    state, action, entry = (part.T.ravel()[rows] for part in (path.state, path.action, path.entry))
    terminated = model.terminated[entry]
    return {
        "policy_id": np.array([f"logger-{j}" for j in range(len(policies))])[logger[episode]],
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
