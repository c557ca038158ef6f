"""Tasks give the same results in the same order, however many processes share them, and none is left running."""

import os
import time

import pytest

from mixope.processes import as_done, run_tasks


def slow_first(number):
    """The first tasks take longest, so that processes finish them out of order."""
    time.sleep(0.05 if number < 4 else 0.0)
    return number**2


def fail_at(number):
    if number == 5:
        raise ValueError("five")
    return number


@pytest.mark.parametrize("jobs", [1, 2, None])
def test_results_are_in_the_order_of_the_items(jobs):
    told = []
    found = run_tasks(slow_first, range(30), jobs, lambda done, total: told.append((done, total)))
    assert found == [number**2 for number in range(30)]
    assert told[-1] == (30, 30)
    assert told == sorted(told)


def test_no_items_have_no_results():
    assert run_tasks(slow_first, [], 2) == []


def test_what_is_done_is_given_at_once_with_its_place():
    found = dict(as_done(slow_first, range(9), 2, size=2))
    assert found == {k: [n**2 for n in range(k, min(k + 2, 9))] for k in range(0, 9, 2)}


def test_one_job_stays_in_this_process():
    assert {pid for _, pids in as_done(lambda _: os.getpid(), range(3), 1) for pid in pids} == {os.getpid()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_task_is_passed_on(jobs):
    with pytest.raises(ValueError, match="five"):
        run_tasks(fail_at, range(9), jobs)
    assert run_tasks(fail_at, range(4), jobs) == [0, 1, 2, 3]


def test_what_another_process_cannot_load_is_done_here(tmp_path, monkeypatch):
    """A function from a module that only this process found, such as a policy beside the logs."""
    (tmp_path / "only_here.py").write_text("def double(n):\n    return 2 * n\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    monkeypatch.undo()
    assert run_tasks(only_here.double, range(9), jobs=2) == [2 * n for n in range(9)]


def test_a_refusal_while_tasks_are_still_handed_out_is_met_too(monkeypatch):
    """The workers may be quick enough to refuse the first task before the last one is sent."""
    from mixope.pool import Pool, Unsendable

    def refuse(pool, calls):
        yield 0, [0]
        raise Unsendable("ModuleNotFoundError")

    monkeypatch.setattr(Pool, "results", refuse)
    assert run_tasks(slow_first, range(9), jobs=2) == [n**2 for n in range(9)]
