"""Value models: q(s,a) and V(s) = Σ_a π(a|s) q(s,a) over *all* actions, logged or not, linear in features of the state.

LSTD-Q on sums over rows, with x(s,a) = φ(s) ⊗ e_a and x(s′,π) = φ(s′) ⊗ π(·|s′):

    average      Σ x(s,a)[r − η + x(s′,π)·β − x(s,a)·β] = λ β,   Σ [r − η + x(s′,π)·β − x(s,a)·β] = 0   (unknown: β, η)
    discounted   Σ x(s,a)[r + γ x(s′,π)·β − x(s,a)·β] = λ β         (the total of an episode likewise, γ = 1 or given)
    horizon      β_t = argmin Σ (r + V_{t+1}(s′) − x·β)² + λ‖β‖²,  backwards from V_T = 0

This is what can say something of an action that was never logged in a state, and so cures coverage bias where states
have factors. Order of interactions and ridge λ choose themselves by leaving out whole (s,a) pairs, since that is what
the model is for: the regression of r + V(s′) on x(s,a), with V from a first fit, must predict pairs it has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy import linalg, sparse

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import UsageError
from mixope.estimators.counts.flow import Flow
from mixope.estimators.counts.kriging import number_factors
from mixope.features import FactorFeatures, cross_actions
from mixope.requests.transitions import Transitions

RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_FIRST_RIDGE = 1.0
PLUG_IN_RIDGE = 0.03
_MOST_COLUMNS = 4000


@dataclass(frozen=True)
class FlowValue:
    """A fitted value on a flow: ``rest`` is (discounted, time-averaged) V(s′) − q(s,a) of the kept groups.

    ``value`` is the plug-in estimate and ``start`` what a start in each state contributes to it.
    """

    rest: FloatArray
    start: FloatArray
    value: float
    order: int
    ridge: float


@dataclass(frozen=True)
class RegressionSums:
    """The sums over rows that every fit needs, for one feature map."""

    flow: Flow
    order: int
    phi: sparse.csr_matrix = field(repr=False)

    @cached_property
    def pairs(self) -> sparse.csr_matrix:
        """x(s,a) of the kept pairs."""
        rows = self.flow.rows
        hot = sparse.csr_matrix(
            (np.ones(rows.n_pairs), (np.arange(rows.n_pairs), rows.pair_action)),
            shape=(rows.n_pairs, len(rows.actions)),
        )
        return cross_actions(sparse.csr_matrix(self.phi[rows.pair_state]), hot)

    @cached_property
    def states(self) -> sparse.csr_matrix:
        """x(s,π) of all states; the target is taken over the logged actions."""
        target = self.flow.whole.state_target
        total = target.sum(axis=1, keepdims=True)
        return cross_actions(self.phi, sparse.csr_matrix(np.divide(target, total, out=target.copy(), where=total > 0)))

    @cached_property
    def count(self) -> FloatArray:
        """Rows of every kept pair."""
        return sum_by(self.flow.rows.pair, self.flow.count)

    @cached_property
    def reward(self) -> FloatArray:
        """Reward sum of every kept pair."""
        return sum_by(self.flow.rows.pair, self.flow.weight * self.flow.rows.reward)

    @cached_property
    def gram(self) -> FloatArray:
        """Σ x xᵀ."""
        return _dense(self.pairs.T @ self.pairs.multiply(self.count[:, None]))

    @cached_property
    def arrivals(self) -> sparse.csr_matrix:
        """Rows from every kept pair into every state."""
        rows = self.flow.rows
        alive = rows.next_state >= 0
        shape = (rows.n_pairs, rows.n_states)
        return sparse.csr_matrix((self.flow.count[alive], (rows.pair[alive], rows.next_state[alive])), shape=shape)

    @cached_property
    def ends(self) -> FloatArray:
        """Terminated rows of every kept pair."""
        ended = self.flow.rows.next_state < 0
        return sum_by(self.flow.rows.pair[ended], self.flow.count[ended], self.flow.rows.n_pairs)

    @cached_property
    def start_features(self) -> FloatArray:
        """E_μ₀ x(s,π)."""
        law = np.zeros(self.flow.rows.n_states)
        law[self.flow.states] = self.flow.start
        return np.asarray(self.states.T @ law)

    @cached_property
    def shift(self) -> FloatArray:
        """Σ x(s,a) x(s′,π)ᵀ; for the average an end leads to μ₀."""
        moved = _dense(self.pairs.T @ (self.arrivals @ self.states))
        if self.flow.restarts:
            moved = moved + np.outer(self.pairs.T @ self.ends, self.start_features)
        return moved

    def penalty(self, ridge: float) -> FloatArray:
        """λ for every column; none for the constants of logged actions, which carry the level of the rewards.

        For the average η carries it, and a constant q means nothing, so there they are shrunk like the rest.
        """
        penalty = np.full(self.pairs.shape[1], ridge)
        if not self.flow.problem.estimand.restarts:
            logged = np.unique(self.flow.rows.pair_action)
            penalty[logged * self.phi.shape[1]] = 0.0
        return penalty

    def ahead(self, value: FloatArray) -> FloatArray:
        """Σ V(s′) over the rows of every kept pair."""
        total = self.arrivals @ value
        if self.flow.restarts:
            law = np.zeros(self.flow.rows.n_states)
            law[self.flow.states] = self.flow.start
            total = total + self.ends * (law @ value)
        return np.asarray(total)


def _dense(matrix: sparse.csr_matrix) -> FloatArray:
    return np.asarray(matrix.todense())


def fit_value(flow: Flow, orders: tuple[int, ...] = (1, 2), ridges: tuple[float, ...] = RIDGES) -> FlowValue:
    """Choose interactions and ridge, then fit; interactions with too many columns are left out."""
    design, ridge = _choose([_design(flow, order) for order in _orders_that_fit(flow.rows, orders)], ridges)
    return _fit(design, ridge)


def _orders_that_fit(rows: Transitions, orders: tuple[int, ...]) -> list[int]:
    """Those of the orders whose columns are within the limit; if none is, the next lower one that is."""
    factors = number_factors(np.asarray(rows.observations))
    most = _MOST_COLUMNS // len(rows.actions)
    fits = [order for order in range(1, max(orders) + 1) if _count_columns(factors, order, most) <= most]
    kept = [order for order in orders if order in fits] or [order for order in fits if order < min(orders)][-1:]
    if not kept:
        columns = _count_columns(factors, 1, None) * len(rows.actions)
        raise UsageError(
            f"a value that is linear in the factors would have {columns:,} columns (values of the factors ×"
            f" {len(rows.actions)} actions), at most {_MOST_COLUMNS:,} are allowed: its dense matrices would take"
            f" {columns**2 * 8 / 1024**2:,.0f} MB each. Use 'emp', 'model' or 'dr', which have no such limit, or"
            " factors with fewer values"
        )
    return kept


def _count_columns(factors: IntArray, order: int, most: int | None) -> int:
    """Columns of :class:`FactorFeatures` of that order, without making them; counting ends where there are too many."""
    total = 1
    for size in range(1, order + 1):
        for chosen in combinations(range(factors.shape[1]), size):
            total += len(np.unique(factors[:, chosen], axis=0)) if size > 1 else int(factors[:, chosen].max()) + 1
            if most is not None and total > most:
                return total
    return total


def _design(flow: Flow, order: int) -> RegressionSums:
    return RegressionSums(flow, order, FactorFeatures(order).transform(flow.rows.observations))


def _choose(designs: list[RegressionSums], ridges: tuple[float, ...]) -> tuple[RegressionSums, float]:
    """The (order, ridge) with the smallest error on pairs left out."""
    if len(designs) == 1 and len(ridges) == 1:
        return designs[0], ridges[0]
    widest = designs[-1]
    beta, _ = _lstd(widest, _FIRST_RIDGE)
    worth = (widest.reward + widest.ahead(widest.states @ beta)) / widest.count
    worth = worth - float(np.average(worth, weights=widest.count))
    errors = {
        (number, ridge): error
        for number, design in enumerate(designs)
        for ridge, error in _left_out_errors(design, worth, ridges)
    }
    number, ridge = min(errors, key=lambda key: errors[key])
    return designs[number], ridge


def _left_out_errors(design: RegressionSums, worth: FloatArray, ridges: tuple[float, ...]) -> list[tuple[float, float]]:
    """Squared error of every pair predicted from all others, summed over rows, for every ridge.

    With Σ φφᵀ = Q diag(v) Qᵀ over the rows of one action (Σ x xᵀ has one block an action) and z = Qᵀφ: the leverage of
    a pair with n rows is h = n Σ z²/(v + λ), and its error when it is left out is its error in the fit over 1 − h.
    No folds are drawn: the order and names of pairs do not matter.
    """
    rows = design.flow.rows
    errors = dict.fromkeys(ridges, 0.0)
    for action in np.unique(rows.pair_action):
        mine = rows.pair_action == action
        phi, count = sparse.csr_matrix(design.phi[rows.pair_state[mine]]), design.count[mine]
        values, vectors = np.linalg.eigh(_dense(phi.T @ phi.multiply(count[:, None])))
        z = np.asarray(phi @ vectors)
        right = z.T @ (count * worth[mine])
        for ridge in ridges:
            shrunk = 1.0 / (np.maximum(values, 0.0) + ridge)
            leverage = np.minimum(count * ((z**2) @ shrunk), 1.0 - 1e-9)
            miss = (worth[mine] - z @ (shrunk * right)) / (1.0 - leverage)
            errors[ridge] += float(np.sum(count * miss**2))
    return list(errors.items())


def _lstd(design: RegressionSums, ridge: float) -> tuple[FloatArray, float]:
    """β, and η (0 unless the estimand is the average)."""
    estimand = design.flow.problem.estimand
    total = design.pairs.T @ design.reward
    gamma = estimand.discount if estimand.horizon is None else 1.0 - 1.0 / estimand.horizon
    matrix = design.gram - gamma * design.shift + np.diag(design.penalty(ridge))
    if not estimand.restarts:
        return linalg.solve(matrix, total), 0.0
    mean = design.pairs.T @ design.count
    ahead = np.asarray(design.states.T @ (design.arrivals.T @ np.ones(design.flow.rows.n_pairs)))
    if design.flow.restarts:
        ahead = ahead + design.ends.sum() * design.start_features
    bordered = np.block([[matrix, mean[:, None]], [(mean - ahead)[None, :], np.array([[design.count.sum()]])]])
    solution = linalg.solve(bordered, np.append(total, design.reward.sum()))
    return solution[:-1], float(solution[-1])


def _fit(design: RegressionSums, ridge: float) -> FlowValue:
    flow, estimand = design.flow, design.flow.problem.estimand
    if estimand.kind == "horizon":
        return _backwards(design, ridge)
    beta, eta = _lstd(design, ridge)
    q, v = design.pairs @ beta, design.states @ beta
    ended = flow.rows.next_state < 0
    if estimand.restarts:
        after_end = float(design.start_features @ beta) if flow.restarts else 0.0
        rest = np.where(ended, after_end, v[flow.rows.next_state]) - q[flow.rows.pair]
        return FlowValue(rest, v - after_end, eta, design.order, ridge)
    rest = estimand.discount * np.where(ended, 0.0, v[flow.rows.next_state]) - q[flow.rows.pair]
    value = estimand.scale * float(design.start_features @ beta)
    return FlowValue(rest, estimand.scale * v, value, design.order, ridge)


def _backwards(design: RegressionSums, ridge: float) -> FlowValue:
    """Fitted value iteration, last step first; ``rest`` is averaged over steps by where the target would be."""
    flow = design.flow
    horizon = int(flow.problem.estimand.horizon or 1)
    factor = linalg.cho_factor(design.gram + np.diag(design.penalty(ridge)))
    laws = flow.chain().laws(flow.start, horizon)
    at, pair = flow.number[flow.rows.state], flow.rows.pair
    next_state: IntArray = flow.rows.next_state
    v: FloatArray = np.zeros(flow.rows.n_states)
    carried = np.zeros(flow.rows.n_groups)
    for t in range(horizon - 1, -1, -1):
        beta = linalg.cho_solve(factor, design.pairs.T @ (design.reward + design.ahead(v)))
        carried += laws[t][at] * (np.where(next_state < 0, 0.0, v[next_state]) - (design.pairs @ beta)[pair])
        v = np.asarray(design.states @ beta)
    visits = laws.sum(axis=0)[at]
    rest = np.divide(carried, visits, out=np.zeros_like(carried), where=visits > 0)
    start = v / horizon
    return FlowValue(rest, start, float(flow.start @ start[flow.states]), design.order, ridge)
