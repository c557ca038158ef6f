"""How single numbers are written."""

import mixope
from mixope.report.words import number


def test_zero_has_no_sign():
    assert number(-0.0) == number(0.0) == "0"
    assert number(-0.25) == "-0.25"


def test_one_row_leads_in_the_singular():
    rows = {"observation": [0, 1, 0], "action": [0, 1, 1], "reward": [1.0, 0.0, 1.0]}
    logs = mixope.Logs.from_arrays(**rows, episode_id=[0, 0, 0], step=[0, 1, 2], truncated=[False, False, True])
    result = mixope.evaluate(logs, mixope.TabularPolicy([[0.5, 0.5], [0.5, 0.5]]), "emp")
    assert any(alert.startswith("1 row leads to a state that is not known") for alert in result.alerts)
