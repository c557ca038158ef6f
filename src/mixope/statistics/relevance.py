"""How much each column of a state matters for what follows.

A column matters if it helps to tell the reward, the end or the action of a row, or how a column that matters will
change. Trees are fitted to one half of the episodes; on the other half, I(k → y) is the share of the variance of y that
they lose where column k is shuffled. From there

    ρ_k = max( I(k → reward), I(k → end), I(k → action) ),  each divided by its largest,
    ρ_k ← max( ρ_k, ρ_j I(k → s′_j − s_j) / max_i I(i → s′_j − s_j) )      until nothing changes,

and the relevance is √ρ_k, at least a tenth: a target may look at what nobody looked at before. Shares within what
shuffling does by chance are 0. Where nothing can be told from any column, all matter alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import AnyArray, FloatArray, IntArray, short_seed
from mixope.features import StateEncoding
from mixope.statistics.rows import Rows, fold_of

LEAST = 0.1
"""What a column matters at least."""
MOST_ROWS = 4000
_TREES = 30
_LEAF = 5
_CHANCE = 2.0
"""A share counts if it is so many standard errors above nothing."""
_MOST_ACTIONS = 20


def relevance_of(rows: Rows, seed: int = 0) -> FloatArray:
    """Of every column of the state, from 0.1 to 1."""
    width = rows.observation.reshape(len(rows), -1).shape[1]
    encoding = StateEncoding.fit(rows.observation, rows.roles)
    inside, outside = _halves(rows, seed)
    if encoding.size < 2 or min(len(inside), len(outside)) < 10 * _LEAF:
        return np.ones(width)
    owners = _owners(encoding)
    outcomes = _outcomes(rows, encoding, owners)
    shares = _shares(rows, encoding, owners, outcomes, (inside, outside), seed)
    columns = np.array(sorted(set(owners.tolist())))
    reached = _closure(shares, outcomes.about, columns)
    relevance = np.ones(width)
    if reached.max(initial=0.0) > 0:
        relevance[:] = LEAST
        relevance[columns] = np.maximum(np.sqrt(reached / reached.max()), LEAST)
        gaps = [k for k, role in enumerate(encoding.roles) if role == "missing"]
        relevance[gaps] = relevance[[k - 1 for k in gaps]]
    return relevance


def _halves(rows: Rows, seed: int) -> tuple[IntArray, IntArray]:
    """Rows of one half of the episodes and of the other, a few thousand at most."""
    draw = rows.draw if rows.draw is not None else np.arange(len(rows))
    first = fold_of(draw, 2) == 0
    generator = np.random.default_rng([seed, 41])
    halves = (np.flatnonzero(first), np.flatnonzero(~first))
    half = MOST_ROWS // 2
    taken = [h if len(h) <= half else np.sort(generator.choice(h, half, replace=False)) for h in halves]
    return taken[0], taken[1]


def _owners(encoding: StateEncoding) -> IntArray:
    """The column of the state behind each column of the encoding; an indicator belongs to its number."""
    return np.array([k - (encoding.roles[k] == "missing") for k in encoding.source], dtype=np.int64)


@dataclass(frozen=True)
class Outcomes:
    """What is to be told, side by side; ``about`` is the column of the state that changes, −1 for the rest.

    ``group`` numbers the outcomes: those of one category, or of the action, are told together.
    """

    values: FloatArray
    group: IntArray
    about: IntArray


def _outcomes(rows: Rows, encoding: StateEncoding, owners: IntArray) -> Outcomes:
    """Reward, end and action; and the change of every column, unknown after an end."""
    change = encoding.transform(rows.next_observation) - encoding.transform(rows.observation)
    change[rows.terminated] = 0.0
    action = _action_columns(rows.action)
    parts: list[tuple[AnyArray, int]] = [(rows.reward[:, None], -1), (rows.terminated[:, None], -1), (action, -1)]
    parts += [(change[:, owners == k], int(k)) for k in np.unique(owners)]
    values = np.concatenate([values for values, _ in parts], axis=1, dtype=np.float64)
    spread = values.std(axis=0)
    values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    group = np.concatenate([np.full(v.shape[1], g) for g, (v, _) in enumerate(parts)]).astype(np.int64)
    return Outcomes(values, group, np.array([about for _, about in parts]))


def _action_columns(actions: AnyArray) -> FloatArray:
    if actions.dtype.kind == "f":
        return np.asarray(actions.reshape(len(actions), -1), dtype=np.float64)
    names, count = np.unique(actions, return_counts=True)
    names = names[np.argsort(-count, kind="stable")[:_MOST_ACTIONS]]
    return np.asarray(actions[:, None] == names, dtype=np.float64)


def _shares(
    rows: Rows,
    encoding: StateEncoding,
    owners: IntArray,
    outcomes: Outcomes,
    halves: tuple[IntArray, IntArray],
    seed: int,
) -> FloatArray:
    """I(k → y) of every column (in order of ``owners``) and group of outcomes; 0 where chance explains it."""
    from sklearn.ensemble import ExtraTreesRegressor

    inside, outside = halves
    design = np.concatenate([encoding.transform(rows.observation), _action_columns(rows.action)], axis=1)
    told = outcomes.group != 2  # the action is told from the state alone
    found = np.zeros((len(np.unique(owners)), len(outcomes.about)))
    for chosen, inputs in ((told, design), (~told, design[:, : encoding.size])):
        model = ExtraTreesRegressor(
            _TREES, min_samples_leaf=_LEAF, max_features=0.5, random_state=short_seed(seed), n_jobs=1
        )
        values = outcomes.values[:, chosen]
        model.fit(inputs[inside], values[inside])
        found += _losses(model, inputs[outside], values[outside], owners, outcomes.group[chosen], found.shape, seed)
    return found


def _losses(
    model: object,
    inputs: FloatArray,
    values: FloatArray,
    owners: IntArray,
    group: IntArray,
    shape: tuple[int, ...],
    seed: int,
) -> FloatArray:
    """What is lost of each group of outcomes where a column is shuffled, in shares of its variance."""
    found, generator = np.zeros(shape), np.random.default_rng([seed, 43])
    predict = model.predict  # type: ignore[attr-defined]
    before = (values - predict(inputs).reshape(values.shape)) ** 2
    for position, k in enumerate(np.unique(owners)):
        shuffled = inputs.copy()
        mine = np.flatnonzero(owners == k)
        shuffled[:, mine] = inputs[generator.permutation(len(inputs))][:, mine]
        lost = (values - predict(shuffled).reshape(values.shape)) ** 2 - before
        for g in np.unique(group):
            each = lost[:, group == g].mean(axis=1)
            error = float(each.std()) / np.sqrt(len(each))
            found[position, g] = max(float(each.mean()), 0.0) if each.mean() > _CHANCE * error else 0.0
    return found


def _closure(shares: FloatArray, about: IntArray, columns: IntArray) -> FloatArray:
    """ρ of every column."""
    most = shares.max(axis=0)
    relative = shares / np.where(most > 0, most, 1.0)
    reached = relative[:, about < 0].max(axis=1)
    while True:
        onward = reached[np.searchsorted(columns, about[about >= 0])]
        farther = np.maximum(reached, (relative[:, about >= 0] * onward).max(axis=1, initial=0.0))
        if np.array_equal(farther, reached):
            return np.asarray(reached)
        reached = farther
