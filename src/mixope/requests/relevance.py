"""How much each column of a state matters for what follows.

A column matters if it helps to tell the reward, the end or the action of a row, or how a column that matters will
change. To see that, every outcome y is explained by boosting: round after round the one column that explains most of
what is left is given a step towards the means of its cells (its levels, or eight ranges of a number, for each action).
This is done on one half of the episodes and judged on the other, and the other way round: I(k → y) is the share of the
variance of y that the steps of column k explain there. From there

    ρ_k = max( I(k → reward), I(k → end), I(k → action) ),  each divided by its largest,
    ρ_k ← max( ρ_k, ρ_j I(k → s′_j − s_j) / max_i I(i → s′_j − s_j) )      until nothing changes,

and the relevance is √ρ_k, at least a tenth: a target may look at what nobody looked at before. Outcomes of which
nothing can be told are left out; where nothing can be told at all, all columns matter alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray, positions, sum_by
from mixope.features import StateEncoding
from mixope.requests.rows import Rows, fold_of

LEAST = 0.1
"""What a column matters at least."""
RANGES = 8
_ROUNDS, _STEP, _SHRINK = 40, 0.3, 20.0
"""Rounds of boosting, the length of a step, and the rows that are added to a cell to pull its mean to nothing."""
_TOLD = 10
"""Times 1/rows: the share of its variance that must be told of an outcome, if it is to say what matters."""
_FEWEST = 50
_MOST_ACTIONS = 12


def relevance_of(rows: Rows, seed: int = 0) -> FloatArray:
    """Of every column of the state, from 0.1 to 1."""
    states = rows.observation.reshape(len(rows), -1)
    encoding = StateEncoding.fit(states, rows.roles)
    owners = np.array([k - (encoding.roles[k] == "missing") for k in encoding.source], dtype=np.int64)
    columns = np.unique(owners)
    first = fold_of(rows.draw if rows.draw is not None else np.arange(len(rows)), 2) == 0
    if len(columns) < 2 or min(first.sum(), (~first).sum()) < _FEWEST:
        return np.ones(states.shape[1])
    cells = [_cells(encoding, states, int(k)) for k in columns]
    outcomes = _outcomes(rows, encoding, owners)
    shares = sum(_shares(cells, outcomes, _action_cells(rows.action), half) for half in (first, ~first))
    reached = _closure(np.asarray(shares) / 2.0, outcomes.about, columns, _TOLD / len(rows))
    relevance = np.ones(states.shape[1])
    if reached.max() > 0:
        relevance[:] = LEAST
        relevance[columns] = np.maximum(np.sqrt(reached / reached.max()), LEAST)
        gaps = [k for k, role in enumerate(encoding.roles) if role == "missing"]
        relevance[gaps] = relevance[[k - 1 for k in gaps]]
    return relevance


def _cells(encoding: StateEncoding, states: AnyArray, k: int) -> IntArray:
    """The cell of every row by one column: its level, or the range in which the number lies; missing ones apart."""
    if encoding.roles[k] in {"category", "id"}:
        column = states[:, k].astype(str) if states.dtype.kind == "O" else states[:, k]
        levels = np.sort(encoding.levels[k])
        return positions(column, levels) + 1
    known = states[:, k + 1] == 0 if encoding.roles[k + 1 : k + 2] == ("missing",) else np.ones(len(states), dtype=bool)
    edges = np.quantile(states[known, k], np.arange(1, RANGES) / RANGES)
    return np.where(known, np.searchsorted(edges, states[:, k]) + 1, 0)


def _action_cells(actions: AnyArray) -> IntArray:
    """The actions, numbered; of vectors, thirds of each of the first two components."""
    if actions.dtype.kind != "f":
        _, code, count = np.unique(actions, return_inverse=True, return_counts=True)
        rank = np.argsort(np.argsort(-count, kind="stable"), kind="stable")
        return np.minimum(rank[code], _MOST_ACTIONS)
    parts = actions.reshape(len(actions), -1)[:, :2]
    thirds = [np.searchsorted(np.quantile(part, (1 / 3, 2 / 3)), part) for part in parts.T]
    return np.asarray(thirds[0] if len(thirds) == 1 else 3 * thirds[0] + thirds[1], dtype=np.int64)


@dataclass(frozen=True)
class Responses:
    """What is to be told, centred, side by side; ``group`` says which belong together (the levels of a category).

    ``about`` is, for every group, the column of the state that changes: −1 for reward and end, −2 for the action.
    """

    values: FloatArray
    group: IntArray
    about: IntArray


def _outcomes(rows: Rows, encoding: StateEncoding, owners: IntArray) -> Responses:
    """Reward, end and action; and the change of every column, none after an end."""
    change = encoding.transform(rows.next_observation) - encoding.transform(rows.observation)
    change[rows.terminated] = 0.0
    done = _action_cells(rows.action)
    taken = np.asarray(done[:, None] == np.unique(done), dtype=np.float64)
    parts: list[tuple[AnyArray, int]] = [(rows.reward[:, None], -1), (rows.terminated[:, None], -1), (taken, -2)]
    parts += [(change[:, owners == k], int(k)) for k in np.unique(owners)]
    values = np.concatenate([values for values, _ in parts], axis=1, dtype=np.float64)
    values -= values.mean(axis=0)
    spread = np.abs(values).max(axis=0)
    group = np.concatenate([np.full(v.shape[1], g) for g, (v, _) in enumerate(parts)]).astype(np.int64)
    return Responses(values / np.where(spread > 0, spread, 1.0), group, np.array([about for _, about in parts]))


def _shares(cells: Sequence[IntArray], outcomes: Responses, actions: IntArray, inside: BoolArray) -> FloatArray:
    """I(k → y) of every column and group of outcomes, boosted on the rows inside and judged on the others."""
    n_groups = len(outcomes.about)
    told = np.zeros((len(cells), n_groups))
    of_state = outcomes.about[outcomes.group] != -2
    both = [cell * (int(actions.max()) + 1) + actions for cell in cells]
    for chosen, learners in ((of_state, [*both, actions]), (~of_state, list(cells))):
        gains = _boosted(learners, outcomes.values[:, chosen], inside)[: len(cells)]
        for g in np.unique(outcomes.group[chosen]):
            mine = outcomes.group[chosen] == g
            total = float((outcomes.values[~inside][:, chosen][:, mine] ** 2).sum())
            told[:, g] = gains[:, mine].sum(axis=1) / total if total > 0 else 0.0
    return told


def _boosted(learners: Sequence[IntArray], values: FloatArray, inside: BoolArray) -> FloatArray:
    """How much of the squares outside the steps of each learner take away, for every outcome, until more do harm."""
    sizes = [int(cell.max()) + 1 for cell in learners]
    start = np.concatenate([[0], np.cumsum(sizes)])
    n, every = len(values), np.stack([cell + low for cell, low in zip(learners, start, strict=False)], axis=1)
    where = sparse.csr_matrix(
        (np.ones(every.size), every.ravel(), np.arange(n + 1) * len(learners)), shape=(n, int(start[-1]))
    )
    belongs = np.repeat(np.arange(len(learners)), sizes)
    fitted, judged = where[inside].T.tocsr(), every[~inside]
    rows = np.asarray(fitted.sum(axis=1)) + _SHRINK
    left, rest, gains = values[inside].copy(), values[~inside].copy(), np.zeros((len(learners), values.shape[1]))
    least, best_gains = (rest**2).sum(axis=0), gains.copy()
    for _ in range(_ROUNDS):
        sums = fitted @ left
        means = sums / rows
        explained = np.stack([sum_by(belongs, column) for column in (sums * means).T], axis=1)
        best = explained.argmax(axis=0)
        for j, k in enumerate(best):
            left[:, j] -= _STEP * means[every[inside, k], j]
            after = rest[:, j] - _STEP * means[judged[:, k], j]
            gains[k, j] += float((rest[:, j] ** 2).sum() - (after**2).sum())
            rest[:, j] = after
        now = (rest**2).sum(axis=0)
        best_gains[:, now < least], least = gains[:, now < least], np.minimum(now, least)
    return best_gains


def _closure(shares: FloatArray, about: IntArray, columns: IntArray, least: float) -> FloatArray:
    """ρ of every column, by outcomes of which some column tells more than the least share."""
    most = shares.max(axis=0)
    relative = np.where(most > least, np.maximum(shares, 0.0) / np.where(most > least, most, 1.0), 0.0)
    reached, onward = relative[:, about < 0].max(axis=1), relative[:, about >= 0]
    place = np.searchsorted(columns, about[about >= 0])
    while True:
        farther = np.maximum(reached, (onward * reached[place]).max(axis=1))
        if np.array_equal(farther, reached):
            return np.asarray(reached)
        reached = farther
