"""Policies of other people's classes: whatever has ``log_prob`` is taken in, and every answer of it is checked.

An own ``fingerprint`` is not needed: one is derived from the pickled object, or from its identity where it cannot be
pickled, and then a note says that results of another run will name another policy.
"""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError, MixopeWarning
from mixope.policies.fingerprints import digest
from mixope.policies.keys import refuse
from mixope.policies.laws import ActionSet, as_numbers, check_laws
from mixope.policies.own_code import OURS, running
from mixope.policies.protocol import Policy


def is_ours(policy: Any) -> bool:
    """Whether a class, or one that it extends, is of this library."""
    homes = {base.__module__ for base in type(policy).__mro__} - {Policy.__module__}
    return any(home.partition(".")[0] == OURS for home in homes)


def adopt(policy: Any) -> Policy:
    """The policy with its answers checked; a discrete or continuous one where its methods say so."""
    if is_ours(policy):
        return policy  # type: ignore[no-any-return]
    name = type(policy).__name__
    if hasattr(policy, "probs") and hasattr(policy, "actions"):
        found = DiscreteAdopted(policy, name, _fingerprint(policy, name))
        _ = found.actions  # told now if they cannot be any
        return found
    if hasattr(policy, "sample"):
        return ContinuousAdopted(policy, name, _fingerprint(policy, name))
    return Adopted(policy, name, _fingerprint(policy, name))


def _fingerprint(policy: Any, name: str) -> str:
    """Its own, or one of its content."""
    with running(f"the policy {name}"):
        if hasattr(policy, "fingerprint"):
            return str(policy.fingerprint())
    kind = f"{type(policy).__module__}.{type(policy).__qualname__}".encode()
    try:
        return digest(b"object", kind, pickle.dumps(policy, protocol=4))
    except Exception:  # what cannot be pickled raises whatever its class likes
        warnings.warn(
            MixopeWarning(
                f"{name} cannot be pickled, so that its fingerprint holds for this run only; give it a method "
                "fingerprint() with a short string that changes when the policy does"
            ),
            stacklevel=4,
        )
        return digest(b"object", kind, str(id(policy)).encode())


@dataclass(frozen=True, eq=False)
class Adopted:
    """A policy of the user's; what it raises and what it answers wrongly is told in words."""

    policy: Any
    name: str
    mark: str = field(repr=False)

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for every row."""
        with running(f"the policy {self.name}"):
            values = self.policy.log_prob(observations, actions)
        found = as_numbers(values, f"log-probabilities of {self.name}")
        self._check_shape(found, (len(observations),), "log_prob(observations, actions) gives one number per row")
        refuse(np.isnan(found), f"{self.name} gave NaN", expected="a log-probability for every row, or −inf")
        refuse(found == np.inf, f"{self.name} gave an infinite density", expected="finite numbers, or −inf")
        return found

    def fingerprint(self) -> str:
        """Of the policy itself."""
        return self.mark

    def _check_shape(self, found: FloatArray, shape: tuple[int, ...], hint: str) -> None:
        if found.shape != shape:
            problem = f"{self.name} gave an array of the wrong shape"
            raise DataError(problem, expected=f"shape {shape}", got=f"shape {found.shape}", hint=hint)


@dataclass(frozen=True, eq=False)
class DiscreteAdopted(Adopted):
    """One with finitely many actions."""

    @property
    def actions(self) -> AnyArray:
        """Those of the policy."""
        with running(f"the attribute actions of {self.name}"):
            return ActionSet(self.policy.actions).values

    def probs(self, observations: AnyArray) -> FloatArray:
        """π(·|s) for every row."""
        with running(f"the policy {self.name}"):
            values = self.policy.probs(observations)
        found = as_numbers(values, f"probabilities of {self.name}")
        hint = "probs(observations) gives one row per state and one column per action"
        self._check_shape(found, (len(observations), len(self.actions)), hint)
        return check_laws(found, f"probabilities of {self.name}")


@dataclass(frozen=True, eq=False)
class ContinuousAdopted(Adopted):
    """One that can be drawn from."""

    def sample(self, observations: AnyArray, generator: np.random.Generator) -> FloatArray:
        """One action for every row."""
        with running(f"the policy {self.name}"):
            values = self.policy.sample(observations, generator)
        return as_numbers(values, f"actions that {self.name} draws")
