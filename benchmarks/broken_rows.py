"""What can go wrong between a recorder and a table: rows lost, doubled, moved, swapped, renumbered.

A corruption is a function from columns and a generator to other columns. Those of :mod:`broken_logs` and
:mod:`broken_episodes` are about what loggers did and how episodes end; these are about how it was written down, and
say nothing about the world, so that each applies to states of every kind: one id, several factors, or vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

Columns = dict[str, np.ndarray]
Corruption = Callable[[Columns, np.random.Generator], Columns]
ONE = "logger-1"
"""The logger whose recorder is broken where only one is."""


def states(columns: Columns, notion: str = "observation") -> list[str]:
    return [name for name in columns if name.partition(".")[0] == notion]


def following(columns: Columns) -> list[str]:
    return states(columns, "next_observation")


def taken(columns: Columns, rows: np.ndarray) -> Columns:
    return {name: values[rows] for name, values in columns.items()}


def first_of(columns: Columns) -> np.ndarray:
    """The first row of every episode; rows are ordered by episode and step."""
    return np.append(True, np.diff(columns["episode_id"]) != 0)


def renumbered(columns: Columns) -> Columns:
    """Steps 0, 1, 2 … along the rows of every episode."""
    place, first = np.arange(len(columns["reward"])), first_of(columns)
    return {**columns, "step": place - place[first][np.cumsum(first) - 1]}


def derived(columns: Columns) -> Columns:
    """Without next observations, so that they are taken from the next row."""
    return {name: values for name, values in columns.items() if name not in following(columns)}


def untouched(columns: Columns, generator: np.random.Generator) -> Columns:
    return columns


def any_order(columns: Columns, generator: np.random.Generator) -> Columns:
    """Rows in no order: their steps say it."""
    return taken(columns, generator.permutation(len(columns["reward"])))


def all_from_one(columns: Columns, generator: np.random.Generator) -> Columns:
    """Everybody counts from 1."""
    return {**columns, "step": columns["step"] + 1}


def without_next(columns: Columns, generator: np.random.Generator) -> Columns:
    return derived(columns)


def wrong_next(columns: Columns, generator: np.random.Generator, share: float) -> Columns:
    """Some rows have the next observation of another row."""
    rows = len(columns["reward"])
    moved = np.flatnonzero(generator.random(rows) < share)
    source = np.arange(rows)
    source[moved] = np.roll(moved, 1)
    return {**columns, **{name: columns[name][source] for name in following(columns)}}


def slipped_next(columns: Columns, generator: np.random.Generator) -> Columns:
    """The whole column stands one row too low."""
    return {**columns, **{name: np.roll(columns[name], 1, axis=0) for name in following(columns)}}


def _best(columns: Columns, generator: np.random.Generator) -> np.ndarray:
    """Half of the rows in the best tenth."""
    reward = columns["reward"]
    high = max(float(np.quantile(reward, 0.9)), float(np.unique(reward)[1]))
    return (reward >= high) & (generator.random(len(reward)) < 0.5)


def best_rows_lost(columns: Columns, generator: np.random.Generator) -> Columns:
    return taken(columns, ~_best(columns, generator))


def best_rows_lost_renumbered(columns: Columns, generator: np.random.Generator) -> Columns:
    return renumbered(best_rows_lost(columns, generator))


def best_rows_lost_derived(columns: Columns, generator: np.random.Generator) -> Columns:
    return derived(best_rows_lost(columns, generator))


def best_rows_lost_unseen(columns: Columns, generator: np.random.Generator) -> Columns:
    return derived(best_rows_lost_renumbered(columns, generator))


def any_rows_lost(columns: Columns, generator: np.random.Generator) -> Columns:
    """One row in twenty, whatever it earned."""
    return taken(columns, generator.random(len(columns["reward"])) >= 0.05)


def _failed(columns: Columns) -> np.ndarray:
    """Rows of episodes that earned less than the median."""
    number = np.unique(columns["episode_id"], return_inverse=True)[1]
    earned = np.bincount(number, weights=columns["reward"])
    return (earned < np.median(earned))[number]


def failures_lost(columns: Columns, generator: np.random.Generator) -> Columns:
    """One logger kept its successes only."""
    return taken(columns, ~_failed(columns) | (columns["policy_id"] != ONE))


def all_failures_lost(columns: Columns, generator: np.random.Generator) -> Columns:
    """Half of the episodes that earned less than the median are nowhere."""
    unlucky = generator.random(int(columns["episode_id"].max()) + 1) < 0.5
    return taken(columns, ~(_failed(columns) & unlucky[columns["episode_id"]]))


def rows_twice(columns: Columns, generator: np.random.Generator) -> Columns:
    rows = len(columns["reward"])
    return taken(columns, np.repeat(np.arange(rows), 1 + (generator.random(rows) < 0.1)))


def rows_twice_renumbered(columns: Columns, generator: np.random.Generator) -> Columns:
    """A retry is written as a step of its own."""
    return renumbered(rows_twice(columns, generator))


def states_swapped(columns: Columns, generator: np.random.Generator, one: bool = False) -> Columns:
    """The state after an action stands where the state before it should, and the other way round."""
    mine = columns["policy_id"] == ONE if one else np.ones(len(columns["reward"]), dtype=bool)
    pairs = list(zip(states(columns), following(columns), strict=True))
    swapped = dict(columns)
    for now, after in pairs:
        which = mine[:, None] if columns[now].ndim > 1 else mine
        swapped[now] = np.where(which, columns[after], columns[now])
        swapped[after] = np.where(which, columns[now], columns[after])
    return swapped


def factors_swapped(columns: Columns, generator: np.random.Generator) -> Columns:
    """Two columns of the state changed places, in the rows of one logger."""
    mine, swapped = columns["policy_id"] == ONE, dict(columns)
    for names in (states(columns), following(columns)):
        if len(names) > 1:
            swapped[names[0]] = np.where(mine, columns[names[1]], columns[names[0]])
            swapped[names[1]] = np.where(mine, columns[names[0]], columns[names[1]])
        else:
            values = columns[names[0]]
            swapped[names[0]] = np.where(mine[:, None], values[:, ::-1], values)
    return swapped


def reward_and_propensity_swapped(columns: Columns, generator: np.random.Generator) -> Columns:
    given = "action_prob" if "action_prob" in columns else "action_logp"
    return {**columns, "reward": columns[given], given: columns["reward"]}


def actions_at_random(columns: Columns, generator: np.random.Generator, share: float) -> Columns:
    """Some rows have the action of another row."""
    rows = len(columns["reward"])
    moved = np.flatnonzero(generator.random(rows) < share)
    action = columns["action"].copy()
    action[moved] = action[generator.permutation(moved)]
    return {**columns, "action": action}


def flags_flipped(columns: Columns, generator: np.random.Generator) -> Columns:
    """In one row of twenty, an end is none and none is an end."""
    return {**columns, "terminated": columns["terminated"] ^ (generator.random(len(columns["reward"])) < 0.05)}


def ends_unmarked(columns: Columns, generator: np.random.Generator) -> Columns:
    """One end in five lost its mark."""
    return {**columns, "terminated": columns["terminated"] & (generator.random(len(columns["reward"])) >= 0.2)}


def cuts_as_ends(columns: Columns, generator: np.random.Generator) -> Columns:
    """Where the recorder stopped, the rows say that the episode ended."""
    ended = columns["terminated"] | columns["truncated"]
    return {**columns, "terminated": ended, "truncated": np.zeros(len(ended), dtype=bool)}


def joined(columns: Columns, generator: np.random.Generator, marks: bool = False) -> Columns:
    """Two episodes of a logger under one id, one after the other; without ``marks`` the first has no end."""
    labels, number = np.unique(columns["policy_id"], return_inverse=True)
    of_episode = np.unique(columns["episode_id"], return_inverse=True)[1]
    rank = np.empty(of_episode.max() + 1, dtype=np.int64)
    for j in range(len(labels)):
        mine = np.unique(of_episode[number == j])
        rank[mine] = np.arange(len(mine))
    pair = rank[of_episode] // 2 * len(labels) + number
    order = np.lexsort((columns["step"], rank[of_episode], pair))
    both = taken({**columns, "episode_id": pair}, order)
    both = renumbered(both)
    if marks:
        return both
    last = np.append(np.diff(both["episode_id"]) != 0, True)
    return {**both, **{name: both[name] & last for name in ("terminated", "truncated")}}


def split(columns: Columns, generator: np.random.Generator) -> Columns:
    """The second half of every episode has an id of its own, and begins at step 0."""
    _, number, length = np.unique(columns["episode_id"], return_inverse=True, return_counts=True)
    late = columns["step"] >= (length[number] + 1) // 2
    return renumbered({**columns, "episode_id": 2 * columns["episode_id"] + late})


def one_from_one(columns: Columns, generator: np.random.Generator) -> Columns:
    """One logger counts its steps from 1, the others from 0."""
    return {**columns, "step": columns["step"] + (columns["policy_id"] == ONE)}


def steps_mixed(columns: Columns, generator: np.random.Generator) -> Columns:
    """In one episode of five, the steps are in another order."""
    touched = generator.random(int(columns["episode_id"].max()) + 1) < 0.2
    key = np.where(touched[columns["episode_id"]], generator.random(len(columns["reward"])), columns["step"])
    order = np.lexsort((key, columns["episode_id"]))
    step = np.empty_like(columns["step"])
    step[order] = columns["step"]
    return {**columns, "step": step}


def steps_mixed_derived(columns: Columns, generator: np.random.Generator) -> Columns:
    return derived(steps_mixed(columns, generator))


def states_renamed(columns: Columns, generator: np.random.Generator) -> Columns:
    """One logger's states have other ids (another first factor; another unit of the first component)."""
    mine, now, after = columns["policy_id"] == ONE, states(columns)[0], following(columns)[0]
    if columns[now].ndim > 1:
        scale = np.where(mine[:, None], np.append(2.0, np.ones(columns[now].shape[1] - 1)), 1.0)
        return {**columns, **{name: columns[name] * scale for name in (now, after)}}
    ids = np.unique(np.concatenate([columns[now], columns[after]]))
    other = np.roll(ids, 1)
    renamed = {name: other[np.searchsorted(ids, columns[name])] for name in (now, after)}
    return {**columns, **{name: np.where(mine, renamed[name], columns[name]) for name in renamed}}


def actions_renamed(columns: Columns, generator: np.random.Generator) -> Columns:
    """One logger names its actions in another order; numbers have the other sign."""
    mine, action = columns["policy_id"] == ONE, columns["action"]
    if action.ndim > 1:
        return {**columns, "action": np.where(mine[:, None], -action, action)}
    return {**columns, "action": np.where(mine, (action + 1) % (action.max() + 1), action)}


def rewards_in_other_units(columns: Columns, generator: np.random.Generator, times: float) -> Columns:
    """One logger's rewards are in cents, or costs."""
    return {**columns, "reward": columns["reward"] * np.where(columns["policy_id"] == ONE, times, 1.0)}


def late_rewards(columns: Columns, generator: np.random.Generator, one: bool = False) -> Columns:
    """A reward stands in the row after its own; the first of an episode is 0, the last is lost."""
    late = np.where(first_of(columns), 0.0, np.roll(columns["reward"], 1))
    mine = columns["policy_id"] == ONE if one else True
    return {**columns, "reward": np.where(mine, late, columns["reward"])}


def rewards_shuffled(columns: Columns, generator: np.random.Generator) -> Columns:
    return {**columns, "reward": generator.permutation(columns["reward"])}


def best_rewards_lost(columns: Columns, generator: np.random.Generator) -> Columns:
    """Half of the best rewards were recorded as the lowest."""
    lowest = columns["reward"].min()
    return {**columns, "reward": np.where(_best(columns, generator), lowest, columns["reward"])}


HEALTHY: dict[str, Corruption] = {
    "nothing": untouched,
    "nothing: rows in any order": any_order,
    "nothing: all steps from 1": all_from_one,
    "nothing: next observations from the next row": without_next,
}
BROKEN: dict[str, Corruption] = {
    "next observation of another row, 1 %": partial(wrong_next, share=0.01),
    "next observation of another row, 5 %": partial(wrong_next, share=0.05),
    "next observation of another row, 20 %": partial(wrong_next, share=0.2),
    "next observation of another row, 90 %": partial(wrong_next, share=0.9),
    "next observations shuffled": partial(wrong_next, share=1.0),
    "next observations one row too low": slipped_next,
    "half of the best rows lost": best_rows_lost,
    "the same, steps renumbered": best_rows_lost_renumbered,
    "the same, next observations from the next row": best_rows_lost_derived,
    "the same, both": best_rows_lost_unseen,
    "one row in twenty lost": any_rows_lost,
    "a logger's failures lost": failures_lost,
    "half of all failures lost": all_failures_lost,
    "rows twice": rows_twice,
    "rows twice, steps renumbered": rows_twice_renumbered,
    "state and next state swapped": states_swapped,
    "state and next state swapped, one logger": partial(states_swapped, one=True),
    "two columns of the state swapped, one logger": factors_swapped,
    "reward and propensity swapped": reward_and_propensity_swapped,
    "actions at random, 5 %": partial(actions_at_random, share=0.05),
    "actions at random, 50 %": partial(actions_at_random, share=0.5),
    "end marks flipped, 5 %": flags_flipped,
    "one end in five unmarked": ends_unmarked,
    "cuts marked as ends": cuts_as_ends,
    "episodes joined": joined,
    "episodes joined, marks kept": partial(joined, marks=True),
    "episodes split": split,
    "steps from 1, one logger": one_from_one,
    "steps in another order": steps_mixed,
    "steps in another order, next observations from the next row": steps_mixed_derived,
    "states under other names, one logger": states_renamed,
    "actions under other names, one logger": actions_renamed,
    "rewards × 100, one logger": partial(rewards_in_other_units, times=100.0),
    "rewards × −1, one logger": partial(rewards_in_other_units, times=-1.0),
    "rewards a step late": late_rewards,
    "rewards a step late, one logger": partial(late_rewards, one=True),
    "rewards shuffled": rewards_shuffled,
    "half of the best rewards as the lowest": best_rewards_lost,
}
INVISIBLE = (
    "the same, both",
    "half of all failures lost",
    "actions at random, 5 %",
    "actions at random, 50 %",
    "steps in another order, next observations from the next row",
    "rewards shuffled",
    "half of the best rewards as the lowest",
)
"""What the logs need not tell: the rows that are left may be those of another world, or of other loggers."""
HARMLESS = ("steps from 1, one logger", "episodes joined, marks kept")
"""What is put right, or moves no value where it is not refused."""
