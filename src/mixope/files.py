"""Files that appear whole or not at all, and folders that are there for a while.

What is being written has a temporary name that holds the number of its process, and that process holds a lock on it. So
what a killed run left behind can be told from what is at work, and the next run removes it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

LONGEST_NAME = 180
"""Bytes of a name that a temporary name can hold besides its own; file systems allow 255 in all."""
SCRATCH = "mixope"
_MADE_BY = re.compile(r"\.(\d+)-[0-9a-f]{8}\.part")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file in the same folder, to be written by the body; it takes the place of ``path`` at the end.

    The folder is made where it is missing. A new file has the permissions that the user's umask allows. If the body
    fails, what was there before stays, and the temporary file is removed.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    stem = _stem(target.name)
    _sweep(target.parent, stem)
    temporary = target.with_name(_temporary_name(stem))
    _UNFINISHED.add(temporary)
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        with naming(target), locked(temporary):
            yield temporary
            _to_disk(temporary)
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        _UNFINISHED.discard(temporary)


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
    where, stem = Path(parent or tempfile.gettempdir()), _stem(name)
    _sweep_once(where, stem) if parent is None else _sweep(where, stem)
    folder = where / _temporary_name(stem)
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


def _stem(name: str) -> str:
    """The start of a temporary name: hidden, and of bounded length."""
    encoded = os.fsencode(name)
    return f".{name if len(encoded) <= LONGEST_NAME else hashlib.sha256(encoded).hexdigest()}"


def _temporary_name(stem: str) -> str:
    return f"{stem}.{os.getpid()}-{secrets.token_hex(4)}.part"


def _sweep(folder: Path, stem: str) -> None:
    """Remove what killed processes left under a name; what cannot be removed is not in the way."""
    with suppress(OSError):
        for path in folder.iterdir():
            made = _MADE_BY.fullmatch(path.name.removeprefix(stem)) if path.name.startswith(stem) else None
            if made and _ours(path) and _abandoned(path, int(made[1])):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


_sweep_once = cache(_sweep)


def _ours(path: Path) -> bool:
    """Whether it is a file or folder of this user: anything else under such a name (a pipe, a link) is a trap."""
    with suppress(OSError):
        found = path.lstat()
        mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        return mine and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
    return False


def _abandoned(path: Path, process: int) -> bool:
    """Whether the process is gone, and no process of another machine or container holds the lock."""
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        with locked(path) as free:
            return free is True
    except (OSError, OverflowError):  # another user's process, or no number of one
        return False
    return False


@contextmanager
def locked(path: Path) -> Iterator[bool | None]:
    """Hold the lock of a file or folder; says whether nobody else has it, and None where there are no locks.

    The system frees it when the process dies.
    """
    if os.name != "posix":
        yield None
        return
    import fcntl

    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # a pipe would be waited for
    mine: bool | None = True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        mine = False
    except OSError:  # this file system has no locks
        mine = None
    try:
        yield mine
    finally:
        os.close(handle)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
