"""Locks hold between processes and threads, leave nothing behind, and open nothing that lies in their place."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from mixope.base.errors import UsageError
from mixope.base.files import LOCK, locked, replacing, scratch_folder
from mixope.base.folders import claim

GONE = 4_194_000
"""Linux gives out no such number unless it is told to."""
posix = pytest.mark.skipif(os.name != "posix", reason="files of POSIX")


def abandoned(folder, name=f".mixope.{GONE}-0123abcd.part"):
    left = folder / name
    left.mkdir()
    (left / "large").write_text("half")
    return left


def test_one_holder_at_a_time_and_nothing_is_left(tmp_path):
    with locked(tmp_path) as first:
        with locked(tmp_path) as second:
            assert (first, second) == (True, False)
        with locked(tmp_path) as third:
            assert third is False  # a refusal frees nothing
    with locked(tmp_path) as again:
        assert again is True
    assert list(tmp_path.iterdir()) == []


def test_a_lock_can_be_left_in_another_thread(tmp_path):
    """Folders of frames are closed by whichever thread collects them."""
    held = locked(tmp_path)
    assert held.__enter__() is True
    thread = threading.Thread(target=held.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    with locked(tmp_path) as free:
        assert free is True


HOLDS = """
import sys
from pathlib import Path
from mixope.base.files import locked
with locked(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


@posix
def test_the_lock_of_a_killed_process_is_free(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], **pipes) as holder:
        assert holder.stdout.readline().strip() == "True"
        with locked(tmp_path) as free:
            assert free is False
        holder.send_signal(signal.SIGKILL)
    with locked(tmp_path) as free:
        assert free is True
    assert list(tmp_path.iterdir()) == []


@posix
def test_what_a_living_process_of_another_machine_holds_is_not_swept(tmp_path):
    """Its number says nothing here; the lock does."""
    left = abandoned(tmp_path)
    with locked(left), scratch_folder(tmp_path):
        assert (left / "large").exists()
    with scratch_folder(tmp_path):
        assert not left.exists()


@posix
def test_a_lock_that_is_a_pipe_or_a_link_is_not_opened(tmp_path):
    left, victim = abandoned(tmp_path), tmp_path / "victim"
    os.mkfifo(left / LOCK)
    other = abandoned(tmp_path, f".mixope.{GONE}-0123abce.part")
    victim.write_text("precious")
    (other / LOCK).symlink_to(victim)
    with scratch_folder(tmp_path) as folder:
        assert folder.is_dir()
    assert victim.read_text() == "precious"
    assert left.exists()
    assert other.exists()


@posix
def test_a_trap_in_the_place_of_a_lock_does_not_stop_a_run(tmp_path):
    os.mkfifo(tmp_path / LOCK)
    with claim(tmp_path, ["a.txt"]) as place, place.writing() as fresh:
        (fresh / "a.txt").write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"


@posix
def test_a_plain_file_that_an_earlier_version_left_is_swept_unopened(tmp_path):
    left = tmp_path / f".page.html.{GONE}-0123abcd.part"
    left.write_text("half")
    left.chmod(0)
    with replacing(tmp_path / "page.html") as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def _claims(folder, queue):
    try:
        with claim(folder, ["a.txt"]):
            queue.put("in")
    except UsageError as error:
        queue.put(str(error))


def test_a_folder_claimed_by_a_run_is_refused_to_another(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with claim(tmp_path / "new", ["a.txt"]):
        other = context.Process(target=_claims, args=(tmp_path / "new", queue))
        other.start()
        said = queue.get(timeout=60)
        other.join()
    assert "another run" in said
    assert list(tmp_path.iterdir()) == []
