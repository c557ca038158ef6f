"""Policies of other libraries, asked by several threads at a time, answer each as if it were alone."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mixope.adapters import sb3
from mixope.adapters.torch import evaluating
from mixope.logs import code_of
from mixope.policies import sklearn_policy

STATES = np.arange(8.0).reshape(-1, 1)


class Module:
    """As much of a module as has a mode."""

    def __init__(self, *inner: Module) -> None:
        self.training, self.inner = True, inner

    def modules(self) -> list[Module]:
        return [self, *(part for module in self.inner for part in module.modules())]

    def train(self, mode: bool = True) -> None:
        for part in self.modules():
            part.training = mode

    def eval(self) -> None:
        self.train(mode=False)


def test_a_module_stays_in_evaluation_mode_until_the_last_thread_is_done() -> None:
    frozen = Module()
    module = Module(frozen, Module())
    frozen.training = False
    first, second = evaluating(module), evaluating(module)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not any(part.training for part in module.modules())
    second.__exit__(None, None, None)
    assert [part.training for part in module.modules()] == [True, False, True]


class KeepsItsLast:
    """A policy that has one distribution, which every question overwrites, as those of Stable-Baselines3 have."""

    observation_space = SimpleNamespace(dtype=np.float64)
    squash_output = False

    def __init__(self) -> None:
        self.asked, self.last = threading.Semaphore(0), np.zeros(0)

    def obs_to_tensor(self, rows: np.ndarray) -> tuple[np.ndarray, None]:
        return rows, None

    def get_distribution(self, rows: np.ndarray) -> Any:
        self.last = rows
        self.asked.release()
        return self

    @property
    def distribution(self) -> Any:
        self.asked.acquire()
        self.asked.acquire(timeout=0.2)  # until another thread has asked, if it may
        return SimpleNamespace(probs=np.stack([self.last[:, 0], 1 - self.last[:, 0]], axis=1))


def test_threads_do_not_read_the_distributions_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sb3, "run_in_pieces", lambda policy, ask, rows: ask(rows))
    network = sb3.Sb3Network(KeepsItsLast(), "a policy")
    states = [np.full((3, 1), share) for share in (0.25, 0.75)]
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda rows: network.answers("probabilities", rows)[0], states))
    assert [found[0, 0] for found in told] == [0.25, 0.75]


class Slow:
    """A classifier that was fitted on a data frame, and says so when it is asked with an array."""

    classes_ = np.array([0, 1])

    def __init__(self) -> None:
        self.together = threading.Barrier(2, timeout=10)

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        self.together.wait()
        warnings.warn("X does not have valid feature names", UserWarning, stacklevel=1)
        return np.full((len(rows), 2), 0.5)


def test_filters_of_warnings_are_left_as_they_were() -> None:
    policy, before = sklearn_policy(Slow()), list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            assert all(law.shape == (8, 2) for law in pool.map(policy.probs, [STATES, STATES]))
    assert warnings.filters == before


def test_what_is_equal_and_called_differently_has_codes_of_its_own_whoever_came_first() -> None:
    codes = [code_of(value) for value in (1, True, 1.0, "1")]
    assert codes[0] == codes[2] == codes[3] != codes[1]
