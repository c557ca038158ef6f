"""A simulated product experiment whose truth is exact: what a short test says, and what the long run brings.

Users live in a small finite state (``level`` of engagement, ``fatigue``, ``plan``; where the setting has them
``novelty`` and ``weekday``). Each day, given the arm, a user earns ``revenue`` (and ``visits``, and the guardrail
``complaints``) and moves. Control is A, the treatment B, and C is B at half its dose.

    world = engagement.make("wear-out")                    # or make("wear-out", hidden="fatigue")
    table = engagement.draw(world, users=2000, days=14, seed=0)      # a pyarrow Table, one row per user and day
    engagement.naive(world, days=14)                       # the expectation of the naive difference B − A, +.04
    engagement.effect(world)                               # the long-run difference, −.03
    engagement.effect(world, estimand=Estimand("discounted", gamma=0.95))
    engagement.value(world, "B"), engagement.value(world, {"A": 0.5, "B": 0.5})
    engagement.by_day(world, "B", days=60)                 # expected revenue on each day after entering

Truth, settings, designs and draws each have a file here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from mixope.arrays import AnyArray, FloatArray, IntArray
from mixope.estimand import Estimand

if TYPE_CHECKING:
    import pyarrow as pa

Law = str | Mapping[str, float]
"""An arm, or the probability of each arm on each day (a mixture)."""


@dataclass(frozen=True, eq=False)
class World:
    """Users of a product as one chain per arm; ``settings`` has those with a name.

    ``columns`` are the state columns by state (words or whole numbers); those in ``hidden`` are not recorded.
    ``transition`` has shape (arms, S, S), each of ``metrics`` the means by (arms, S), ``start`` the law of a user who
    enters on a Monday, ``group`` the part of the users a state belongs to, which no move leaves.
    """

    name: str
    story: str
    arms: tuple[str, ...]
    columns: Mapping[str, AnyArray]
    transition: FloatArray
    metrics: Mapping[str, FloatArray]
    start: FloatArray
    group: IntArray
    hidden: tuple[str, ...] = ()


def make(name: str, *, hidden: str | Sequence[str] = ()) -> World:
    """The setting of that name (``SETTINGS``); ``hidden`` are state columns that its tables do not have."""
    raise NotImplementedError


def value(
    world: World | str,
    arm: Law,
    estimand: Estimand | None = None,
    *,
    metric: str = "revenue",
    exposure: float = 1.0,
    where: Mapping[str, Any] | None = None,
) -> float:
    """What the arm earns per user and day: the long-run average, or another estimand; ``where`` asks of a subgroup."""
    raise NotImplementedError


def effect(
    world: World | str,
    estimand: Estimand | None = None,
    *,
    treatment: Law = "B",
    control: Law = "A",
    metric: str = "revenue",
    exposure: float = 1.0,
    where: Mapping[str, Any] | None = None,
) -> float:
    """The value of the treatment less that of the control."""
    raise NotImplementedError


def by_day(world: World | str, arm: Law, days: int, *, metric: str = "revenue", exposure: float = 1.0) -> FloatArray:
    """The expected metric on day 0, 1, … after a user enters, shape (days,)."""
    raise NotImplementedError


def naive(
    world: World | str,
    users: int = 1000,
    days: int = 14,
    *,
    treatment: str = "B",
    control: str = "A",
    metric: str = "revenue",
    arms: Sequence[str] = ("A", "B"),
    stagger: int = 0,
    exposure: float = 1.0,
    switchback: int | None = None,
    rollout: Sequence[float] | None = None,
) -> float:
    """The expectation of the mean over the treatment's rows less that over the control's, for tests as drawn."""
    raise NotImplementedError


def draw(
    world: World | str,
    users: int = 1000,
    days: int = 14,
    *,
    seed: int,
    arms: Sequence[str] = ("A", "B"),
    stagger: int = 0,
    exposure: float = 1.0,
    switchback: int | None = None,
    rollout: Sequence[float] | None = None,
    metrics: Sequence[str] = ("revenue",),
    hidden: str | Sequence[str] = (),
) -> pa.Table:
    """One test: a row per user and day, sorted by user and day.

    Columns: user, day, variant, the recorded state columns (before the day's move), the metrics, and ``exposed`` where
    ``exposure`` is below 1 (a treated user who is not exposed on a day lives that day as under control).
    ``stagger=5``: users enter on days 0 to 5, evenly, and stay to the end. ``switchback=7``: each user alternates
    between the arms every 7 days; users take turns in which comes first. ``rollout=(.1, .25, .5)``: the share of
    users treated on day 0, 1, 2 and later; who is treated stays treated.
    """
    raise NotImplementedError


def write(world: World | str, path: str | PathLike[str], users: int, days: int, *, seed: int, **design: Any) -> int:
    """The same rows as Parquet, a block of users at a time; gives their number."""
    raise NotImplementedError
