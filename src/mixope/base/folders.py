"""Folders that are written into with care: only what is ours is ever replaced, and one run at a time writes.

    with claim(folder, names, force=False, again=False) as place:
        with place.writing() as fresh:            # a hidden folder inside: files appear all together, or not at all
            (fresh / "truth.json").write_text(…)

What is ours is written down in the folder (``.mixope.json``: names and hashes). A file that stands there under one of
our names and is not in that list, or that appeared meanwhile, is somebody's: it is never replaced and never removed.
No folder is removed unless this run made it and it is empty. A lock on the folder keeps a second run out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mixope.base.errors import Advice, Setting, UsageError
from mixope.base.files import LOCK, locked, naming, scratch_folder, write_whole

RECORD = ".mixope.json"
STAGING = "mixope-part"
BESIDE = ("__pycache__",)
"""What Python leaves beside a module."""
SHOWN = 3
Recognise = Callable[[Path, Collection[str]], Collection[str]]


def _nothing(folder: Path, names: Collection[str]) -> Collection[str]:
    return ()


@contextmanager
def claim(
    folder: Path, names: Collection[str], *, force: bool = False, again: bool = False, unrecorded: Recognise = _nothing
) -> Iterator[ClaimedFolder]:
    """The folder for this run alone, made where it is missing; ``names`` are those that may be written.

    A folder that holds something is refused, unless ``force``: then what is ours is replaced and the rest stays.
    ``again``: what is ours and unchanged may be replaced without being forced. ``unrecorded`` tells which files of a
    folder without a record are ours, for those that are forced.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder")
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder) as alone:
            if alone is False:
                found = f"another run is writing into {folder}; wait until it is done, or name another folder"
                raise UsageError(found)
            ours = _recorded(folder)
            if force and not ours and not _there(folder / RECORD):
                ours = {name: _hash(folder / name) for name in unrecorded(folder, _inside(folder))}
            _check(folder, ours, names, force=force, again=again)
            yield ClaimedFolder(folder, ours)
    finally:
        if made:
            with suppress(OSError):  # it holds something: files of ours, or of somebody else
                folder.rmdir()


@dataclass
class ClaimedFolder:
    """A claimed folder; ``earlier`` are the files that an earlier run of ours left in it, with their hashes."""

    path: Path
    earlier: Mapping[str, str]
    files: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A hidden folder to write files into; at the end they take their places, and earlier ones go."""
        with naming(self.path), scratch_folder(self.path, STAGING) as fresh:
            yield fresh
            new = {path.name: _hash(path) for path in sorted(fresh.iterdir()) if path.name != LOCK}
            strangers = [
                name for name in new if _there(self.path / name) and name not in {**self.earlier, **self.files}
            ]
            if strangers:
                raise _not_ours(self.path, strangers)
            self._record({**self.earlier, **self.files, **new})
            for name in new:
                os.replace(fresh / name, self.path / name)
        self.files.update(new)
        self._clear()

    def _clear(self) -> None:
        """Remove what an earlier run left, unless somebody changed it since."""
        for name, digest in self.earlier.items():
            if name not in self.files and _is(self.path / name, digest):
                (self.path / name).unlink()
        self.earlier = {}
        self._record(self.files)

    def _record(self, files: Mapping[str, str]) -> None:
        text = json.dumps({"written by": "mixope", "files": dict(sorted(files.items()))}, indent=2)
        write_whole(self.path / RECORD, f"{text}\n".encode())


def _check(folder: Path, ours: Mapping[str, str], names: Collection[str], *, force: bool, again: bool) -> None:
    """Refuse to write where something is that this run may not replace."""
    inside = _inside(folder)
    clashes = [name for name in inside if name in names and name not in ours]
    if clashes:
        raise _not_ours(folder, clashes)
    if force or not inside:
        return
    strangers = [name for name in inside if name not in ours]
    if strangers:
        found = f"{folder} holds other files ({_some(strangers)}); name an empty folder or a new one, or "
        raise UsageError(Advice(found, Setting("force", True), " to write beside them"))
    changed = [name for name in inside if not _is(folder / name, ours[name])]
    if again and changed:
        found = f"{folder} holds files that were changed since mixope wrote them ({_some(changed)}); "
        raise UsageError(Advice(found, Setting("force", True), " replaces them"))
    if not again:
        raise UsageError(Advice(f"{folder} is not empty; ", Setting("force", True), " replaces the dataset in it"))


def _inside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name not in BESIDE and not _hidden(path.name))


def _not_ours(folder: Path, names: Collection[str]) -> UsageError:
    return UsageError(
        f"{folder} holds {_some(names)}, which this program would replace and did not write; move it elsewhere, or name"
        " another folder"
    )


def _some(names: Collection[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(sorted(names)[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _hidden(name: str) -> bool:
    return name in (RECORD, LOCK) or name.startswith((f".{STAGING}.", f".{RECORD}."))


def _recorded(folder: Path) -> dict[str, str]:
    """What the folder's record names; nothing where there is none that can be read."""
    try:
        files = json.loads((folder / RECORD).read_text(encoding="utf-8"))["files"]
        return {name: str(digest) for name, digest in files.items() if name == os.path.basename(name)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _there(path: Path) -> bool:
    return os.path.lexists(path)


def _is(path: Path, digest: str) -> bool:
    """Whether this is a plain file with this content."""
    return path.is_file() and not path.is_symlink() and _hash(path) == digest


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
