"""Logs drawn at random: a healthy one by its recipe, what is done to it, and the form in which it is handed over."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from .faults import FAULTS, TABLE_FAULTS, spoil

Recipe = dict[str, Any]
Columns = dict[Any, Any]

STATES = ("ids", "ids", "strings", "factors", "words", "vector", "scalar", "bools", "big ids")
ACTIONS = ("ints", "ints", "strings", "floats", "vector")
MAYBE = ("episode_id", "step", "next_observation", "terminated", "truncated", "policy_id", "action_prob", "action_logp")
ROWS = (1, 2, 3, 5, 8, 12, 12, 20, 30)


def draw_logs(draw: Random, faults: int | None = None, states: tuple[str, ...] = STATES) -> Recipe:
    """What a log is made of: kinds of states and actions, columns, faults, form and options."""
    kept = [name for name in MAYBE if draw.random() < 0.75]
    if "action_prob" in kept and draw.random() < 0.9:
        kept = [name for name in kept if name != "action_logp"]
    n = draw.choice((0, 1, 1, 1, 2, 3)) if faults is None else faults
    return {
        "states": draw.choice(states),
        "actions": draw.choice(ACTIONS) if draw.random() < 0.5 else "ints",
        "rows": draw.choice(ROWS),
        "episodes": draw.choice((1, 2, 4, 8)),
        "columns": kept,
        "seed": draw.getrandbits(32),
        "faults": [_draw_fault(draw, kept) for _ in range(n)],
        "form": draw.choice(tuple(FORMS)),
        "options": _draw_options(draw) if draw.random() < 0.25 else {},
    }


def _draw_fault(draw: Random, kept: list[str]) -> list[Any]:
    """A fault of the whole table, or one of a column: its name, the column and a number to draw from."""
    if draw.random() < 0.3:
        return [draw.choice(tuple(TABLE_FAULTS)), None, draw.getrandbits(32)]
    column = draw.choice(("observation", "action", "reward", *kept))
    return [draw.choice(tuple(FAULTS)), column, draw.getrandbits(32)]


def _draw_options(draw: Random) -> dict[str, Any]:
    """Options of ``read``, right or wrong."""
    every: dict[str, tuple[Any, ...]] = {
        "done": ("terminated", "truncated", "perhaps", 1, None),
        "ends": ("terminated", "truncated", "terminated", "now", ["truncated"]),
        "label": ("old", "", ["a"], ["a", "b"], 3),
        "format": ("parquet", "csv", "npz", "arrow", "tsv", "xlsx", 7),
        "columns": (
            {"observation": "action"},
            {"observation": ["reward", "step"]},
            {"policy_id": None},
            {"next_observation": None, "step": None},
            {"reward": "nowhere"},
            {"nothing": "reward"},
            {"observation": []},
            {"reward": ["reward", "step"]},
            {"observation": 3},
            {"action": "observation.x"},
            {"terminated": "reward"},
            "observation",
        ),
    }
    names = draw.sample(tuple(every), draw.choice((1, 1, 2)))
    return {name: draw.choice(every[name]) for name in names}


def build(recipe: Recipe) -> Columns:
    """The columns of a recipe, faults and all."""
    columns = healthy(recipe)
    for name, column, seed in recipe["faults"]:
        if column is None:
            columns = TABLE_FAULTS[name](columns, np.random.default_rng(seed))
        else:
            for each in [c for c in columns if str(c) == column or str(c).startswith(column + ".")][:1]:
                columns[each] = spoil(columns[each], name, seed)
    return columns


def healthy(recipe: Recipe) -> Columns:
    """A log in order: every episode an unbroken chain of states."""
    draw, n = np.random.default_rng(recipe["seed"]), recipe["rows"]
    episode = np.sort(draw.integers(0, recipe["episodes"], n))
    first = np.concatenate([[True], episode[1:] != episode[:-1]])
    last = np.concatenate([first[1:], [True]])
    step = np.arange(n) - np.maximum.accumulate(np.where(first, np.arange(n), 0))
    state = draw.integers(0, 4, n)
    after = np.where(last, draw.integers(0, 4, n), np.roll(state, -1))
    probability = draw.choice([0.25, 0.5, 1.0], n)
    ended = last & (draw.random(n) < 0.6)
    possible = {
        "episode_id": episode if draw.random() < 0.7 else np.array([f"e{i}" for i in episode]),
        "step": step,
        "terminated": ended,
        "truncated": last & ~ended,
        "policy_id": np.array(["old", "new"])[(episode % 2)],
        "action_prob": probability,
        "action_logp": np.log(probability),
    }
    columns: Columns = {name: possible[name] for name in recipe["columns"] if name in possible}
    columns |= _states(recipe["states"], "observation", state)
    columns["action"] = ACTS[recipe["actions"]](draw.integers(0, 2, n), draw)
    columns["reward"] = draw.integers(-8, 9, n) / 4.0
    if "next_observation" in recipe["columns"]:
        columns |= _states(recipe["states"], "next_observation", after)
    return columns


ACTS: dict[str, Callable[[Any, np.random.Generator], Any]] = {
    "ints": lambda codes, draw: codes,
    "strings": lambda codes, draw: np.array(["left", "right"])[codes],
    "floats": lambda codes, draw: codes + draw.normal(size=len(codes)),
    "vector": lambda codes, draw: draw.normal(size=(len(codes), 2)),
}


def _states(kind: str, name: str, codes: Any) -> Columns:
    match kind:
        case "strings":
            return {name: np.array(["a", "b", "c", "ä d"])[codes]}
        case "factors":
            return {f"{name}.x": codes // 2, f"{name}.y": codes % 2}
        case "words":
            return {f"{name}.x": codes // 2, f"{name}.word": np.array(["even", "odd"])[codes % 2]}
        case "vector":
            return {name: np.stack([np.sqrt(codes + 0.5), codes / 3.0], axis=1)}
        case "scalar":
            return {name: codes + 0.25}
        case "bools":
            return {name: codes > 1}
        case "big ids":
            return {name: codes + (2**63 - 5)}
    return {name: codes}


# --- forms: how a user may hold a log


def _as_list(columns: Columns) -> Any:
    return {name: values.tolist() if hasattr(values, "tolist") else values for name, values in columns.items()}


def _as_table(columns: Columns) -> Any:
    return pa.table({str(name): _arrow(values) for name, values in columns.items()})


def _arrow(values: Any) -> Any:
    if isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values) and values.ndim == 1:
        return pa.array(values, from_pandas=True)
    return pa.array(values.tolist() if hasattr(values, "tolist") else values)


def _as_pandas(columns: Columns) -> Any:
    import pandas as pd

    flat = {k: list(v) if isinstance(v, np.ndarray) and v.ndim > 1 else v for k, v in columns.items()}
    return pd.DataFrame(flat)


def _as_polars(columns: Columns) -> Any:
    import polars as pl

    try:
        return pl.DataFrame({str(name): values for name, values in columns.items()})
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # what polars gives up on is none of its exceptions
            raise ValueError("polars cannot hold this") from error
        raise


def _as_chunks(columns: Columns) -> Any:
    table = _as_table(columns)
    return pa.concat_tables([table.slice(0, 1), table.slice(1, 3), table.slice(4)])


def _as_dataset(columns: Columns) -> Any:
    import pyarrow.dataset as ds

    return ds.dataset(_as_table(columns))


def _as_coded(columns: Columns) -> Any:
    table = _as_table(columns)
    return pa.table({name: table[name].combine_chunks().dictionary_encode() for name in table.column_names})


def _as_nested(columns: Columns) -> Any:
    """Dotted columns as a dict of columns."""
    found: Columns = {}
    for name, values in columns.items():
        stem, dot, rest = str(name).partition(".")
        if dot:
            found.setdefault(stem, {})
            if isinstance(found[stem], dict):
                found[stem][rest] = values
        else:
            found[name] = values
    return found


FORMS: dict[str, Callable[[Columns], Any]] = {
    "mapping": lambda columns: columns,
    "arrays": _as_nested,
    "lists": _as_list,
    "table": _as_table,
    "chunks": _as_chunks,
    "batch": lambda columns: _as_table(columns).combine_chunks().to_batches()[0],
    "stream": lambda columns: _as_table(columns).to_reader(),
    "dataset": _as_dataset,
    "coded": _as_coded,
    "pandas": _as_pandas,
    "polars": _as_polars,
    "labelled": lambda columns: {"one": _as_table(columns)},
}
"""The first is what remains where the others cannot hold such columns at all."""
