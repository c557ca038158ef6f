"""Whatever ends a run, no process goes on without it and no piece of a file is left; the next run finds no trace."""

import os
import signal
import subprocess
import sys
import time
from enum import EnumType
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from mixope.base.errors import UsageError
from mixope.base.files import replacing, write_whole
from mixope.base.processes import run_tasks
from mixope.cli import stopping

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

PROGRAM = """
import os, sys, time
from mixope.base.processes import run_tasks
def task(number):
    open(f"{os.getpid()}.pid", "w").close()
    time.sleep(0.01 if number == 0 else 60)
run_tasks(task, range(9), jobs=2)
"""
COMMAND = ["-m", "mixope", "reproduce", "figure1", "--jobs", "2", "--full", "-o", "figures"]


def started(arguments, folder, begun):
    """A process, as soon as its work has begun."""
    surroundings = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    pipes = {"stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, *arguments], cwd=folder, env=surroundings, **pipes)
    until = time.monotonic() + 60
    while not begun(child.pid) and time.monotonic() < until and child.poll() is None:
        time.sleep(0.02)
    assert begun(child.pid), child.communicate()
    return child


def workers_of(process):
    """Those that share its work; one more process of theirs only tidies up."""
    return [one for one in psutil.Process(process).children() if "resource_tracker" not in " ".join(one.cmdline())]


def ended(processes, seconds=10):
    return not psutil.wait_procs(processes, timeout=seconds)[1]


LOSES = """
import os, signal, sys, time
from mixope.cli import app, main, stopping
class Finaliser:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)
def lost(*_, **__):
    Finaliser()
    time.sleep(20)
def wrapped(*_, **__):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)
    except KeyboardInterrupt as error:
        raise RuntimeError("as some libraries pass it on") from error
import mixope.logs
mixope.logs.read = {"lost": lost, "wrapped": wrapped}[sys.argv[1]]
sys.argv[1:] = ["inspect", "log.csv"]
from mixope.cli.app import main
main()
"""


IMPORTS = """
import os, signal, sys, threading, time
from mixope.cli.app import main
def loading(*_, **__):
    me = os.getpid()
    threading.Thread(target=lambda: (time.sleep(0.3), os.kill(me, signal.SIGTERM)), daemon=True).start()
    importlib = sys.modules["importlib._bootstrap"]
    while True:
        importlib._get_module_lock("mixope.nothing")
import mixope.logs
mixope.logs.read = loading
sys.argv[1:] = ["inspect", "log.csv"]
main()
"""


def test_the_import_system_is_not_interrupted(tmp_path):
    """A lock that it holds at that moment would be held for ever, and the next import would wait for it."""
    (tmp_path / "log.csv").write_text("observation,action,reward\n1,0,0.5\n")
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", IMPORTS], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 130, done.stderr
        assert done.stderr.startswith("interrupted: ")


@pytest.mark.parametrize("how", ["lost", "wrapped"])
def test_an_interruption_that_other_code_loses_or_renames_is_one(how, tmp_path):
    (tmp_path / "log.csv").write_text("observation,action,reward\n1,0,0.5\n")
    done = subprocess.run(
        [sys.executable, "-c", LOSES, how], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.startswith("interrupted: ")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_stop_takes_its_processes_with_it(how, tmp_path):
    child = started(COMMAND, tmp_path, lambda pid: len(workers_of(pid)) == 2)
    children = psutil.Process(child.pid).children(recursive=True)
    child.send_signal(how)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130
    assert "interrupted: " in said
    assert "Traceback" not in said
    assert ended(children)
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]


def test_processes_do_not_outlive_one_that_was_killed(tmp_path):
    child = started(["-c", PROGRAM], tmp_path, lambda _: len(list(tmp_path.glob("*.pid"))) >= 3)
    workers = [psutil.Process(int(path.stem)) for path in tmp_path.glob("*.pid") if int(path.stem) != child.pid]
    child.kill()
    child.communicate()
    assert ended(workers)


WAITS = """
import time
from mixope.base.processes import run_tasks
class Slow:
    def __reduce__(self):
        time.sleep(100)
run_tasks(id, [Slow() for _ in range(9)], jobs=2)
"""


def test_nor_do_those_that_wait_for_their_first_task(tmp_path):
    child = started(["-c", WAITS], tmp_path, lambda pid: len(workers_of(pid)) == 2)
    workers = psutil.Process(child.pid).children(recursive=True)
    child.kill()
    child.wait()
    assert ended(workers, seconds=120)
    child.stderr.close()


def end_itself(number):
    if number:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_ended_from_outside_is_told_in_words():
    with pytest.raises(UsageError, match=r"ended from outside.*jobs=1"):
        run_tasks(end_itself, range(9), jobs=2)
    assert run_tasks(abs, [-1, -2, -3], jobs=2) == [1, 2, 3]


WRITES = """
import sys
from mixope.base.files import replacing
with replacing("page.html") as temporary:
    temporary.write_text("half")
    print("here", flush=True)
    sys.stdin.read()
"""


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": tmp_path}
    with subprocess.Popen([sys.executable, "-c", WRITES], **pipes) as killed:
        killed.stdout.readline()
        killed.kill()
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / ".page.html.notes.part").write_text("mine")
    with subprocess.Popen([sys.executable, "-c", WRITES], **pipes) as working:
        working.stdout.readline()
        write_whole(tmp_path / "page.html", b"whole")
        assert len(list(tmp_path.iterdir())) == 3
        working.communicate()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".page.html.notes.part", "page.html"]
    assert (tmp_path / "page.html").read_text() == "half"


def test_an_interruption_of_the_last_rename_is_one(tmp_path, monkeypatch):
    from cli.running import WALK, run

    def interrupted(*_):
        raise InterruptedError

    monkeypatch.setattr("os.replace", interrupted)
    result = run("evaluate", *WALK, "--html", tmp_path / "page.html")
    assert result.exit_code == 130
    assert result.stderr.startswith("interrupted: ")
    assert list(tmp_path.iterdir()) == []


def test_writers_at_the_same_time_do_not_take_each_others_files(tmp_path):
    with replacing(tmp_path / "a.npy") as first, replacing(tmp_path / "a.npy") as second:
        first.write_bytes(b"1")
        second.write_bytes(b"2")
    assert np.array_equal([path.name for path in tmp_path.iterdir()], ["a.npy"])


SWALLOWS = """
import sys, time
from mixope.cli import app, main, stopping

def swallow():
    print("at work", flush=True)
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            if len(stopping._came) > 1:
                raise

stopping.INSIST = 0.3
app.command("swallow")(swallow)
sys.argv = ["mixope", "swallow"]
main()
"""

EARLY = """
import os, signal, typer.main
from mixope.cli import main

def early(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)

typer.main.get_command = early
main()
"""


def test_an_interruption_that_other_code_swallows_comes_again():
    with subprocess.Popen(
        [sys.executable, "-c", SWALLOWS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as p:
        assert p.stdout.readline() == "at work\n"
        p.terminate()
        _, said = p.communicate(timeout=120)
    assert p.returncode == 130
    assert said.startswith("interrupted: ")


def test_an_interruption_before_the_command_has_words_too():
    found = subprocess.run([sys.executable, "-c", EARLY], check=False, capture_output=True, text=True, timeout=60)
    assert found.returncode == 130
    assert found.stderr.startswith("interrupted: ")


SWALLOWED = """
import os, signal, sys
from mixope.cli import main
import mixope.logs
true = mixope.logs.read
def read(*given, **more):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pass
    return true(*given, **more)
mixope.logs.read = read
sys.argv = ["mixope", "inspect", "log.csv"]
main()
"""
IN_TEXT = """
import os, signal, sys
from mixope.cli import main
import mixope.cli.inputs, mixope.logs
def read(*_, **__):
    exec("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
mixope.logs.read = read
sys.argv = ["mixope", "inspect", "log.csv"]
main()
"""
IN_THE_WORDS = """
import os, signal, sys
from mixope.cli import main
app = sys.modules["mixope.cli.app"]
app.Commands.parse_args = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
sys.argv = ["mixope", "inspect", "log.csv"]
main()
"""


@pytest.mark.parametrize(
    "program",
    [IN_TEXT, IN_THE_WORDS, SWALLOWED],
    ids=["of text that is run", "of the command line", "that other code swallows, and that is over soon"],
)
def test_an_interruption_is_said_and_has_its_exit_code(program, tmp_path):
    """CPython dies of SIGINT where text was interrupted that is run (every data class is); Typer says nothing."""
    (tmp_path / "log.csv").write_text("observation,action,reward\n1,0,0.5\n")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.count("interrupted: ") == 1


WAITS_FOR_EVER = """
import _thread, sys, time
from mixope.cli import app, main, stopping
from mixope.base.files import replacing, scratch_folder

def deaf():
    with scratch_folder(), replacing("page.html"):
        print("at work", flush=True)
        lock = _thread.allocate_lock()
        lock.acquire()
        while True:
            try:
                lock.acquire()
            except KeyboardInterrupt:
                pass

stopping.BOUND = 1.0
app.command("deaf")(deaf)
sys.argv = ["mixope", "deaf"]
main()
"""
AT_THE_END = """
import atexit, sys, time
from mixope.cli import main, stopping

def late():
    while True:
        time.sleep(60)

atexit.register(late)
stopping.BOUND = 1.0
import mixope.logs
def read(*_, **__):
    print("at work", flush=True)
    time.sleep(60)
mixope.logs.read = read
sys.argv = ["mixope", "inspect", "log.csv"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("program", [WAITS_FOR_EVER, AT_THE_END], ids=["in a library", "at the end of the process"])
def test_a_command_that_waits_for_ever_ends_all_the_same(program, number, tmp_path):
    (tmp_path / "log.csv").write_text("observation,action,reward\n1,0,0.5\n")
    (tmp_path / "temporary").mkdir()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    surroundings = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    with subprocess.Popen([sys.executable, "-c", program], env=surroundings, **pipes) as child:
        assert child.stdout.readline() == "at work\n"
        child.send_signal(number)
        _, said = child.communicate(timeout=120)
    assert child.returncode == 130
    assert said.startswith("interrupted: ")
    assert said.count("interrupted") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["log.csv", "temporary"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("words", "code"), [("estimators", 0), ("inspect nothing.csv --json", 3), ("inspect -", 3)])
def test_a_stream_that_is_closed_is_no_traceback(words, code, closed, tmp_path):
    line = f"exec {sys.executable} -m mixope {words} {closed}"
    empty = subprocess.DEVNULL
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False, stdin=empty
    )
    nowhere = ">&-" in closed.replace("2>&-", "")  # an answer that nobody can get is an error
    assert done.returncode == (2 if nowhere else code)
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (not nowhere and words != "inspect -")
    assert bool(done.stderr) == ((nowhere or code != 0) and "2>&-" not in closed)
    assert list(tmp_path.iterdir()) == []


def frame_of(function, behind=None):
    return SimpleNamespace(f_code=function.__code__, f_back=behind)


@pytest.mark.parametrize("loads", [ExtensionFileLoader.create_module, ExtensionFileLoader.exec_module])
def test_a_library_that_is_being_loaded_is_not_interrupted(loads):
    """One in C that calls Python meanwhile ends the process with an abort if it is."""
    beginning = frame_of(loads, frame_of(test_a_library_that_is_being_loaded_is_not_interrupted))
    assert stopping.is_loading(beginning)
    assert stopping.is_loading(frame_of(EnumType.__call__, beginning))


def test_a_module_of_python_that_is_being_loaded_is_interrupted():
    beginning = frame_of(SourceFileLoader.exec_module)
    assert stopping.is_loading(beginning)  # between two lines of the import system
    assert not stopping.is_loading(frame_of(EnumType.__call__, beginning))
    assert not stopping.is_loading(None)
