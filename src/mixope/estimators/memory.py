"""An estimator that remembers: its value with the last k rows in view, and how far it moves with k.

The arithmetic is in :mod:`mixope.estimators.counts.memory`. What estimators have in common is how far the chain of the
counts moves, so that

    value_k = value + (η_k − η_1),     η the chain of all rows (of recorded propensities, for ``bch-pooled``)

which is η_k for ``emp`` and ``bch-pooled``; ``dr`` keeps what it predicts of unlogged actions. It takes one pass over
the rows in the order of their episodes, from which all k are answered.

Which k: with ``"auto"`` the smallest whose value agrees with those of all longer ones (Lepski 1990),

    |η_k − η_l| ≤ 3 √Var(η_k − η_l)     for all l > k,

the error of the difference being that of the differences of their scores, by episode or by unit. k that rest on few
episodes have no say.

Behind whom? Inside a window it must be known who wrote the episode: recorded propensities say how likely an action was,
labels say who is to be counted. Logs with neither are taken for those of one logger, unless the same is done again in a
state of the same episode more often than chance allows: then there are several, or one that remembers, and the answer
is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, is_whole, sum_by
from mixope.base.errors import Advice, Setting, UsageError
from mixope.behaviours import as_behaviour
from mixope.estimators.asking import Asking
from mixope.estimators.both_kinds import BothKinds
from mixope.estimators.counts.flow import Flow, follow
from mixope.estimators.counts.memory import Remembered, Rung, has_propensities, lay
from mixope.estimators.counts.occupancy import Occupancy, occupy, pooled
from mixope.estimators.counts.solution import CountedSolution, dressed
from mixope.estimators.doubly_robust import DoublyRobust
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.ladder import Ladder, ScoredStep, error_of
from mixope.estimators.solution import Solution, Weights
from mixope.estimators.state_ratio import StateRatio, given_by, solve_counted, state_ratio_solution
from mixope.logs import UNLABELLED
from mixope.requests.clusters import Clusters
from mixope.requests.episodes import EpisodeSurvey
from mixope.requests.problem import Problem
from mixope.requests.scores import ClusterScores, ScoreTable
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import start_error

Memory = int | Literal["auto"]
LENGTHS = 1, 2, 3, 4, 8
"""For which k it is said how far the value moves."""
AGREE, FEWEST = 3.0, 20.0
"""Standard errors within which two values agree, and episodes on which one must rest to have a say."""
ROUNDING = 1e-12
AGAIN = 4.0
"""Standard deviations of the same being done again in an episode, above which several loggers wrote the rows."""
WHO = Advice(
    "counting several steps together needs to know who wrote which episode, and these logs do not say it: what was done"
    " in a state is done there again in the same episode more often than chance allows, so that several wrote them, or"
    " one who remembers. Name the loggers in a column policy_id (or file by file: a=one.parquet b=two.parquet), record"
    " propensities in a column action_prob, or leave out ",
    Setting("memory"),
)
COUNTED_ONLY = Advice(
    "memory needs states that can be counted: it multiplies the ratios of several steps, and on vectors each of them is"
    " a fitted density whose errors multiply with them. Put the past into columns of the state, as differences, or"
    " leave out ",
    Setting("memory"),
)


def check_memory(memory: object) -> Memory:
    """A whole number of rows from 1, or "auto"."""
    if memory == "auto" or (is_whole(memory) and memory >= 1):  # type: ignore[operator]
        return memory  # type: ignore[return-value]
    raise UsageError(f"memory is a number of steps from 1, or 'auto', got {memory!r}")


@dataclass(frozen=True)
class Remembering(BothKinds):
    """``plain`` (``emp``, ``bch-pooled`` or ``dr``) with the last ``memory`` rows in view, or as many as it takes."""

    plain: StateRatio | DoublyRobust
    memory: Memory = "auto"

    def __post_init__(self) -> None:
        check_memory(self.memory)
        plain, good = self.plain, False
        if isinstance(plain, StateRatio):
            good = plain.pooled and not plain.nearest and plain.form == "general"
        elif isinstance(plain, DoublyRobust):
            good = plain.behaviour is None
        if not good:
            raise UsageError(
                Advice(
                    "memory is for 'emp', 'bch-pooled' and 'dr' (general form, all rows together), not for"
                    f" {getattr(plain, 'name', plain)!r}. Choose one of these, or leave out ",
                    Setting("memory"),
                )
            )

    @property
    def name(self) -> str:
        """With how much it remembers."""
        return f"{self.plain.name}, memory {self.memory}"

    def on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        """Refused."""
        raise UsageError(COUNTED_ONLY)

    def on_counts(self, problem: Problem) -> Asking[Solution]:
        """The plain solution, then one pass over the rows in order."""
        flow, occupancy, chain = self._chain(problem)
        chain = chain.on_logged(problem.followed)
        found = chain
        if isinstance(self.plain, DoublyRobust):
            found = self.plain.counted(problem).on_logged(problem.followed)
        clusters = None
        if self.memory == "auto":
            steps, survey = yield (problem.steps_in_order(), EpisodeSurvey(problem.seed, problem.estimand))
            clusters = None if survey is None else survey.totals.clusters(problem.estimand)
        else:
            (steps,) = yield (problem.steps_in_order(),)
        ordered = steps.in_key_order()
        clusters = clusters or Clusters(ordered.episodes.n_episodes)
        if _says_nothing(flow) and several_wrote(problem, ordered):
            raise UsageError(WHO)
        assert chain.scores is not None
        laid = lay(flow, occupancy, chain.value, chain.scores, ordered)
        return _climbed(problem, found, chain, laid, ordered, self.memory, clusters)

    def _chain(self, problem: Problem) -> tuple[Flow, Occupancy, CountedSolution]:
        """The chain whose residuals are remembered."""
        if isinstance(self.plain, DoublyRobust) or self.plain.ignores_loggers:
            flow, occupancy = pooled(problem)
            return flow, occupancy, state_ratio_solution(flow, occupancy)
        behaviour = as_behaviour(self.plain.behaviour)
        flow = follow(problem, behaviour, np.ones(problem.transitions.n_groups))
        occupancy = occupy(flow)
        found = state_ratio_solution(flow, occupancy)
        otherwise = None if behaviour.fitted else lambda: solve_counted(problem).value
        return flow, occupancy, found.saying(given=given_by(behaviour), otherwise=otherwise)


def remembering(estimator: object, memory: Memory) -> Remembering:
    """An estimator with memory; one that has none refuses."""
    return Remembering(estimator, memory)  # type: ignore[arg-type]


def _says_nothing(flow: Flow) -> bool:
    """Whether nothing tells who wrote which row."""
    return flow.fitted and flow.rows.loggers == (UNLABELLED,) and not has_propensities(flow)


def several_wrote(problem: Problem, ordered: OrderedRows) -> bool:
    """Whether the same is done again in a state of the same episode, beyond chance.

    By episode Σ_s Σ_a [(n_sa − n_s p_sa)² − n_s p_sa (1 − p_sa)] / (2 + n_s), p the shares of all rows.
    """
    rows, episode = problem.logged, ordered.episodes.episode
    pair, n_pairs = rows.pair[ordered.group], rows.n_pairs
    share = rows.pair_rows / sum_by(rows.pair_state, rows.pair_rows, rows.n_states)[rows.pair_state]
    codes, n = np.unique(episode * n_pairs + pair, return_counts=True)
    at, of = codes // n_pairs, codes % n_pairs
    place = np.unique(at * rows.n_states + rows.pair_state[of], return_inverse=True)[1]
    visits, first = sum_by(place, n.astype(np.float64)), np.unique(place, return_index=True)[1]
    # pairs of the state that the episode does not have add (n p)² − n p (1 − p), too
    squares = sum_by(rows.pair_state, share**2, rows.n_states)[rows.pair_state[of[first]]]
    usual = visits**2 * squares - visits * (1.0 - squares)
    seen = sum_by(place, n**2 - 2.0 * n * visits[place] * share[of])
    told = sum_by(at[first], (seen + usual) / (2.0 + visits), ordered.episodes.n_episodes)
    spread = float(told @ told)
    return spread > 0 and float(told.sum()) > AGAIN * np.sqrt(spread)


def _climbed(
    problem: Problem,
    found: CountedSolution,
    chain: CountedSolution,
    laid: Remembered,
    ordered: OrderedRows,
    asked: Memory,
    clusters: Clusters,
) -> Solution:
    """The solution with as much memory as was asked for, and how far the value moves with it."""
    most = max(laid.longest, 1)
    lengths = sorted({*(k for k in LENGTHS if k <= most), *(() if asked == "auto" else (min(asked, most),))})
    assert found.scores is not None
    assert chain.scores is not None
    beyond: FloatArray | float = 0.0
    if found is not chain:
        beyond = ordered.scores(ScoreTable(found.scores)) - ordered.scores(ScoreTable(chain.scores))
    rungs = [laid.rung(k) for k in lengths]
    data, first = ordered.episodes, found.value - chain.value
    by_row = [rung.score + beyond for rung in rungs]
    steps = tuple(
        ScoredStep(rung.memory, rung.value + first, sum_by(data.episode, score, data.n_episodes), rung.effective)
        for rung, score in zip(rungs, by_row, strict=True)
    )
    used = chosen(steps, clusters) if asked == "auto" else min(asked, most)
    place = lengths.index(used)
    said = found.saying(value=steps[place].value, ladder=Ladder(steps, used, automatic=asked == "auto"))
    weights = found.weights if used == 1 else _weights(rungs[place], ordered.group, problem.logged.n_groups)
    solution, lengths_of = dressed(problem, replace(said, weights=weights)), data.length
    if not problem.piece_steps:
        return replace(solution, scores=ClusterScores(steps[place].scores))
    logged = problem.logged
    error = 0.0 if problem.estimand.restarts else start_error(found.scores, logged.rows, logged.starts)
    scores = ClusterScores(steps[place].scores, by_row[place], lengths_of, error)
    return replace(solution, scores=scores)


def _weights(rung: Rung, group: IntArray, n_groups: int) -> Weights:
    """By logged group, of the windows that end with a row; their mean is one."""
    weight = rung.weight * (len(group) / max(float(rung.weight.sum()), 1e-300))
    return Weights(sum_by(group, weight, n_groups), sum_by(group, weight**2, n_groups), float(weight.max(initial=0.0)))


def chosen(steps: Sequence[ScoredStep], clusters: Clusters) -> int:
    """The smallest k that agrees with all longer ones which have a say."""
    heard = [step for step in steps if step.memory == 1 or step.effective >= FEWEST]
    for place, step in enumerate(heard):
        if all(_agree(step, other, clusters) for other in heard[place + 1 :]):
            return step.memory
    return heard[-1].memory


def _agree(one: ScoredStep, other: ScoredStep, clusters: Clusters) -> bool:
    return abs(one.value - other.value) <= AGREE * error_of(clusters.scores(one.scores - other.scores)) + ROUNDING
