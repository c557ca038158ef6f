"""What can go wrong with whole episodes: how they begin, go on and end, who wrote them, and which of them are there.

A corruption is a function from columns and a generator to other columns, as in :mod:`broken_rows`; each applies to
states of every kind.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from broken_rows import ONE, Columns, Corruption, derived, first_of, following, renumbered, states, taken
from broken_values import Generator, late_episodes, of_one, some, some_episodes, totals


def last_of(columns: Columns) -> np.ndarray:
    """The last row of every episode."""
    return np.append(np.diff(columns["episode_id"]) != 0, True)


def extended(columns: Columns, extra: Columns, after: np.ndarray) -> Columns:
    """With further rows behind the rows ``after``; steps are counted anew."""
    place = np.concatenate([np.arange(len(columns["reward"])), after])
    order = np.argsort(place, kind="stable")
    return renumbered({name: np.concatenate([columns[name], extra[name]])[order] for name in columns})


def joined_ids(columns: Columns, ids: np.ndarray) -> Columns:
    """The same rows under other episode ids, sorted by them."""
    order = np.argsort(ids, kind="stable")
    return renumbered(taken({**columns, "episode_id": ids}, order))


# Ends and beginnings ------------------------------------------------------------------------------------------------


def padded(columns: Columns, generator: Generator, rows: int, reward: str, state: str) -> Columns:
    """Behind the end of every episode stand rows in which nothing happens any more; no row is marked."""
    last = np.flatnonzero(last_of(columns))
    after = np.repeat(last, rows)
    extra = taken(columns, after)
    for now, later in zip(states(columns), following(columns), strict=True):
        begin = columns[now].max(axis=0) + 1 if state == "absorbing" else columns[later][after]
        extra[now] = np.broadcast_to(begin, extra[now].shape).astype(columns[now].dtype)
        extra[later] = extra[now]
    if reward == "zero":
        extra["reward"] = np.zeros(len(after))
    new = dict(columns)
    if state == "absorbing":
        for now, later in zip(states(columns), following(columns), strict=True):
            new[later] = columns[later].copy()
            new[later][last] = (columns[now].max(axis=0) + 1).astype(columns[now].dtype)
    found = extended(new, extra, after)
    none = np.zeros(len(found["reward"]), dtype=bool)
    return {**found, "terminated": none, "truncated": last_of(found)}


def ends_as_cuts(columns: Columns, generator: Generator) -> Columns:
    ended = columns["terminated"] | columns["truncated"]
    return {**columns, "terminated": np.zeros(len(ended), dtype=bool), "truncated": ended}


def some_cuts_as_ends(columns: Columns, generator: Generator, share: float) -> Columns:
    """Where nothing ends, every other episode is cut at a random step and some cuts say that the episode ended."""
    length = np.bincount(np.unique(columns["episode_id"], return_inverse=True)[1])
    number = np.unique(columns["episode_id"], return_inverse=True)[1]
    limit = np.where(
        generator.random(len(length)) < 0.5, 1 + (length * generator.random(len(length))).astype(int), length
    )
    cut = taken(columns, columns["step"] < limit[number])
    last = last_of(cut)
    stopped = last & ~cut["terminated"]
    mistaken = stopped & (generator.random(len(last)) < share)
    return {**cut, "terminated": cut["terminated"] | mistaken, "truncated": stopped & ~mistaken}


def ends_moved(columns: Columns, generator: Generator) -> Columns:
    """The mark of an end stands a row too early, and the last row is lost."""
    before = np.append(last_of(columns)[1:], False) & ~last_of(columns)
    marked = {
        **columns,
        "terminated": np.where(before, np.append(columns["terminated"][1:], False), columns["terminated"]),
    }
    marked["truncated"] = np.where(before, np.append(columns["truncated"][1:], False), columns["truncated"])
    long = ~(last_of(columns) & ~first_of(columns))
    return taken(marked, long)


def first_rows_lost(columns: Columns, generator: Generator, rows: int, numbered: bool) -> Columns:
    """All episodes begin some steps late; with ``numbered`` their steps say so."""
    found = taken(columns, columns["step"] >= rows)
    return found if numbered else renumbered(found)


def last_rows_lost(columns: Columns, generator: Generator, share: float) -> Columns:
    return taken(columns, ~(last_of(columns) & some_episodes(columns, generator, share)))


def middle_lost(columns: Columns, generator: Generator) -> Columns:
    """A stretch in the middle of every other episode is missing, and nothing says so but the next states."""
    number = np.unique(columns["episode_id"], return_inverse=True)[1]
    length = np.bincount(number)[number]
    gone = (columns["step"] > 0.4 * length) & (columns["step"] < 0.6 * length) & some_episodes(columns, generator, 0.5)
    return derived(renumbered(taken(columns, ~gone)))


def thinned(columns: Columns, generator: Generator, keep: str) -> Columns:
    """Every second row; or one row in ten by chance is missing; next states from the next row, steps counted anew."""
    there = columns["step"] % 2 == 0 if keep == "even" else ~some(columns, generator, 0.1) | first_of(columns)
    return derived(renumbered(taken(columns, there)))


def summed_in_pairs(columns: Columns, generator: Generator) -> Columns:
    """Two steps in one row: the first state and action, both rewards, the second next state."""
    even = np.flatnonzero(columns["step"] % 2 == 0)
    odd = np.minimum(even + 1, len(columns["reward"]) - 1)
    both = (columns["episode_id"][odd] == columns["episode_id"][even]) & (odd != even)
    found = taken(columns, even)
    found["reward"] = found["reward"] + np.where(both, columns["reward"][odd], 0.0)
    for name in (*following(columns), "terminated", "truncated"):
        mask = both[:, None] if columns[name].ndim > 1 else both
        found[name] = np.where(mask, columns[name][odd], columns[name][even])
    return renumbered(found)


def backwards(columns: Columns, generator: Generator, one: bool = False) -> Columns:
    """The rows of every episode in the reverse order of time; next states from the next row."""
    mine = of_one(columns) if one else np.ones(len(columns["reward"]), dtype=bool)
    key = np.where(mine, -columns["step"], columns["step"])
    order = np.lexsort((key, columns["episode_id"]))
    found = renumbered(taken(columns, order))
    last = last_of(found)
    marks = {name: last & bool(columns[name].any()) for name in ("terminated", "truncated")}
    return derived({**found, **marks})


def unmarked_resets(columns: Columns, generator: Generator) -> Columns:
    """Three episodes of a logger run on under one id, none of the joints marked, next states from the next row."""
    labels, number = np.unique(columns["policy_id"], return_inverse=True)
    of_episode = np.unique(columns["episode_id"], return_inverse=True)[1]
    ids = np.zeros(len(of_episode), dtype=np.int64)
    for j in range(len(labels)):
        mine = number == j
        ids[mine] = (np.unique(of_episode[mine], return_inverse=True)[1] // 3) * len(labels) + j
    found = joined_ids(columns, ids)
    last = last_of(found)
    return derived({**found, "terminated": found["terminated"] & last, "truncated": found["truncated"] & last})


def no_marks(columns: Columns, generator: Generator) -> Columns:
    """No column says how episodes end, none what came next."""
    return {name: values for name, values in derived(columns).items() if name not in ("terminated", "truncated")}


def all_terminated(columns: Columns, generator: Generator) -> Columns:
    return {**columns, "terminated": np.ones(len(columns["reward"]), dtype=bool)}


# Which episodes are there -------------------------------------------------------------------------------------------


def by_length(columns: Columns, generator: Generator, longest: bool) -> Columns:
    """The longest (or shortest) quarter of the episodes is missing; of equal ones, those that earned most (least)."""
    number, total = totals(columns)
    length = np.bincount(number)
    rank = np.argsort(np.argsort(length + 1e-6 * np.argsort(np.argsort(total)))) / len(length)
    return taken(columns, (rank < 0.75)[number] if longest else (rank >= 0.25)[number])


def by_earnings(columns: Columns, generator: Generator, one: bool, best: bool = True) -> Columns:
    """Half of the episodes, those that earned more (or less)."""
    number, total = totals(columns)
    kept = (total >= np.median(total)) if best else (total <= np.median(total))
    return taken(columns, kept[number] | (~of_one(columns) if one else False))


def best_more_often(columns: Columns, generator: Generator) -> Columns:
    """The best tenth of the episodes is there three times, under other ids."""
    number, total = totals(columns)
    best = (total >= np.quantile(total, 0.9))[number]
    top = int(columns["episode_id"].max()) + 1
    parts = [columns] + [
        {**taken(columns, best), "episode_id": taken(columns, best)["episode_id"] + (k + 1) * top} for k in range(2)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in columns}


def copies(columns: Columns, generator: Generator, times: int, which: str, error: float = 0.0) -> Columns:
    """Episodes again under other ids, perhaps with noise in their last digits."""
    chosen = {"all": np.ones(len(columns["reward"]), dtype=bool), "some": some_episodes(columns, generator, 0.2)}
    mine = taken(columns, (chosen | {"one": of_one(columns)})[which])
    top = int(columns["episode_id"].max()) + 1
    parts = [columns]
    for k in range(1, times):
        part = {**mine, "episode_id": mine["episode_id"] + k * top}
        if error:
            floats = [name for name in (*states(part), *following(part), "reward") if part[name].dtype.kind == "f"]
            part |= {name: part[name] * (1 + error * generator.normal(size=part[name].shape)) for name in floats}
        parts.append(part)
    return {name: np.concatenate([part[name] for part in parts]) for name in columns}


def rows_only(columns: Columns, generator: Generator, share: float) -> Columns:
    """A sample of the rows, whatever episode they are of."""
    return taken(columns, some(columns, generator, share))


def short_log(columns: Columns, generator: Generator) -> Columns:
    """Five episodes are left."""
    kept = np.unique(columns["episode_id"])[:: max(1, len(np.unique(columns["episode_id"])) // 5)][:5]
    return taken(columns, np.isin(columns["episode_id"], kept))


# Loggers ------------------------------------------------------------------------------------------------------------


def labels(columns: Columns, generator: Generator, how: str) -> Columns:
    names = columns["policy_id"]
    number = np.unique(columns["episode_id"], return_inverse=True)[1]
    other = generator.permutation(np.unique(names))
    new = {
        "rows": names[generator.permutation(len(names))],
        "episodes": other[generator.integers(len(other), size=number.max() + 1)][number],
        "one": np.full_like(names, "all"),
        "late": np.where(late_episodes(columns) & np.isin(names, [ONE]), "logger-0", names),
    }[how]
    return {**columns, "policy_id": new}


def without_labels(columns: Columns, generator: Generator) -> Columns:
    return {name: values for name, values in columns.items() if name != "policy_id"}


def same_ids(columns: Columns, generator: Generator) -> Columns:
    """Every logger numbers its episodes from 0, and the table has no label."""
    ids = np.zeros(len(columns["reward"]), dtype=np.int64)
    for label in np.unique(columns["policy_id"]):
        mine = columns["policy_id"] == label
        ids[mine] = np.unique(columns["episode_id"][mine], return_inverse=True)[1]
    order = np.lexsort((columns["step"], ids))
    return without_labels(taken({**columns, "episode_id": ids}, order), generator)


def one_logger_only(columns: Columns, generator: Generator) -> Columns:
    return taken(columns, columns["policy_id"] == np.unique(columns["policy_id"])[0])


def one_mirrored(columns: Columns, generator: Generator) -> Columns:
    """One logger's rows are of a world in which rewards of neighbouring episodes changed places."""
    mine, reward = np.flatnonzero(of_one(columns)), columns["reward"].copy()
    reward[mine] = reward[mine][::-1]
    return {**columns, "reward": reward}


def rewards_of_other_states(columns: Columns, generator: Generator) -> Columns:
    """In the later half, rewards are those of the same step of another episode."""
    late, reward = late_episodes(columns), columns["reward"].copy()
    for step in np.unique(columns["step"][late]):
        mine = np.flatnonzero(late & (columns["step"] == step))
        reward[mine] = reward[generator.permutation(mine)]
    return {**columns, "reward": reward}


ENDS: dict[str, Corruption] = {
    "ends as an absorbing state, reward 0": partial(padded, rows=15, reward="zero", state="absorbing"),
    "padding: the last state, reward 0": partial(padded, rows=15, reward="zero", state="last"),
    "padding: the last state and reward": partial(padded, rows=15, reward="last", state="last"),
    "padding: one row, reward 0": partial(padded, rows=1, reward="zero", state="last"),
    "ends marked as cuts": ends_as_cuts,
    "cuts at random, 20 % marked as ends": partial(some_cuts_as_ends, share=0.2),
    "cuts at random, all marked as ends": partial(some_cuts_as_ends, share=1.0),
    "ends marked a row early": ends_moved,
    "first row lost": partial(first_rows_lost, rows=1, numbered=False),
    "first row lost, steps from 1": partial(first_rows_lost, rows=1, numbered=True),
    "first three rows lost": partial(first_rows_lost, rows=3, numbered=False),
    "first three rows lost, steps from 3": partial(first_rows_lost, rows=3, numbered=True),
    "last rows lost, 30 % of the episodes": partial(last_rows_lost, share=0.3),
    "last rows lost, all": partial(last_rows_lost, share=2.0),
    "the middle of half of the episodes lost": middle_lost,
    "every second row": partial(thinned, keep="even"),
    "one row in ten lost, renumbered": partial(thinned, keep="most"),
    "two steps in one row": summed_in_pairs,
    "rows backwards": backwards,
    "rows backwards, one logger": partial(backwards, one=True),
    "resets without a mark": unmarked_resets,
    "no marks of ends": no_marks,
    "every row terminated": all_terminated,
}
SELECTED: dict[str, Corruption] = {
    "the longest quarter missing": partial(by_length, longest=True),
    "the shortest quarter missing": partial(by_length, longest=False),
    "the better half of the episodes": partial(by_earnings, one=False),
    "the worse half of the episodes": partial(by_earnings, one=False, best=False),
    "the better half, one logger": partial(by_earnings, one=True),
    "the best tenth three times": best_more_often,
    "all episodes twice": partial(copies, times=2, which="all"),
    "all episodes four times": partial(copies, times=4, which="all"),
    "a fifth of the episodes twice": partial(copies, times=2, which="some"),
    "one logger's episodes twice": partial(copies, times=2, which="one"),
    "all episodes four times, last digits differ": partial(copies, times=4, which="all", error=1e-9),
    "a tenth of the rows": partial(rows_only, share=0.1),
    "half of the rows": partial(rows_only, share=0.5),
    "five episodes": short_log,
}
LOGGERS: dict[str, Corruption] = {
    "labels at random by row": partial(labels, how="rows"),
    "labels at random by episode": partial(labels, how="episodes"),
    "one label for all": partial(labels, how="one"),
    "a logger's later episodes under another label": partial(labels, how="late"),
    "no labels": without_labels,
    "episode ids start again for every logger, no labels": same_ids,
    "one logger alone": one_logger_only,
    "rewards of a logger in the reverse order": one_mirrored,
    "later rewards of other episodes": rewards_of_other_states,
}
