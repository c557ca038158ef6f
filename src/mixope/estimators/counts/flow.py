"""The flow: what the target would make of the logged rows.

Row i counts c ρ with ρ = π(a|s)/b(a|s), calibrated so that the rows of every state count what they are worth (k(s), see
:mod:`mixope.behaviours.calibration`). Between states this is a stochastic matrix

    P(s, s′) = Σ_{rows s→s′} c k ρ / C(s),     C(s) = Σ_{rows at s} c,     r_π(s) = Σ c k ρ r / C(s).

Rows that lead to a state which the target was never seen to leave count like all others, and go on as from where they
came (:mod:`mixope.solvers.frontier`). Only states on which a long run can live are kept
(:mod:`mixope.solvers.components`); for the undiscounted total of an episode, those from which its end can be reached.
Where the starts lead to several long runs (a plan, a country that
nobody ever changes), the average is Σ P(the target ends in one) · its average: the limit of discounted values from μ₀,
and it is solved as one, with a discount of 1 − 10⁻⁵. For the average, a terminated row leads to one further state,
*restart*, that leads to μ₀ and takes no time: the stationary law of the states seen between restarts is that of the
restarted process, and the matrix stays sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy import sparse

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, DataError, Setting
from mixope.base.estimand import NEARLY_ONE, Estimand
from mixope.behaviours.calibration import misfit, state_factors
from mixope.behaviours.defaults import as_behaviour
from mixope.behaviours.protocol import Behaviour
from mixope.estimators.counts.solution import uncovered
from mixope.requests.problem import Problem
from mixope.requests.transitions import Transitions
from mixope.solvers.chain import Chain
from mixope.solvers.components import heaviest_component, long_runs, reached_from
from mixope.solvers.frontier import Edges, turned_back

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
    """Kept rows with their calibrated ratios; arrays over kept groups unless said otherwise.

    Of the kept ``rows``, those that lead nowhere have the state as their next one in which they are taken to go on.
    """

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
    frontier: FloatArray
    """For how many steps that nobody saw the kept groups stand which lead to a state that nobody left; 0 for others."""
    lost: BoolArray
    """Which kept groups lead where the target cannot be followed, though somebody went on from there."""
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
        return uncovered(self.whole.transitions, self.whole.pair_target)[self.states]


def follow(problem: Problem, behaviour: Behaviour, weight: FloatArray, calibrate: bool = True) -> Flow:
    """Keep the rows the target can live on and give them their ratios; ``weight`` is c for every group."""
    used = weight > 0
    living = _living_states(problem, used)
    inside, restarts = living.inside, living.restarts
    problem, onward = living.problem, living.onward
    groups = _kept_groups(problem, onward.next_state, inside, restarts, used)
    if len(groups) == 0:
        raise DataError(
            "target and logs do not overlap: wherever it goes, the target takes actions that were never logged",
            expected="logged actions that the target takes too",
            hint=Advice("check that the target's states and actions are those of the logs: ", Setting("inspect")),
        )
    part, c = onward.within(problem.on_groups(groups), groups), weight[groups]
    rows = part.transitions
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
        frontier=onward.frontier[groups],
        lost=onward.lost[groups],
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
class Onward:
    """Where every group leads: to its next state, or back, from the frontier or from where the target is lost."""

    next_state: IntArray
    frontier: FloatArray
    lost: BoolArray
    groups: IntArray
    """Of the edges: what the target does, and what is no end."""
    edges: Edges

    @classmethod
    def of(cls, problem: Problem, used: BoolArray) -> Onward:
        """States that no row leaves are the frontier; from those that none of the target's rows leaves it is lost."""
        rows, n = problem.transitions, problem.transitions.n_states
        flows = used & (problem.pair_target[rows.pair] > 0)
        ended = rows.next_state < 0
        mass = sum_by(rows.state, rows.rows * flows, n)
        ending, known = (_occurring(rows.state[chosen], n) for chosen in (flows & ended, used))
        groups = np.flatnonzero(flows & ~ended)
        states = rows.state[groups], rows.next_state[groups]
        return cls._from(rows.next_state, groups, turned_back(*states, rows.rows[groups], mass, ending, known))

    @classmethod
    def _from(cls, next_state: IntArray, groups: IntArray, edges: Edges) -> Onward:
        frontier, lost = np.zeros(len(next_state)), np.zeros(len(next_state), dtype=np.bool_)
        frontier[groups], lost[groups] = edges.turned * edges.steps, edges.lost
        if edges.turned.any() or edges.lost.any():
            next_state = next_state.copy()
            next_state[groups] = edges.destination
        return cls(next_state, frontier, lost, groups, edges)

    def towards(self, goal: BoolArray) -> Onward | None:
        """With more states that come to the goal; None where no more can be done."""
        edges = self.edges.towards(goal)
        return None if edges is None else self._from(self.next_state, self.groups, edges)

    def within(self, part: Problem, groups: IntArray) -> Problem:
        """The question on some groups, which lead where they are taken to lead."""
        if not (self.frontier.any() or self.lost.any()):
            return part
        return replace(part, transitions=replace(part.transitions, next_state=self.next_state[groups]))


@dataclass(frozen=True)
class Living:
    """The question as it is to be solved, the states to solve it on, where rows lead; the rest as in a flow."""

    problem: Problem
    onward: Onward
    inside: BoolArray
    restarts: bool = False
    runs: int = 1
    doubt: float = 0.0


_ROUNDS = 8
"""What is turned back may change which long runs are believed; so often at most."""
_T = TypeVar("_T")


def _occurring(states: IntArray, n: int) -> BoolArray:
    found = np.zeros(n, dtype=np.bool_)
    found[states] = True
    return found


def _settled(onward: Onward, look: Callable[[Onward], _T], goal: Callable[[_T], BoolArray]) -> tuple[Onward, _T]:
    """Turned back until all states come to the goal that can, and what is then seen."""
    seen = look(onward)
    for _ in range(_ROUNDS):
        further = onward.towards(goal(seen))
        if further is None:
            break
        onward, seen = further, look(further)
    return onward, seen


def _living_states(problem: Problem, used: BoolArray) -> Living:
    """The states on which the target can be followed, and how."""
    onward = Onward.of(problem, used)
    if problem.estimand.restarts:
        return _living_on_average(problem, used, onward)
    rows = problem.transitions
    check_ends(problem, bool(onward.edges.ending.any()))
    if not problem.estimand.needs_ends:
        return Living(problem, onward, onward.edges.left)
    ending = np.flatnonzero(onward.edges.ending)

    def come_to_an_end(found: Onward) -> BoolArray:
        return reached_from(ending, found.edges.destination, found.edges.source, rows.n_states)

    return Living(problem, *_settled(onward, come_to_an_end, lambda found: found))


@dataclass(frozen=True)
class _Runs:
    """The long runs of a target, and the states that lead to one; the last state is the restart."""

    source: IntArray
    destination: IntArray
    mass: FloatArray
    run: IntArray
    doubts: FloatArray
    goal: BoolArray

    @classmethod
    def of(cls, problem: Problem, used: BoolArray, next_state: IntArray) -> _Runs:
        rows, n = problem.transitions, problem.transitions.n_states
        mass = sum_by(rows.state, rows.rows * used, n + 1)
        source, destination, behind = restarting_edges(problem, used, next_state)
        run, doubts = long_runs(source, destination, behind, mass, n + 1)
        goal = reached_from(np.flatnonzero(run >= 0), destination, source, n + 1)
        return cls(source, destination, mass, run, doubts, goal)


def _living_on_average(problem: Problem, used: BoolArray, onward: Onward) -> Living:
    """The long run that the starts lead to, or all of them and what leads there; by rows where starts do not tell."""
    n = problem.transitions.n_states
    onward, runs = _settled(
        onward, lambda found: _Runs.of(problem, used, found.next_state), lambda found: found.goal[:n]
    )
    run, goal = runs.run, runs.goal
    law = np.append(problem.starts, 0.0) if problem.knows_starts else np.zeros(n + 1)
    met = reached_from(np.flatnonzero((law > 0) & goal), runs.source, runs.destination, n + 1) & goal
    ends = met & (run >= 0)
    found, doubt = np.unique(run[ends]), float(runs.doubts[ends].max(initial=0.0))
    told = float(law[goal].sum()) >= MOST_STARTS
    if told and len(found) == 1:
        return Living(problem, onward, (run == found[0])[:n], bool(run[n] == found[0]), doubt=doubt)
    if told and not met[n]:
        nearly = problem.asking(Estimand("discounted", gamma=NEARLY_ONE))
        return Living(nearly, onward, met[:n], runs=len(found), doubt=doubt)
    inside = heaviest_component(runs.source, runs.destination, runs.mass, n + 1)
    return Living(problem, onward, inside[:n], bool(inside[n]), int(len(np.unique(run[run >= 0])) == 1))


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


def restarting_edges(
    problem: Problem, used: BoolArray, next_state: IntArray | None = None
) -> tuple[IntArray, IntArray, FloatArray]:
    """From where to where the target goes, and the rows behind it; an end leads to one more state, the restart.

    ``next_state`` is where the groups are taken to lead; as they were logged, unless it is given.
    """
    rows, n = problem.transitions, problem.transitions.n_states
    following = rows.next_state if next_state is None else next_state
    flows = used & (problem.pair_target[rows.pair] > 0)
    ends, goes = flows & (following < 0), flows & (following >= 0)
    source, destination, behind = rows.state[goes], following[goes], rows.rows[goes]
    if not ends.any():
        return source, destination, behind
    begin, ended = np.flatnonzero(problem.starts), rows.rows[ends]
    source = np.concatenate([source, rows.state[ends], np.full(len(begin), n)])
    destination = np.concatenate([destination, np.full(len(ended), n), begin])
    return source, destination, np.concatenate([behind, ended, ended.sum() * problem.starts[begin]])


def _kept_groups(
    problem: Problem, next_state: IntArray, inside: BoolArray, restarts: bool, used: BoolArray
) -> IntArray:
    ends_well = restarts or not problem.estimand.restarts
    arrives = np.where(next_state < 0, ends_well, inside[next_state])
    return np.flatnonzero(used & inside[problem.transitions.state] & arrives)
