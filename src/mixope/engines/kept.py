"""What is kept in a folder between runs: any value under a key, found again whole or not at all.

    kept = Kept(folder)
    kept.put(key, value)
    kept.get(key)                   # the value, or MISSING

A value is pickled, so whoever can write into the folder can run code as the user who reads it: the folder and its
files must belong to that user, and nobody else may be able to write to them. Every file ends with a checksum of all
that stands before it; one that does not fit is told of, and its value is missing. Files appear by being renamed, so
that several processes may share a folder.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Any, BinaryIO, Final, final

from mixope.base.errors import Advice, MixopeWarning, Setting, UsageError
from mixope.base.files import replacing

ENDING = ".kept"
_MARK = b"mixope kept 1\n"
_CHECKSUM = hashlib.sha256().digest_size
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
MISSING: Final = object()
"""What is not kept; None may be."""


@final
class Kept:
    """A folder of values by key, made where it is missing; one that is not the user's own is refused at once."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).expanduser()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _refuse_shared(self.folder)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".mixope-"):
                pass
        except OSError as error:
            if isinstance(error, FileExistsError | NotADirectoryError):
                raise UsageError(Advice(Setting("checkpoint"), f" names a folder, and {folder} is none")) from None
            reason = f" cannot be written to: {folder}: {error.strerror or error}; name another folder"
            raise UsageError(Advice(Setting("checkpoint"), reason)) from None

    def get(self, key: str) -> Any:
        """The value under a key, or ``MISSING``; a file that is damaged is told of, and is missing."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                _refuse_shared(path, file.fileno())
                return _read(file)
        except FileNotFoundError:
            return MISSING
        except UsageError:
            raise
        except Exception as error:  # what is damaged may raise anything when it is unpickled
            warnings.warn(
                MixopeWarning(f"{path} is damaged ({error or type(error).__name__}); what it held is computed again"),
                stacklevel=2,
            )
            return MISSING

    def put(self, key: str, value: Any) -> None:
        """Keep a value; one that cannot be written is told of and lost, for the run that made it can go on."""
        path = self._path(key)
        try:
            with replacing(path) as temporary, temporary.open("wb") as file:
                os.chmod(temporary, 0o600)
                _write(file, value)
        except (OSError, pickle.PicklingError, TypeError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or error
            warnings.warn(MixopeWarning(f"{path} cannot be written, and is not kept: {reason}"), stacklevel=2)

    def size(self) -> int:
        """Bytes of all that is kept."""
        return sum(path.stat().st_size for path in self.folder.glob(f"*{ENDING}"))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{ENDING}"


class _Summing:
    """A file that is written, and the checksum of what was; nothing is held in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, content: Any) -> int:
        self.digest.update(content)
        return self.file.write(content)


def _write(file: BinaryIO, value: Any) -> None:
    summing = _Summing(file)
    summing.write(_MARK)
    pickle.dump(value, summing, protocol=5)
    file.write(summing.digest.digest())


def _read(file: BinaryIO) -> Any:
    """The value, once the checksum is found right."""
    length = os.fstat(file.fileno()).st_size - _CHECKSUM
    digest, left = hashlib.sha256(), length
    while left > 0 and (part := file.read(min(left, 1 << 20))):
        digest.update(part)
        left -= len(part)
    if length < len(_MARK) or file.read() != digest.digest():
        raise ValueError("its checksum is wrong")
    file.seek(0)
    if file.read(len(_MARK)) != _MARK:
        raise ValueError("it is of another version")
    return pickle.load(file)


def _refuse_shared(path: Path, handle: int | None = None) -> None:
    """Values are unpickled, which runs what is in them: they must be the user's own, as a key of ssh must."""
    if os.name != "posix":
        return
    found = os.stat(path if handle is None else handle)
    if found.st_uid != os.geteuid():
        whose = f"belongs to another user (number {found.st_uid})"
    elif found.st_mode & _OTHERS:
        whose = f"can be written by others (mode {stat.S_IMODE(found.st_mode):o})"
    else:
        return
    what = f" must be a folder of your own, because what is kept in it is run as code: {path} {whose}; "
    raise UsageError(Advice(Setting("checkpoint"), what, f"run chmod go-w {path}, or name another folder"))
