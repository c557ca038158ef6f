"""Files that hold Python objects: trained models and pickles. Reading one runs code of whoever wrote it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from mixope.base import plugins
from mixope.base.errors import Advice, DataError, Setting
from mixope.policies.own_code import running


def unpickled(path: Path, trust: bool) -> Any:
    """The object in a file; refused unless the user trusts it."""
    if not trust:
        raise DataError(
            "the file holds pickled objects, and unpickling runs code",
            where=str(path),
            hint=Advice(Setting("trust", True), " if you know who wrote the file"),
        )
    load = PICKLED[path.suffix.lower()]
    return load(path)


def _load_pickle(path: Path) -> Any:
    with path.open("rb") as file, running(f"unpickling {path}"):
        return pickle.load(file)


def _load_joblib(path: Path) -> Any:
    with running(f"unpickling {path}"):
        return import_module("joblib").load(path)


def _by(name: str) -> Callable[[Path], Any]:
    """What the adapter of a library loads."""

    def load(path: Path) -> Any:
        return plugins.load("policies", name).load(path)

    return load


PICKLED: Mapping[str, Callable[[Path], Any]] = {
    ".zip": _by("sb3"),
    ".d3": _by("d3rlpy"),
    ".pt": _by("torch"),
    ".pth": _by("torch"),
    ".pkl": _load_pickle,
    ".pickle": _load_pickle,
    ".joblib": _load_joblib,
}
