"""The tests of this folder need JAX; without it they are left out and say so."""

from importlib.util import find_spec

import pytest

WITHOUT_JAX = {"test_missing_extra.py"}


def pytest_collection_modifyitems(items):
    if find_spec("jax") is not None:
        return
    for item in items:
        if item.path.parent.name == "neural" and item.path.name not in WITHOUT_JAX:
            item.add_marker(pytest.mark.skip(reason="JAX is not installed: pip install 'mixope[jax]'"))
