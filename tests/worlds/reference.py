"""Tables and truths of the reference logs, from independent implementations."""

import csv
import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "data" / "reference"


def expected(name):
    return json.loads((FOLDER / "expected.json").read_text())[name]


def rows(name):
    with open(FOLDER / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def table(records):
    shape = [1 + max(int(r[column]) for r in records) for column in ("observation", "action")]
    probabilities = np.zeros(shape)
    for r in records:
        probabilities[int(r["observation"]), int(r["action"])] = float(r["prob"])
    return probabilities


def target(name):
    return table(rows(f"{name}-target"))


def loggers(name):
    records = rows(f"{name}-loggers")
    return [
        table([r for r in records if r["policy_id"] == label]) for label in sorted({r["policy_id"] for r in records})
    ]
