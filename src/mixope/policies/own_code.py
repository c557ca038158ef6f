"""Code of the user's: whatever it raises is told in words, with the line where it happened."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from mixope.base.errors import DataError, MixopeError

OURS = "mixope"
_FOLDER = str(Path(__file__).parents[1])
_PYTHON = sysconfig.get_path("stdlib")


@contextmanager
def running(what: str) -> Iterator[None]:
    """Inside, an exception of the user's is a ``DataError`` about ``what``; a call of ``sys.exit`` is one, too."""
    try:
        yield
    except MixopeError:
        raise
    except (Exception, SystemExit) as error:
        raise DataError(
            f"{what} failed with {said(error)}", where=_place(error), hint="mend it there, and run this again"
        ) from error


@contextmanager
def asking(policy: Any) -> Iterator[None]:
    """The same around a question to a policy; one of our own has no excuse. Errors know which policy was asked."""
    kind = type(policy)
    ours = kind.__module__.partition(".")[0] == OURS
    around: AbstractContextManager[None] = nullcontext() if ours else running(f"the policy {kind.__name__}")
    try:
        with around:
            yield
    except MixopeError as error:
        with suppress(Exception):  # a policy of the user's may have no fingerprint, or one that fails as well
            error.policy = policy.fingerprint()
        raise


def said(error: BaseException) -> str:
    """An exception in a line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _place(error: BaseException) -> str | None:
    """The innermost line of the user's, rather than of ours or of a library that it uses."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_FOLDER)]
    mine = [frame for frame in frames if not frame.filename.startswith((_PYTHON, "<frozen"))] or frames
    return f"{mine[-1].filename}, line {mine[-1].lineno}" if mine else None
