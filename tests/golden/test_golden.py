"""Values, intervals, verdicts and scans are those of :mod:`golden.make`, whatever is moved in the code behind them.

Where states are counted, numbers agree to 1e-12; on vectors to a thousandth of the half-width of the interval, since
processors differ.
"""

import json
from functools import cache

import pytest

from .asking import cases
from .make import PLACE

CASES = cases()


@cache
def golden():
    kept = json.loads(PLACE.read_text(encoding="utf-8"))
    return {name: {**case, "words": _read(case["words"], kept["words"])} for name, case in kept["cases"].items()}


def _read(places, words):
    return {name: words[place] for name, place in places.items()}


def test_every_case_has_golden_values():
    assert [case.name for case in CASES] == list(golden())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_moved(case):
    numbers, words, scans = case.run()
    kept = golden()[case.name]
    assert words == kept["words"]
    assert list(scans) == kept["scans"]
    found = {name: value for name, value in numbers.items() if case.keeps(name)}
    expected = {(who, what): value for who, each in kept["numbers"].items() for what, value in each.items()}
    assert set(found) == set(expected)
    moved = {name: (found[name], value) for name, value in expected.items() if not near(case, name, found, value)}
    assert moved == {}


def near(case, name, found, value):
    if case.exact:
        return abs(found[name] - value) <= 1e-12 * max(abs(value), 1.0)
    return abs(found[name] - value) <= 1e-3 * half_width(found, name[0], abs(value))


def half_width(found, who, otherwise):
    for low, high in (("interval.low", "interval.high"), ("low", "high")):
        if (who, low) in found:
            return (found[who, high] - found[who, low]) / 2
    return otherwise
