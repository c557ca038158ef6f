"""What a process opens: nothing but what it was given, what it wrote itself, and Python with its libraries.

Python tells of each file, socket and program (``sys.addaudithook``). What is written in C++ opens files of its own,
which only the system sees: ``python -m tests.adversarial.fuzzing.tracing`` asks it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from mixope.base.pool import _BEGIN as BEGIN

SOCKETS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "socket.__new__", "urllib.Request")
PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")
TREE = Path(__file__).parents[3]
LIBRARIES = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())}
LIBRARIES |= {os.path.realpath(path) for path in (TREE / "src", TREE / "tests", *sys.path) if os.path.isdir(path)}
MACHINE = (
    "/proc/self/",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/",
    "/proc/mounts",
    "/proc/filesystems",
)
MACHINE += ("/sys/", "/usr/lib", "/lib", "/usr/share/zoneinfo", "/usr/share/locale", "/usr/local/lib", "/etc/localtime")
MACHINE += (
    "/etc/ld.so",
    "/etc/os-release",
    "/usr/lib/os-release",
    "/etc/ssl",
    "/usr/lib/ssl",
    "/dev/null",
    "/dev/urandom",
    "/dev/shm",
    "/dev/tty",
)
"""What libraries ask of the machine: processors, memory, time zones, and libraries again."""
GIVEN = ("mixope-fuzzing-", ".mixope.", "pymp-", "sem.")
"""How the names of our own temporary files begin."""


def allowed(path: str) -> bool:
    """Whether a file may be opened."""
    full = os.path.abspath(path)
    below = os.path.relpath(full, tempfile.gettempdir())
    if below.startswith(GIVEN):
        real = os.path.realpath(full)
        return real == full or os.path.relpath(real, tempfile.gettempdir()).startswith(GIVEN)
    if full.startswith((*MACHINE, f"/proc/{os.getpid()}/")) and not full.endswith("/environ"):
        return True
    places = (full, os.path.realpath(full))
    return any(place == root or place.startswith(f"{root}/") for place in places for root in LIBRARIES)


class Watch:
    """What was opened and should not have been."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.on = False

    def begin(self) -> None:
        """From now on; it cannot be undone in this process."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            path = arguments[0]
            if isinstance(path, str | bytes | os.PathLike):
                self.on = False
                try:
                    if not allowed(os.fsdecode(path)):
                        self.found.append(f"opened {os.fsdecode(path)}")
                finally:
                    self.on = True
        elif event.startswith((*SOCKETS, *PROGRAMS)) and not _is_worker(event, arguments):
            self.found.append(f"{event} {arguments!r}"[:300])


def _is_worker(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a program is a process of our own that shares the work."""
    words = arguments[1] if event == "subprocess.Popen" else ()
    return list(words[:4]) == [sys.executable, "-P", "-c", BEGIN]


WATCH = Watch()
