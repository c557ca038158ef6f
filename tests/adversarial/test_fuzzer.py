"""The fuzzer sees what it is there to see: exceptions, warnings, files left open, contradictions, crashes and hangs."""

import os
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import mixope
from mixope.base.errors import DataError, MixopeWarning
from mixope.checks import Verdict
from mixope.uncertainty import Interval

from .fuzzing import judging, running
from .fuzzing.cases import Case
from .fuzzing.judging import Broken, check, judge


def outcome(monkeypatch, perform):
    monkeypatch.setitem(judging.PERFORM, "arrays", perform)
    return judge(Case("arrays", {}))


def raises(error):
    def perform(recipe):
        raise error

    return perform


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("x"), IndexError("x"), RuntimeWarning("x")])
def test_an_exception_that_is_not_ours_is_a_failure(monkeypatch, error):
    assert type(error).__name__ in outcome(monkeypatch, raises(error)).words


def test_an_error_with_words_is_none(monkeypatch):
    assert outcome(monkeypatch, raises(DataError("The log is empty"))) is None
    assert outcome(monkeypatch, raises(DataError(""))) is not None


def test_a_warning_is_a_failure_unless_it_is_ours(monkeypatch):
    assert outcome(monkeypatch, lambda recipe: np.log(np.zeros(1))).place.startswith("RuntimeWarning")
    assert outcome(monkeypatch, lambda recipe: warnings.warn("said", MixopeWarning, stacklevel=2)) is None


def leave_open(path):
    path.open()


def test_a_file_that_is_left_open_is_a_failure(monkeypatch, tmp_path):
    (tmp_path / "a").write_text("")
    assert outcome(monkeypatch, lambda recipe: leave_open(tmp_path / "a")).place == "left behind"


@pytest.fixture(scope="module")
def estimate():
    columns = {"episode_id": np.arange(40) // 4, "step": np.arange(40) % 4, "action": np.arange(40) % 2}
    columns |= {"observation": np.arange(40) % 3, "next_observation": (np.arange(40) + 1) % 3}
    return mixope.evaluate({**columns, "reward": np.arange(40) % 5 / 4.0}, [[0.5, 0.5]] * 3)


def test_an_answer_that_contradicts_itself_is_a_failure(estimate):
    check(estimate)
    beside = Interval(estimate.value + 1, estimate.value + 2, 0.95, "t")
    failed = replace(estimate.diagnostics[0], status="fail")
    for wrong in (
        replace(estimate, interval=beside),
        replace(estimate, verdict=Verdict.TRUSTWORTHY, diagnostics=(failed,)),
        replace(estimate, verdict=Verdict.TRUSTWORTHY, diagnostics=(), interval=None),
        replace(estimate, value=float("nan"), diagnostics=(), interval=None),
    ):
        with pytest.raises(Broken):
            check(wrong)


def dies(case):
    if case.kind == "features":
        os.abort()


def sleeps(case):
    if case.kind == "features":
        time.sleep(600)


def tamper(seed, pipe, now, counts, trace, judged):
    running.judge = judged
    running._work(seed, pipe, now, counts, trace)


def dying(*arguments):
    tamper(*arguments, dies)


def sleeping(*arguments):
    tamper(*arguments, sleeps)


@pytest.mark.parametrize(("work", "what", "patience"), [(dying, "crash", 20.0), (sleeping, "hang", 3.0)])
def test_a_run_survives_its_workers(monkeypatch, tmp_path, work, what, patience):
    monkeypatch.setattr(running, "TARGET", work)
    run = running.fuzz(seed=0, begin=0, end=60, jobs=1, folder=tmp_path, patience=patience, quiet=True)
    assert run.done == sum(run.counts.values()) == 60
    assert run.failures.total() == run.counts["features"] > 0
    assert all(place.startswith(what) for place in run.failures)
