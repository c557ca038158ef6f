"""Tasks give the same results in the same order, however many processes share them, and none is left running."""

import os
import time

import joblib
import pytest

from mixope.base import processes
from mixope.base.processes import as_done, run_tasks


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
    from mixope.base.pool import Pool, Unsendable

    def refuse(pool, calls):
        yield 0, calls[0]()
        raise Unsendable("ModuleNotFoundError")

    monkeypatch.setattr(Pool, "results", refuse)
    assert run_tasks(slow_first, range(9), jobs=2) == [n**2 for n in range(9)]


def test_modules_beside_a_named_policy_travel_and_installed_ones_do_not(tmp_path, monkeypatch):
    """Also where packages are installed below the current folder, as in ``./.venv``: those a worker finds by itself."""
    from mixope.base.pool import own_modules
    from mixope.policies import read_policy

    installed = tmp_path / ".venv" / "site-packages"
    (installed / "an_installed").mkdir(parents=True)
    (installed / "an_installed" / "__init__.py").write_text("THIRD = 1 / 3\n")
    (tmp_path / "a_helper").mkdir()
    (tmp_path / "a_helper" / "inside.py").write_text("from an_installed import THIRD\nHALF = THIRD * 1.5\n")
    (tmp_path / "named_here.py").write_text(
        "import numpy as np\nfrom a_helper.inside import HALF\n"
        "def target(observations):\n    return np.full((len(observations), 2), HALF)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(installed)
    assert read_policy("named_here:target") is not None
    names = {module.__name__ for module in own_modules()}
    assert {"named_here", "a_helper.inside"} <= names
    assert not [name for name in names if name.startswith("an_installed")]


def test_large_arrays_of_a_task_are_mapped_and_small_ones_are_copied(tmp_path):
    import numpy as np

    from mixope.base.pool import MAPPED_BYTES, read_task, write_task

    large, small = np.arange(MAPPED_BYTES // 8 + 5, dtype=np.float64).reshape(-1, 5), np.arange(3)
    write_task(
        tmp_path / "task", {"large": large, "turned": np.asfortranarray(large), "small": small, "cut": large[::2]}
    )
    found = read_task(tmp_path / "task")
    for name, wanted in (("large", large), ("turned", large), ("small", small), ("cut", large[::2])):
        assert np.array_equal(found[name], wanted)
    assert found["turned"].flags.f_contiguous
    assert not found["large"].flags.writeable
    assert found["small"].flags.writeable


def kill_once(place, number):
    import signal
    from pathlib import Path

    if number == 3:
        try:
            (Path(place) / "killed").touch(exist_ok=False)
        except FileExistsError:
            return -number
        os.kill(os.getpid(), signal.SIGKILL)
    return -number


def test_a_call_whose_worker_died_is_made_again_and_no_other(tmp_path):
    from functools import partial

    from mixope.base.pool import Killed, Pool

    calls = [partial(kill_once, str(tmp_path), number) for number in range(8)]
    pool = Pool(2)
    try:
        with pytest.raises(Killed):
            list(pool.results(calls))
        (tmp_path / "killed").unlink()
        assert sorted(pool.results(calls, tries=1)) == [(number, -number) for number in range(8)]
    finally:
        pool.close()


def test_no_call_is_made_far_ahead_of_the_oldest():
    """So that results of the others do not pile up behind one that takes long."""
    from functools import partial

    from mixope.base.pool import Pool

    calls = [partial(time.sleep, 0.6 if number == 0 else 0.0) for number in range(12)]
    pool = Pool(2)
    try:
        order = [number for number, _ in pool.results(calls, ahead=4)]
    finally:
        pool.close()
    assert set(order[: order.index(0)]) <= {1, 2, 3}
    assert sorted(order) == list(range(12))


GONE = """
import os, sys
os.rmdir(os.getcwd())
if sys.argv[1] == "library":
    from mixope.base.pool import own_modules, search_path
    assert search_path() and own_modules() == []
else:
    os.execv(sys.executable, [sys.executable, "-m", "mixope", "estimators"])
"""


@pytest.mark.parametrize("how", ["library", "command"])
def test_a_folder_that_is_gone_is_no_reason_not_to_begin(how, tmp_path):
    import subprocess
    import sys

    place = tmp_path / "gone"
    place.mkdir()
    done = subprocess.run([sys.executable, "-c", GONE, how], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, 5),
        ({"quota": "-1\n", "period": "100000\n"}, 5),
        ({"quota": "300000\n", "period": "100000\n"}, 3),
        ({"quota": "900000\n", "period": "100000\n"}, 5),
        ({}, 5),
    ],
    ids=["a group's quota is rounded up", "no limit", "no limit, older", "older", "more than there are", "no group"],
)
def test_cores_are_those_that_this_process_may_use(files, cores, tmp_path, monkeypatch):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    names = (("cpu.max",), ("quota", "period"))
    monkeypatch.setattr(processes, "CPU_QUOTAS", [[str(tmp_path / name) for name in group] for group in names])
    monkeypatch.setattr(processes.os, "sched_getaffinity", lambda process: set(range(5)), raising=False)
    assert processes.all_cores() == cores


def test_cores_are_counted_as_joblib_counts_them():
    assert processes.all_cores() == joblib.cpu_count()
