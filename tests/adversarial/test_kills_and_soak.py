"""Small sizes of two programs beside this file: commands killed at random moments, random questions in one process."""

import sys

import pytest

from . import kills, soak

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def test_ten_kills_leave_no_process_and_no_piece_of_a_file(tmp_path):
    found = kills.run(10, 3, tmp_path, ("evaluate", "bca", "simulate"))
    assert found.kills == 10
    assert not found.faults, found


def test_kills_of_workers_leave_nothing_and_what_is_taken_up_again_is_the_same(tmp_path):
    names = [name for name in ("evaluate, kept", "evaluate, processes", "evaluate, dask") if name in kills.COMMANDS]
    found = kills.run(4 * len(names), 4, tmp_path, names)
    assert found.kills == 4 * len(names)
    assert found.resumed >= len(names)
    assert not found.faults, found


def test_random_questions_on_random_logs(tmp_path):
    ran = soak.run(10.0, 11, tmp_path, most=40)
    assert sum(ran.asked.values()) == 40
    assert sum(count for what, count in ran.asked.items() if what != "refused") >= 20
    assert not ran.faults, ran


def test_a_green_answer_that_should_not_be_is_seen():
    """The watch itself: an interval beside its value, a verdict against its checks."""
    from dataclasses import replace

    import mixope
    from mixope.checks import Verdict

    from .random_logs import Plan, columns, target

    plan = Plan(episodes=40, ends=True)
    good = mixope.evaluate(mixope.read(columns(plan)), target(plan))
    failed = replace(good.diagnostics[0], status="fail")
    interval = replace(good.interval, low=good.value + 1, high=good.value + 2)
    assert list(soak.complaints(good, refits=False)) == []
    bad = replace(good, interval=interval, verdict=Verdict.TRUSTWORTHY, diagnostics=(failed,))
    assert len(list(soak.complaints(bad, refits=False))) == 2
