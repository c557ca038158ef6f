"""Files that hold Python objects: trained models and pickles. Reading one runs code of whoever wrote it."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from mixope.base.errors import Advice, DataError, MissingExtra, Setting
from mixope.policies.d3rlpy_adapter import load_d3rlpy
from mixope.policies.own_code import running
from mixope.policies.sb3_adapter import load_sb3


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


def _load_torch(path: Path) -> Any:
    """A scripted or a pickled module; weights alone are no policy."""
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise MissingExtra("torch", "reading a module of PyTorch") from error
    with running(f"loading {path}"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch about its own formats
        try:
            return torch.jit.load(str(path), map_location="cpu")
        except RuntimeError:
            found = torch.load(str(path), map_location="cpu", weights_only=False)
    if isinstance(found, Mapping):
        raise DataError(
            "the file holds weights without the module that they belong to",
            where=str(path),
            expected="a scripted module (torch.jit.save) or a whole one (torch.save(module, path))",
            got=f"a dict with {', '.join(map(str, list(found)[:3]))} …",
            hint="build the module, load_state_dict(torch.load(path)), and give the module itself",
        )
    return found


PICKLED: Mapping[str, Callable[[Path], Any]] = {
    ".zip": load_sb3,
    ".d3": load_d3rlpy,
    ".pt": _load_torch,
    ".pth": _load_torch,
    ".pkl": _load_pickle,
    ".pickle": _load_pickle,
    ".joblib": _load_joblib,
}
