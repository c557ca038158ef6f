"""Logs from a model: all episodes of all loggers advance together, one step at a time.

The columns are the canonical ones of a log. Row order is by episode, then by step. An episode ends at a terminated
transition, or is cut (``truncated``) after ``horizon`` steps; without a horizon episodes are logged to their end.

Draws from many discrete laws at once take one binary search (:class:`DrawTable`). The laws are rows of probabilities
laid end to end. With F(i, ·) the cumulative sums of row i, the array i + F(i, ·) is sorted over all rows together, so
the entry drawn for row i by a uniform u is the first one above i + u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.worlds import truth
from mixope.worlds.model import Model

Columns = dict[str, AnyArray]
Observed = Literal["id", "factors", "both", "vector"]


def simulate(
    model: Model,
    policies: Sequence[AnyArray],
    episodes: int,
    horizon: int | None = None,
    *,
    seed: int,
    observed: Observed = "id",
) -> Columns:
    """Logs of ``episodes`` episodes in total, shared as evenly as can be among the policies, in blocks.

    Policy j is called ``logger-j``; where the shares are uneven the first policies get one episode more. ``observed``
    says how states are written: as ``observation`` (an id), as ``observation.<factor>`` columns, as both, or as
    ``observation`` with the factors for the components of a vector of floats.
    """
    logger = share_episodes(len(policies), episodes, horizon)
    stacked = np.stack([model.checked_policy(policy) for policy in policies])
    if horizon is None:
        _check_ends(model, stacked)
    path = _walk(model, stacked, logger, horizon, np.random.default_rng(seed))
    rows = np.flatnonzero(path.lived.T)
    episode, step = np.divmod(rows, len(path.lived))
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
        "truncated": truncated(step, horizon) & ~terminated,
        "action_prob": stacked[logger[episode], state, action],
    }


@dataclass(frozen=True, eq=False)
class _Path:
    """What happened, each of shape (steps, episodes): state, action, stored transition, and whether it happened."""

    state: IntArray
    action: IntArray
    entry: IntArray
    lived: BoolArray


def _walk(
    model: Model, policies: AnyArray, logger: IntArray, horizon: int | None, generator: np.random.Generator
) -> _Path:
    acting, moving = action_laws(policies), transition_laws(model)
    starting = laws(model.start, np.array([0, model.n_states]))
    n_states, n_actions, episodes = model.n_states, model.n_actions, len(logger)
    following = model.transition.indices.astype(np.int64)
    ends, alive = model.ends, np.ones(episodes, dtype=bool)
    now = starting.draw(np.zeros(episodes, dtype=np.int64), generator.random(episodes))
    happened: list[tuple[AnyArray, ...]] = []
    while len(happened) != horizon and alive.any():
        uniforms = generator.random((2, episodes))
        action = acting.draw(logger * n_states + now, uniforms[0]) % n_actions
        entry = moving.draw(now * n_actions + action, uniforms[1])
        happened.append((now, action, entry, alive))
        now = following[entry]
        if ends:
            alive = alive & ~model.terminated[entry]
    return _Path(*(np.stack(part) for part in zip(*happened, strict=True)))


def _check_ends(model: Model, policies: AnyArray) -> None:
    for j, policy in enumerate(policies):
        if not np.isfinite(truth.episode_value(model, policy)[model.start > 0]).all():
            raise UsageError(
                f"episodes of policy {j} on {model.name} may never end; give a horizon, after which they are truncated"
            )


def truncated(step: IntArray, horizon: int | None) -> BoolArray:
    """Whether the recorder stopped after that step."""
    return np.zeros(len(step), dtype=bool) if horizon is None else np.asarray(step == horizon - 1)


def _observations(model: Model, column: str, states: IntArray, observed: Observed) -> Columns:
    if observed not in get_args(Observed):
        raise UsageError(f"expected observed to be one of {', '.join(get_args(Observed))}, got {observed!r}")
    if observed != "id" and not model.factors:
        raise UsageError(f"{model.name} has no factors; use observed='id'")
    if observed == "vector":
        return {column: np.stack([values[states] for values in model.factors.values()], axis=1).astype(np.float64)}
    ids = {column: states} if observed != "factors" else {}
    factors = {f"{column}.{name}": values[states] for name, values in model.factors.items() if observed != "id"}
    return {**ids, **factors}


def share_episodes(loggers: int, episodes: int, horizon: int | None) -> IntArray:
    """The logger of every episode: as even shares as can be, in blocks, the first loggers with one episode more."""
    if episodes < loggers or (horizon is not None and horizon < 1) or not loggers:
        raise UsageError(
            "expected at least one policy, an episode for each and a horizon of at least 1 step,"
            f" got {loggers} policies, {episodes} episodes and a horizon of {horizon}"
        )
    return np.sort(np.arange(episodes) % loggers)


def logger_names(loggers: int) -> AnyArray:
    """Policy j is called ``logger-j``."""
    return np.array([f"logger-{j}" for j in range(loggers)])


@dataclass(frozen=True, eq=False)
class DrawTable:
    """Rows of probabilities, ready to be drawn from."""

    ladder: FloatArray
    last: IntArray

    def draw(self, rows: IntArray, uniforms: FloatArray) -> IntArray:
        """The position, among all entries, of one draw from each of ``rows``."""
        found = np.searchsorted(self.ladder, rows + uniforms, side="right")
        # i + u can round up to i + 1, the first entry of the next row.
        return np.minimum(found, self.last[rows])


def laws(probabilities: FloatArray, row_starts: IntArray) -> DrawTable:
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
    return DrawTable(ladder, last_possible)


def transition_laws(model: Model) -> DrawTable:
    """The laws of a model's stored transitions, one row for each s·A + a."""
    return laws(model.transition.data, model.transition.indptr.astype(np.int64))


def action_laws(policies: FloatArray) -> DrawTable:
    """The action laws of stacked policies (…, A), one row for each leading index."""
    n_actions = policies.shape[-1]
    return laws(policies.ravel(), np.arange(policies.size // n_actions + 1) * n_actions)


def _trailing_zeros(probabilities: FloatArray, row_starts: IntArray) -> IntArray:
    """How many entries at the end of each row have probability 0."""
    positions = np.where(probabilities > 0, np.arange(len(probabilities)), -1)
    return row_starts[1:] - 1 - np.maximum.reduceat(positions, row_starts[:-1])
