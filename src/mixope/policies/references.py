"""Policies in Python code: ``package.module:name``, found from the current folder."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mixope.base.errors import DataError, UnknownName, UsageError
from mixope.base.pool import OWN_MODULES, home_of
from mixope.policies.own_code import running, said

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_reference(text: str) -> bool:
    """Whether a string has the form ``package.module:name``."""
    return _REFERENCE.fullmatch(text) is not None


def resolve(reference: str) -> Any:
    """Import the module, with the current directory importable, and fetch the name from it."""
    module, _, path = reference.partition(":")
    if module.endswith(".py"):
        raise UsageError(f"{reference!r} names a file: write the module without .py, {module[:-3]}:{path}")
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise UsageError(
            f"{module!r} is a module of Python itself, which holds no policies; if it is a file of yours, rename it"
        )
    _import(module)
    try:
        with running(reference):
            return pkgutil.resolve_name(reference)
    except DataError as failure:
        error = failure.__cause__
        if not isinstance(error, AttributeError) or error.obj is None:
            raise
        known = [name for name in dir(error.obj) if not name.startswith("_")]
        raise UnknownName(f"name in {module}", error.name, known) from None


def _import(name: str) -> Any:
    try:
        with _here_importable():
            _forget_other_folders()
            before = set(sys.modules)
            found = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise UsageError(
                f"there is no module {name!r}. Run from the folder that holds {name.split('.', maxsplit=1)[0]}.py, "
                "or install the package."
            ) from None
        raise UsageError(f"importing {name!r} failed: {error}. Install what it needs.") from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything while it is imported
        raise UsageError(f"importing {name!r} failed with {said(error)}") from error
    for loaded in {name.partition(".")[0], *(set(sys.modules) - before)}:
        _remember_folder(loaded)
    return found


_folders: dict[str, str] = {}
"""The modules that were found in the current folder, and which one that was."""


def _remember_folder(name: str) -> None:
    """Packages that are installed below the current folder, as in ``./.venv``, do not count."""
    here, module = os.getcwd(), sys.modules.get(name)
    packages = [] if "." in name else list(getattr(module, "__path__", ()))
    if here in {home_of(name, module), *(os.path.dirname(os.path.abspath(place)) for place in packages)}:
        _folders.setdefault(name, here)
        OWN_MODULES.add(name)


def _forget_other_folders() -> None:
    """In another folder, a module of the same name is another module."""
    here = os.getcwd()
    for name in [name for name, folder in _folders.items() if folder != here]:
        del _folders[name]
        for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
            del sys.modules[known]


@contextmanager
def _here_importable() -> Iterator[None]:
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        importlib.invalidate_caches()
        yield
    finally:
        sys.path.remove(here)
