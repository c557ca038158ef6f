"""How a function wants to be asked is found out once, whoever asks first and however many threads ask at a time."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mixope.base.errors import MixopeWarning
from mixope.policies import CallablePolicy

STATES = np.linspace(0.0, 80.0, 40).reshape(-1, 2)
ACTIONS = (STATES[:, 0] > 40).astype(int)


def one_state(state: np.ndarray) -> int:
    """A rule as people write it: of a batch, the truth value is an error."""
    if state[0] > 40:
        return 1
    return 0


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_thread_that_finds_out_late_does_not_take_its_own_batch_for_an_error() -> None:
    entered, settled = threading.Event(), threading.Event()

    def rule(state: np.ndarray) -> int:
        if threading.current_thread() is not threading.main_thread() and state.ndim == 2:
            entered.set()
            assert settled.wait(10)
        return one_state(state)

    policy = CallablePolicy(rule)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(policy.log_prob, STATES, ACTIONS)
        assert entered.wait(10)
        with pytest.warns(MixopeWarning, match="state by state"):
            early = policy.log_prob(STATES, ACTIONS)
        settled.set()
        assert np.array_equal(early, np.zeros(len(STATES)))
        assert np.array_equal(late.result(10), early)


def test_threads_that_find_out_at_the_same_time_agree_and_note_it_once() -> None:
    together = threading.Barrier(2, timeout=10)
    first = threading.local()

    def rule(state: np.ndarray) -> int:
        if state.ndim == 2 and not hasattr(first, "met"):
            first.met = True
            together.wait()
        return one_state(state)

    policy = CallablePolicy(rule)
    with warnings.catch_warnings(record=True) as heard, ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("always")
        answers = [future.result(10) for future in [pool.submit(policy.log_prob, STATES, ACTIONS) for _ in range(2)]]
    assert [warning.category for warning in heard] == [MixopeWarning]
    assert all(np.array_equal(answer, np.zeros(len(STATES))) for answer in answers)


@pytest.mark.filterwarnings("ignore::mixope.base.errors.MixopeWarning")
@pytest.mark.usefixtures("hurried")
def test_no_turn_of_the_threads_makes_an_error() -> None:
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            policy = CallablePolicy(one_state)
            asked = [pool.submit(policy.log_prob, STATES, ACTIONS) for _ in range(8)]
            assert all(np.array_equal(each.result(10), np.zeros(len(STATES))) for each in asked)
