"""The flow: what the target would make of the logged rows.

Row i counts c ρ with ρ = π(a|s)/b(a|s), calibrated so that the rows of every state count what they are worth (k(s), see
:mod:`mixope.behaviours.calibration`). Between states this is a stochastic matrix

    P(s, s′) = Σ_{rows s→s′} c k ρ / C(s),     C(s) = Σ_{rows at s} c,     r_π(s) = Σ c k ρ r / C(s).

Only rows on which a long run can live are kept (:mod:`mixope.solvers.components`); for the undiscounted total of an
episode, those from which its end can be reached. Where the starts lead to several long runs (a plan, a country that
nobody ever changes), the average is Σ P(the target ends in one) · its average: the limit of discounted values from μ₀,
and it is solved as one, with a discount of 1 − 10⁻⁵. For the average, a terminated row leads to one further state,
*restart*, that leads to μ₀ and takes no time: the stationary law of the states seen between restarts is that of the
restarted process, and the matrix stays sparse.
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
from mixope.estimand import NEARLY_ONE, Estimand
from mixope.problem import Problem
from mixope.solvers.chain import Chain
from mixope.solvers.components import heaviest_component, long_runs, reached_from, states_that_go_on
from mixope.statistics.transitions import Transitions

MOST_STARTS = 0.5
"""The least share of the starts that must lead to a long run for them to say which one it is."""
UNTOLD = (
    "the logs fall into several parts that the target never leaves, and the first steps of the episodes do not say in"
    " which of them it ends: the part with the most rows was taken"
)


def by_starts(runs: int) -> tuple[str, ...]:
    """How several long runs make one value."""
    if runs <= 1:
        return ()
    said = f"the logs have {runs:,} parts that the target never leaves; the value is the average of each, weighed by"
    return (f"{said} the share of the episodes that start towards it",)


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
    given: FloatArray
    """c for every group of the whole problem, kept or not."""
    runs: int = 1
    """Long runs that the starts lead to; 0 where nothing says which of several it is."""
    doubt: float = 0.0
    """How often the target would be elsewhere if one row more had left a long run."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the long runs."""
        return (UNTOLD,) if self.runs == 0 else by_starts(self.runs)

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
        return starts_inside(self.whole.starts[self.states])

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
    living = _living_states(problem, used)
    problem, inside, restarts = living.problem, living.inside, living.restarts
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
        given=weight,
        runs=living.runs,
        doubt=living.doubt,
    )


def starts_inside(law: FloatArray) -> FloatArray:
    """The law of the starts in the states that are kept, as a law."""
    total = law.sum()
    if total <= 0:
        raise DataError(
            "no episode starts in the part of the logs on which the target can be followed",
            hint=Advice("use ", Setting("estimand", "average"), ", or a start law that these logs cover"),
        )
    return np.asarray(law / total)


def with_restart(matrix: sparse.csr_matrix, ends: FloatArray, start: FloatArray) -> sparse.csr_matrix:
    """A matrix on states with one further state: reached by ``ends``, left by ``start``."""
    above = sparse.hstack([matrix, sparse.csr_matrix(ends[:, None])])
    below = sparse.csr_matrix(np.append(start, 0.0)[None, :])
    return sparse.csr_matrix(sparse.vstack([above, below]))


@dataclass(frozen=True)
class Living:
    """The question as it is to be solved, the states to solve it on, whether ends restart; the rest as in a flow."""

    problem: Problem
    inside: BoolArray
    restarts: bool = False
    runs: int = 1
    doubt: float = 0.0


def _living_states(problem: Problem, used: BoolArray) -> Living:
    """The states on which the target can be followed, and how."""
    if problem.estimand.restarts:
        return _living_on_average(problem, used)
    rows = problem.transitions
    flows = used & (problem.pair_target[rows.pair] > 0)
    ends, goes = flows & (rows.next_state < 0), flows & (rows.next_state >= 0)
    leaves = np.zeros(rows.n_states, dtype=bool)
    leaves[rows.state[ends]] = True
    check_ends(problem, bool(ends.any()))
    moves, loops = (rows.state[goes], rows.next_state[goes]), not problem.estimand.needs_ends
    return Living(problem, states_that_go_on(*moves, leaves, rows.n_states, loops=loops))


def _living_on_average(problem: Problem, used: BoolArray) -> Living:
    """The long run that the starts lead to, or all of them and what leads there; by rows where starts do not tell."""
    rows, n = problem.transitions, problem.transitions.n_states
    mass = sum_by(rows.state, rows.rows * used, n + 1)
    source, destination, behind = restarting_edges(problem, used)
    run, doubts = long_runs(source, destination, behind, mass, n + 1)
    goal = reached_from(np.flatnonzero(run >= 0), destination, source, n + 1)
    law = np.append(problem.starts, 0.0) if problem.knows_starts else np.zeros(n + 1)
    met = reached_from(np.flatnonzero((law > 0) & goal), source, destination, n + 1) & goal
    ends = met & (run >= 0)
    found, doubt = np.unique(run[ends]), float(doubts[ends].max(initial=0.0))
    told = float(law[goal].sum()) >= MOST_STARTS
    if told and len(found) == 1:
        return Living(problem, (run == found[0])[:n], bool(run[n] == found[0]), doubt=doubt)
    if told and not met[n]:
        nearly = problem.asking(Estimand("discounted", gamma=NEARLY_ONE))
        return Living(nearly, met[:n], runs=len(found), doubt=doubt)
    inside = heaviest_component(source, destination, mass, n + 1)
    return Living(problem, inside[:n], bool(inside[n]), int(len(np.unique(run[run >= 0])) == 1))


def check_ends(problem: Problem, any_end: bool) -> None:
    """An undiscounted total is finite only if episodes end."""
    if problem.estimand.needs_ends and not any_end:
        raise no_ends()


def no_ends() -> DataError:
    """The refusal where the target never comes to an end."""
    return DataError(
        "the total of an episode is asked for, but no episode of these logs ends (is terminated) where the target goes",
        expected="terminated rows that the target can reach",
        hint=Advice(
            "give a discount: ",
            Setting("estimand", "discounted"),
            "; ask for the average per step: ",
            Setting("estimand", "average"),
            "; or say which rows end an episode: ",
            Setting("columns", {"terminated": ...}),
            ", or ",
            Setting("ends", "terminated"),
            " where the logs are read, if the last row of every episode did",
        ),
    )


def restarting_edges(problem: Problem, used: BoolArray) -> tuple[IntArray, IntArray, FloatArray]:
    """From where to where the target goes, and the rows behind it; an end leads to one more state, the restart."""
    rows, n = problem.transitions, problem.transitions.n_states
    flows = used & (problem.pair_target[rows.pair] > 0)
    ends, goes = flows & (rows.next_state < 0), flows & (rows.next_state >= 0)
    source, destination, behind = rows.state[goes], rows.next_state[goes], rows.rows[goes]
    if not ends.any():
        return source, destination, behind
    begin, ended = np.flatnonzero(problem.starts), rows.rows[ends]
    source = np.concatenate([source, rows.state[ends], np.full(len(begin), n)])
    destination = np.concatenate([destination, np.full(len(ended), n), begin])
    return source, destination, np.concatenate([behind, ended, ended.sum() * problem.starts[begin]])


def _kept_groups(problem: Problem, inside: BoolArray, restarts: bool, used: BoolArray) -> IntArray:
    rows = problem.transitions
    ended = rows.next_state < 0
    ends_well = restarts or not problem.estimand.restarts
    arrives = np.where(ended, ends_well, inside[rows.next_state])
    return np.flatnonzero(used & inside[rows.state] & arrives)
