"""Arguments by the names of other libraries: one line says what to type."""

import inspect

import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.base.keywords import MEANT, UnknownArgument

TAKE = ("evaluate", "compare", "backtest", "inspect", "returns", "plan", "plan_experiment", "experiment")


@pytest.mark.parametrize(
    ("function", "typed", "words"),
    [
        ("evaluate", "confidence", "Did you mean level=?"),
        ("evaluate", "discount", "Did you mean gamma=?"),
        ("evaluate", "policy", "Did you mean target=?"),
        ("evaluate", "data", "Did you mean logs=?"),
        ("evaluate", "estimators", "Did you mean estimator=?"),
        ("evaluate", "random_state", "Did you mean seed=?"),
        ("evaluate", "columns", "It is said where logs are read: mixope.read(…, columns=…)."),
        ("compare", "policy", "Did you mean targets=?"),
        ("compare", "estimator", "Did you mean estimators=?"),
        ("plan", "policy", "Did you mean target=?"),
        ("plan", "confidence_level", "Did you mean level=?"),
        ("backtest", "behavior_policies", "Did you mean loggers=?"),
        ("returns", "targets", "Did you mean target=?"),
        ("inspect", "nonsense", "It has: logs, target, engine, check"),
        ("experiment", "discount", "Did you mean gamma=?"),
    ],
)
def test_a_name_of_other_libraries_is_answered_with_ours(function, typed, words):
    with pytest.raises(UnknownArgument) as refused:
        getattr(mixope, function)("logs.csv", **{typed: 0.9})
    assert str(refused.value).startswith(f"{function}() has no argument '{typed}'. {words}")
    assert isinstance(refused.value, UsageError)
    assert isinstance(refused.value, TypeError)


def test_what_is_passed_on_is_answered_by_the_function_that_takes_it():
    with pytest.raises(UnknownArgument, match=r"compare\(\) has no argument 'discount'. Did you mean gamma=\?"):
        mixope.plan("logs.csv", "target.csv", precision=0.1, discount=0.9)


@pytest.mark.parametrize("name", TAKE)
def test_no_function_has_both_names(name):
    parameters = inspect.signature(getattr(mixope, name)).parameters
    for typed, several in MEANT.items():
        assert typed not in parameters or not set(several) & (set(parameters) - {typed})
    assert getattr(mixope, name).__name__ == name


def test_every_name_that_is_offered_exists_somewhere():
    offered = {ours for several in MEANT.values() for ours in several}
    assert offered <= {each for name in TAKE for each in inspect.signature(getattr(mixope, name)).parameters}
