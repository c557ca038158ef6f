"""The counted model, completed: EMP where pairs were logged, kriging over the factors where they were not.

EMP takes the target over the actions seen in a state, as if it never did anything else; that is its coverage bias,
and a state whose only logged action leads back to it can hold any mass. Here every action of the target counts. With
G the map from logged pairs to states,

    (G y)(s) = Σ_{a logged in s} π(a|s) y(s,a) + Σ_{a not} π(a|s) Σ_pairs g(s; pair) y(pair),

g the weights of :mod:`mixope.estimators.counts.kriging`, T = G P̂ and R = G r̂ make a chain in which nothing is missing:

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

from mixope.base.arrays import AnyArray, FloatArray, IntArray, sum_by
from mixope.base.errors import UsageError, must_fit
from mixope.base.estimand import Estimand
from mixope.estimators.counts.completed_part import CompletedPart
from mixope.estimators.counts.kriging import NEIGHBOURS, Kriging, Likeness, Places, first_guess, measure_likeness
from mixope.requests.transitions import noise_by_action
from mixope.solvers.chain import Side, krylov
from mixope.solvers.outcome import Outcome, Solved

_ROUGH = 16
"""Neighbours of the first guess, which only serves to measure how alike pairs are; no prediction has fewer."""
_WEIGHTS = 1_500_000
"""How many weights of neighbours there may be before predictions get by with fewer."""
_TOLERANCE, _CLOSE = 1e-12, 1e-8
_DENSE, _MOST_DENSE = 300, 6000


@dataclass(frozen=True)
class Map:
    """G: from logged pairs to states, with the kriging of every logged action."""

    part: CompletedPart
    likeness: Likeness
    actions: tuple[tuple[IntArray, Kriging], ...] = field(repr=False)

    @cached_property
    def _logged(self) -> FloatArray:
        """π(a|s) of every logged pair."""
        return np.asarray(self.part.target[self.part.pair_state, self.part.rows.pair_action])

    @cached_property
    def _local(self) -> sparse.csr_matrix:
        """K: the weights of neighbours, times π(a|s)."""
        state, pair, weight = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)]
        for pairs, kriging in self.actions:
            near = kriging.local
            row = np.repeat(kriging.unseen, np.diff(near.indptr))
            state.append(row)
            pair.append(pairs[near.indices])
            weight.append(kriging.chance[row] * near.data)
        entries = np.concatenate(weight), (np.concatenate(state), np.concatenate(pair))
        return sparse.csr_matrix(entries, shape=(len(self.part.states), self.part.rows.n_pairs))

    @cached_property
    def _trend(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        """X of all logged pairs, its prediction U of the states, times π(a|s), and B: the columns of all actions."""
        n_states, n_pairs = len(self.part.states), self.part.rows.n_pairs
        logged, ahead, fit = [], [], []
        for pairs, kriging in self.actions:
            x, u, b = kriging.trend
            logged.append(_place(x, pairs, n_pairs))
            weighted = sparse.csr_matrix(sparse.diags_array(kriging.chance[kriging.unseen]) @ u)
            ahead.append(_place(weighted, kriging.unseen, n_states))
            fit.append(_place(sparse.csr_matrix(b.T), pairs, n_pairs))
        stack = [sparse.csr_matrix(sparse.hstack(blocks)) for blocks in (logged, ahead, fit)]
        return stack[0], stack[1], sparse.csr_matrix(stack[2].T)

    def forward(self, y: FloatArray) -> FloatArray:
        """G y."""
        found = sum_by(self.part.pair_state, self._logged * y, len(self.part.states))
        if self.actions:
            logged, ahead, fit = self._trend
            beta = fit @ y
            found += ahead @ beta + self._local @ (y - logged @ beta)
        return found

    def columns(self, matrix: sparse.csr_matrix) -> FloatArray:
        """G applied to every column, as a dense table."""
        place = self._logged, (self.part.pair_state, np.arange(self.part.rows.n_pairs))
        own = sparse.csr_matrix(place, shape=self._local.shape) + self._local
        found = np.asarray((own @ matrix).toarray())
        if self.actions:
            logged, ahead, fit = self._trend
            found += (ahead - self._local @ logged) @ (fit @ matrix).toarray()
        return found

    def backward(self, law: FloatArray) -> FloatArray:
        """law G: the weight of every logged pair."""
        return np.asarray(law[self.part.pair_state] * self._logged + self.predicting(law))

    def predicting(self, law: FloatArray) -> FloatArray:
        """The part of law G that predicts what was not logged."""
        if not self.actions:
            return np.zeros(self.part.rows.n_pairs)
        local, (logged, ahead, fit) = self._back
        weight = local @ law
        return np.asarray(weight + fit @ (ahead @ law - logged @ weight))

    @cached_property
    def _back(self) -> tuple[sparse.csr_matrix, tuple[sparse.csr_matrix, ...]]:
        return self._local.T.tocsr(), tuple(matrix.T.tocsr() for matrix in self._trend)

    @cached_property
    def chain(self) -> Completed:
        """T, R and what ends, on the kept states."""
        return Completed(self)

    def variance(self, law: FloatArray) -> float:
        """Of what is predicted, where the target would be by ``law``."""
        weight = self.predicting(law)
        parts = (k.variance((law * k.chance)[k.unseen], weight[pairs]) for pairs, k in self.actions)
        return self.likeness.sill * sum(parts)


def _place(matrix: sparse.csr_matrix, rows: IntArray, n: int) -> sparse.csr_matrix:
    """The same rows among n."""
    entries = matrix.tocoo()
    return sparse.csr_matrix((entries.data, (rows[entries.row], entries.col)), shape=(n, matrix.shape[1]))


def make_map(part: CompletedPart, likeness: Likeness, most: int = NEIGHBOURS) -> Map:
    """Kriging for every logged action that something is left to be predicted of, with that many neighbours at most."""
    places = Places(part.factors, likeness)
    neighbours = max(_ROUGH, min(most, _WEIGHTS // max(part.n_unseen, 1)))
    actions = []
    for action in np.unique(part.rows.pair_action):
        pairs = np.flatnonzero(part.rows.pair_action == action)
        unseen = part.unseen(action)
        if len(unseen):
            chance = np.ascontiguousarray(part.target[:, action])
            kriging = Kriging(places, part.pair_state[pairs], part.pair_rows[pairs], unseen, chance, neighbours)
            actions.append((pairs, kriging))
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
    def part(self) -> CompletedPart:
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
        return noise_by_action(self.part.rows, self.worth)

    def likeness(self) -> Likeness:
        """How alike pairs are in what they turned out to be worth."""
        part, rows = self.part, self.part.rows
        known = sum_by(rows.pair_action, np.maximum(part.pair_rows - 1.0, 0.0), len(rows.actions))
        noise = float(known @ self.noise) / max(float(known.sum()), 1.0)
        return measure_likeness(part.factors, part.pair_state, rows.pair_action, part.pair_rows, self.pair_worth, noise)

    def unseen_error(self) -> float:
        """The standard deviation of what no score tells: of what is predicted, and of pairs that were met only once."""
        lone = self.part.pair_rows < 2.0
        once = float(np.sum((self.pair_weight**2 * self.noise[self.part.rows.pair_action])[lone]))
        return float(np.sqrt(self.map.variance(self.law) + once))


def complete(part: CompletedPart, likeness: Likeness | None = None) -> Completion:
    """Solve with a first guess, measure how alike pairs are (unless it is given), solve again.

    On rewards less their mean: how alike pairs are must not depend on where rewards have their zero, except where an
    end is worth 0 (absorbing ends, in logs that have some), so that the zero means something. Nor must it depend on how
    many steps are left: for a horizon of T it is that of the discounted value with γ = 1 − 1/(T+1).
    """
    rows, guess = part.rows, first_guess(part.factors.shape[1])
    absorbing = not part.problem.estimand.restarts and bool((rows.next_state < 0).any())
    zero = 0.0 if absorbing else float(rows.reward.sum() / rows.rows.sum())
    likeness = likeness or _solve(make_map(_timeless(_less(part, zero)), guess, _ROUGH)).likeness()
    found = _solve(make_map(_less(part, zero), likeness))
    return replace(found, value=found.value + zero * part.problem.estimand.forever, zero=zero)


def _timeless(part: CompletedPart) -> CompletedPart:
    """The same rows; a horizon becomes a discount."""
    horizon = part.problem.estimand.horizon
    if part.problem.estimand.kind != "horizon" or horizon is None:
        return part
    return replace(
        part, problem=replace(part.problem, estimand=Estimand("discounted", gamma=1.0 - 1.0 / (horizon + 1)))
    )


def _less(part: CompletedPart, mean: float) -> CompletedPart:
    """The same rows with that much less reward each."""
    rows = part.rows
    centred = replace(rows, reward=rows.reward - rows.rows * mean)
    return replace(part, problem=replace(part.problem, transitions=centred))


@dataclass(frozen=True)
class Completed:
    """The completed chain, never written down: T = G P̂ (for the average an end leads to μ₀), and R = G r̂."""

    map: Map

    @property
    def part(self) -> CompletedPart:
        """The rows it is made of."""
        return self.map.part

    @property
    def n(self) -> int:
        """The kept states."""
        return len(self.part.states)

    @cached_property
    def moves(self) -> sparse.csr_matrix:
        """P̂: from logged pairs to states."""
        return self.part.following[:, : self.n]

    @cached_property
    def reward(self) -> FloatArray:
        """R."""
        return self.map.forward(_column(self.part.following, self.n + 1))

    @cached_property
    def ends(self) -> FloatArray:
        """The share of the rows of every pair that end an episode."""
        return _column(self.part.following, self.n)

    @cached_property
    def _back(self) -> sparse.csr_matrix:
        return self.moves.T.tocsr()

    def forward(self, v: FloatArray) -> FloatArray:
        """T v."""
        ahead = self.moves @ v
        if self._restarts:
            ahead = ahead + self.ends * float(self.part.start @ v)
        return self.map.forward(np.asarray(ahead))

    def backward(self, law: FloatArray) -> FloatArray:
        """law T."""
        weight = self.map.backward(law)
        arrived = self._back @ weight
        if self._restarts:
            arrived = arrived + self.part.start * float(weight @ self.ends)
        return np.asarray(arrived)

    @cached_property
    def _restarts(self) -> bool:
        return self.part.problem.estimand.restarts and bool(self.ends.any())

    @cached_property
    def gamma(self) -> float:
        """The discount; 1 where there is none."""
        return self.part.problem.estimand.discount

    @cached_property
    def share(self) -> FloatArray:
        """For the average the share of the rows in every state, else zeros."""
        by_state = sum_by(self.part.pair_state, self.part.pair_rows, self.n)
        return np.asarray(by_state / by_state.sum() if self.part.problem.estimand.restarts else 0.0 * by_state)

    def solve(self, right: FloatArray, trans: Side) -> FloatArray:
        """With I − γT + 1 shareᵀ or its transpose: directly if small, else iterated, directly where that stalls.

        Where γ is 1 the share takes the eigenvalue 1 out of T and leaves the others.
        """

        def apply(x: FloatArray) -> FloatArray:
            if trans == "N":
                return np.asarray(x - self.gamma * self.forward(x) + float(self.share @ x))
            return np.asarray(x - self.gamma * self.backward(x) + self.share * float(x.sum()))

        iterates = self.n > _DENSE and "_factor" not in self.__dict__
        found = krylov(apply, right, _TOLERANCE, _TOLERANCE if self.n <= _MOST_DENSE else _CLOSE) if iterates else None
        if found is None and self.n <= _MOST_DENSE:
            found = np.asarray(linalg.lu_solve(self._factor, right, trans=0 if trans == "N" else 1))
        if found is None:
            raise UsageError(
                f"the completed chain of {self.n:,} states mixes too slowly to be iterated, and elimination would take"
                f" {self.n**2 * 8 / 1024**2:,.0f} MB (up to {_MOST_DENSE:,} states are eliminated). Use 'emp', or ask"
                " for a discounted value"
            )
        return found

    @cached_property
    def _factor(self) -> tuple[FloatArray, AnyArray]:
        moved = self.map.columns(self.moves)
        if self._restarts:
            moved = moved + np.outer(self.map.forward(self.ends), self.part.start)
        factor, pivots = linalg.lu_factor(np.eye(self.n) - self.gamma * moved + self.share[None, :])
        return factor, np.asarray(pivots, dtype=np.int64)


def _column(matrix: sparse.csr_matrix, number: int) -> FloatArray:
    return np.asarray(matrix[:, [number]].todense()).ravel()


def _solve(mapping: Map) -> Completion:
    estimand = mapping.part.problem.estimand
    solve = _average if estimand.restarts else _summed if estimand.sums else _horizon
    return solve(mapping)


def _average(mapping: Map) -> Completion:
    """V with share·V = η and d, both with I − T + 1 shareᵀ, share the rows of a state: its eigenvalue 1 is gone."""
    part, chain = mapping.part, mapping.chain
    v, law = chain.solve(chain.reward, "N"), chain.solve(chain.share, "T")
    weight = mapping.backward(law)
    value = float(law @ chain.reward)
    after_end = float(part.start @ v)
    tail = _ahead(part, v, after_end) - value
    ends = float(weight @ chain.ends)
    residual = float(np.abs(chain.backward(law) - law).sum())
    return Completion(mapping, law, value, weight, tail, ends * (v - after_end), _solved(residual))


def _summed(mapping: Map) -> Completion:
    part, chain = mapping.part, mapping.chain
    gamma, scale = chain.gamma, part.problem.estimand.scale
    v, law = chain.solve(chain.reward, "N"), scale * chain.solve(part.start, "T")
    value = scale * float(part.start @ v)
    residual = float(np.abs(scale * part.start + gamma * chain.backward(law) - law).sum()) / max(1.0, law.sum())
    tail, start = gamma * _ahead(part, v, 0.0), scale * v - value
    return Completion(mapping, law, value, mapping.backward(law), tail, start, _solved(residual))


def _horizon(mapping: Map) -> Completion:
    part, chain = mapping.part, mapping.chain
    horizon = int(part.problem.estimand.horizon or 1)
    must_fit("the law of the states at every step of the horizon", (horizon, chain.n), "Use a discount instead")
    laws = np.empty((horizon, chain.n))
    laws[0] = part.start
    for t in range(1, horizon):
        laws[t] = chain.backward(laws[t - 1])
    v, carried, total = np.zeros(chain.n), np.zeros(part.rows.n_groups), np.zeros(part.rows.n_pairs)
    for t in range(horizon - 1, -1, -1):
        weight = mapping.backward(laws[t])
        carried += weight[part.rows.pair] * _ahead(part, v, 0.0)
        total += weight
        v = chain.reward + chain.forward(v)
    at = total[part.rows.pair]
    tail = np.divide(carried, at, out=np.zeros_like(carried), where=at != 0)
    value = float(part.start @ v) / horizon
    law = laws.sum(axis=0) / horizon
    return Completion(mapping, law, value, total / horizon, tail, v / horizon - value, _solved(0.0))


def _ahead(part: CompletedPart, v: FloatArray, after_end: float) -> FloatArray:
    """V(s′) of every kept group."""
    following = part.rows.next_state
    return np.where(following >= 0, v[part.number[following]], after_end)


def _solved(residual: float) -> Solved:
    return Solved(Outcome.DIRECT if residual <= _CLOSE else Outcome.INACCURATE, residual)
