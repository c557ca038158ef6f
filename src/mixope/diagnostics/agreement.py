"""Do the parts of the logs agree on how the world works?

Every estimator here takes P(s′|s,a) and the reward to be the same for all rows, whoever logged them and whenever.
Counts can tell. For every (s, a) that several parts logged, the shares of the next states are compared by Pearson's χ²;
for every (s, a, s′), the mean rewards of the parts by

    z² = Σ_k n_k (r_k − r̄)² / v,      v = (highest − r̄)(r̄ − lowest),

v being the largest variance that rewards between the lowest and the highest logged one can have around their mean
(Bhatia and Davis), so no second moment is needed and the comparison is on the safe side. Both sums are χ² if the parts
agree, and are turned into standard deviations of a normal law by the cube root (Wilson and Hilferty). The parts are the
loggers (:func:`loggers_agree`, free of cost) or the early and the late episodes of every logger (:func:`halves_agree`,
two scans).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixope.arrays import AnyArray, FloatArray, IntArray, sum_by
from mixope.diagnostics.checks import Diagnostic, Status
from mixope.logs import EPISODE_KEYS
from mixope.statistics.grouping import Aggregate, Grouping, GroupSums, Lookup
from mixope.statistics.transitions import Transitions, number_tuples, transition_keys

if TYPE_CHECKING:
    from mixope.engines import Engine
    from mixope.logs import Logs

WARN, FAIL = 3.5, 10.0
"""Standard deviations; see the table in docs/trust.md."""
LEAST = 5
"""Rows that a part must have of a pair to be compared on it: χ² is not χ² on fewer."""


@dataclass(frozen=True)
class Disagreement:
    """How far the parts are apart, in standard deviations, on next states and on rewards; and over how many degrees."""

    dynamics: float
    rewards: float
    degrees: int

    @property
    def worst(self) -> float:
        """The larger of the two."""
        return max(self.dynamics, self.rewards)


@dataclass(frozen=True)
class Parts:
    """Rows and rewards by part and kind of transition: one entry for every part and (s, a, s′) that it logged."""

    part: IntArray
    pair: IntArray
    cell: IntArray
    rows: FloatArray
    reward: FloatArray
    lowest: FloatArray
    highest: FloatArray


def loggers_agree(transitions: Transitions) -> Diagnostic | None:
    """Whether loggers saw the same world; None where no two of them took the same action in the same state."""
    t = transitions
    cell = _cells(t)
    found = disagreement(Parts(t.logger, t.pair, cell, t.rows, t.reward, t.lowest, t.highest))
    return _diagnostic("loggers agree", found, "loggers", "a label, a reward or the world may differ between them")


def halves_agree(logs: Logs, engine: Engine, transitions: Transitions) -> Diagnostic | None:
    """Whether the early and the late episodes of every logger saw the same world."""
    early, late = split_halves(logs, engine)
    cell = _cells(transitions)
    both = [(0, early), (1, late)]
    t, n = transitions, transitions.n_groups
    found = disagreement(
        Parts(
            part=np.concatenate([np.full(n, k, dtype=np.int64) for k, _ in both]),
            pair=np.concatenate([t.pair, t.pair]),
            cell=np.concatenate([cell, cell]),
            rows=np.concatenate([half[0] for _, half in both]),
            reward=np.concatenate([half[1] for _, half in both]),
            lowest=np.concatenate([t.lowest, t.lowest]),
            highest=np.concatenate([t.highest, t.highest]),
        )
    )
    return _diagnostic("halves agree", found, "early and late episodes", "the world may have changed meanwhile")


def split_halves(logs: Logs, engine: Engine) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Rows and rewards of every transition group in the first and in the second half of each logger's episodes."""
    import pyarrow as pa

    from mixope.statistics.transitions import transition_grouping

    episodes = engine.group_sums(logs, Grouping(EPISODE_KEYS, (Aggregate("rows", "count"),))).table
    assert episodes is not None
    late = _late([episodes.column(key).to_numpy() for key in EPISODE_KEYS])
    table = episodes.select(list(EPISODE_KEYS)).append_column("late", pa.array(late))
    base = transition_grouping(logs.schema)
    aggregates = (
        Aggregate("rows", "count"),
        Aggregate("reward", "sum", ("reward",)),
        Aggregate("late_rows", "sum", ("late",)),
        Aggregate("late_reward", "sum", ("late", "reward")),
    )
    grouping = Grouping(transition_keys(logs.schema), aggregates, belongs_to=base.belongs_to)
    sums: GroupSums = engine.group_sums(logs, grouping, Lookup(table, EPISODE_KEYS))
    rows, reward = sums.column("late_rows"), sums.column("late_reward")
    return (sums.column("rows") - rows, sums.column("reward") - reward), (rows, reward)


def disagreement(parts: Parts) -> Disagreement | None:
    """χ² of the next states and of the rewards, standardised; None where there is nothing to compare."""
    parts = _comparable(_merged(parts))
    if len(parts.rows) == 0:
        return None
    dynamics, first = _next_states(parts)
    rewards, second = _rewards(parts)
    if first + second == 0:
        return None
    return Disagreement(_standardised(dynamics, first), _standardised(rewards, second), int(first + second))


def _merged(parts: Parts) -> Parts:
    """One entry for every part and cell."""
    n_cells = int(parts.cell.max(initial=0)) + 1
    _, first, entry = np.unique(parts.part * n_cells + parts.cell, return_index=True, return_inverse=True)
    lowest, highest = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(lowest, entry, parts.lowest)
    np.maximum.at(highest, entry, parts.highest)
    sums = sum_by(entry, parts.rows, len(first)), sum_by(entry, parts.reward, len(first))
    return Parts(parts.part[first], parts.pair[first], parts.cell[first], *sums, lowest, highest)


def _comparable(parts: Parts) -> Parts:
    """Entries with rows, of parts that have enough of the pair, of pairs that at least two such parts have."""
    n_pairs = int(parts.pair.max(initial=0)) + 1
    key = parts.part * n_pairs + parts.pair
    enough = sum_by(key, parts.rows)[key] >= LEAST
    keep = enough & (parts.rows > 0)
    several = np.bincount(np.unique(key[keep]) % n_pairs, minlength=n_pairs) >= 2
    keep &= several[parts.pair]
    return Parts(*(getattr(parts, name)[keep] for name in Parts.__dataclass_fields__))


def _next_states(parts: Parts) -> tuple[float, float]:
    """Σ (n − e)²/e over all cells of all comparable pairs, empty ones too, and the degrees of freedom."""
    n_pairs = int(parts.pair.max()) + 1
    key = parts.part * n_pairs + parts.pair
    of_part, of_cell, of_pair = sum_by(key, parts.rows), sum_by(parts.cell, parts.rows), sum_by(parts.pair, parts.rows)
    expected = of_part[key] * of_cell[parts.cell] / of_pair[parts.pair]
    # Σ (n − e)²/e = Σ n²/e − N for every pair: cells that a part lacks need no entry.
    statistic = float(np.sum(parts.rows**2 / expected) - of_pair.sum())
    present = np.unique(key)
    n_parts = np.bincount(present % n_pairs, minlength=n_pairs)
    n_cells = np.bincount(parts.pair[np.unique(parts.cell, return_index=True)[1]], minlength=n_pairs)
    return statistic, float(np.sum(np.maximum(n_parts - 1, 0) * np.maximum(n_cells - 1, 0)))


def _rewards(parts: Parts) -> tuple[float, float]:
    """Σ n (r − r̄)²/v over the cells whose rewards are not all the same, and the degrees of freedom."""
    rows, total = sum_by(parts.cell, parts.rows), sum_by(parts.cell, parts.reward)
    mean = np.divide(total, rows, out=np.zeros_like(total), where=rows > 0)
    lowest, highest = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    np.minimum.at(lowest, parts.cell, parts.lowest)
    np.maximum.at(highest, parts.cell, parts.highest)
    with np.errstate(invalid="ignore"):
        variance = np.where(rows > 0, (highest - mean) * (mean - lowest), 0.0)
        scale = np.maximum(np.abs(lowest), np.abs(highest))
    varies = variance > 1e-18 * np.where(np.isfinite(scale), scale, 0.0) ** 2
    mine = varies[parts.cell]
    cell, n = parts.cell[mine], parts.rows[mine]
    off = parts.reward[mine] / n - mean[cell]
    entries = np.bincount(cell, minlength=len(rows))
    return float(np.sum(n * off**2 / variance[cell])), float(np.sum(np.maximum(entries - 1, 0)))


def _standardised(statistic: float, degrees: float) -> float:
    """((χ²/k)^⅓ − (1 − 2/(9k))) / √(2/(9k)): about standard normal."""
    if degrees <= 0:
        return 0.0
    spread = 2.0 / (9.0 * degrees)
    return float((max(statistic, 0.0) / degrees) ** (1 / 3) - (1 - spread)) / float(np.sqrt(spread))


def _cells(transitions: Transitions) -> IntArray:
    """A number for every (s, a, s′)."""
    code = transitions.pair * (transitions.n_states + 1) + transitions.next_state + 1
    return np.asarray(np.unique(code, return_inverse=True)[1], dtype=np.int64)


def _late(keys: list[AnyArray]) -> FloatArray:
    """1 for the second half of each logger's episodes in the order of their ids, per source."""
    group, _ = number_tuples([column.astype(str) for column in keys[:2]])
    size = np.bincount(group)
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(group))
    rank[order] = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
    return np.asarray(rank >= size[group] / 2, dtype=np.float64)


def _diagnostic(name: str, found: Disagreement | None, who: str, cause: str) -> Diagnostic | None:
    if found is None:
        return None
    status: Status = "fail" if found.worst > FAIL else "warn" if found.worst > WARN else "pass"
    about = "rewards" if found.rewards >= found.dynamics else "next states"
    words = (
        f"{who} agree on the same actions in the same states ({found.worst:.1f} standard deviations)"
        if status == "pass"
        else f"{who} disagree on the {about} of the same actions in the same states, by {found.worst:.1f} standard"
        f" deviations; {cause}"
    )
    return Diagnostic(name, found.worst, FAIL if status == "fail" else WARN, status, words)
