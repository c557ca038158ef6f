"""Do the parts of the logs agree on how the world works?

Every estimator here takes P(s′|s,a) and the reward to be the same for all rows, whoever logged them and whenever.
Counts can tell. For every (s, a) that several parts logged, the shares of the next states are compared by Pearson's χ²;
for every (s, a, s′), the mean rewards of the parts by

    z² = Σ_k n_k (r_k − r̄)² / v,      v = (highest − r̄)(r̄ − lowest),

v being the largest variance that rewards between the lowest and the highest logged one can have around their mean
(Bhatia and Davis), so no second moment is needed and the comparison is on the safe side. Both sums are χ² if the parts
agree, and are turned into standard deviations of a normal law. The parts are the loggers; and, where rows are known in
their order, the early and the late half of every logger's episodes. Sums by episode compare halves of any number of
rows (:mod:`mixope.diagnostics.steadiness`), but see a change of next states only as far as a few random signs do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtri

from mixope.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.diagnostics.steadiness import late_half
from mixope.diagnostics.verdicts import Diagnostic, graded
from mixope.statistics.trajectories import OrderedRows
from mixope.statistics.transitions import UNFOLLOWED, Transitions, transition_cells

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
    followed: BoolArray | None = None
    """Whether it is known what came next; None: it is."""


def loggers_agree(transitions: Transitions) -> Diagnostic | None:
    """Whether loggers saw the same world; None where no two of them took the same action in the same state."""
    t = transitions
    cell = transition_cells(t)
    known = t.next_state != UNFOLLOWED
    found = disagreement(Parts(t.logger, t.pair, cell, t.rows, t.reward, t.lowest, t.highest, known))
    if found is None:
        return None
    return _judged("loggers agree", "loggers", found, "a label, a reward or the world may differ between them")


def halves_agree(transitions: Transitions, ordered: OrderedRows, logger: IntArray) -> Diagnostic | None:
    """Whether the early and the late half of every logger's episodes did; episodes are in the order of their keys."""
    late, usable = late_half(logger)
    episode = ordered.episodes.episode
    mine = usable[episode]
    code, entry = np.unique(2 * ordered.group[mine] + late[episode[mine]], return_inverse=True)
    group, t = code // 2, transitions
    sums = sum_by(entry, np.ones(len(entry)), len(code)), sum_by(entry, ordered.episodes.reward[mine], len(code))
    kinds = t.pair[group], transition_cells(t)[group]
    known = t.next_state[group] != UNFOLLOWED
    found = disagreement(Parts(code % 2, *kinds, *sums, t.lowest[group], t.highest[group], known))
    if found is None:
        return None
    cause = "the world may have changed meanwhile, or something that is not in the state tells episodes apart"
    return _judged("episodes agree", "early and late episodes", found, cause)


def _judged(name: str, who: str, found: Disagreement, cause: str) -> Diagnostic:
    about = "rewards" if found.rewards >= found.dynamics else "next states"
    words = (
        f"{who} agree on the same actions in the same states ({found.worst:.1f} standard deviations)"
        if found.worst <= WARN
        else f"{who} disagree on the {about} of the same actions in the same states, by {found.worst:.1f} standard"
        f" deviations; {cause}"
    )
    return graded(name, found.worst, WARN, FAIL, words)


def disagreement(parts: Parts) -> Disagreement | None:
    """χ² of the next states and of the rewards, standardised; None where there is nothing to compare."""
    merged = _merged(parts)
    told = merged if merged.followed is None else _some(merged, merged.followed)
    dynamics, first = _next_states(_comparable(told))
    rewards, second = _rewards(_comparable(merged))
    if first + second == 0:
        return None
    apart = normal_of_chi_squared(dynamics, first), normal_of_chi_squared(rewards, second)
    return Disagreement(*apart, int(first + second))


def _merged(parts: Parts) -> Parts:
    """One entry for every part and cell."""
    n_cells = int(parts.cell.max(initial=0)) + 1
    _, first, entry = np.unique(parts.part * n_cells + parts.cell, return_index=True, return_inverse=True)
    lowest, highest = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(lowest, entry, parts.lowest)
    np.maximum.at(highest, entry, parts.highest)
    sums = sum_by(entry, parts.rows, len(first)), sum_by(entry, parts.reward, len(first))
    followed = None if parts.followed is None else parts.followed[first]
    return Parts(parts.part[first], parts.pair[first], parts.cell[first], *sums, lowest, highest, followed)


def _comparable(parts: Parts) -> Parts:
    """Entries with rows, of parts that have enough of the pair, of pairs that at least two such parts have."""
    n_pairs = int(parts.pair.max(initial=0)) + 1
    key = parts.part * n_pairs + parts.pair
    enough = sum_by(key, parts.rows)[key] >= LEAST
    keep = enough & (parts.rows > 0)
    several = np.bincount(np.unique(key[keep]) % n_pairs, minlength=n_pairs) >= 2
    keep &= several[parts.pair]
    return _some(parts, keep)


def _some(parts: Parts, chosen: BoolArray) -> Parts:
    values: dict[str, Any] = {name: getattr(parts, name) for name in Parts.__dataclass_fields__}
    found: dict[str, Any] = {name: None if each is None else each[chosen] for name, each in values.items()}
    return Parts(**found)


def _next_states(parts: Parts) -> tuple[float, float]:
    """Σ (n − e)²/e over all cells of all comparable pairs, empty ones too, and the degrees of freedom."""
    if len(parts.rows) == 0:
        return 0.0, 0.0
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
    if len(parts.rows) == 0:
        return 0.0, 0.0
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


def normal_of_chi_squared(statistic: float, degrees: float) -> float:
    """The normal deviate as unlikely as χ² with these degrees of freedom; 37 is the most a float can tell."""
    if degrees <= 0:
        return 0.0
    tail = float(chdtrc(degrees, max(statistic, 0.0)))
    return float(-ndtri(min(max(tail, 1e-300), 1.0 - 1e-16)))
