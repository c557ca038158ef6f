"""What can go wrong with the numbers in a table: rewards, states, actions and propensities that are not what happened.

A corruption is a function from columns and a generator to other columns, as in :mod:`broken_rows`; each applies to
states of every kind. What happens to whole episodes, their ends and their loggers is in :mod:`broken_recorders`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from broken_rows import ONE, Columns, Corruption, derived, first_of, following, states

Generator = np.random.Generator
Change = Callable[[np.ndarray], np.ndarray]


def of_one(columns: Columns) -> np.ndarray:
    """The rows of the logger whose recorder is broken."""
    return columns["policy_id"] == ONE


def everywhere(columns: Columns) -> np.ndarray:
    return np.ones(len(columns["reward"]), dtype=bool)


def some(columns: Columns, generator: Generator, share: float) -> np.ndarray:
    """Rows drawn by chance."""
    return generator.random(len(columns["reward"])) < share


def some_episodes(columns: Columns, generator: Generator, share: float) -> np.ndarray:
    """The rows of episodes drawn by chance."""
    drawn = generator.random(int(columns["episode_id"].max()) + 1) < share
    return drawn[columns["episode_id"]]


def late_episodes(columns: Columns, generator: Generator | None = None, share: float = 0.5) -> np.ndarray:
    """The rows of the later episodes of every logger."""
    late = np.zeros(len(columns["reward"]), dtype=bool)
    for label in np.unique(columns["policy_id"]):
        mine = columns["policy_id"] == label
        late[mine] = columns["episode_id"][mine] >= np.quantile(np.unique(columns["episode_id"][mine]), 1.0 - share)
    return late


def rewarded(columns: Columns, reward: np.ndarray) -> Columns:
    return {**columns, "reward": np.asarray(reward, dtype=np.float64)}


# Rewards ------------------------------------------------------------------------------------------------------------


def sentinel(columns: Columns, generator: Generator, value: float, share: float) -> Columns:
    """Where the reward was not known, a number stands for it."""
    return rewarded(columns, np.where(some(columns, generator, share), value, columns["reward"]))


def measured_sentinel(columns: Columns, generator: Generator, value: float, share: float) -> Columns:
    """The same among rewards that are measured, each with an error of its own."""
    spread = 0.05 * float(np.std(columns["reward"]))
    noisy = columns["reward"] + spread * generator.normal(size=len(columns["reward"]))
    return sentinel(rewarded(columns, noisy), generator, value, share)


def one_reward(columns: Columns, generator: Generator, value: float) -> Columns:
    reward = columns["reward"].copy()
    reward[generator.integers(len(reward))] = value
    return rewarded(columns, reward)


def one_reward_per_episode(columns: Columns, generator: Generator, times: float) -> Columns:
    """One row in a hundred has a slipped decimal point."""
    return rewarded(columns, columns["reward"] * np.where(some(columns, generator, 0.01), times, 1.0))


def clipped(columns: Columns, generator: Generator, low: float, high: float) -> Columns:
    """Rewards beyond two quantiles are written as these; measured, so that clipping shows."""
    reward = columns["reward"] + 0.2 * np.std(columns["reward"]) * generator.normal(size=len(columns["reward"]))
    return rewarded(columns, np.clip(reward, np.quantile(reward, low), np.quantile(reward, high)))


def noisy(columns: Columns, generator: Generator) -> Columns:
    """Rewards are measured with an error of their own spread: no harm."""
    return rewarded(
        columns, columns["reward"] + np.std(columns["reward"]) * generator.normal(size=len(columns["reward"]))
    )


def signs(columns: Columns, generator: Generator) -> Columns:
    return rewarded(columns, np.sign(columns["reward"]))


def half_sided(columns: Columns, generator: Generator, which: str, one: bool = False) -> Columns:
    """Negative (or positive) rewards are written as 0, or all without their sign."""
    reward = columns["reward"]
    new = {"negative": np.maximum(reward, 0.0), "positive": np.minimum(reward, 0.0), "sign": np.abs(reward)}[which]
    return rewarded(columns, np.where(of_one(columns) if one else everywhere(columns), new, reward))


def scaled(columns: Columns, generator: Generator, times: float, rows: str) -> Columns:
    """Some rows are in another unit."""
    which = {"late": late_episodes(columns), "some episodes": some_episodes(columns, generator, 0.3)}
    which |= {"some rows": some(columns, generator, 0.1), "one": of_one(columns)}
    return rewarded(columns, columns["reward"] * np.where(which[rows], times, 1.0))


def drifting(columns: Columns, generator: Generator, by: str) -> Columns:
    """Rewards grow with the number of the episode, or with the step, by their own spread in all."""
    size = float(np.std(columns["reward"])) or 1.0
    if by == "step":
        along = columns["step"] / max(int(columns["step"].max()), 1)
    else:
        rank = np.zeros(len(columns["reward"]))
        for label in np.unique(columns["policy_id"]):
            mine = columns["policy_id"] == label
            number = np.unique(columns["episode_id"][mine], return_inverse=True)[1]
            rank[mine] = number / max(int(number.max()), 1)
        along = rank
    return rewarded(columns, columns["reward"] + size * along)


def totals(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """The number of every row's episode, and what each episode earned."""
    number = np.unique(columns["episode_id"], return_inverse=True)[1]
    return number, np.bincount(number, weights=columns["reward"])


def running_total(columns: Columns, generator: Generator) -> Columns:
    """What was earned so far, in place of what was earned now."""
    total = np.cumsum(columns["reward"])
    before = (total - columns["reward"])[first_of(columns)][np.cumsum(first_of(columns)) - 1]
    return rewarded(columns, total - before)


def episode_reward(columns: Columns, generator: Generator, where: str) -> Columns:
    """The total (or mean) of the episode in all rows, in the last one, or in the first one."""
    number, total = totals(columns)
    length = np.bincount(number)
    last = np.append(np.diff(number) != 0, True)
    if where == "all":
        return rewarded(columns, total[number])
    if where == "mean":
        return rewarded(columns, (total / length)[number])
    chosen = last if where == "last" else first_of(columns)
    return rewarded(columns, np.where(chosen, total[number], 0.0))


def moved(columns: Columns, generator: Generator, steps: int, share: float = 1.0) -> Columns:
    """Rewards stand some rows later (or earlier) than they belong, in some of the episodes."""
    number = np.unique(columns["episode_id"], return_inverse=True)[1]
    shifted = np.roll(columns["reward"], steps)
    strange = np.roll(number, steps) != number
    which = some_episodes(columns, generator, share) if share < 1.0 else everywhere(columns)
    return rewarded(columns, np.where(which, np.where(strange, 0.0, shifted), columns["reward"]))


def repeated(columns: Columns, generator: Generator, share: float) -> Columns:
    """Where the reward is missing, that of the row before was taken."""
    before = np.where(first_of(columns), columns["reward"], np.roll(columns["reward"], 1))
    return rewarded(columns, np.where(some(columns, generator, share), before, columns["reward"]))


def missing(columns: Columns, generator: Generator, share: float) -> Columns:
    return rewarded(columns, np.where(some(columns, generator, share), np.nan, columns["reward"]))


def missing_as_mean(columns: Columns, generator: Generator, share: float) -> Columns:
    """Missing rewards were filled with the mean of the others."""
    return rewarded(columns, np.where(some(columns, generator, share), columns["reward"].mean(), columns["reward"]))


def discounted(columns: Columns, generator: Generator) -> Columns:
    """Rewards were discounted before they were written."""
    return rewarded(columns, columns["reward"] * 0.98 ** columns["step"])


def standardised(columns: Columns, generator: Generator) -> Columns:
    """Rewards of one logger were brought to mean 0 and spread 1."""
    reward, mine = columns["reward"], of_one(columns)
    spread = float(np.std(reward[mine])) or 1.0
    return rewarded(columns, np.where(mine, (reward - reward[mine].mean()) / spread, reward))


def wrapped(columns: Columns, generator: Generator) -> Columns:
    """Negative rewards went through an unsigned byte."""
    reward = columns["reward"]
    return rewarded(columns, np.where(reward < 0, 256.0 + reward, reward))


# States -------------------------------------------------------------------------------------------------------------


def stale(columns: Columns, generator: Generator, where: str = "all") -> Columns:
    """The state of a row is that of the row before (the first of an episode stays)."""
    which = {"all": everywhere(columns), "one": of_one(columns), "some": some_episodes(columns, generator, 0.3)}[where]
    which = which & ~first_of(columns)
    new = dict(columns)
    for now, after in zip(states(columns), following(columns), strict=True):
        mask = which[:, None] if columns[now].ndim > 1 else which
        new[now] = np.where(mask, np.roll(columns[now], 1, axis=0), columns[now])
        new[after] = np.where(mask, columns[now], columns[after])
    return new


def early(columns: Columns, generator: Generator) -> Columns:
    """The state was read after the action: of the last row, it is the last one there was."""
    new = {**columns, **{now: columns[after] for now, after in zip(states(columns), following(columns), strict=True)}}
    return derived(new)


def both_states(columns: Columns, change: Change) -> Columns:
    """The same change of the state before and after the action."""
    return {**columns, **{name: change(columns[name]) for name in (*states(columns), *following(columns))}}


def merged(columns: Columns, generator: Generator) -> Columns:
    """States are known in pairs only; of several columns, the first one is lost; of a vector, its first component."""
    names = states(columns)
    if len(names) > 1:
        lost = {names[0], following(columns)[0]}
        return {name: values for name, values in columns.items() if name not in lost}
    if columns[names[0]].ndim > 1:
        return both_states(columns, lambda x: x[:, 1:])
    return both_states(columns, lambda x: x // 2)


def frozen(columns: Columns, generator: Generator) -> Columns:
    """In an episode of ten the sensor shows its first value to the end."""
    number, which = np.cumsum(first_of(columns)) - 1, some_episodes(columns, generator, 0.1)
    new = dict(columns)
    for now, after in zip(states(columns), following(columns), strict=True):
        mask = which[:, None] if columns[now].ndim > 1 else which
        begin = columns[now][first_of(columns)][number]
        new[now], new[after] = np.where(mask, begin, columns[now]), np.where(mask, begin, columns[after])
    return new


def column_of(columns: Columns, change: Change, rows: np.ndarray) -> Columns:
    """A change of the first column (or component) of the state, before and after the action, in some rows."""
    new = dict(columns)
    for name in (states(columns)[0], following(columns)[0]):
        values = columns[name]
        if values.ndim > 1:
            new[name] = values.copy()
            new[name][rows, 0] = change(values[rows, 0])
        else:
            new[name] = np.where(rows, change(values), values)
    return new


def state_sentinel(columns: Columns, generator: Generator, share: float) -> Columns:
    return column_of(columns, lambda x: np.full_like(x, -999), some(columns, generator, share))


def state_shuffled(columns: Columns, generator: Generator, share: float) -> Columns:
    """Some rows have the state of another row, before the action alone."""
    which = np.flatnonzero(some(columns, generator, share))
    source = np.arange(len(columns["reward"]))
    source[which] = generator.permutation(which)
    return {**columns, **{name: columns[name][source] for name in states(columns)}}


def column_shuffled(columns: Columns, generator: Generator) -> Columns:
    """The first column of the state, before and after, is that of other rows."""
    source, new = generator.permutation(len(columns["reward"])), dict(columns)
    for name in (states(columns)[0], following(columns)[0]):
        values = columns[name].copy()
        if values.ndim > 1:
            values[:, 0] = values[source, 0]
        else:
            values = values[source]
        new[name] = values
    return new


def rounded(columns: Columns, generator: Generator) -> Columns:
    """Numbers are known to half a unit, ids and factors to the nearest even one."""
    coarse = (lambda x: np.round(2 * x) / 2) if columns[states(columns)[0]].ndim > 1 else (lambda x: x - x % 2)
    return column_of(columns, coarse, everywhere(columns))


def other_unit(columns: Columns, generator: Generator) -> Columns:
    """From half-way on, numbers are × 100, and ids have other names."""
    times = 100.0 if columns[states(columns)[0]].ndim > 1 else 7
    return column_of(columns, lambda x: x * times, late_episodes(columns))


def same_state(columns: Columns, generator: Generator, one: bool) -> Columns:
    """The first column has one value (of one logger, or of all)."""
    value = columns[states(columns)[0]].flat[0]
    return column_of(columns, lambda x: np.full_like(x, value), of_one(columns) if one else everywhere(columns))


def same_next(columns: Columns, generator: Generator, share: float) -> Columns:
    """The state after the action is the one before it, where it was not read again."""
    which, new = some(columns, generator, share), dict(columns)
    for now, after in zip(states(columns), following(columns), strict=True):
        new[after] = np.where(which[:, None] if columns[now].ndim > 1 else which, columns[now], columns[after])
    return new


def spaces(columns: Columns, generator: Generator) -> Columns:
    """The first column is text, and in one row of ten a space follows it; numbers have an error."""
    if columns[states(columns)[0]].ndim > 1:
        error = 0.3 * np.std(columns[states(columns)[0]][:, 0])
        return column_of(columns, lambda x: x + error * generator.normal(size=x.shape), some(columns, generator, 0.1))
    which, new = some(columns, generator, 0.1), dict(columns)
    for name in (states(columns)[0], following(columns)[0]):
        text = columns[name].astype(str)
        new[name] = np.where(which, np.char.add(text, " "), text)
    return new


# Actions and propensities --------------------------------------------------------------------------------------------


def acted(columns: Columns, action: np.ndarray, rows: np.ndarray) -> Columns:
    mask = rows[:, None] if columns["action"].ndim > 1 else rows
    return {**columns, "action": np.where(mask, action, columns["action"])}


def default_action(columns: Columns, generator: Generator, rows: str) -> Columns:
    """A recorder that writes its default."""
    which = {"one": of_one(columns), "some": some(columns, generator, 0.1), "late": late_episodes(columns)}[rows]
    return acted(columns, np.zeros_like(columns["action"]), which)


def actions_moved(columns: Columns, generator: Generator, steps: int) -> Columns:
    """The action of the row before (or after), where there is one."""
    number = np.unique(columns["episode_id"], return_inverse=True)[1]
    there = np.roll(number, steps) == number
    return acted(columns, np.roll(columns["action"], steps, axis=0), there)


def actions_merged(columns: Columns, generator: Generator) -> Columns:
    """Two actions under one name; numbers are known by their sign."""
    action = columns["action"]
    return acted(columns, np.sign(action) if action.ndim > 1 else np.maximum(action, 1), everywhere(columns))


def actions_renamed_late(columns: Columns, generator: Generator) -> Columns:
    action = columns["action"]
    other = -action if action.ndim > 1 else (action + 1) % (action.max() + 1)
    return acted(columns, other, late_episodes(columns))


def actions_of_one_shuffled(columns: Columns, generator: Generator) -> Columns:
    mine = np.flatnonzero(of_one(columns))
    action = columns["action"].copy()
    action[mine] = action[generator.permutation(mine)]
    return {**columns, "action": action}


def propensity(columns: Columns) -> tuple[str, np.ndarray]:
    """The column of the propensities, and the probabilities (or densities)."""
    name = "action_prob" if "action_prob" in columns else "action_logp"
    return name, columns[name] if name == "action_prob" else np.exp(columns[name])


def with_propensity(columns: Columns, values: np.ndarray) -> Columns:
    name, _ = propensity(columns)
    return {**columns, name: values if name == "action_prob" else np.log(np.maximum(values, 1e-300))}


def propensities(columns: Columns, generator: Generator, how: str) -> Columns:
    _, given = propensity(columns)
    new = {
        "one": np.ones_like(given),
        "uniform": np.full_like(given, float(np.median(given))),
        "shuffled": given[generator.permutation(len(given))],
        "squared": given**2,
        "square roots": np.sqrt(given),
        "coarse": np.maximum(np.round(given, 1), 0.05),
        "percent": 100.0 * given,
        "moved": np.roll(given, 1),
        "one logger": np.where(of_one(columns), np.ones_like(given), given),
    }[how]
    return with_propensity(columns, new)


REWARDS: dict[str, Corruption] = {
    "rewards: −999 in 1 %": partial(sentinel, value=-999.0, share=0.01),
    "rewards: 9999 in 1 in 1,000": partial(sentinel, value=9999.0, share=0.001),
    "rewards: −1 in 10 %, measured": partial(measured_sentinel, value=-1.0, share=0.1),
    "rewards: −99 in 2 %, measured": partial(measured_sentinel, value=-99.0, share=0.02),
    "rewards: 0 in 10 %": partial(sentinel, value=0.0, share=0.1),
    "rewards: one of 1,000,000": partial(one_reward, value=1e6),
    "rewards: × 1,000 in 1 %": partial(one_reward_per_episode, times=1000.0),
    "rewards clipped, the highest fifth": partial(clipped, low=0.0, high=0.8),
    "rewards clipped, the lowest fifth": partial(clipped, low=0.2, high=1.0),
    "rewards by their sign": signs,
    "negative rewards as 0": partial(half_sided, which="negative"),
    "negative rewards as 0, one logger": partial(half_sided, which="negative", one=True),
    "positive rewards as 0": partial(half_sided, which="positive"),
    "rewards without their sign": partial(half_sided, which="sign"),
    "rewards × 100 from half-way": partial(scaled, times=100.0, rows="late"),
    "rewards × 2 from half-way": partial(scaled, times=2.0, rows="late"),
    "rewards × 2 in 30 % of the episodes": partial(scaled, times=2.0, rows="some episodes"),
    "rewards × −1 in 30 % of the episodes": partial(scaled, times=-1.0, rows="some episodes"),
    "rewards × 10 in 10 % of the rows": partial(scaled, times=10.0, rows="some rows"),
    "rewards × 1.2, one logger": partial(scaled, times=1.2, rows="one"),
    "rewards grow over episodes": partial(drifting, by="episode"),
    "rewards grow over steps": partial(drifting, by="step"),
    "rewards as running totals": running_total,
    "the episode's total in every row": partial(episode_reward, where="all"),
    "the episode's mean in every row": partial(episode_reward, where="mean"),
    "the episode's total in its last row": partial(episode_reward, where="last"),
    "the episode's total in its first row": partial(episode_reward, where="first"),
    "rewards a step early": partial(moved, steps=-1),
    "rewards two steps late": partial(moved, steps=2),
    "rewards a step late in a third of the episodes": partial(moved, steps=1, share=1 / 3),
    "rewards a step early in a third of the episodes": partial(moved, steps=-1, share=1 / 3),
    "rewards of the row before in 20 %": partial(repeated, share=0.2),
    "rewards missing in 1 %": partial(missing, share=0.01),
    "missing rewards filled with the mean, 20 %": partial(missing_as_mean, share=0.2),
    "rewards discounted already": discounted,
    "rewards standardised, one logger": standardised,
    "negative rewards through an unsigned byte": wrapped,
}
STATES: dict[str, Corruption] = {
    "states one step stale": stale,
    "states one step stale, one logger": partial(stale, where="one"),
    "states one step stale in 30 % of the episodes": partial(stale, where="some"),
    "states read after the action": early,
    "states known in part": merged,
    "states frozen in 10 % of the episodes": frozen,
    "states: −999 in 2 %": partial(state_sentinel, share=0.02),
    "states of other rows, 5 %": partial(state_shuffled, share=0.05),
    "states of other rows, all": partial(state_shuffled, share=1.0),
    "a state column of other rows": column_shuffled,
    "states rounded": rounded,
    "states in another unit from half-way": other_unit,
    "a state column constant": partial(same_state, one=False),
    "a state column constant, one logger": partial(same_state, one=True),
    "next state not read again, 10 %": partial(same_next, share=0.1),
    "next state not read again, all": partial(same_next, share=1.0),
    "states with spaces or errors, 10 %": spaces,
}
ACTIONS: dict[str, Corruption] = {
    "actions: the default, one logger": partial(default_action, rows="one"),
    "actions: the default, 10 % of the rows": partial(default_action, rows="some"),
    "actions: the default from half-way": partial(default_action, rows="late"),
    "actions a step late": partial(actions_moved, steps=1),
    "actions a step early": partial(actions_moved, steps=-1),
    "two actions under one name": actions_merged,
    "actions under other names from half-way": actions_renamed_late,
    "actions at random, one logger": actions_of_one_shuffled,
}
PROPENSITIES: dict[str, Corruption] = {
    f"propensities: {said}": partial(propensities, how=how)
    for said, how in {
        "all 1": "one",
        "all alike": "uniform",
        "of other rows": "shuffled",
        "squared": "squared",
        "square roots": "square roots",
        "to one digit": "coarse",
        "in per cent": "percent",
        "of the row before": "moved",
        "1, one logger": "one logger",
    }.items()
}
"""Evaluated by an estimator that uses them, and by the default, which does not."""
HEALTHY: dict[str, Corruption] = {"nothing: rewards measured with an error": noisy}
