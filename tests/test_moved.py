"""Names of rooms that moved still import what they did, with a warning."""

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mixope.environments", "mixope.worlds"),
        ("mixope.environments.taxi", "mixope.worlds.taxi"),
        ("mixope.trials.records", "mixope.experiments.records"),
        ("mixope.errors", "mixope.base.errors"),
        ("mixope.policies.onnx_adapter", "mixope.adapters.onnx"),
    ],
)
def test_an_old_name_is_the_module_of_the_new_one(old, new):
    with pytest.warns(DeprecationWarning, match="is called mixope"):
        found = import_module(old)
    assert found is import_module(new)
    assert found.__name__ == found.__spec__.name == new


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("mixope.surroundings")
