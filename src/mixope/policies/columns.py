"""Policies see columns by name: ``observations["age"]``, ``observations["ward"]``.

Factors and vectors whose columns have names stay arrays, and can be asked by name too (:mod:`mixope.policies.named`).
Inside, mixed states are rows of numbers (:mod:`mixope.logs.categories`). A policy is wrapped once, when a question is
asked, and every batch that it is asked about is turned into a structured array on the way. A table sees the columns
that it lists, which must be categories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError
from mixope.logs import Schema, StateColumns
from mixope.policies.gaussian import LinearGaussianPolicy, Normal
from mixope.policies.keys import listed
from mixope.policies.named import Naming
from mixope.policies.own_code import asking
from mixope.policies.protocol import ContinuousPolicy, DiscretePolicy, Policy
from mixope.policies.tabular import TabularPolicy


@dataclass(frozen=True)
class View:
    """Rows of numbers as a policy wants to see them: some columns as keys of a table, or all by name."""

    columns: StateColumns
    keys: tuple[str, ...] = ()

    def __call__(self, observations: AnyArray) -> AnyArray:
        """Of every row."""
        if not self.keys:
            return self.columns.named(observations)
        found = [self.columns.column(observations, name) for name in self.keys]
        return found[0] if len(found) == 1 else np.stack([column.astype(object) for column in found], axis=1)


@dataclass(frozen=True, eq=False)
class OnColumns:
    """A policy that is asked about states as it wants to see them."""

    policy: Any
    view: Callable[[AnyArray], AnyArray]

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for every row."""
        with asking(self.policy):
            found: FloatArray = self.policy.log_prob(self.view(observations), actions)
        return found

    def fingerprint(self) -> str:
        """Of the policy itself."""
        return str(self.policy.fingerprint())

    def __repr__(self) -> str:
        return repr(self.policy)


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteOnColumns(OnColumns):
    """One with finitely many actions."""

    @property
    def actions(self) -> AnyArray:
        """Those of the policy."""
        return np.asarray(self.policy.actions)

    def probs(self, observations: AnyArray) -> FloatArray:
        """π(·|s) for every row."""
        with asking(self.policy):
            found: FloatArray = self.policy.probs(self.view(observations))
        return found


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousOnColumns(OnColumns):
    """One that can be drawn from."""

    def sample(self, observations: AnyArray, generator: np.random.Generator) -> FloatArray:
        """One action for every row."""
        with asking(self.policy):
            found: FloatArray = self.policy.sample(self.view(observations), generator)
        return found


def on_columns(policy: Policy, columns: StateColumns) -> Policy:
    """The policy on rows of numbers; one that cannot see columns by name is refused."""
    if isinstance(policy, LinearGaussianPolicy):
        raise DataError(
            "a linear policy takes a vector, and the states of these logs have categories among their columns",
            expected="a function of the columns by name",
            got=repr(policy),
            hint="write the mean as a function of columns: GaussianPolicy(lambda states: states['age'] ..., scale)",
        )
    return _seen(policy, View(columns, _keys(policy, columns) if isinstance(policy, TabularPolicy) else ()))


@dataclass(frozen=True)
class Recorded:
    """The columns of a state as they were logged, without those of its past: what policies know.

    ``whole``: the state is one id. ``integers``: all of its columns are; None for states of numbers.
    """

    width: int
    whole: bool = False
    integers: bool | None = None

    def __call__(self, observations: AnyArray) -> AnyArray:
        """Of every row."""
        kept = observations[:, : self.width]
        if self.integers is None:
            return kept
        kept = kept[:, 0] if self.whole else kept
        if self.integers:
            return kept.astype(np.int64)
        return np.array(kept.tolist(), dtype=np.str_) if self.whole and len(kept) else kept


def on_recorded(policy: Policy, schema: Schema) -> Policy:
    """A policy of logged states, asked about states that have their past beside them; ``schema`` is of the former."""
    width, types = len(schema.observation), {schema.types[name] for name in schema.observation}
    counted = schema.observation_kind in {"id", "factors"}
    return _seen(policy, Recorded(width, schema.observation_kind == "id", types == {"int"} if counted else None))


def with_names(policy: Policy, names: tuple[str, ...]) -> Policy:
    """The policy on factors or vectors whose columns have names; what takes them by place needs none."""
    if isinstance(policy, TabularPolicy | LinearGaussianPolicy) or all(not name or name.isdigit() for name in names):
        return policy
    return _seen(policy, Naming(names))


def _seen(policy: Policy, view: Callable[[AnyArray], AnyArray]) -> Policy:
    if isinstance(policy, Normal):
        return policy.through(view)
    if isinstance(policy, DiscretePolicy):
        return DiscreteOnColumns(policy, view)
    return ContinuousOnColumns(policy, view) if isinstance(policy, ContinuousPolicy) else OnColumns(policy, view)


def _keys(table: TabularPolicy, columns: StateColumns) -> tuple[str, ...]:
    """The columns of the state that a table lists; all must be categories."""
    names = table.factors or ()
    if names and set(names) <= set(columns.categories):
        return names
    numbers = [name for name in names if name in columns.shown and name not in columns.categories]
    raise DataError(
        f"a table cannot list the number {numbers[0]!r}"
        if numbers
        else "the columns of the table are not among those of the states",
        expected=f"a table over categories of the state ({listed(columns.categories)}), or a function of all columns",
        got=f"a table over {listed(names) if names else 'one column observation'}",
        hint="name its columns as those of the logs, such as observation.ward; for numbers give a function",
    )
