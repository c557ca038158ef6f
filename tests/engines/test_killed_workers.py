"""A worker that is killed in the middle of a pass changes no byte of the answer.

Each kind of pass: sums pushed down to the files, requests on rows, whole episodes through a shuffle. The first worker
that works on the marked item kills itself with SIGKILL, once; somebody else does its work.
"""

import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from engine_list import WORKERS
from laws.requests import assert_same, examples, id_logs, vector_logs
from mixope.base.errors import UsageError
from mixope.engines import MemoryEngine
from mixope.requests.grouping import Grouped
from mixope.requests.transitions import transition_grouping

from .test_workers import FRAGMENT, as_files
from .workers import engine as workers
from .workers import parameter

pytestmark = pytest.mark.long
engines = pytest.mark.parametrize("engine", [parameter(name) for name in WORKERS])


@dataclass(frozen=True)
class Deadly:
    """A request beside others: whoever answers it first is killed; ``times`` says how often it happens."""

    mark: str
    whole_episodes: bool = False
    times: int = 1

    def columns(self, schema):
        return ("step",)

    def of(self, batch):
        for number in range(self.times):
            try:
                os.close(os.open(f"{self.mark}-{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
        return Rows(len(batch))


@dataclass(frozen=True)
class Rows:
    number: int

    def merge(self, other):
        return Rows(self.number + other.number)


@dataclass(frozen=True)
class DeadlyGrouped(Grouped):
    """The same where sums are pushed down: whoever but the ``parent`` looks at the lookup."""

    mark: str = ""
    parent: int = 0

    def __getattribute__(self, name):
        if name == "lookup" and os.getpid() != self.parent:
            Deadly(self.mark).of(())
        return object.__getattribute__(self, name)


def killed(mark):
    return Path(f"{mark}-0").exists()


@engines
@pytest.mark.parametrize("whole", [False, True], ids=["rows", "whole episodes"])
def test_one_that_works_on_rows(engine, whole, tmp_path):
    logs = as_files(vector_logs(), tmp_path / "logs", shuffled=True)
    requests = [r for r, of in examples().values() if of is vector_logs() and r.whole_episodes == whole][:4]
    mark = str(tmp_path / "killed")
    *found, rows = workers(engine, FRAGMENT, False).scan(logs, [*requests, Deadly(mark, whole)])
    assert killed(mark)
    assert rows.number == logs.total_rows()
    undisturbed = workers(engine, FRAGMENT, False).scan(logs, requests)
    for left, same, right in zip(found, undisturbed, MemoryEngine().scan(logs, requests), strict=True):
        assert pickle.dumps(left) == pickle.dumps(same)
        assert_same(left, right)


@engines
def test_one_that_adds_up_by_key_where_the_files_lie(engine, tmp_path):
    logs = as_files(id_logs(), tmp_path / "logs")
    grouping = transition_grouping(logs.schema)
    mark = str(tmp_path / "killed")
    made = workers(engine, FRAGMENT, False)
    (found,) = made.scan(logs, [DeadlyGrouped(grouping, None, mark, os.getpid())])
    assert killed(mark)
    assert found.table.equals(made.group_sums(logs, grouping).table)


def test_processes_that_die_again_and_again_are_given_up(tmp_path):
    logs = as_files(id_logs(), tmp_path / "logs")
    with pytest.raises(UsageError, match="killed 4 times in a row"):
        workers("processes", FRAGMENT, False).scan(logs, [Deadly(str(tmp_path / "killed"), times=100)])


SCRIPT = """
import sys, time, mixope
from dataclasses import dataclass
from mixope.engines import make

@dataclass(frozen=True)
class Slow:
    whole_episodes = False
    def columns(self, schema):
        return ("step",)
    def of(self, batch):
        time.sleep(60)

logs = mixope.read(sys.argv[2])
engine = make(sys.argv[1], workers=2, fragment_rows=23, ordered=False)
engine.group_sums(logs, __import__("mixope.requests.transitions", fromlist=["x"]).transition_grouping(logs.schema))
print("started", flush=True)
engine.scan(logs, [Slow()])
"""


@engines
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_driver_that_is_stopped_leaves_nobody_behind(engine, number, tmp_path):
    """Whoever it started is gone soon after it: no cluster goes on without it. The script needs no guard."""
    as_files(id_logs(), tmp_path / "logs")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), engine, str(tmp_path / "logs")]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert driver.stdout.readline() == "started\n"
    time.sleep(0.5)
    family = psutil.Process(driver.pid).children(recursive=True)
    assert family
    driver.send_signal(number)
    assert driver.wait(30) != 0
    driver.stdout.close()
    agents = ("ray::DashboardAgent", "ray::RuntimeEnvAgent") if number == signal.SIGKILL else ()
    family = [process for process in family if process.is_running() and not is_one_of(process, agents)]
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not [process.cmdline() for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def is_one_of(process, names):
    """Two helpers of Ray outlive a driver that is killed by a minute or two; they do no work, and end by themselves."""
    try:
        return " ".join(process.cmdline()).startswith(names) if names else False
    except psutil.NoSuchProcess:
        return False
