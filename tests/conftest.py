"""Settings for all tests: Hypothesis draws the same examples on every run, and tests that share work run together."""

import signal
from functools import cache

import pytest
import typer.testing
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=15)
settings.load_profile("repeatable")

# The commands are made once: the runner would make them anew for every call, which takes longer than most of them.
typer.testing._get_command = cache(typer.testing._get_command)

FINER = ("where", "estimand", "engine")
"""The tests of one file that share their work by these parameters, so that they may run apart."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """One worker for one file, or for one world and estimand of it: what a file computes once is computed once."""
    for item in items:
        chosen = getattr(getattr(item, "callspec", None), "params", {})
        parts = [str(chosen[name]) for name in FINER if name in chosen]
        item.add_marker(pytest.mark.xdist_group(" ".join([item.path.stem, item.path.parent.name, *parts])))


@pytest.fixture(autouse=True)
def _signals_are_left_as_they_were():
    """Programs that a later test starts inherit which signals are ignored: an interruption would not reach them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    after = {number: signal.getsignal(number) for number in before}
    for number, handler in before.items():
        signal.signal(number, handler)
    assert after == before
