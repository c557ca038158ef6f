"""The flow: what the target would make of the logged rows.

Row i counts c ρ with ρ = π(a|s)/b(a|s), calibrated so that the rows of every state count what they are worth (k(s), see
:mod:`mixope.behaviours.calibration`). Between states this is a stochastic matrix

    P(s, s′) = Σ_{rows s→s′} c k ρ / C(s),     C(s) = Σ_{rows at s} c,     r_π(s) = Σ c k ρ r / C(s).

Only rows on which a long run can live are kept (:mod:`mixope.solvers.components`). For the average, a terminated row
leads to one further state, *restart*, that leads to μ₀ and takes no time: the stationary law of the states seen
between restarts is that of the restarted process, and the matrix stays sparse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixope.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.behaviours.calibration import misfit, state_factors
from mixope.behaviours.defaults import as_behaviour
from mixope.behaviours.protocol import Behaviour
from mixope.errors import Advice, DataError, Setting
from mixope.problem import Problem
from mixope.solvers.chain import Chain
from mixope.solvers.components import heaviest_component, states_that_go_on
from mixope.statistics.transitions import Transitions


@dataclass(frozen=True)
class Flow:
    """Kept rows with their calibrated ratios; arrays over kept groups unless said otherwise."""

    whole: Problem
    problem: Problem
    groups: IntArray
    states: IntArray
    number: IntArray
    restarts: bool
    weight: FloatArray
    factor: FloatArray
    ratio: FloatArray
    ratio_reward: FloatArray
    ratio_squared: FloatArray
    by_row: bool
    fitted: bool
    misfit: float | None
    logged: float
    """Rows of weight above 0, kept or not."""

    @property
    def rows(self) -> Transitions:
        """The kept groups."""
        return self.problem.transitions

    @property
    def count(self) -> FloatArray:
        """c n for every group."""
        return self.rows.rows * self.weight

    @property
    def state_count(self) -> FloatArray:
        """C(s) over all states."""
        return sum_by(self.rows.state, self.count, self.rows.n_states)

    @property
    def start(self) -> FloatArray:
        """μ₀ on the kept states."""
        law = self.whole.starts[self.states]
        total = law.sum()
        if total <= 0:
            raise DataError(
                "no episode starts in the part of the logs on which the target can be followed",
                hint=Advice("use ", Setting("estimand", "average"), ", or a start law that these logs cover"),
            )
        return np.asarray(law / total)

    @property
    def outside_mass(self) -> float:
        """The share of logged rows that is left out; rows without weight, such as other loggers', are not asked for."""
        return max(0.0, 1.0 - float(self.rows.rows.sum()) / self.logged)

    def chain(self) -> Chain:
        """P on the kept states, with the restart state last where there is one."""
        n = len(self.states) + int(self.restarts)
        alive = self.rows.next_state >= 0
        share = self.ratio / self.state_count[self.rows.state]
        source = self.number[self.rows.state]
        destination = np.where(alive, self.number[self.rows.next_state], n - 1)
        if not self.restarts:
            source, destination, share = source[alive], destination[alive], share[alive]
        else:
            begin = np.flatnonzero(self.start)
            source = np.concatenate([source, np.full(len(begin), n - 1)])
            destination = np.concatenate([destination, begin])
            share = np.concatenate([share, self.start[begin]])
        return Chain(sparse.csr_matrix((share, (source, destination)), shape=(n, n)))

    def state_reward(self) -> FloatArray:
        """r_π on the kept states."""
        sums = sum_by(self.rows.state, self.ratio_reward, self.rows.n_states)
        return np.asarray(sums[self.states] / self.state_count[self.states])

    def uncovered(self) -> FloatArray:
        """Target probability of the actions never logged in a state, on the kept states."""
        rows = self.whole.transitions
        covered = sum_by(rows.pair_state, self.whole.pair_target, rows.n_states)
        return np.clip(1.0 - covered[self.states], 0.0, 1.0)


def follow(problem: Problem, behaviour: Behaviour, weight: FloatArray, calibrate: bool = True) -> Flow:
    """Keep the rows the target can live on and give them their ratios; ``weight`` is c for every group."""
    used = weight > 0
    inside, restarts = _living_states(problem, used)
    groups = _kept_groups(problem, inside, restarts, used)
    if len(groups) == 0:
        raise DataError(
            "the target cannot be followed anywhere in these logs: none of its actions leads from a logged state to"
            " another",
            expected="logged actions that the target takes too",
            hint=Advice("check that the target's states and actions are those of the logs: ", Setting("inspect")),
        )
    part = problem.on_groups(groups)
    rows, c = part.transitions, weight[groups]
    behaviour, counted_rows = as_behaviour(behaviour).knowing(problem.loggers), rows.as_rows()
    found = behaviour.fit(counted_rows, c, problem.seed)
    inverse = found.invert(counted_rows)
    target = part.pair_target[rows.pair]
    raw, raw_squared = target * inverse.inverse, target**2 * inverse.squared
    factor = np.ones(rows.n_states)
    if calibrate:
        factor = state_factors(rows.state, rows.rows * c, raw * c, rows.n_states)
    scale = c * factor[rows.state]
    states = np.flatnonzero(inside)
    number = np.full(rows.n_states, -1, dtype=np.int64)
    number[states] = np.arange(len(states))
    return Flow(
        whole=problem,
        problem=part,
        groups=groups,
        states=states,
        number=number,
        restarts=restarts,
        weight=c,
        factor=factor,
        ratio=scale * raw,
        ratio_reward=scale * target * inverse.reward,
        ratio_squared=scale**2 * raw_squared,
        by_row=inverse.by_row,
        fitted=behaviour.fitted,
        misfit=None if found.counted else misfit(rows.state, rows.rows, raw, raw_squared, rows.n_states)[0],
        logged=float(problem.transitions.rows[used].sum()),
    )


def with_restart(matrix: sparse.csr_matrix, ends: FloatArray, start: FloatArray) -> sparse.csr_matrix:
    """A matrix on states with one further state: reached by ``ends``, left by ``start``."""
    above = sparse.hstack([matrix, sparse.csr_matrix(ends[:, None])])
    below = sparse.csr_matrix(np.append(start, 0.0)[None, :])
    return sparse.csr_matrix(sparse.vstack([above, below]))


def _living_states(problem: Problem, used: BoolArray) -> tuple[BoolArray, bool]:
    """The states on which the target can be followed, and whether ends restart."""
    rows = problem.transitions
    flows = used & (problem.pair_target[rows.pair] > 0)
    ends = flows & (rows.next_state < 0)
    goes = flows & (rows.next_state >= 0)
    if problem.estimand.kind != "average":
        leaves = np.zeros(rows.n_states, dtype=bool)
        leaves[rows.state[ends]] = True
        return states_that_go_on(rows.state[goes], rows.next_state[goes], leaves, rows.n_states), False
    source, destination, n = rows.state[goes], rows.next_state[goes], rows.n_states
    if ends.any():
        begin = np.flatnonzero(problem.starts)
        source = np.concatenate([source, rows.state[ends], np.full(len(begin), n)])
        destination = np.concatenate([destination, np.full(int(ends.sum()), n), begin])
    mass = sum_by(rows.state, rows.rows * used, n + 1)
    inside = heaviest_component(source, destination, mass, n + 1)
    return inside[:n], bool(inside[n])


def _kept_groups(problem: Problem, inside: BoolArray, restarts: bool, used: BoolArray) -> IntArray:
    rows = problem.transitions
    ended = rows.next_state < 0
    ends_well = restarts or problem.estimand.kind != "average"
    arrives = np.where(ended, ends_well, inside[rows.next_state])
    return np.flatnonzero(used & inside[rows.state] & arrives)
