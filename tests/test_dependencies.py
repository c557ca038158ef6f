"""What the package imports is declared, every dependency has a lower bound, and none has an upper one."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = PROJECT["dependencies"]
EXTRAS = PROJECT["optional-dependencies"]
USED = (
    "d3rlpy",
    "dask",
    "delta",
    "gym",
    "iceberg",
    "jax",
    "minari",
    "onnx",
    "pandas",
    "ray",
    "sb3",
    "spark",
    "stores",
    "torch",
)
"""The extras that the package itself imports; the others are tools."""
MODULE = {"scikit-learn": "sklearn", "pillow": "PIL", "stable-baselines3": "stable_baselines3"}
"""Distribution → module, where the names differ."""


def modules(requirements):
    names = (re.match(r"[A-Za-z0-9-]+", requirement)[0] for requirement in requirements)
    return {MODULE.get(name, name) for name in names}


def imported(path):
    """The top-level names that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            yield from (a.value.partition(".")[0] for a in node.args if isinstance(a, ast.Constant))


FOUND = {name: path for path in (ROOT / "src").rglob("*.py") for name in imported(path)}


def test_every_import_is_declared():
    declared = modules(CORE) | modules(entry for name in USED for entry in EXTRAS[name])
    strangers = set(FOUND) - set(sys.stdlib_module_names) - {"mixope"} - declared
    assert not strangers, {name: str(FOUND[name]) for name in strangers}


def test_every_core_dependency_is_imported():
    assert modules(CORE) <= set(FOUND)


@pytest.mark.parametrize("requirement", [*CORE, *(entry for entries in EXTRAS.values() for entry in entries)])
def test_a_dependency_has_a_floor_and_no_ceiling(requirement):
    if not requirement.startswith("mixope["):
        assert re.fullmatch(r"[A-Za-z0-9-]+(\[[a-z,]+\])?>=[0-9][0-9.]*", requirement)
