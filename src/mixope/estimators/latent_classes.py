"""latent-classes: users, patients or machines that differ for ever, as a few classes of them, each with its own chain.

A unit is an episode, or who it belongs to where the logs say so. What it is made of cannot be seen and never changes;
what it does next shows it, all its life long. So the classes are found by maximum likelihood over whole units, and
their number by units that were not used (:mod:`mixope.solvers.mixtures`):

    P(unit | class c) = Π P_c(next state or end | s, a)^n · Π μ_c(first state)

Every class is then a log of its own, in which an episode counts as much as its unit belongs to the class (τ), and is
solved as ``emp`` solves all rows. **The class is a part of the state that never changes.** That says what the value is:

    value = Σ_c p_c V_c,    p_c the share of the episodes that start in class c

for a discount, a horizon, the total of an episode, and for the average, as of other long runs that starts lead to: a
unit counts by how often it starts, not by the rows that it left, of which a lively one has more. Where episodes end and
units are episodes, the process that starts again draws another unit each time: the average is Σ p_c T_c / Σ p_c L_c,
T_c and L_c what an episode of class c earns and how long it is. A user with several episodes starts again as the same
user.

Scores are by unit: what each adds to the chains and shares of the classes, and to who else belongs to which. Of one
class this is ``emp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.estimators.asking import Asking
from mixope.estimators.counts.class_replay import replay_classes
from mixope.estimators.counts.flow import Flow
from mixope.estimators.counts.occupancy import Occupancy, pooled
from mixope.estimators.counts.solution import CountedSolution, combine_counted, dressed, scored, uncovered_mass
from mixope.estimators.solution import Solution
from mixope.estimators.state_ratio import pair_baseline, score_table, state_ratio, state_ratio_solution
from mixope.requests.episode_counts import EpisodeCounts, episode_counts
from mixope.requests.grouping import GroupSums
from mixope.requests.problem import Problem
from mixope.requests.replay import Replays
from mixope.requests.scores import ClusterScores, ScoreTable
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import Transitions, transition_cells
from mixope.solvers.mixtures import MOST, CellCounts, UnitMixture, choose_mixture, fit_mixture, through_members

MOST_REPLAYED = 2_000_000
"""Rows of logs that are put in order to be replayed."""
PRIOR = 1.0
"""Rows that every class is given in every pair, dealt as those of all units are."""
ALIKE = "units do not differ beyond chance: there is one class of them, and the value is that of 'emp'"


@dataclass(frozen=True)
class LatentClasses:
    """A few classes of units that differ for ever; ``classes`` says how many, where the logs are not to say so."""

    classes: int | None = None
    most: int = MOST
    name: str = "latent-classes"

    def __post_init__(self) -> None:
        if self.classes is not None and not 1 <= self.classes <= 20:
            raise UsageError(f"classes is a number from 1 to 20, or None to let the logs say, got {self.classes!r}")

    def solve(self, problem: Problem) -> Asking[Solution]:
        """The classes, the value of each, and of all."""
        plain = scored(problem, state_ratio_solution(*pooled(problem)))
        tables = next(plain)  # asked for at once, so that one class costs no scan of its own
        in_turn = problem.reader is not None and problem.logged.n_rows <= MOST_REPLAYED
        steps = [problem.steps_in_order()] if in_turn else []
        answer, *others = yield (problem.counts_by_episode(), *steps, *tables)
        counts = episode_counts(answer, problem.logged) if isinstance(answer, GroupSums) else answer
        found, gains = self._fit(unit_cells(counts))
        if found is None or found.n_classes == 1:
            return _alone(plain, tuple(others[len(steps) :]))
        classes = Classes.of(problem, counts, found)
        return replace(classes.solution(gains), replays=classes.replayed(others[: len(steps)]))

    def _fit(self, cells: CellCounts | None) -> tuple[UnitMixture | None, tuple[float, ...]]:
        if cells is None:
            return None, ()
        return choose_mixture(cells, self.most) if self.classes is None else (fit_mixture(cells, self.classes), ())


def _alone(plain: Asking[Solution], scores: tuple[Any, ...]) -> Solution:
    """The value of all rows together, from its scores."""
    try:
        plain.send(scores)
    except StopIteration as end:
        one: Solution = end.value
        return replace(one, measures=replace(one.measures, classes=1.0), notes=(*one.notes, ALIKE))
    raise UsageError("the chain of all rows asks for its scores once")


def units_of_episodes(counts: EpisodeCounts) -> IntArray:
    """The number of every episode's unit."""
    return np.arange(counts.n_episodes) if counts.unit is None else counts.unit


def unit_cells(counts: EpisodeCounts) -> CellCounts | None:
    """How often every unit went where from what it did, and where it started; None where nothing is left to chance.

    Rows after which nobody knows what came tell nothing of it. Pairs with one outcome are left out.
    """
    rows, unit = counts.transitions, units_of_episodes(counts)
    n, known = transition_cells(rows), rows.next_state >= -1
    size = int(n.max()) + 1
    pair = np.zeros(size, dtype=np.int64)
    pair[n] = rows.pair
    frequency = sum_by(n[known], rows.rows[known], size)
    first = sum_by(rows.state, rows.starts, rows.n_states)
    block = np.concatenate([pair, np.full(rows.n_states, rows.n_pairs)])
    prior = PRIOR * np.concatenate([frequency / rows.pair_rows[pair], first / max(float(first.sum()), 1.0)])
    outcomes = np.bincount(block[prior > 0], minlength=rows.n_pairs + 1)
    kept = np.flatnonzero((prior > 0) & (outcomes[block] > 1))
    if not len(kept):
        return None
    number = np.full(len(prior), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    place = np.concatenate([np.where(known, number[n], -1)[counts.group], number[size + rows.state[counts.group]]])
    count = np.concatenate([counts.sums["rows"], counts.sums["starts"]])
    whose = np.tile(unit[counts.episode], 2)
    used = (place >= 0) & (count > 0)
    shape = int(unit.max()) + 1, len(kept)
    matrix = sparse.csr_matrix((count[used], (whose[used], place[used])), shape=shape)
    weight = np.ones(shape[0])
    if counts.times is not None:
        weight[unit] = counts.times
    return CellCounts(matrix, block[kept], prior[kept], weight)


@dataclass(frozen=True)
class Classes:
    """The problem of every class, who belongs to which, and how the values of classes make one.

    ``size`` is the number of starts of every episode (1 where none was logged); ``redraws``: whoever starts again is
    somebody else.
    """

    problem: Problem
    counts: EpisodeCounts
    mixture: UnitMixture
    cells: CellCounts
    parts: tuple[Problem, ...]
    size: FloatArray
    redraws: bool

    @classmethod
    def of(cls, problem: Problem, counts: EpisodeCounts, mixture: UnitMixture) -> Classes:
        """The classes in the order of their shares, the largest first."""
        cells, unit = unit_cells(counts), units_of_episodes(counts)
        assert cells is not None
        mixture = mixture.in_order(np.argsort(-mixture.share, kind="stable"))
        starts = sum_by(counts.episode, counts.sums["starts"], counts.n_episodes)
        times = np.ones(counts.n_episodes) if counts.times is None else counts.times
        parts = tuple(_part(problem, counts, times * mixture.member[unit, c]) for c in range(mixture.n_classes))
        redraws = problem.estimand.restarts and counts.unit is None and pooled_flow(problem).restarts
        size = starts if starts.any() else np.ones(counts.n_episodes)
        return cls(problem, counts, mixture, cells, parts, size * times, redraws)

    @property
    def unit(self) -> IntArray:
        """Of every episode."""
        return units_of_episodes(self.counts)

    @property
    def share(self) -> FloatArray:
        """p_c: of the episodes that start."""
        held = self.size @ self.mixture.member[self.unit]
        return np.asarray(held / held.sum())

    def solution(self, gains: Sequence[float]) -> Solution:
        """The value of all classes, its scores by episode, and what is known of each class."""
        solved = [self._solve(part) for part in self.parts]
        value = np.array([occupancy.value for _, occupancy in solved])
        length = np.array([float(occupancy.law.sum()) if self.redraws else 1.0 for _, occupancy in solved])
        p, total = self.share, float(self.share @ length)
        eta = float(self.share @ value) / total
        shares = (p * length / total).tolist()
        whole = combine_counted([state_ratio_solution(*each) for each in solved], shares)
        visits = whole.visits
        assert visits is not None
        mass = uncovered_mass(self.problem.transitions, self.problem.pair_target, visits)
        plain = replace(whole, scores=None, visits=None)  # what is read off visits is of the chain of all rows
        found = dressed(self.problem, plain.saying(value=eta, uncovered_mass=mass))
        scores = self._scores(solved, eta, value - eta * length, total)
        of_class = np.divide(value, length)
        measures = replace(found.measures, **self._measures(p, of_class, gains))
        if self.redraws:
            measures = replace(measures, episode_length=None)
        notes = (*found.notes, self._sentence(p, of_class))
        return replace(found, scores=ClusterScores(scores), measures=measures, notes=notes)

    def replayed(self, steps: Sequence[OrderedRows]) -> Replays:
        """Whether they tell the path of the rewards by step: in place of what the chain of all rows says of it."""
        logged = self.problem.logged
        if not (steps and self.problem.knows_starts):
            return Replays(None, None, None, None)
        parts, ordered = [part.transitions for part in self.parts], steps[0].in_key_order()
        found = replay_classes(parts, self.share, ordered, logged.loggers)
        return replace(found, whole=found.whole and found.whole.by_unit(self.counts.unit))

    def _solve(self, part: Problem) -> tuple[Flow, Occupancy]:
        return pooled(part.asking(Estimand("episode")) if self.redraws else part)

    def _scores(
        self, solved: Sequence[tuple[Flow, Occupancy]], eta: float, excess: FloatArray, total: float
    ) -> FloatArray:
        """By episode: D⁰ of what it adds to the chain and to the share of every class, and what it moves of others."""
        if self.redraws:  # of T_c − η L_c, as one sum of rewards less η
            solved = [self._solve(less(part, eta)) for part in self.parts]
        p, size = self.share, self.size
        direct = np.empty((self.counts.n_episodes, len(solved)))
        for c, ((flow, occupancy), part) in enumerate(zip(solved, self.parts, strict=True)):
            by_rows = self.counts.scores(ScoreTable(influence_table(flow, occupancy, part))).by_cluster
            direct[:, c] = (p[c] * by_rows + size / size.sum() * excess[c]) / total
        n_units, unit = self.cells.n_units, self.unit
        by_unit = np.stack([sum_by(unit, column, n_units) for column in direct.T], axis=1)
        others = through_members(self.cells, self.mixture, by_unit) - by_unit
        dealt = others[unit] / np.bincount(unit, minlength=n_units)[unit][:, None]
        scores = np.sum(self.mixture.member[unit] * (direct + dealt), axis=1)
        return np.asarray(scores - scores.mean())

    def _measures(self, share: FloatArray, value: FloatArray, gains: Sequence[float]) -> dict[str, Any]:
        units = self.cells.weight @ self.mixture.member
        by_class = {
            f"{c + 1} {what}": float(number[c])
            for c in range(len(share))
            for what, number in (("share", share), ("value", value), ("units", units))
        }
        said = float(sum(gains)) if gains else None
        return {"classes": float(len(share)), "classes_gain": said, "by_class": by_class}

    def _sentence(self, share: FloatArray, value: FloatArray) -> str:
        each = "; ".join(f"{100 * p:.0f} % at {v:.3g}" for p, v in zip(share, value, strict=True))
        who = "episodes" if self.counts.unit is None else "units"
        return f"the {who} fall into {len(share)} classes that differ for ever: of the episodes, {each}"


def influence_table(flow: Flow, occupancy: Occupancy, part: Problem) -> FloatArray:
    """What a row more of every logged group, one of its rewards and one start add to the value of a class."""
    rest = occupancy.tail - pair_baseline(flow, occupancy.tail)
    table = score_table(flow, state_ratio(flow, occupancy), rest, occupancy.start_score)
    laid = CountedSolution(Solution(occupancy.value), table).on_logged(part.followed).scores
    assert laid is not None
    return laid


def pooled_flow(problem: Problem) -> Flow:
    """Of all rows."""
    return pooled(problem)[0]


def less(part: Problem, reward: float) -> Problem:
    """The same with so much less in every row."""
    rows = part.logged
    return replace(part.with_counts(replace(rows, reward=rows.reward - reward * rows.rows)), whole=part.whole)


def _part(problem: Problem, counts: EpisodeCounts, weight: FloatArray) -> Problem:
    """The question put to the log of one class."""
    rows = counts.transitions
    totals, given = counts.totals(weight), PRIOR / rows.pair_rows[rows.pair]
    for name in totals:
        extra = given * getattr(rows, name)
        if name == "starts":
            extra = PRIOR * rows.starts / max(float(rows.starts.sum()), 1.0)
        totals[name] = totals[name] + extra
    part = replace(problem.with_counts(replace(rows, **totals)), whole=problem.whole or problem, reader=None)
    if problem.start_law is None:
        return part
    return replace(part, start_law=_given_starts(problem.start_law, rows, part.logged))


def _given_starts(law: FloatArray, rows: Transitions, mine: Transitions) -> FloatArray:
    """A given start law as that of a class: by how often the class starts where."""
    all_starts, own = (sum_by(each.state, each.starts, rows.n_states) for each in (rows, mine))
    likely = np.divide(
        own, all_starts, out=np.full(rows.n_states, own.sum() / max(all_starts.sum(), 1.0)), where=all_starts > 0
    )
    return np.asarray(law * likely / (law @ likely))
