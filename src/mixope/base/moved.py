"""Rooms, modules and names that moved: the old ones import what is there now, with a warning, for a minor version.

from mixope.environments import taxi          the module mixope.worlds.taxi
from mixope.answers.estimate import Advantage         the class mixope.uncertainty.Difference
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

MOVED = {
    "diagnostics": "checks",
    "environments": "worlds",
    "errors": "base.errors",
    "estimand": "base.estimand",
    "estimate": "answers.estimate",
    "intervals": "uncertainty",
    "policies.d3rlpy_adapter": "adapters.d3rlpy",
    "policies.onnx_adapter": "adapters.onnx",
    "policies.sb3_adapter": "adapters.sb3",
    "policies.torch_adapter": "adapters.torch",
    "seen": "session",
    "statistics": "requests",
    "trials": "experiments",
}


class _Alias:
    """Loads the module of the new name under the old one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class OldNames:
    """Asked by Python before it looks for a module."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module that took the place of one of ours, if it is one that moved."""
        package, _, rest = name.partition(".")
        old = next((old for old in MOVED if rest == old or rest.startswith(f"{old}.")), None)
        if package != "mixope" or old is None:
            return None
        new = f"{package}.{MOVED[old]}{rest.removeprefix(old)}"
        message = f"{name} is called {new} now; the old name goes with the next minor version"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, cast("Loader", _Alias(new)), origin=new, is_package=True)


def keep_old_names() -> None:
    """Once for each process."""
    if OldNames not in sys.meta_path:
        sys.meta_path.insert(0, OldNames)  # before those that would look below the new room, and load it twice


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module some of whose names are called otherwise now."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message = f"{module}.{name} is called {names[name]} now; the old name goes with the next minor version"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        package, _, inside = names[name].rpartition(".")
        return resolve_name(f"{package}:{inside}")

    return find
