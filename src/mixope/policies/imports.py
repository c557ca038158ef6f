"""A policy named by where it lives in Python code: ``module:name``."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mixope.errors import UnknownName, UsageError

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_reference(text: str) -> bool:
    """Whether a string has the form ``package.module:name``."""
    return _REFERENCE.fullmatch(text) is not None


def resolve(reference: str) -> Any:
    """Import the module, with the current directory importable, and fetch the name from it."""
    module_name, _, path = reference.partition(":")
    if module_name.endswith(".py"):
        raise UsageError(f"{reference!r} names a file: write the module without .py, {module_name[:-3]}:{path}")
    found: Any = _import(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            known = [key for key in dir(found) if not key.startswith("_")]
            raise UnknownName(f"name in {module_name}", name, known)
        found = getattr(found, name)
    return found


def _import(name: str) -> Any:
    try:
        with _here_importable():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise UsageError(
                f"there is no module {name!r}. Run from the folder that holds {name.split('.', maxsplit=1)[0]}.py, "
                "or install the package."
            ) from None
        raise UsageError(f"importing {name!r} failed: {error}. Install what it needs.") from error
    except Exception as error:  # a user's module may raise anything while it is imported
        raise UsageError(f"importing {name!r} failed: {type(error).__name__}: {error}") from error


@contextmanager
def _here_importable() -> Iterator[None]:
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        importlib.invalidate_caches()
        yield
    finally:
        sys.path.remove(here)
