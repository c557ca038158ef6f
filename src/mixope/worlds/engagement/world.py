"""The users of a product as finite chains, one per arm: all that truth and draws need to know.

A user in state s under arm a earns every metric with mean m(a, s), and moves by P(s′ | a, s).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.base.errors import UnknownName, UsageError

TOLERANCE = 1e-9
Kind = Literal["amount", "count", "event"]


@dataclass(frozen=True, eq=False)
class Metric:
    """What is measured on each user and day: its mean by arm and state, and how it scatters about that.

    An *amount* of mean m is 0, or with probability m uniform between 0 and 2; a *count* is Poisson; an *event* is 0
    or 1.
    """

    mean: FloatArray
    kind: Kind = "amount"

    @property
    def highest(self) -> float:
        """The largest mean that it can have."""
        return np.inf if self.kind == "count" else 1.0


@dataclass(frozen=True, eq=False)
class World:
    """Users with ``S`` states under arms, of which the first is the control.

    ``columns`` holds the state columns, whole numbers or words, of length S each; those in ``hidden`` are not
    recorded. ``transition`` has the shape (arms, S, S). ``start`` has a law of states per row: row i is for users who
    enter on day i of the week, or for all users where there is only one row. ``away`` marks the states in which a user
    has no row; None: nobody is ever away.
    """

    name: str
    story: str
    arms: tuple[str, ...]
    columns: Mapping[str, AnyArray]
    transition: FloatArray
    metrics: Mapping[str, Metric]
    start: FloatArray
    hidden: tuple[str, ...] = ()
    away: BoolArray | None = None

    def __post_init__(self) -> None:
        arms, states = len(self.arms), self.n_states
        _require(self.transition.shape == (arms, states, states), f"moves of shape {(arms, states, states)}")
        _require(self.start.ndim == 2, "a start law per row")
        for laws, what in ((self.transition, "moves"), (self.start, "start laws")):
            _require(bool((laws >= 0).all() and np.allclose(laws.sum(-1), 1, atol=TOLERANCE)), f"{what} that sum to 1")
        for name, column in self.columns.items():
            _require(column.shape == (states,), f"a value of {name!r} for each state")
        for name, metric in self.metrics.items():
            _require(metric.mean.shape == (arms, states), f"means of {name!r} of shape {(arms, states)}")
            inside = (metric.mean >= 0) & (metric.mean <= metric.highest)
            _require(bool(inside.all()), f"means of {name!r} between 0 and {metric.highest:g}")
        if self.away is not None:
            _require(self.away.shape == (states,), "to say of each state whether a user is away")
            _require(not (self.start @ self.away).any(), "users who are there when they enter")
        for name in self.hidden:
            self._known_column(name)

    @property
    def here(self) -> BoolArray:
        """The states in which a user has a row."""
        return np.ones(self.n_states, dtype=bool) if self.away is None else ~self.away

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return int(self.start.shape[-1])

    @property
    def recorded(self) -> dict[str, AnyArray]:
        """The state columns that a table has."""
        return {name: column for name, column in self.columns.items() if name not in self.hidden}

    def hiding(self, hidden: str | Sequence[str]) -> World:
        """The same users, recorded without these state columns as well."""
        names = (hidden,) if isinstance(hidden, str) else tuple(hidden)
        return replace(self, hidden=tuple(dict.fromkeys((*self.hidden, *names))))

    def arm(self, name: str) -> int:
        """The place of an arm."""
        if name not in self.arms:
            raise UnknownName("arm", name, self.arms)
        return self.arms.index(name)

    def metric(self, name: str) -> Metric:
        """The metric of that name."""
        if name not in self.metrics:
            raise UnknownName("metric", name, self.metrics)
        return self.metrics[name]

    def among(self, where: Mapping[str, Any]) -> BoolArray:
        """The states in which all these columns have these values."""
        inside = np.ones(self.n_states, dtype=bool)
        for name, value in where.items():
            values = list(dict.fromkeys(self._known_column(name).tolist()))
            if value not in values:
                raise UsageError(f"no user has {name} = {value!r}; expected one of {', '.join(map(str, values))}")
            inside &= self.columns[name] == value
        return inside

    def _known_column(self, name: str) -> AnyArray:
        if name not in self.columns:
            raise UnknownName("state column", name, self.columns)
        return self.columns[name]

    def __repr__(self) -> str:
        hidden = f", hidden: {', '.join(self.hidden)}" if self.hidden else ""
        columns = ", ".join(self.recorded)
        return f"World({self.name}: arms {', '.join(self.arms)}; {self.n_states} states, columns {columns}{hidden})"


def _require(holds: bool, expected: str) -> None:
    if not holds:
        raise UsageError(f"a world of users needs {expected}")
