"""The reference logs and what independent implementations got on them."""

import json
from functools import cache
from pathlib import Path

import mixope

FOLDER = Path(__file__).parents[1] / "data" / "reference"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@cache
def logs(name):
    return mixope.read(FOLDER / f"{name}.csv")


@cache
def target(name):
    return mixope.read_policy(FOLDER / f"{name}-target.csv")


@cache
def loggers(name):
    path = FOLDER / f"{name}-loggers.csv"
    return mixope.read_policies(path) if path.exists() else {}
