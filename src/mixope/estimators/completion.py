"""The counted model, completed: EMP where pairs were logged, kriging over the factors where they were not.

EMP takes the target over the actions seen in a state, as if it never did anything else; that is its coverage bias,
and a state whose only logged action leads back to it can hold any mass. Here every action of the target counts. With
G the map from logged pairs to states,

    (G y)(s) = Σ_{a logged in s} π(a|s) y(s,a) + Σ_{a not} π(a|s) Σ_pairs g(s; pair) y(pair),

g the weights of :mod:`mixope.estimators.kriging`, T = G P̂ and R = G r̂ make a chain in which nothing is missing:

    average      V = R − η + T V,   d = d T           tail t = V(s′) − η
    discounted   V = R + γ T V,     d = (1−γ) μ₀ + γ d T       t = γ V(s′)
    horizon      V_t = R + T V_{t+1},  d_{t+1} = d_t T         t = Σ_t w_t V_{t+1}(s′) / Σ_t w_t

The value is d·R = Σ w r̂ with w = d G the weight of every logged pair. It is doubly robust in that
Σ w (r + t − q(s,a)) adds nothing, q(s,a) being the mean of r + t over the rows of the pair; its summand is the score.
Where all that the target does was logged it *is* ``emp``, and so efficient.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import linalg, sparse

from mixope.arrays import FloatArray, sum_by
from mixope.estimand import Estimand
from mixope.estimators.completed_part import Part
from mixope.estimators.kriging import Kriging, Likeness, first_guess, measure_likeness
from mixope.solvers.outcome import Outcome, Solved
from mixope.statistics.transitions import Transitions

MOST_STATES, MOST_WEIGHTS = 3000, 50_000_000
"""Above this many states the dense solves cost too much, above this many states × logged pairs their weights do."""
_CLOSE = 1e-8


@dataclass(frozen=True)
class Map:
    """G: from logged pairs to states."""

    part: Part
    likeness: Likeness
    actions: tuple[Kriging, ...] = field(repr=False)

    @cached_property
    def _logged(self) -> FloatArray:
        """π(a|s) of every logged pair."""
        return np.asarray(self.part.target[self.part.pair_state, self.part.rows.pair_action])

    def forward(self, pairs: sparse.csr_matrix) -> FloatArray:
        """G applied to columns over pairs."""
        shape = (len(self.part.states), self.part.rows.n_pairs)
        own = sparse.csr_matrix((self._logged, (self.part.pair_state, np.arange(shape[1]))), shape=shape)
        result = np.asarray((own @ pairs).todense())
        for kriging in self.actions:
            if len(kriging.unseen):
                predicted = np.asarray((pairs[kriging.pairs].T @ kriging.weights.T).T)
                result[kriging.unseen] += kriging.chance[kriging.unseen][:, None] * predicted
        return result

    def backward(self, law: FloatArray) -> FloatArray:
        """law G: the weight of every logged pair."""
        weight = law[self.part.pair_state] * self._logged
        for kriging in self.actions:
            weight[kriging.pairs] += (law * kriging.chance)[kriging.unseen] @ kriging.weights
        return np.asarray(weight)

    def variance(self, law: FloatArray) -> float:
        """Of what is predicted, where the target would be by ``law``."""
        return self.likeness.sill * sum(k.variance((law * k.chance)[k.unseen]) for k in self.actions if len(k.unseen))


def make_map(part: Part, likeness: Likeness) -> Map:
    """Kriging for every logged action."""
    alike = likeness.between(np.asarray(part.rows.observations)[part.states])
    actions = []
    for action in np.unique(part.rows.pair_action):
        pairs = np.flatnonzero(part.rows.pair_action == action)
        unseen = np.flatnonzero(~part.logged[:, action] & (part.target[:, action] > 0))
        chance = np.ascontiguousarray(part.target[:, action])
        rows = part.pair_rows[pairs]
        states = part.pair_state[pairs]
        actions.append(Kriging(int(action), pairs, states, unseen, rows, alike, chance, likeness.nugget))
    return Map(part, likeness, tuple(actions))


@dataclass(frozen=True)
class Completion:
    """Solved: d on the kept states, the value, the weight of every logged pair, tails of the kept groups.

    ``zero`` was taken off the rewards of the part.
    """

    map: Map = field(repr=False)
    law: FloatArray
    value: float
    pair_weight: FloatArray
    tail: FloatArray
    start_score: FloatArray
    solved: Solved
    zero: float = 0.0

    @property
    def part(self) -> Part:
        """The rows it was made of."""
        return self.map.part

    @cached_property
    def worth(self) -> FloatArray:
        """r + t, mean over the rows of every kept group."""
        return np.asarray(self.part.rows.reward / self.part.rows.rows + self.tail)

    @cached_property
    def pair_worth(self) -> FloatArray:
        """r + t, mean over the rows of every logged pair."""
        rows = self.part.rows
        return np.asarray(sum_by(rows.pair, rows.rows * self.worth) / self.part.pair_rows)

    @cached_property
    def noise(self) -> FloatArray:
        """The variance of one row about the mean of its pair, for every action; of all rows where none repeats."""
        part, rows = self.part, self.part.rows
        within = sum_by(rows.action, rows.rows * (self.worth - self.pair_worth[rows.pair]) ** 2, len(rows.actions))
        known = sum_by(rows.pair_action, np.maximum(part.pair_rows - 1.0, 0.0), len(rows.actions))
        overall = float(within.sum()) / max(float(known.sum()), 1.0)
        return np.divide(within, known, out=np.full_like(within, overall), where=known > 0)

    def likeness(self) -> Likeness:
        """How alike pairs are in what they turned out to be worth."""
        part, rows = self.part, self.part.rows
        known = sum_by(rows.pair_action, np.maximum(part.pair_rows - 1.0, 0.0), len(rows.actions))
        noise = float(known @ self.noise) / max(float(known.sum()), 1.0)
        kept = np.asarray(rows.observations)[part.states]
        return measure_likeness(kept, part.pair_state, rows.pair_action, part.pair_rows, self.pair_worth, noise)

    def unseen_error(self) -> float:
        """The standard deviation of what no score tells: of what is predicted, and of pairs that were met only once."""
        lone = self.part.pair_rows < 2.0
        once = float(np.sum((self.pair_weight**2 * self.noise[self.part.rows.pair_action])[lone]))
        return float(np.sqrt(self.map.variance(self.law) + once))


def complete(part: Part, likeness: Likeness | None = None) -> Completion:
    """Solve with a first guess, measure how alike pairs are (unless it is given), solve again.

    On rewards less their mean: how alike pairs are must not depend on where rewards have their zero. Only where an
    end is worth 0 (a discounted value or one of a horizon, in logs with ends) does the zero mean something. Nor must it
    depend on how many steps are left: for a horizon of T it is that of the discounted value with γ = 1 − 1/(T+1).
    """
    rows, guess = part.rows, first_guess(np.asarray(part.rows.observations).shape[1])
    mean = float(rows.reward.sum() / rows.rows.sum())
    likeness = likeness or _solve(make_map(_timeless(_less(part, mean)), guess)).likeness()
    if part.problem.estimand.kind != "average" and (rows.next_state < 0).any():
        return _solve(make_map(part, likeness))
    found = _solve(make_map(_less(part, mean), likeness))
    return replace(found, value=found.value + mean, zero=mean)


def _timeless(part: Part) -> Part:
    """The same rows; a horizon becomes a discount."""
    horizon = part.problem.estimand.horizon
    if part.problem.estimand.kind != "horizon" or horizon is None:
        return part
    return replace(
        part, problem=replace(part.problem, estimand=Estimand("discounted", gamma=1.0 - 1.0 / (horizon + 1)))
    )


def is_small(rows: Transitions) -> bool:
    """Whether a completed chain of these rows can be solved in reasonable time and memory."""
    return rows.n_states <= MOST_STATES and rows.n_states * rows.n_pairs <= MOST_WEIGHTS


def _less(part: Part, mean: float) -> Part:
    """The same rows with that much less reward each."""
    rows = part.rows
    centred = replace(rows, reward=rows.reward - rows.rows * mean)
    return replace(part, problem=replace(part.problem, transitions=centred))


def _solve(mapping: Map) -> Completion:
    kind = mapping.part.problem.estimand.kind
    moved = mapping.forward(mapping.part.following)
    return {"average": _average, "discounted": _discounted, "horizon": _horizon}[kind](mapping, moved)


def _average(mapping: Map, moved: FloatArray) -> Completion:
    part, n = mapping.part, len(mapping.part.states)
    transition = moved[:, :n] + np.outer(moved[:, n], part.start)
    share = sum_by(part.pair_state, part.pair_rows, n) / part.pair_rows.sum()
    system = np.block([[np.eye(n) - transition, np.ones((n, 1))], [share[None, :], np.zeros((1, 1))]])
    factor = linalg.lu_factor(system, check_finite=False)
    found = linalg.lu_solve(factor, np.append(moved[:, n + 1], 0.0))
    v, value = found[:n], float(found[n])
    law = linalg.lu_solve(factor, np.append(np.zeros(n), 1.0), trans=1)[:n]
    after_end = float(part.start @ v)
    tail = _ahead(part, v, after_end) - value
    weight = mapping.backward(law)
    ends = float(weight @ _ends(part))
    residual = float(np.abs(law @ transition - law).sum())
    return Completion(mapping, law, value, weight, tail, ends * (v - after_end), _solved(residual))


def _discounted(mapping: Map, moved: FloatArray) -> Completion:
    part, n = mapping.part, len(mapping.part.states)
    gamma = float(part.problem.estimand.gamma or 0.0)
    transition = moved[:, :n]
    factor = linalg.lu_factor(np.eye(n) - gamma * transition, check_finite=False)
    v = np.asarray(linalg.lu_solve(factor, moved[:, n + 1]))
    law = np.asarray((1.0 - gamma) * linalg.lu_solve(factor, part.start, trans=1))
    value = (1.0 - gamma) * float(part.start @ v)
    residual = float(np.abs((1.0 - gamma) * part.start + gamma * (law @ transition) - law).sum())
    start = (1.0 - gamma) * v - value
    return Completion(
        mapping, law, value, mapping.backward(law), gamma * _ahead(part, v, 0.0), start, _solved(residual)
    )


def _horizon(mapping: Map, moved: FloatArray) -> Completion:
    part, n = mapping.part, len(mapping.part.states)
    horizon = int(part.problem.estimand.horizon or 1)
    transition, reward = moved[:, :n], moved[:, n + 1]
    laws = np.empty((horizon, n))
    laws[0] = part.start
    for t in range(1, horizon):
        laws[t] = laws[t - 1] @ transition
    v, carried, total = np.zeros(n), np.zeros(part.rows.n_groups), np.zeros(part.rows.n_pairs)
    for t in range(horizon - 1, -1, -1):
        weight = mapping.backward(laws[t])
        carried += weight[part.rows.pair] * _ahead(part, v, 0.0)
        total += weight
        v = reward + transition @ v
    at = total[part.rows.pair]
    tail = np.divide(carried, at, out=np.zeros_like(carried), where=at != 0)
    value = float(part.start @ v) / horizon
    return Completion(
        mapping, laws.sum(axis=0) / horizon, value, total / horizon, tail, v / horizon - value, _solved(0.0)
    )


def _ahead(part: Part, v: FloatArray, after_end: float) -> FloatArray:
    """V(s′) of every kept group."""
    following = part.rows.next_state
    return np.where(following >= 0, v[part.number[following]], after_end)


def _ends(part: Part) -> FloatArray:
    """The share of the rows of every pair that end an episode."""
    column = part.following[:, [len(part.states)]]
    return np.asarray(column.todense()).ravel()


def _solved(residual: float) -> Solved:
    return Solved(Outcome.DIRECT if residual <= _CLOSE else Outcome.INACCURATE, residual)
