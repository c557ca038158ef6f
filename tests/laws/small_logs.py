"""Small ragged logs drawn by Hypothesis: ids, strings or factors; ends and cuts; propensities or none; labels or none.

Rewards are quarters and propensities powers of a half, so that sums are exact and equality can be asked for.
"""

import numpy as np
from hypothesis import strategies as st

import mixope
from mixope.engines import MemoryEngine
from mixope.requests.episodes import score_lookup
from mixope.requests.transitions import BASIS, encode, transition_grouping

KINDS = ("ids", "strings", "factors")


@st.composite
def raw_columns(draw, kinds=KINDS, min_episodes=1, max_episodes=6):
    """Columns of a log with at least one row; every episode is an unbroken chain."""
    kind = draw(st.sampled_from(kinds))
    lengths = draw(st.lists(st.integers(1, 5), min_size=min_episodes, max_size=max_episodes))
    n = sum(lengths)
    walk = draw(st.lists(st.integers(0, 3), min_size=n + len(lengths), max_size=n + len(lengths)))
    episode = np.repeat(np.arange(len(lengths)), lengths)
    step = np.concatenate([np.arange(length) for length in lengths])
    state = np.array(walk)[np.arange(n) + episode]
    after = np.array(walk)[np.arange(n) + episode + 1]
    last = step == np.array(lengths)[episode] - 1
    ended = np.array(draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths))))[episode]
    columns = {
        "episode_id": episode,
        "step": step + draw(st.sampled_from([0, 1])),
        "action": np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))),
        "reward": np.array(draw(st.lists(st.integers(-8, 8), min_size=n, max_size=n))) / 4.0,
        "terminated": last & ended,
        "truncated": last & ~ended,
    }
    columns |= observations(kind, "observation", state) | observations(kind, "next_observation", after)
    if kind == "strings":
        columns["action"] = np.array(["go", "stay", "turn"])[columns["action"]]
        columns["episode_id"] = np.array([f"e{i}" for i in range(len(lengths))])[episode]
    if draw(st.booleans()):
        columns["action_prob"] = 0.5 ** np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    if draw(st.booleans()):
        labels = draw(st.lists(st.sampled_from(["b", "a"]), min_size=len(lengths), max_size=len(lengths)))
        columns["policy_id"] = np.array(labels)[episode]
    return columns


def observations(kind, name, ids):
    if kind == "factors":
        return {f"{name}.x": ids // 2, f"{name}.word": np.array(["even", "odd"])[ids % 2]}
    return {name: np.array([f"state {9 - i}" for i in range(4)])[ids] if kind == "strings" else ids}


def counted(logs, engine=None):
    """The first scan and its encoding."""
    sums = (engine or MemoryEngine()).group_sums(logs, transition_grouping(logs.schema))
    return sums, encode(sums, logs.schema)


def episode_grouping(logs, seed=0, engine=None):
    """A lookup of two made-up score tables in quarters, and the grouping that sums them by episode."""
    sums, transitions = counted(logs, engine)
    generator = np.random.default_rng(seed)
    tables = [generator.integers(-4, 5, size=(transitions.n_groups, len(BASIS))) / 4.0 for _ in range(2)]
    if not logs.schema.has_propensity:
        for table in tables:
            table[:, [BASIS.index("inverse"), BASIS.index("inverse_reward")]] = 0.0
    return score_lookup(transitions, sums, logs.schema, tables, seed)


def read(columns):
    return mixope.read(columns)
