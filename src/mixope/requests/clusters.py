"""Clusters: what is independent of the rest of the logs. An episode, or the unit (a user, a patient) it belongs to.

Whatever is summed by episode is summed by unit where units are named. Here an episode becomes a cluster, and nothing
else knows the difference. With h_g the share of unit g in the data (of rows where a value is per step of a process that
starts again, else of episodes) and s_g the sum of the scores of its episodes,

    se² = Σ_g s_g² / (1 − 2 h_g + Σ h²)

because the value was fitted to the units, to a large one more than to a small one: if units differ for ever, the mean
of each has about the same variance whatever its size, and this is right in the mean (CR2 with that working model). The
sums are scaled so that it is m/(m−1) Σ_g s_g² over m units, as everywhere; of units of one size nothing is scaled. It
is known with

    ν = (tr A)² / tr A²,   A = (I − 1hᵀ)ᵀ diag(h²/(1 − 2h + Σ h²)) (I − 1hᵀ)

degrees of freedom (Bell and McCaffrey, after Satterthwaite): m − 1 where units are of one size, fewer where they are
not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, DataError, Setting
from mixope.logs import EPISODE_KEYS, UNIT
from mixope.requests.by_episode import first_of_runs
from mixope.requests.grouping import GroupSums


def units_of(groups: GroupSums) -> IntArray | None:
    """The unit of every episode, by number; None where no column says it, or every episode has its own.

    An episode without a unit is its own.
    """
    if UNIT not in groups.grouping.keys or groups.n_groups == 0:
        return None
    first = first_of_runs(groups.keyed_by(EPISODE_KEYS), EPISODE_KEYS)
    values = groups.values(UNIT)
    if len(first) < groups.n_groups:
        twice = int(np.flatnonzero(~np.isin(np.arange(groups.n_groups), first))[0])
        raise DataError(
            "An episode belongs to several units",
            column=UNIT,
            expected="one user, patient or machine for all rows of an episode",
            got=f"{values[twice - 1]!r} and {values[twice]!r} in episode {groups.values('episode_id')[twice]!r}",
            hint=Advice("name another column: ", Setting("unit"), ", or none: ", Setting("columns", {UNIT: None})),
        )
    return number_units(values)


def number_units(values: AnyArray) -> IntArray | None:
    """The same from what every episode says of its unit."""
    missing = np.array([value is None for value in values.tolist()], dtype=np.bool_)
    _, number = np.unique(np.where(missing, "", values.astype(str)), return_inverse=True)
    number = number.astype(np.int64)
    number[missing] = number.max(initial=0) + 1 + np.arange(int(missing.sum()))
    _, number = np.unique(number, return_inverse=True)
    return None if int(number.max()) + 1 == len(number) else number.astype(np.int64)


@dataclass(frozen=True)
class Clusters:
    """The cluster of every one of ``n_episodes`` (None: its own), and how large each is."""

    n_episodes: int
    unit: IntArray | None = None
    size: FloatArray | None = None
    """Of every episode."""

    @classmethod
    def of(cls, unit: IntArray | None, size: FloatArray) -> Clusters:
        """Of some episodes; units are numbered without gaps."""
        if unit is None:
            return cls(len(size))
        _, number = np.unique(unit, return_inverse=True)
        return cls(len(size), number.astype(np.int64), size)

    def __len__(self) -> int:
        return self.n_episodes if self.unit is None else int(self.unit.max(initial=-1)) + 1

    @property
    def named(self) -> bool:
        """Whether units are something else than episodes."""
        return self.unit is not None

    @property
    def n_units(self) -> int | None:
        """How many, where they are named."""
        return len(self) if self.named else None

    @cached_property
    def share(self) -> FloatArray:
        """h: of every cluster."""
        if self.unit is None or self.size is None:
            return np.full(self.n_episodes, 1.0 / max(self.n_episodes, 1))
        found = sum_by(self.unit, self.size, len(self))
        return np.asarray(found / found.sum())

    @cached_property
    def _scale(self) -> FloatArray:
        m = len(self)
        return np.ones(m) if m < 2 else np.sqrt((m - 1) / m / self._left)

    @property
    def _left(self) -> FloatArray:
        """1 − 2h + Σ h²: what is left of the variance of a cluster's mean once the value is fitted."""
        h = self.share
        return np.asarray(np.maximum(1.0 - 2.0 * h + float(h @ h), 1e-12))

    @property
    def first(self) -> IntArray:
        """The first episode of every cluster."""
        if self.unit is None:
            return np.arange(self.n_episodes)
        return np.asarray(np.unique(self.unit, return_index=True)[1], dtype=np.int64)

    def sums(self, by_episode: FloatArray) -> FloatArray:
        """By cluster, as they come."""
        return by_episode if self.unit is None else sum_by(self.unit, by_episode, len(self))

    def scores(self, by_episode: FloatArray, *, by_fold: bool = False) -> FloatArray:
        """Scores by cluster, whose m/(m−1) Σ s² is se²; of folds, which hold whole clusters, Σ s² stays what it is."""
        if self.unit is None:
            return by_episode
        if by_fold:
            squares, m, n = self.sums(by_episode**2), len(self), self.n_episodes
            keep = n / (n - 1) * (m - 1) / m if m > 1 else 1.0
            return np.asarray(np.sign(self.sums(by_episode)) * np.sqrt(keep * squares))
        return np.asarray(self._scale * self.sums(by_episode))

    def holding(self, episodes: BoolArray) -> BoolArray:
        """The clusters that have some of these episodes."""
        return episodes if self.unit is None else self.sums(episodes.astype(np.float64)) > 0

    @cached_property
    def degrees(self) -> float | None:
        """ν; None where clusters are episodes."""
        if self.unit is None or len(self) < 2:
            return None
        h = self.share
        d = h**2 / self._left
        hh, hd, dd, total = float(h @ h), float(h @ d), float(d @ d), float(d.sum())
        trace = total - 2.0 * hd + total * hh
        squares = dd + 2.0 * (hh * dd + hd**2) + (total * hh) ** 2
        squares += -4.0 * float(h @ d**2) + 2.0 * total * float(d @ h**2) - 4.0 * total * hh * hd
        return float(np.clip(trace**2 / squares, 1.0, len(self) - 1.0)) if squares > 0 else float(len(self) - 1)

    def within(self, part: IntArray) -> tuple[Clusters, IntArray]:
        """Clusters cut by a number of every episode (its logger), and that of every piece, in the order of episodes."""
        if self.unit is None:
            return self, part
        code = self.unit * (int(part.max(initial=0)) + 1) + part
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return Clusters(self.n_episodes, rank[number], self.size), part[first[order]]
