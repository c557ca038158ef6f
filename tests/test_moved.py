"""Names of rooms that moved still import what they did, with a warning."""

from importlib import import_module

import pytest

from mixope.estimators import CertaintyEquivalence
from mixope.uncertainty import Difference
from mixope.worlds import LongRunTruth


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mixope.environments", "mixope.worlds"),
        ("mixope.environments.taxi", "mixope.worlds.taxi"),
        ("mixope.trials.records", "mixope.experiments.records"),
        ("mixope.errors", "mixope.base.errors"),
        ("mixope.policies.onnx_adapter", "mixope.adapters.onnx"),
        ("mixope.seen", "mixope.session"),
        ("mixope.estimate", "mixope.answers.estimate"),
        ("mixope.estimand", "mixope.base.estimand"),
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


@pytest.mark.parametrize(
    ("module", "name", "new"),
    [
        ("mixope.answers.estimate", "Advantage", Difference),
        ("mixope.experiments", "Effect", Difference),
        ("mixope.experiments.records", "Effect", Difference),
        ("mixope.estimators", "Model", CertaintyEquivalence),
        ("mixope.worlds", "LongRun", LongRunTruth),
    ],
)
def test_an_old_name_is_the_class_of_the_new_one(module, name, new):
    with pytest.warns(DeprecationWarning, match="is called mixope"):
        assert getattr(import_module(module), name) is new


def test_a_module_with_renamed_names_has_no_others():
    with pytest.raises(AttributeError, match="has no attribute 'Loss'"):
        import_module("mixope.answers.estimate").Loss  # noqa: B018
