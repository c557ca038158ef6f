"""Who gets which arm when: a test as schedules of users, whose numbers are fixed, so that expectations are exact.

A schedule is a day of entry and a path, an arm for each day of the test; from the day of entry on, a user has a row
each day. Users are dealt to schedules as evenly as can be. Which user gets which is drawn.

    plain        each user has one arm throughout
    stagger=5    users enter on days 0 … 5, each arm alike
    switchback=7 each user changes to the next arm every 7 days; they take turns in which arm comes first
    rollout=(.1, .25, .5)
                 the share of users under treatment on days 0, 1, 2 and later; once treated, always treated
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, is_number, is_whole
from mixope.base.errors import Advice, Setting, UnknownName, UsageError


class Choices(TypedDict, total=False):
    """What a design may say besides the number of users and days."""

    arms: Sequence[str]
    stagger: int
    exposure: float
    switchback: int | None
    rollout: Sequence[float] | None


@dataclass(frozen=True)
class Design:
    """A test of so many days.

    ``exposure`` is the probability that a treated user is really exposed on a day. ``arms`` has the control first.
    """

    users: int = 1000
    days: int = 14
    arms: Sequence[str] = ("A", "B")
    stagger: int = 0
    exposure: float = 1.0
    switchback: int | None = None
    rollout: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        check_exposure(self.exposure)
        if isinstance(self.arms, str) or len(set(self.arms)) != len(self.arms) or len(self.arms) < 2:
            raise UsageError(f"a test has two different arms or more, got {self.arms!r}")
        if self.stagger >= self.days:
            said = f" lets users enter after the end of a test of {self.days} days"
            raise UsageError(Advice(Setting("stagger", self.stagger), said))
        if self.rollout is not None:
            self._check_rollout(self.rollout)
        dealt = len(self.arms) * (self.stagger + 1)
        if self.users < dealt:
            raise UsageError(f"expected a user for each arm and day of entry, at least {dealt} here, got {self.users}")

    def _check_numbers(self) -> None:
        check_whole("users", self.users, 1)
        check_whole("days", self.days, 1)
        check_whole("stagger", self.stagger, 0)
        if self.switchback is not None:
            check_whole("switchback", self.switchback, 1)

    def _check_rollout(self, shares: Sequence[float]) -> None:
        if self.switchback is not None:
            raise UsageError("a test is a roll-out or a switchback, not both")
        if len(self.arms) != 2:
            raise UsageError(f"a roll-out has one treatment beside the control, got arms {', '.join(self.arms)}")
        inside = len(shares) > 0 and all(is_number(share) and 0 <= share <= 1 for share in shares)
        if not inside or any(later < share for share, later in pairwise(shares)):
            raise UsageError(f"a roll-out is a list of shares between 0 and 1 that never fall, got {shares!r}")

    def arm(self, name: str) -> int:
        """The place of an arm."""
        if name not in self.arms:
            raise UnknownName("arm of this test", name, self.arms)
        return list(self.arms).index(name)

    def dealt(self) -> tuple[IntArray, IntArray]:
        """The day of entry and the number of the path of users 0, 1, … before they are shuffled."""
        cohorts = self.stagger + 1
        entry, place = np.arange(self.users) % cohorts, np.arange(self.users) // cohorts
        if self.rollout is None:
            return entry, place % len(self.arms)
        size = np.bincount(entry, minlength=cohorts)[entry]
        return entry, np.searchsorted(self._shares(), (place + 0.5) / size, side="left")

    def paths(self) -> IntArray:
        """The place of an arm for each day, one path per row."""
        day = np.arange(self.days)
        if self.rollout is not None:
            return (day >= np.arange(self.days + 1)[:, None]).astype(np.int64)
        turns = np.zeros(self.days, dtype=np.int64) if self.switchback is None else day // self.switchback
        return np.asarray((np.arange(len(self.arms))[:, None] + turns) % len(self.arms))

    def schedules(self) -> tuple[IntArray, IntArray, IntArray]:
        """All that occur: day of entry, arm by day, and the number of users."""
        entry, path = self.dealt()
        pairs, users = np.unique(np.stack([entry, path]), axis=1, return_counts=True)
        return pairs[0], self.paths()[pairs[1]], users

    def _shares(self) -> FloatArray:
        """The share under treatment on each day."""
        said = np.asarray(self.rollout, dtype=np.float64)[: self.days]
        return np.concatenate([said, np.full(self.days - len(said), said[-1])])


def check_whole(name: str, number: Any, least: int) -> None:
    """Refuse what is no whole number, or too small a one."""
    if not (is_whole(number) and number >= least):
        raise UsageError(f"{name} is a whole number of at least {least}, got {number!r}")


def check_exposure(exposure: float) -> None:
    """Refuse what is no probability."""
    if not is_number(exposure) or not 0 <= exposure <= 1:
        raise UsageError(f"exposure is a probability, between 0 and 1, got {exposure!r}")
