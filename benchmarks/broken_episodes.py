"""Logs of episodes that end, healthy ones and ones whose ends were lost, mistaken or selected.

Settings are as in :mod:`broken_logs`, whose worlds they use. A row that is *terminated* ended its episode; one that is
*truncated* ended nothing, so that a log cut at some length is healthy as long as it says so and keeps the real next
state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from broken_logs import Case, Columns, healthy, world

LONG = 0.75
"""Episodes longer than this quantile of the lengths are long."""


@lru_cache(maxsize=16)
def long(name: str) -> int:
    """How many steps are many: by a log of its own, so that it is the same for all logs of a world."""
    _, lengths = np.unique(world(name).simulate(200, 0)["episode_id"], return_counts=True)
    return max(1, int(np.quantile(lengths, LONG)))


def last_of(columns: Columns) -> np.ndarray:
    """The last row of every episode; rows are ordered by episode and step."""
    return np.append(np.diff(columns["episode_id"]) != 0, True)


def taken(columns: Columns, rows: np.ndarray) -> Columns:
    return {key: values[rows] for key, values in columns.items()}


def truncated(name: str, episodes: int, seed: int) -> Case:
    """Long episodes were not recorded to their end, and the rows say so: nothing is wrong."""
    case, most = healthy(name, episodes, seed), long(name)
    columns = taken(case.columns, case.columns["step"] < most)
    return replace(case, columns={**columns, "truncated": (columns["step"] == most - 1) & ~columns["terminated"]})


def ends_lost(name: str, episodes: int, seed: int) -> Case:
    """Nothing is marked as an end, and the last row of every episode went with the mark."""
    case = healthy(name, episodes, seed)
    columns = taken(case.columns, ~last_of(case.columns))
    return replace(case, columns={**columns, "terminated": np.zeros(len(columns["reward"]), dtype=bool)})


def ends_as_truncated(name: str, episodes: int, seed: int) -> Case:
    """Every end is marked as cut by the recorder."""
    case = healthy(name, episodes, seed)
    ended = case.columns["terminated"]
    marks = {"terminated": np.zeros(len(ended), dtype=bool), "truncated": ended | case.columns["truncated"]}
    return replace(case, columns={**case.columns, **marks})


def late_rewards(name: str, episodes: int, seed: int) -> Case:
    """A reward stands in the row after its own; the first of an episode is 0, the last is lost."""
    case = healthy(name, episodes, seed)
    reward = case.columns["reward"]
    late = np.where(case.columns["step"] == 0, 0.0, np.append(0.0, reward[:-1]))
    return replace(case, columns={**case.columns, "reward": late})


def missing_last_rows(name: str, episodes: int, seed: int) -> Case:
    """Of three episodes in ten the last row is missing, and with it the end."""
    case = healthy(name, episodes, seed)
    torn = np.random.default_rng([seed, 11]).random(episodes) < 0.3
    return replace(case, columns=taken(case.columns, ~(last_of(case.columns) & torn[case.columns["episode_id"]])))


def long_episodes_dropped(name: str, episodes: int, seed: int) -> Case:
    """Long episodes are not in the log at all: what is left is a selection."""
    case = healthy(name, episodes, seed)
    lengths = np.bincount(case.columns["episode_id"], minlength=episodes)
    return replace(case, columns=taken(case.columns, lengths[case.columns["episode_id"]] <= long(name)))


def rows_twice(name: str, episodes: int, seed: int) -> Case:
    """One row in ten is there twice."""
    case = healthy(name, episodes, seed)
    rows = len(case.columns["reward"])
    twice = 1 + (np.random.default_rng([seed, 12]).random(rows) < 0.1)
    return replace(case, columns=taken(case.columns, np.repeat(np.arange(rows), twice)))


def episodes_twice(name: str, episodes: int, seed: int) -> Case:
    """Every episode is there four times, under ids of its own: the interval takes copies for evidence."""
    case = healthy(name, episodes, seed)
    copies = [{**case.columns, "episode_id": case.columns["episode_id"] + k * episodes} for k in range(4)]
    return replace(case, columns={key: np.concatenate([copy[key] for copy in copies]) for key in case.columns})


def sampled_rows(name: str, episodes: int, seed: int) -> Case:
    """A tenth of the rows, drawn at random."""
    case = healthy(name, 5 * episodes, seed)
    kept = np.random.default_rng([seed, 13]).random(len(case.columns["reward"])) < 0.1
    return replace(case, columns=taken(case.columns, kept))


def permuted_actions(name: str, episodes: int, seed: int) -> Case:
    """All loggers name their actions in another order than the target does; propensities were recorded at the time."""
    case = healthy(name, episodes, seed)
    action = case.columns["action"]
    return replace(case, columns={**case.columns, "action": (action + 1) % (action.max() + 1)})


def permuted_actions_looked_up(name: str, episodes: int, seed: int) -> Case:
    """The same, and the propensities were looked up afterwards, by the names of another order."""
    case, here = permuted_actions(name, episodes, seed), world(name)
    logger = np.array([int(label.removeprefix("logger-")) for label in case.columns["policy_id"]])
    state = healthy(name, episodes, seed).columns if here.observed == "id" else _by_number(name, episodes, seed)
    given = np.stack(here.loggers)[logger, state["observation"], case.columns["action"]]
    return replace(case, columns={**case.columns, "action_prob": np.maximum(given, 1e-6)})


def _by_number(name: str, episodes: int, seed: int) -> Columns:
    """The same log with states as their numbers."""
    return replace(world(name), observed="id").simulate(episodes, seed)


def permuted_actions_known(name: str, episodes: int, seed: int) -> Case:
    """The same, and the policies of the loggers are relied upon."""
    return replace(permuted_actions(name, episodes, seed), estimator="known-mixture", known=world(name).known)


def permuted_actions_unseen(name: str, episodes: int, seed: int) -> Case:
    """The same, and nothing is known of the loggers."""
    case = permuted_actions(name, episodes, seed)
    hidden = ("action_prob", "action_logp")
    return replace(case, columns={key: values for key, values in case.columns.items() if key not in hidden})


HEALTHY: dict[str, Callable[[str, int, int], Case]] = {"healthy, long episodes truncated": truncated}
BROKEN: dict[str, Callable[[str, int, int], Case]] = {
    "ends lost": ends_lost,
    "ends marked as truncated": ends_as_truncated,
    "rewards a step late": late_rewards,
    "last rows missing": missing_last_rows,
    "long episodes dropped": long_episodes_dropped,
    "rows twice": rows_twice,
    "episodes four times": episodes_twice,
    "a tenth of the rows": sampled_rows,
    "actions permuted, propensities": permuted_actions,
    "actions permuted, propensities looked up": permuted_actions_looked_up,
    "actions permuted, policies known": permuted_actions_known,
    "actions permuted": permuted_actions_unseen,
}
INVISIBLE = {"actions permuted", "actions permuted, propensities"}
"""What nothing in the logs can tell: the rows, with their propensities, have the law of rows of other loggers."""
NOT_ON_VECTORS = ("actions permuted, propensities looked up", "actions permuted, policies known")
