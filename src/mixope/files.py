"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file in the same folder, to be written by the body; it takes the place of ``path`` at the end.

    The folder is made where it is missing. A new file has the permissions that the user's umask allows. If the body
    fails, what was there before stays, and the temporary file is removed.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        _to_disk(temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write the bytes to ``path``, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return Path(path)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
