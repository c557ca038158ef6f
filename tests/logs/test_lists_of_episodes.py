"""Episodes and rows in Python lists: each step becomes a row, none is lost, and errors name the episode."""

import random
from collections import namedtuple
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mixope
from mixope.base.errors import DataError, MixopeError, UsageError
from mixope.logs.schema import UNLABELLED

ALWAYS = mixope.TabularPolicy([[0.5, 0.5]] * 6, range(6), [0, 1])


def episode(steps=4, *, longer=1, ended=True, seed=0, **more):
    """One episode over states 0 … 5."""
    draw = np.random.default_rng(seed)
    last = np.arange(steps) == steps - 1
    return {
        "observations": draw.integers(0, 6, steps + longer),
        "actions": draw.integers(0, 2, steps),
        "rewards": draw.normal(size=steps),
        "terminations": last & ended,
        "truncations": last & (not ended),
    } | more


def as_steps(given):
    """The same as a list of dicts, the last of which holds nothing but the last observation."""
    names = {"actions": "action", "rewards": "reward", "terminations": "terminated", "truncations": "truncated"}
    steps = [
        {"observation": int(given["observations"][t])} | {name: given[many][t] for many, name in names.items()}
        for t in range(len(given["actions"]))
    ]
    return [*steps, {"observation": int(given["observations"][-1])}]


@dataclass
class Held:
    """As Minari holds an episode."""

    observations: Any
    actions: Any
    rewards: Any
    terminations: Any
    truncations: Any
    id: int = 7
    infos: dict = field(default_factory=dict)

    def total(self):
        return 0.0


EPISODES = [episode(4), episode(1, seed=1), episode(6, ended=False, seed=2)]
TUPLES = namedtuple("TUPLES", list(EPISODES[0]))
FORMS = {
    "dicts of arrays": dict,
    "dicts of lists": lambda given: {name: values.tolist() for name, values in given.items()},
    "lists of steps": as_steps,
    "objects": lambda given: Held(**given),
    "named tuples": lambda given: TUPLES(**given),
}


def expected():
    """By a loop over the steps."""
    rows = []
    for number, each in enumerate(EPISODES):
        for t, action in enumerate(each["actions"]):
            ends = bool(each["terminations"][t])
            after = None if ends else int(each["observations"][t + 1])
            seen = int(each["observations"][t])
            rows.append((number, t, seen, int(action), each["rewards"][t], after, ends, bool(each["truncations"][t])))
    return rows


@pytest.mark.parametrize("form", FORMS)
def test_every_step_is_a_row_whatever_the_form(form):
    logs = mixope.read([FORMS[form](each) for each in EPISODES])
    names = ["episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated"]
    found = [tuple(row[name] for name in names) for row in logs.table().to_pylist()]
    assert found == expected()
    assert logs.notes == ()


def test_a_single_episode_may_come_without_a_list():
    assert mixope.read(Held(**EPISODES[2])).total_rows() == 6


def test_a_list_of_episodes_is_evaluated():
    found = mixope.evaluate(EPISODES, ALWAYS)
    assert (found.n_rows, found.n_episodes, found.n_dropped) == (11, 3, 0)


def test_without_the_last_observation_the_last_step_of_a_cut_episode_counts_and_leads_nowhere():
    logs = mixope.read([episode(4, longer=0), episode(6, longer=0, ended=False, seed=2)])
    assert logs.table(["unfollowed"]).column(0).to_pylist() == [False] * 9 + [True]
    assert (mixope.evaluate(logs, ALWAYS).n_rows, mixope.evaluate(logs, ALWAYS).n_dropped) == (10, 0)


def test_vectors_dicts_and_tuples_are_columns():
    part = np.arange(10.0).reshape(5, 2)
    steps = {"actions": [0, 1, 0, 1], "rewards": np.ones((4, 1)), "terminated": True}
    names = ("next_observation.pos.1", "next_observation.speed", "observation.pos.1", "observation.speed")
    for seen in ({"pos": part, "speed": part[:, 0]}, ({"pos": part[:-1], "speed": part[:-1, 0]})):
        table = mixope.read([{"obs": seen} | steps]).table()
        assert [name for name in sorted(table.column_names) if name in names] == sorted(names)
        assert table.column("observation.pos.1").to_pylist() == [1.0, 3.0, 5.0, 7.0]
        assert table.column("next_observation.speed").to_pylist() == [2.0, 4.0, 6.0, None]
    table = mixope.read([{"observations": (part, part[:, 0])} | steps]).table()
    assert table.column("observation.0.1").to_pylist() == [1.0, 3.0, 5.0, 7.0]
    assert table.column("observation.1").to_pylist() == [0.0, 2.0, 4.0, 6.0]


def test_numbered_columns_and_names_of_the_user_are_split_too():
    steps = {"rewards": [1.0, 2.0], "terminated": True}
    numbered = mixope.read([{"obs_0": [0.1, 0.2, 0.3], "obs_1": [1.5, 2.5, 3.5], "actions": [0, 1]} | steps]).table()
    assert numbered.column("next_observation.1").to_pylist() == [2.5, None]
    own = {"observation": ["x", "y"], "action": "push"}
    mine = mixope.read([{"x": [0.1, 0.2, 0.3], "y": [1.5, 2.5, 3.5], "push": [0, 1]} | steps], columns=own).table()
    assert mine.column("next_observation.y").to_pylist() == [2.5, None]


def test_one_label_holds_for_a_whole_episode_and_one_flag_for_its_end():
    one = {"observations": [0, 1, 2], "actions": [0, 1], "rewards": [0.0, 1.0]}
    logs = mixope.read(
        [one | {"policy_id": "old", "terminated": True}, one | {"policy_id": "new", "terminated": False}]
    )
    assert logs.table().column("policy_id").to_pylist() == ["old", "old", "new", "new"]
    assert logs.table().column("terminated").to_pylist() == [False, True, False, False]


def test_a_single_done_is_as_ambiguous_as_a_column_of_them():
    one = {"observations": [0, 1, 2], "actions": [0, 1], "rewards": [0.0, 1.0], "done": True}
    with pytest.raises(DataError, match="ambiguous"):
        mixope.read([one])
    assert mixope.read([one], done="truncated").table().column("truncated").to_pylist() == [False, True]


def test_propensities_in_infos_are_those_of_the_step_before_them():
    held = Held(**EPISODES[0], infos={"action_prob": np.array([-1.0, 0.1, 0.2, 0.3, 0.4]), "prob": np.ones(5)})
    table = mixope.read([held]).table()
    assert table.column("propensity").to_pylist() == [0.1, 0.2, 0.3, 0.4]


def test_columns_without_a_meaning_stay_for_those_who_name_them():
    logs = mixope.read([episode(3, note=["a", "b", "c"], seed=4, total=3.0)], columns={"policy_id": "note"})
    assert logs.table().column("policy_id").to_pylist() == ["a", "b", "c"]


def test_lists_of_episodes_may_be_labelled():
    logs = mixope.read({"old": EPISODES, "new": [episode(5, seed=9)]})
    assert set(logs.table().column("policy_id").to_pylist()) == {"old", "new"}


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_a_list_of_rows_is_a_table():
    rows = [
        {"s": f"cell {t}", "a": "go", "r": 1, "episode": 0, "t": t, "terminated": t == 2, "policy": "old"}
        for t in range(3)
    ]
    assert mixope.read(rows).table().equals(mixope.read(pa.Table.from_pylist(rows)).table())
    vectors = [{"observation": [0.1, t], "action": [0.5], "reward": 1.0, "terminated": t == 2} for t in range(3)]
    assert mixope.read(vectors).schema.observation_kind == "vector"
    parts = [{"obs": {"x": t, "y": 1}, "action": 0, "reward": 1.0, "terminated": t == 2} for t in range(3)]
    assert mixope.read(parts).schema.observation == ("observation.x", "observation.y")


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_rows_may_lack_what_a_log_may_lack():
    rows = [{"obs": t, "action": 0, "reward": 1.0, "terminated": t == 2} for t in range(3)]
    rows[1]["action_prob"] = 0.25
    table = mixope.read(rows).table()
    assert table.column("propensity").to_pylist() == [None, 0.25, None]
    assert set(table.column("policy_id").to_pylist()) == {UNLABELLED}


WRONG = {
    "rewards too short": (episode(rewards=np.ones(3)), "episode 1.*rewards(.|\n)*4 entries(.|\n)*3 entries"),
    "two observations more": (episode(longer=2), "episode 1.*observations(.|\n)*4 entries.*or 5(.|\n)*6 entries"),
    "a matrix of rewards": (episode(rewards=np.ones((4, 2))), "episode 1.*rewards(.|\n)*4 entries"),
    "a single reward": (episode(rewards=1.0), "episode 1.*rewards(.|\n)*4 entries"),
    "a single action": (episode(actions=1), "single action"),
    "no actions": ({"observations": [1], "rewards": [1.0]}, "no action"),
    "nothing": ({}, "no observation"),
    "a number": (3, "no episode(.|\n)*episode 1(.|\n)*int"),
    "ragged": (episode(observations=[[1.0], [1.0, 2.0]]), "not an array(.|\n)*episode 1"),
    "text for numbers": (episode(actions=list("abcd")), "episode 1.*actions(.|\n)*int64(.|\n)*text"),
    "wider vectors": (episode(observations=np.ones((5, 2))), "form(.|\n)*episode 1.*observations"),
    "no next observation": (episode(longer=0), "others lack(.|\n)*episode 1.*next_observation"),
    "another name for the reward": (
        {**{k: v for k, v in episode().items() if k != "rewards"}, "r": np.ones(4)},
        "others lack(.|\n)*rewards",
    ),
    "a step without a reward": (
        [{"obs": 1, "action": 0, "reward": 1.0}, {"obs": 1, "action": 0}],
        "lacks 'reward'(.|\n)*step 1 of episode 1",
    ),
    "a step with other parts": (
        [{"obs": {"x": 1}, "action": 0, "reward": 1.0}, {"obs": {"y": 1}, "action": 0, "reward": 1.0}],
        "same parts(.|\n)*step 1 of episode 1",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_error_names_the_episode_and_what_is_wrong_with_it(name):
    wrong, words = WRONG[name]
    with pytest.raises(DataError, match=words):
        mixope.read([episode(), wrong])


def test_two_entries_with_one_name_are_no_two_episodes():
    with pytest.raises(DataError, match="episodes 0 and 2 of the list"):
        mixope.read([episode(episode_id="a"), episode(episode_id="b"), episode(episode_id="a", seed=3)])
    assert mixope.read([episode(episode_id=1, policy_id="x"), episode(episode_id=1, policy_id="y")]).total_rows() == 8


@pytest.mark.parametrize("given", [[], [3], [[]], [None], ([],), [b"x"]])
def test_a_list_of_other_things_is_refused(given):
    with pytest.raises(UsageError, match="a list of episodes"):
        mixope.read(given)


STRANGE = [
    None,
    3,
    "x",
    [],
    {},
    [None],
    np.array(2.0),
    np.ones((2, 2, 2)),
    float("nan"),
    b"\xff",
    object(),
    [[1], [1, 2]],
]
STRANGE += [
    np.array([1, None], dtype=object),
    np.ma.masked_all(4),
    ["a", 1],
    {"x": [1]},
    {"x": {"y": 1}},
    2**70,
    [2**70] * 4,
]


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_episodes_with_anything_in_them_are_read_or_refused_in_words():
    draw = random.Random(0)
    read = 0
    for _ in range(600):
        given = [FORMS[draw.choice(list(FORMS))](episode(4, seed=seed)) for seed in range(2)]
        place = draw.choice(given)
        if isinstance(place, dict):
            place[draw.choice([*place, "step", "policy_id", "episode_id", "done", "infos"])] = draw.choice(STRANGE)
        elif isinstance(place, Held):
            setattr(place, draw.choice(["observations", "actions", "rewards", "infos"]), draw.choice(STRANGE))
        elif isinstance(place, list):
            place[draw.randrange(len(place))] = draw.choice([{}, {"observation": 1}, draw.choice(STRANGE)])
        with suppress(MixopeError):
            read += mixope.read(given).table().num_rows > 0
    assert read > 0
