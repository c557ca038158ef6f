"""What is said of the package in several places is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest

from mixope.version import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ON_CONDA = {"duckdb": "python-duckdb", "matplotlib": "matplotlib-base"}
"""Distribution → conda-forge's name, where the names differ."""


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def floors() -> dict[str, str]:
    """The core dependencies and the lowest version of each."""
    return dict(requirement.split(">=") for requirement in PROJECT["dependencies"])


def test_the_lowest_versions_are_those_that_are_tested():
    pinned = dict(line.split("==") for line in text(".ci/lowest.txt").splitlines() if not line.startswith("#"))
    core = {name: version for name, version in pinned.items() if name in floors()}
    assert list(core) == list(floors())
    for name, floor in floors().items():
        assert (f"{core[name]}.0.0.0").startswith(f"{floor}."), f"{name}: {core[name]} is tested, {floor} is declared"


def test_the_recipe_has_the_same_dependencies():
    recipe = text("conda/recipe.yaml")
    run = re.search(r"^  run:\n((?:    - .+\n)+)", recipe, re.MULTILINE)
    assert run is not None
    listed = [line.removeprefix("    - ") for line in run[1].splitlines()]
    wanted = [f"{ON_CONDA.get(name, name)} >={floor}" for name, floor in floors().items()]
    assert listed == [f"python {PROJECT['requires-python']}", *wanted]


def test_the_recipe_has_the_same_version_and_command():
    recipe = text("conda/recipe.yaml")
    assert f'version: "{__version__}"' in recipe
    assert [f"{name} = {place}" for name, place in PROJECT["scripts"].items()] == re.findall(
        r"entry_points:\n      - (.+)", recipe
    )
    assert PROJECT["license"] == re.findall(r"license: (.+)", recipe)[0]


def test_the_citation_names_this_version_and_the_authors_of_the_paper():
    citation = text("CITATION.cff")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]
    assert re.findall(r"^license: (.+)$", citation, re.MULTILINE) == [PROJECT["license"]]
    assert re.findall(r"family-names: (\w+)", citation) == ["Chen", "Wang", "Hang", "Ge", "Zha"]
    assert "title: Infinite-horizon Off-Policy Policy Evaluation with Multiple Behavior Policies" in citation


@pytest.mark.parametrize("minor", [11, 12, 13])
def test_the_versions_of_python_are_declared(minor):
    assert PROJECT["requires-python"] == ">=3.11"
    assert f"Programming Language :: Python :: 3.{minor}" in PROJECT["classifiers"]
