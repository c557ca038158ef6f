"""Files that appear whole or not at all, and folders that are there for a while.

What is being written lies in a hidden folder whose name holds the number of its process, and that process holds a lock
in it. So what a killed run left behind can be told from what is at work, and the next run removes it. That run looks
before it opens anything, and waits for nobody.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

LONGEST_NAME = 180
"""Bytes of a name that a temporary name can hold besides its own; file systems allow 255 in all."""
SCRATCH = "mixope"
LOCK = ".mixope.lock"
"""The file in a folder that says, while it is locked, that somebody is at work there."""
_MADE_BY = re.compile(r"\.(\d+)-[0-9a-f]{8}\.part")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file in the same folder, to be written by the body; it takes the place of ``path`` at the end.

    The folder is made where it is missing. A new file has the permissions that the user's umask allows. If the body
    fails, what was there before stays, and the temporary file is removed.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(target.parent, target.name) as folder:
        temporary = folder / _short(target.name)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        with naming(target):
            yield temporary
            _to_disk(temporary)
            os.replace(temporary, target)


def has_text_name(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file is UTF-8: readers in other languages than Python cannot open any other."""
    try:
        os.fspath(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of the system that say nothing of a place, such as those of writing and of a full disk, name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write the bytes to ``path``, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return Path(path)


@contextmanager
def scratch_folder(parent: str | os.PathLike[str] | None = None, name: str = SCRATCH) -> Iterator[Path]:
    """A folder that nobody else looks into, removed at the end with all that is in it.

    It lies in ``parent``, or among the temporary files of the machine (``TMPDIR`` says where these are).
    """
    where, stem = Path(parent or tempfile.gettempdir()), f".{_short(name)}"
    _sweep_once(where, stem) if parent is None else _sweep(where, stem)
    folder = where / f"{stem}.{os.getpid()}-{secrets.token_hex(4)}.part"
    _UNFINISHED.add(folder)
    try:
        folder.mkdir(mode=0o700)
        with locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _UNFINISHED.discard(folder)


_UNFINISHED: set[Path] = set()
"""Temporary files and folders of this process."""


def remove_unfinished() -> None:
    """Remove them all, in a process that cannot end as it should."""
    for path in list(_UNFINISHED):
        with suppress(OSError):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _short(name: str) -> str:
    """A name of bounded length."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= LONGEST_NAME else hashlib.sha256(encoded).hexdigest()


def _sweep(folder: Path, stem: str) -> None:
    """Remove what killed processes left under a name; what cannot be removed is not in the way."""
    with suppress(OSError):
        for path in folder.iterdir():
            made = _MADE_BY.fullmatch(path.name.removeprefix(stem)) if path.name.startswith(stem) else None
            if made and _gone(int(made[1])):
                if _ours(path, stat.S_ISDIR):
                    _remove_abandoned(path)
                elif _ours(path, stat.S_ISREG):
                    path.unlink(missing_ok=True)


_sweep_once = cache(_sweep)


def _ours(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether it is a file or folder of this user: anything else under such a name (a pipe, a link) is a trap."""
    with suppress(OSError):
        entry = path.lstat()
        return kind(entry.st_mode) and (not hasattr(os, "getuid") or entry.st_uid == os.getuid())
    return False


def _gone(process: int) -> bool:
    """Whether there is no such process on this machine; where that cannot be known, there may be."""
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's process, or no number of one
        pass
    return False


def _remove_abandoned(folder: Path) -> None:
    """Remove a folder unless a process of another machine or container is at work in it."""
    with locked(folder) as free:
        if free:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(folder: Path) -> Iterator[bool | None]:
    """Hold the lock of a folder; says whether nobody else has it, and None where there are no locks.

    The system frees it when the process dies. Nothing is opened under its name that is not a file of this user.
    """
    from filelock import FileLock, Timeout

    place = folder / LOCK
    lock = FileLock(place, blocking=False, thread_local=False)
    mine: bool | None = None
    if _ours(place, stat.S_ISREG) or not os.path.lexists(place):
        try:
            lock.acquire()
            mine = True
        except Timeout:
            mine = False
        except (OSError, NotImplementedError):  # this file system has no locks, or nobody may write here
            mine = None
    try:
        yield mine
    finally:
        if mine:
            with suppress(OSError):  # Windows removes it when it is released
                place.unlink()
            lock.release()


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
