"""One log in every guise: in memory, Parquet, CSV and Arrow; ids, strings and factors; with ends, cuts and labels."""

import numpy as np

import mixope
from mixope.logs.writing import write
from mixope.worlds import simulate, walk

FORMATS = ("memory", "parquet", "csv", "arrow")
KINDS = ("ids", "strings", "factors")


def columns(kind, propensities=True):
    """Walk: ragged episodes that end or are cut; two loggers."""
    generator = np.random.default_rng(4)
    loggers = [generator.dirichlet([3, 3], size=6) for _ in range(2)]
    base = simulate(walk(), loggers, 40, 9, seed=8)
    base["reward"] = base["reward"] + np.round(generator.normal(size=len(base["reward"])), 3)
    for name in ("observation", "next_observation"):
        ids = base[name]
        if kind == "strings":
            base[name] = np.array([f"cell {chr(102 - i)}" for i in range(6)])[ids]
        elif kind == "factors":
            del base[name]
            base |= {f"{name}.half": ids // 3, f"{name}.word": np.array(["left", "middle", "right"])[ids % 3]}
    if kind == "strings":
        base["action"] = np.array(["west", "east"])[base["action"]]
    if not propensities:
        del base["action_prob"]
    return base


def policy(kind, seed=6):
    law, ids = np.random.default_rng(seed).dirichlet([3, 3], size=6), np.arange(6)
    if kind == "strings":
        return mixope.TabularPolicy(law, [f"cell {chr(102 - i)}" for i in ids], ["west", "east"])
    if kind == "factors":
        words = np.array(["left", "middle", "right"])[ids % 3]
        states = np.array([[i // 3, w] for i, w in zip(ids.tolist(), words, strict=True)], dtype=object)
        return mixope.TabularPolicy(law, states, factors=("half", "word"))
    return mixope.TabularPolicy(law)


def written(base, kind_of_file, folder, later=None):
    """The log as two sources of a format, so that the source column matters, or as arrays."""
    later = base["episode_id"] >= 30 if later is None else later
    parts = [{name: values[mask] for name, values in base.items()} for mask in (~later, later)]
    if kind_of_file == "memory":
        return mixope.read(*parts)
    return mixope.read(*(write(part, folder / f"part{i}.{kind_of_file}") for i, part in enumerate(parts)))
