"""Do the parts of the logs agree on how the world works?

Every estimator here takes P(s′|s,a) and the reward to be the same for all rows, whoever logged them and whenever.
Counts can tell. For every (s, a) that several parts logged, the shares of the next states are compared by Pearson's χ²;
for every (s, a, s′), the mean rewards of the parts by

    z² = Σ_k n_k (r_k − r̄)² / v,      v = (highest − r̄)(r̄ − lowest),

v being the largest variance that rewards between the lowest and the highest logged one can have around their mean
(Bhatia and Davis), so no second moment is needed and the comparison is on the safe side.

Given how often each part took the pair and how often each state came next, a table of N rows, r parts and c states has
exactly (Haldane 1940, Dawson 1954)

    mean       N (r−1)(c−1) / (N−1)
    variance   2N/(N−3) (v₁−w₁)(v₂−w₂) + N²/(N−1) w₁w₂,   v₁ = (r−1)(N−r)/(N−1),   w₁ = (N Σ 1/nₖ − r²)/(N−2)

and v₂, w₂ likewise of the states; rewards count as a table of two columns, which is what rewards of 0 and 1 are. On ten
thousand pairs of a dozen rows each the mean is a tenth above the degrees of freedom of χ², and unequal parts or states
that are seldom seen make the variance larger than twice them. So both sums are held against the χ², stretched, that has
their mean and variance, and turned into standard deviations of a normal law.

The parts are the loggers; and, where rows are known in their order, the early and the late half of every logger's
episodes. Sums by episode compare halves of any number of rows (:mod:`mixope.checks.steadiness`), but see a change
of next states only as far as a few random signs do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.base.tails import normal_of_chi_squared
from mixope.checks.check import WORLDS, Check
from mixope.checks.evidence import LogEvidence
from mixope.checks.steadiness import late_half
from mixope.checks.verdicts import Diagnostic
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import ENDED, UNFOLLOWED, Transitions, transition_cells

WARN, FAIL = 3.5, 10.0
"""Standard deviations; see the table in docs/trust.md."""
LEAST = 5
"""Rows that a part must have of a pair to be compared on it: χ² is not χ² on fewer."""
_CONSTANT = 1e-9
"""A table whose variance is below this share of its squared mean comes out the same however rows are dealt."""


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
    ended: BoolArray | None = None
    """Whether the episode ended there."""


def loggers_agree(transitions: Transitions) -> Diagnostic | None:
    """Whether loggers saw the same world; None where no two of them took the same action in the same state."""
    t = transitions
    cell = transition_cells(t)
    known, ended = t.next_state != UNFOLLOWED, t.next_state == ENDED
    found = disagreement(Parts(t.logger, t.pair, cell, t.rows, t.reward, t.lowest, t.highest, known, ended))
    if found is None:
        return None
    return _judged(LOGGERS, "loggers", found, "a label, a reward or the world may differ between them")


def halves_agree(transitions: Transitions, ordered: OrderedRows, logger: IntArray) -> Diagnostic | None:
    """Whether the early and the late half of every logger's episodes did; episodes are in the order of their keys."""
    late, usable = late_half(logger)
    episode = ordered.episodes.episode
    mine = usable[episode]
    code, entry = np.unique(2 * ordered.group[mine] + late[episode[mine]], return_inverse=True)
    group, t = code // 2, transitions
    sums = sum_by(entry, np.ones(len(entry)), len(code)), sum_by(entry, ordered.episodes.reward[mine], len(code))
    kinds = t.pair[group], transition_cells(t)[group]
    known, ended = t.next_state[group] != UNFOLLOWED, t.next_state[group] == ENDED
    found = disagreement(Parts(code % 2, *kinds, *sums, t.lowest[group], t.highest[group], known, ended))
    if found is None:
        return None
    cause = "the world may have changed meanwhile, or something that is not in the state tells episodes apart"
    return _judged(EPISODES, "early and late episodes", found, cause)


def _judged(check: Check, who: str, found: Disagreement, cause: str) -> Diagnostic:
    about = "rewards" if found.rewards >= found.dynamics else "next states"
    words = (
        f"{who} agree on the same actions in the same states ({found.worst:.1f} standard deviations)"
        if found.worst <= WARN
        else f"{who} disagree on the {about} of the same actions in the same states, by {found.worst:.1f} standard"
        f" deviations; {cause}"
    )
    return check.graded(found.worst, WARN, FAIL, words)


def disagreement(parts: Parts) -> Disagreement | None:
    """Of the next states and of the rewards, standardised; None where there is nothing to compare."""
    merged = _merged(parts)
    told = merged if merged.followed is None else _told(merged, merged.followed)
    dynamics, rewards = _next_states(_comparable(told)), _rewards(_comparable(merged))
    degrees = float(dynamics.degrees.sum() + rewards.degrees.sum())
    if degrees == 0:
        return None
    return Disagreement(dynamics.deviations, rewards.deviations, int(degrees))


def _told(parts: Parts, followed: BoolArray) -> Parts:
    """Where it is known what came, and of the ends the share of which it would be known if they had gone on.

    An end needs no next observation. Where a recorder stops it keeps the ends and not the others, and parts that it
    stopped after other lengths would seem to differ in how often they end.
    """
    if followed.all() or parts.ended is None:
        return _some(parts, followed)
    key = parts.part * (int(parts.pair.max(initial=0)) + 1) + parts.pair
    lost, went_on = (sum_by(key, parts.rows * some) for some in (~followed, ~parts.ended))
    share = 1.0 - lost[key] / np.maximum(went_on[key], 1.0)
    return _some(replace(parts, rows=np.where(parts.ended, parts.rows * share, parts.rows)), followed)


def _merged(parts: Parts) -> Parts:
    """One entry for every part and cell."""
    n_cells = int(parts.cell.max(initial=0)) + 1
    _, first, entry = np.unique(parts.part * n_cells + parts.cell, return_index=True, return_inverse=True)
    lowest, highest = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    np.minimum.at(lowest, entry, parts.lowest)
    np.maximum.at(highest, entry, parts.highest)
    sums = sum_by(entry, parts.rows, len(first)), sum_by(entry, parts.reward, len(first))
    flags = (None if each is None else each[first] for each in (parts.followed, parts.ended))
    return Parts(parts.part[first], parts.pair[first], parts.cell[first], *sums, lowest, highest, *flags)


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


@dataclass(frozen=True)
class Tables:
    """Pearson's statistic of many tables, with the mean and the variance that it has by chance; one entry for each."""

    statistic: FloatArray
    degrees: FloatArray
    mean: FloatArray
    variance: FloatArray

    @property
    def deviations(self) -> float:
        """Of the sum, in standard deviations of a normal law; tables that can come out in one way only say nothing."""
        open_ = self.variance > _CONSTANT * self.mean**2
        mean, variance = float(self.mean[open_].sum()), float(self.variance[open_].sum())
        if variance <= 0:
            return 0.0
        return normal_of_chi_squared(float(self.statistic[open_].sum()) * 2 * mean / variance, 2 * mean**2 / variance)


@dataclass(frozen=True)
class Margin:
    """One side of many tables: how many rows or columns there are, and Σ 1/total of them."""

    number: FloatArray
    inverse: FloatArray

    def spread(self, n: FloatArray) -> tuple[FloatArray, FloatArray]:
        """v − w and w of the module, for tables of n rows."""
        w = np.divide(n * self.inverse - self.number**2, n - 2, out=np.zeros_like(n), where=n > 2)
        return (self.number - 1) * (n - self.number) / np.maximum(n - 1, 1) - w, np.maximum(w, 0.0)


NO_TABLES = Tables(*(np.zeros(0) for _ in range(4)))


def _tables(statistic: FloatArray, n: FloatArray, parts: Margin, kinds: Margin) -> Tables:
    """With the mean and the variance of the module; a table with one part, or one kind, has no degree of freedom."""
    degrees = np.maximum(parts.number - 1, 0) * np.maximum(kinds.number - 1, 0)
    some = degrees > 0
    statistic, n, degrees = statistic[some], n[some], degrees[some]
    (left, w1), (right, w2) = (Margin(side.number[some], side.inverse[some]).spread(n) for side in (parts, kinds))
    both = np.divide(2 * n, n - 3, out=np.zeros_like(n), where=n > 3) * left * right
    variance = np.maximum(both, 0.0) + n**2 / (n - 1) * w1 * w2
    return Tables(statistic, degrees, n / (n - 1) * degrees, variance)


def _next_states(parts: Parts) -> Tables:
    """Σ (n − e)²/e over all cells of all comparable pairs, empty ones too."""
    if len(parts.rows) == 0:
        return NO_TABLES
    n_pairs = int(parts.pair.max()) + 1
    key = parts.part * n_pairs + parts.pair
    of_part, of_cell, of_pair = sum_by(key, parts.rows), sum_by(parts.cell, parts.rows), sum_by(parts.pair, parts.rows)
    expected = of_part[key] * of_cell[parts.cell] / of_pair[parts.pair]
    # Σ (n − e)²/e = Σ n²/e − N for every pair: cells that a part lacks need no entry.
    statistic = sum_by(parts.pair, parts.rows**2 / expected) - of_pair
    present = np.unique(key)
    cell, first = np.unique(parts.cell, return_index=True)
    return _tables(
        statistic,
        of_pair,
        _margin(present % n_pairs, of_part[present], n_pairs),
        _margin(parts.pair[first], of_cell[cell], n_pairs),
    )


def _margin(table: IntArray, total: FloatArray, n_tables: int) -> Margin:
    ones = np.ones(len(table))
    return Margin(sum_by(table, ones, n_tables), sum_by(table, 1.0 / total, n_tables))


def _rewards(parts: Parts) -> Tables:
    """Σ n (r − r̄)²/v over the cells whose rewards are not all the same."""
    if len(parts.rows) == 0:
        return NO_TABLES
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
    statistic = sum_by(cell, n * off**2 / variance[cell], len(rows))
    two = np.where(varies, 2.0, 0.0)
    share = np.where(varies, (mean - lowest) / np.where(varies, highest - lowest, 1.0), 0.5)
    with np.errstate(divide="ignore"):
        inverse = np.divide(1.0, rows * share * (1.0 - share), out=np.zeros_like(rows), where=varies)
    return _tables(statistic, rows, _margin(cell, n, len(rows)), Margin(two, inverse))


def _early_and_late(logs: LogEvidence) -> Diagnostic | None:
    if logs.transitions is None or logs.sums.ordered is None:
        return None
    return halves_agree(logs.transitions, logs.sums.ordered, logs.sums.totals.logger)


LOGGERS = Check(
    "loggers agree",
    "data",
    WORLDS,
    "evaluate one logger's rows, or put what differs into the state",
    judge_logs=lambda logs: None if logs.transitions is None else loggers_agree(logs.transitions),
)
EPISODES = Check(
    "episodes agree",
    "data",
    WORLDS,
    "find the date; evaluate the rows of the world that will be",
    judge_logs=_early_and_late,
)
