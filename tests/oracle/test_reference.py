"""Every reference value is met through the public API."""

from functools import cache

import numpy as np
import pytest

import mixope
from mixope.estimators import state_ratio

from . import reference

#: The quadratic program is agreed on to 1e-4, everything else to 1e-6.
QUADRATIC, TIGHT = 1e-4, 1e-6
PAPER_FORM = ", paper form, quadratic program, not calibrated"
VALUES = [(log, name) for log, entry in reference.EXPECTED.items() for name in entry["values"]]
PAPER = {"emp": state_ratio.emp, "bch": state_ratio.bch, "bch-pooled": state_ratio.bch_pooled}


def question(name):
    """The estimator, the estimand and the tolerance behind the name of a reference value."""
    if name.endswith(PAPER_FORM):
        return PAPER[name.removesuffix(PAPER_FORM)](form="paper"), None, QUADRATIC
    if ", discounted " in name:
        estimator, gamma = name.split(", discounted ")
        return estimator, float(gamma), TIGHT
    return name.removesuffix(", known loggers"), None, TIGHT


@cache
def answers(log, gamma):
    """All reference estimators of one estimand at once; the loggers' policies are given where they are known."""
    names = [name for name in reference.EXPECTED[log]["values"] if question(name)[1] == gamma]
    estimators, given = [question(name)[0] for name in names], {"new": reference.target(log)}
    table = mixope.compare(reference.logs(log), given, estimators, gamma=gamma, loggers=reference.loggers(log))
    return dict(zip(names, table, strict=True))


@pytest.mark.parametrize(("log", "name"), VALUES)
def test_the_value_equals_the_reference(log, name):
    _, gamma, tolerance = question(name)
    wanted = reference.EXPECTED[log]["values"][name]
    # also relative, because some values of importance sampling are far below the tolerance
    assert answers(log, gamma)[name].value == pytest.approx(wanted, rel=1e-6, abs=tolerance * min(1.0, abs(wanted)))


@pytest.mark.parametrize("log", [log for log, entry in reference.EXPECTED.items() if "emp" in entry])
def test_the_standard_error_and_the_uncovered_mass_equal_the_reference(log, monkeypatch):
    """The reference knows neither the factor for few episodes nor the one for few rows of a pair."""
    beside = answers(log, None)["emp"]  # kept for other tests, so made before anything is changed
    monkeypatch.setattr(state_ratio, "left_out", np.ones_like)
    monkeypatch.setattr(state_ratio, "lone_error", lambda *given: 0.0)
    result, wanted = mixope.evaluate(reference.logs(log), reference.target(log), "emp"), reference.EXPECTED[log]["emp"]
    few = np.sqrt(result.n_episodes / (result.n_episodes - 1))
    assert result.standard_error == pytest.approx(few * wanted["standard_error_clustered"], abs=1e-6)
    assert beside.standard_error == pytest.approx(result.standard_error, rel=0.1)
    assert result.uncovered_mass == pytest.approx(wanted["uncovered_mass"], abs=1e-6)


@pytest.mark.parametrize("log", reference.EXPECTED)
def test_rows_episodes_and_loggers_are_counted(log):
    result, wanted = answers(log, None)["emp"], reference.EXPECTED[log]
    assert result.n_rows == wanted["rows"]
    assert result.n_dropped == 0
    if "episodes" in wanted:
        assert (result.n_episodes, len(result.loggers)) == (wanted["episodes"], wanted["loggers"])


@pytest.mark.parametrize("log", reference.EXPECTED)
def test_evaluating_alone_gives_what_comparing_gives(log):
    alone, beside = mixope.evaluate(reference.logs(log), reference.target(log)), answers(log, None)["emp"]
    assert (alone.estimator, alone.value, alone.interval) == ("emp", beside.value, beside.interval)
