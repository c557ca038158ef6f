"""What can be wrong, or awkward and right, with the columns of a log, in every format that can hold it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from .cases import Answered, Call, Case, Command, Refused, evaluate, value_of
from .formats import ARRAYS, CLEAN, CORE, EVERY, FILES, ROWS, STORED, TABLES, TEXT, table_of

Change = Callable[[], pa.Table]


def put(column: str, row: int, value: Any) -> Change:
    """One value changed."""
    values = [value if place == row else kept for place, kept in enumerate(CLEAN[column])]
    return lambda: table_of({**CLEAN, column: values})


def having(**columns: Any) -> Change:
    """Columns changed or added; None takes one away."""
    return lambda: table_of({name: values for name, values in {**CLEAN, **columns}.items() if values is not None})


def cast(type_: pa.DataType, *columns: str) -> Change:
    """The same values stored otherwise."""
    return having(**{name: pa.array(CLEAN[name]).cast(type_) for name in columns})


def every(value: Any, *columns: str) -> Change:
    return having(**dict.fromkeys(columns, [value] * ROWS))


def each(change: Callable[[Any], Any], *columns: str) -> Change:
    return having(**{name: [change(value) for value in CLEAN[name]] for name in columns})


class Fault(NamedTuple):
    """A log that must be refused: the change, the formats that can hold it, the words; rows and a remedy are named."""

    change: Change
    formats: tuple[str, ...]
    words: tuple[str, ...]


NAN, INFINITE = float("nan"), float("inf")
STATES = ("observation", "next_observation")
IN_ROWS = ("rows: ", "try: ")
REMEDY = ("try: ",)
NULLS = ("csv", "glob", "parquet", "folder", "arrow", "table", "pandas", "polars")
READ = ("csv", "parquet", "arrays")
DAY, NOON = dt.date(2024, 5, 1), dt.datetime(2024, 5, 1, 12, 30)
BINARY = ("parquet", "arrow", "folder", "table", "dataset", "relation")

FAULTS: dict[str, Fault] = {
    "no reward": Fault(having(reward=None), EVERY, ("no column for the reward", *REMEDY)),
    "no action": Fault(having(action=None), CORE, ("no column for the action", *REMEDY)),
    "no observation": Fault(having(observation=None), CORE, ("no column for the observation", *REMEDY)),
    "two columns for the reward": Fault(
        having(reward=None, r=CLEAN["reward"], rewards=CLEAN["reward"]),
        ("csv", "parquet", "table", "arrays", "relation"),
        ("Two columns could be 'reward': 'r' and 'rewards'", *REMEDY),
    ),
    "a lone done": Fault(
        having(terminated=None, truncated=None, done=CLEAN["truncated"]),
        ("csv", "parquet", "npz", "table", "pandas", "arrays"),
        ("A lone done column is ambiguous", "column 'done'", *REMEDY),
    ),
    "no rows": Fault(lambda: table_of(CLEAN).slice(0, 0), EVERY, ("no rows", "at least one row")),
    "reward missing in a row": Fault(put("reward", 4, None), NULLS, ("The reward is missing", "'reward'", *IN_ROWS)),
    "reward not a number in a row": Fault(
        put("reward", 4, NAN),
        CORE,
        ("The reward is not a finite number", "'reward'", "nan", *IN_ROWS),
    ),
    "reward NaN in pandas": Fault(put("reward", 4, NAN), ("pandas",), ("The reward is missing", "'reward'", *IN_ROWS)),
    "reward infinite": Fault(put("reward", 4, INFINITE), EVERY, ("not a finite number", "'reward'", "inf", *IN_ROWS)),
    "reward minus infinite": Fault(
        put("reward", 4, -INFINITE), ("csv", "parquet", "arrays"), ("not a finite number", "-inf", *IN_ROWS)
    ),
    "reward huge": Fault(put("reward", 4, 1e200), CORE, ("too large to compute with", "'reward'", *IN_ROWS)),
    "rewards all missing": Fault(
        having(reward=pa.nulls(ROWS, pa.float64())), NULLS, ("The reward is missing", "(of 12)", *IN_ROWS)
    ),
    "rewards true or false": Fault(
        each(bool, "reward"), CORE, ("'reward'", "if true and false stand for 1 and 0, store these", *REMEDY)
    ),
    "rewards in words": Fault(every("much", "reward"), STORED, ("'reward'", "string", "expected: numbers", *REMEDY)),
    "rewards in words, as text": Fault(
        every("much", "reward"), TEXT, ("Text in a numeric column", "'reward'", "'much'", *IN_ROWS)
    ),
    "rewards are days": Fault(every(DAY, "reward"), STORED, ("'reward'", "date32", "expected: numbers", *REMEDY)),
    "rewards in lists": Fault(
        every([1.0], "reward"), ("parquet", "arrow", "table", "polars"), ("'reward'", "list", "numbers", *REMEDY)
    ),
    "observation missing in a row": Fault(
        put("observation", 4, None), NULLS, ("The observation is missing", "'observation'", *IN_ROWS)
    ),
    "action missing in a row": Fault(put("action", 4, None), NULLS, ("The action is missing", "'action'", *IN_ROWS)),
    "episode missing in a row": Fault(
        put("episode_id", 4, None), CORE, ("The episode_id is missing", "'episode_id'", *IN_ROWS)
    ),
    "step missing in a row": Fault(put("step", 4, None), CORE, ("The step is missing", "'step'", *IN_ROWS)),
    "an end neither true nor false": Fault(
        put("terminated", 4, None),
        tuple(name for name in EVERY if name != "npz"),
        ("'terminated' is neither true nor false", *IN_ROWS),
    ),
    "a flag of two": Fault(
        having(truncated=[0, 0, 2] * 4), CORE, ("'truncated' is neither true nor false", "got: 2", *IN_ROWS)
    ),
    "a flag in words": Fault(
        every("no", "terminated"), STORED, ("'terminated'", "expected: true/false or 0/1", *REMEDY)
    ),
    "a flag in words, as text": Fault(
        every("no", "terminated"), TEXT, ("Text in a true/false column", "'no'", "write true or false", *IN_ROWS)
    ),
    "a flag that is a day": Fault(every(DAY, "truncated"), ("parquet", "table"), ("'truncated'", "date32", *REMEDY)),
    "a negative step": Fault(put("step", 3, -1), CORE, ("A step is negative", "'step'", *IN_ROWS)),
    "a step twice": Fault(put("step", 4, 0), CORE, ("repeat a step", "'step'", *IN_ROWS)),
    "a step of one half": Fault(having(step=[0, 0.5, 1] * 4), CORE, ("'step' is not a whole number", "0.5", *IN_ROWS)),
    "steps in words": Fault(every("x", "step"), STORED, ("'step'", "expected: integers", *REMEDY)),
    "steps that are times": Fault(every(NOON, "step"), STORED, ("same time", "'step'", *IN_ROWS)),
    "steps that are times, as text": Fault(every(NOON, "step"), ("csv",), ("same time", "'step'", *IN_ROWS)),
    "a hole in the steps and no next observation": Fault(
        having(step=[0, 4, 5] * 4, next_observation=None), CORE, ("hole in the steps", "'step'", *IN_ROWS)
    ),
    "rows after the end": Fault(
        having(terminated=[True, False, False] * 4), CORE, ("rows after the end of their episode", *IN_ROWS)
    ),
    "an episode of one half": Fault(
        each(lambda number: number + 0.5, "episode_id"), CORE, ("'episode_id' is not a whole number", *IN_ROWS)
    ),
    "episodes that are days": Fault(every(DAY, "episode_id"), STORED, ("'episode_id'", "date32", *REMEDY)),
    "propensity zero": Fault(put("action_prob", 4, 0.0), CORE, ("outside (0, 1]", "'action_prob'", *IN_ROWS)),
    "propensity above one": Fault(put("action_prob", 4, 1.5), CORE, ("outside (0, 1]", "1.5", *IN_ROWS)),
    "propensity negative": Fault(put("action_prob", 4, -0.5), CORE, ("outside (0, 1]", "-0.5", *IN_ROWS)),
    "propensity not a number": Fault(
        put("action_prob", 4, NAN), (*TEXT, "parquet", "arrow", "polars"), ("outside (0, 1]", "nan", *IN_ROWS)
    ),
    "propensity too small": Fault(put("action_prob", 4, 1e-320), CORE, ("too small to divide by", *IN_ROWS)),
    "logarithms as propensities": Fault(
        every(-0.5, "action_prob"), CORE, ("looks like log-probabilities", "action_logp", *IN_ROWS)
    ),
    "log-probability above zero": Fault(
        having(action_prob=None, action_logp=[0.5] * ROWS), CORE, ("log-probability", "above 0", *IN_ROWS)
    ),
    "propensities true or false": Fault(
        every(True, "action_prob"), ("csv", "parquet", "arrays"), ("'action_prob'", "expected: numbers", *REMEDY)
    ),
    "states that are days": Fault(
        every(DAY, *STATES), STORED, ("'observation'", "integers, strings or floats", *REMEDY)
    ),
    "states that are structs": Fault(every({"x": 1}, *STATES), BINARY, ("'observation'", "struct", *REMEDY)),
    "states in lists of lists": Fault(every([[1]], *STATES), BINARY, ("'observation'", "list", *REMEDY)),
    "states of matrices": Fault(every([[1]], *STATES), ARRAYS, ("'observation' has the wrong shape", "(12, 1, 1)")),
    "states of bytes": Fault(every(b"a", *STATES), BINARY, ("'observation'", "binary", *REMEDY)),
    "states of other lengths": Fault(
        having(observation=[[1.0, 2.0]] * 11 + [[1.0]], next_observation=[[1.0, 2.0]] * ROWS),
        (*BINARY, "polars", "stream", "pandas"),
        ("The lists have different lengths", "2 elements on every row", *IN_ROWS),
    ),
    "states beyond 64 bits": Fault(
        having(**{name: pa.array([2**63 + value for value in CLEAN[name]], pa.uint64()) for name in STATES}),
        CORE,
        ("'observation'", "9223372036854775808", "store such ids as strings"),
    ),
    "a next state of one half": Fault(
        put("next_observation", 4, 0.5),
        ("csv", "parquet", "folder", "table", "arrays"),
        ("'next_observation' is not a whole number", "0.5", *IN_ROWS),
    ),
    "a next state beyond 64 bits": Fault(
        having(next_observation=pa.array([2**63, *CLEAN["next_observation"][1:]], pa.uint64())),
        ("csv", "parquet", "arrow", "npz"),
        ("'next_observation'", "store such ids as strings", "rows: 0"),
    ),
    "words, and numbers as next states": Fault(
        each("s{}".format, "observation"), CORE, ("'next_observation'", "expected: strings", *REMEDY)
    ),
    "actions that are days": Fault(every(DAY, "action"), STORED, ("'action'", "date32", *REMEDY)),
    "actions of floats, for a table": Fault(
        cast(pa.float64(), "action"),
        STORED,
        ("the actions of these logs are real numbers", "if they are a few classes"),
    ),
    "discrete actions in two columns": Fault(
        having(action=None, **{"action.x": CLEAN["action"], "action.y": CLEAN["action"]}),
        ("csv", "parquet", "table", "npz"),
        ("A discrete action is one column", *REMEDY),
    ),
    "states of words and floats": Fault(
        having(observation=None, next_observation=None, **{"state.x": [0.5] * ROWS, "state.y": ["w"] * ROWS}),
        ("csv", "parquet", "table", "arrays"),
        ("a table over categories of the state ('y'), or a function of all columns", *REMEDY),
    ),
    "next states with other factors": Fault(
        having(
            observation=None,
            next_observation=None,
            **{"obs.x": CLEAN["observation"], "obs.y": CLEAN["action"], "next_obs.x": CLEAN["observation"]},
        ),
        ("csv", "parquet", "arrays"),
        ("different factors", *REMEDY),
    ),
    "labels in lists": Fault(every(["a"], "policy_id"), ("parquet", "table", "polars"), ("'policy_id'", *REMEDY)),
    "names that differ in case only": Fault(
        having(Reward=CLEAN["reward"]),
        ("csv", "tsv", "parquet", "arrow", "npz", "table", "pandas", "polars", "arrays"),
        ("Two columns have the same name", "rename or drop one of them"),
    ),
}


def shuffled() -> pa.Table:
    return table_of(CLEAN).take([7, 2, 11, 0, 5, 9, 1, 10, 3, 8, 6, 4])


AWKWARD: dict[str, tuple[Change, tuple[str, ...]]] = {
    "as it should be": (having(), (*EVERY, "folders")),
    "rows in any order": (shuffled, EVERY),
    "columns in any order": (lambda: table_of(dict(reversed(CLEAN.items()))), ("csv", "parquet", "folder", "npz")),
    "names in capitals": (
        lambda: table_of({name.upper(): values for name, values in CLEAN.items()}),
        ("csv", "parquet", "arrow", "npz", "pandas", "polars", "arrays", "relation"),
    ),
    "names of other libraries": (
        lambda: table_of(
            {
                "logger": CLEAN["policy_id"],
                "eps_id": CLEAN["episode_id"],
                "t": CLEAN["step"],
                "obs": CLEAN["observation"],
                "actions": CLEAN["action"],
                "rewards": CLEAN["reward"],
                "new_obs": CLEAN["next_observation"],
                "truncateds": CLEAN["truncated"],
                "pscore": CLEAN["action_prob"],
                "terminateds": CLEAN["terminated"],
            }
        ),
        READ,
    ),
    "columns that nobody knows": (having(colour=["red"] * ROWS, when=[NOON] * ROWS), READ),
    "strange columns of strange types": (
        having(extra=[{"x": [1]}] * ROWS, blob=[b"\xff"] * ROWS, nothing=pa.nulls(ROWS)),
        ("parquet", "arrow", "stream", "folder", "table", "dataset", "polars", "relation"),
    ),
    "decimal rewards": (cast(pa.decimal128(10, 2), "reward"), tuple(name for name in EVERY if name != "npz")),
    "decimal ids": (
        cast(pa.decimal128(19, 0), "observation", "next_observation", "action", "episode_id", "step"),
        ("parquet", "arrow", "stream", "folder", "table", "dataset", "polars", "relation"),
    ),
    "steps and episodes of floats": (cast(pa.float64(), "step", "episode_id"), READ),
    "steps from one": (each(lambda step: step + 1, "step"), READ),
    "a hole in the steps": (put("step", 5, 5), READ),
    "ids of one byte": (cast(pa.int8(), "observation", "next_observation", "action"), STORED),
    "ids without a sign": (cast(pa.uint64(), "observation", "next_observation", "action"), STORED),
    "small floats": (cast(pa.float32(), "reward"), STORED),
    "half floats": (cast(pa.float16(), "reward"), ("parquet", "arrow", "stream", "table", "dataset", "npz", "arrays")),
    "states and actions true or false": (each(bool, *STATES, "action"), READ),
    "flags of 0 and 1": (cast(pa.int8(), "terminated", "truncated"), READ),
    "flags of floats": (each(float, "terminated", "truncated"), READ),
    "coded labels": (
        having(policy_id=pa.array(CLEAN["policy_id"]).dictionary_encode()),
        ("parquet", "arrow", "stream", "folder", "table", "dataset", "pandas", "polars", "relation"),
    ),
    "large strings": (cast(pa.large_string(), "policy_id"), ("parquet", "arrow", "table", "dataset", "relation")),
    "labels that are numbers": (having(policy_id=[1] * 6 + [2] * 6), READ),
    "no labels at all": (having(policy_id=None), READ),
    "labels missing here and there": (put("policy_id", 4, None), READ),
    "propensities missing here and there": (put("action_prob", 4, None), READ),
    "log-probabilities": (having(action_prob=None, action_logp=[-0.5] * ROWS), READ),
    "a flag without a value": (having(terminated=pa.nulls(ROWS)), NULLS),
    "no flags": (having(terminated=None, truncated=None), READ),
    "numbers of episodes as words": (each(str, "episode_id"), STORED),
    "one number for two episodes of two loggers": (having(episode_id=[0, 0, 0, 1, 1, 1] * 2), READ),
}
"""Logs that are right, and must have the value of the clean one."""


def _ask(format: str, change: Change) -> Command | Call:
    """Files by command, tables in memory by call."""
    if format in FILES:
        return Command(lambda folder: evaluate("--estimator", "emp")(FILES[format](change(), folder)))
    return Call(lambda folder: value_of(TABLES[format](change())))


def cases() -> Iterator[Case]:
    for name, fault in FAULTS.items():
        for format in fault.formats:
            yield Case(f"{name} ({format})", _ask(format, fault.change), Refused(fault.words))
    for name, (change, formats) in AWKWARD.items():
        for format in formats:
            yield Case(f"{name} ({format})", _ask(format, change), Answered())
