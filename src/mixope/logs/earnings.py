"""What every logger earned over all rows of the inputs, also those that the canonical rows leave out.

One pass over two columns, without a window or a sort. Beside the sums of the rows that are used it tells what the
dropped ones earned. Rewards that are missing or not finite are left aside: a row that is dropped may lack its reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.logs import view
from mixope.logs.sources import reading
from mixope.logs.table import raw_columns

if TYPE_CHECKING:
    from mixope.logs.logs import Logs


@dataclass(frozen=True)
class Earnings:
    """Of some rows: how many there are, how many have a reward, and its sum, least and most."""

    rows: int
    rewards: int
    total: float
    lowest: float
    highest: float

    def merge(self, other: Earnings) -> Earnings:
        """Of the rows of both."""
        return Earnings(
            self.rows + other.rows,
            self.rewards + other.rewards,
            self.total + other.total,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )


NOTHING = Earnings(0, 0, 0.0, float("inf"), float("-inf"))


def earnings(logs: Logs) -> dict[str, Earnings]:
    """By logger, over all rows of the inputs."""
    with reading(logs.name):
        found = _in_memory(logs) if logs.in_memory else _by_sql(logs)
    merged: dict[str, Earnings] = {}
    for label, some in found:
        merged[label] = merged.get(label, NOTHING).merge(some)
    return dict(sorted(merged.items()))


def _in_memory(logs: Logs) -> list[tuple[str, Earnings]]:
    found = []
    for plan in logs.plans:
        data = raw_columns(plan, ["policy_id", "reward"])
        label = data["policy_id"].to_numpy(zero_copy_only=False).astype(str)
        reward = np.asarray(data["reward"].to_numpy(zero_copy_only=False), dtype=np.float64)
        names, number = np.unique(label, return_inverse=True)
        found += [(str(name), _of(reward[number == j])) for j, name in enumerate(names)]
    return found


def _of(reward: Any) -> Earnings:
    known = reward[np.isfinite(reward)]
    if len(known) == 0:
        return Earnings(len(reward), 0, 0.0, NOTHING.lowest, NOTHING.highest)
    return Earnings(len(reward), len(known), float(known.sum()), float(known.min()), float(known.max()))


def _by_sql(logs: Logs) -> list[tuple[str, Earnings]]:
    known = "FILTER (isfinite(reward))"
    asked = (
        f"count(*), count(*) {known}, coalesce(fsum(reward) {known}, 0), "
        f"coalesce(min(reward) {known}, 'inf'::DOUBLE), coalesce(max(reward) {known}, '-inf'::DOUBLE)"
    )
    with logs.connect() as connection:
        rows = view.rewards(logs.plans, connection)
        found = connection.execute(f"SELECT policy_id, {asked} FROM ({rows}) GROUP BY policy_id").fetchall()
    return [(str(label), Earnings(*rest)) for label, *rest in found]
