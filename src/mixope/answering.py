"""From questions to estimates: every estimator on every target, in rounds of scans that all of them share.

    1  what is known already (:mod:`mixope.seen`)
    2  estimators ask in rounds; each round is one scan, however many asked
    3  scores by episode, which also tells whether the rows of every episode fit together
    4  interval, checks, verdict, outer band: an estimate is built once

The same path carries counts and features: what differs is the problem that :mod:`mixope.seen` makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from mixope.against import Contest
from mixope.arrays import FloatArray, IntArray
from mixope.bands import Band, problem_band
from mixope.diagnostics import (
    Diagnostic,
    Evidence,
    Verdict,
    about_learning,
    check_logs,
    diagnose,
    stretch_of,
    verdict,
    within_possible,
)
from mixope.diagnostics.absorbing import parked_on_counts
from mixope.diagnostics.coverage import coverage_shift, is_middling, is_small, lone_shift
from mixope.diagnostics.replay import replay_logs
from mixope.errors import Advice, MixopeError, Setting
from mixope.estimand import Estimand
from mixope.estimate import Earned, Estimate, LoggerShare, Provenance
from mixope.estimators import REGISTRY, Estimator, Solution, check_takes, make
from mixope.estimators.asking import Rounds, together
from mixope.estimators.feature_problem import FeatureProblem
from mixope.estimators.logged_mean import LoggedMean
from mixope.estimators.occupancy import forget_pooled
from mixope.estimators.own_values import Own, Pieces, own_values
from mixope.estimators.solution import of_logged
from mixope.estimators.trajectory import Trajectory
from mixope.intervals import AUTO, IntervalChoice, Scores, Uncertainty, judge_scores, widen
from mixope.logs import UNLABELLED
from mixope.pictures import Pictures, ReturnBar, growth, loggers_in_turn, reliability, replayed_means, returns, visits
from mixope.problem import Problem
from mixope.questions import Question, ask, naming_targets, target_named
from mixope.resampling import CountedRefit, FeatureRefit, Refit, episode_counts_request, refitted_uncertainty
from mixope.seen import Counted, Sampled
from mixope.solvers.devices import Device
from mixope.statistics.episodes import EpisodeSums
from mixope.statistics.replay import Replays
from mixope.statistics.trajectories import OrderedRows
from mixope.statistics.transitions import start_error
from mixope.statistics.weights import WeightBin, weight_bins
from mixope.survey import Survey
from mixope.threads import one_thread
from mixope.version import __version__

ROUNDING = 1e-12
"""Mass below this is what sums of probabilities leave."""
NO_BAND = "an outer band needs states and actions that can be counted, to know which actions were never logged"
UNBOUNDED = "what was never logged could go on for ever, so that the total of an episode has no outer bound"
NOT_DIVIDED = (
    "the recorded propensities were not used: a behaviour fitted to the actions of all loggers errs less, also where"
    " propensities are exact (docs/benchmarks.md, Recorded propensities). 'bch' and 'wis-step' divide by them"
)
EPISODE = Setting("estimand", "episode")


class Refusal(NamedTuple):
    """An estimator that gives no answer on a target, and why; of one of several targets the reason has its name."""

    estimator: str
    reason: str
    target: str
    error: MixopeError


Skipped = list[Refusal]


@dataclass(frozen=True)
class Task:
    """One estimator on one question, and the interval that it is to have."""

    question: Question
    problem: Problem | FeatureProblem
    estimator: Estimator
    interval: IntervalChoice

    def solve(self) -> Any:
        """A solution, or a generator on the way to one."""
        check_takes(self.estimator, "features" if isinstance(self.problem, FeatureProblem) else "counts")
        return self.estimator.solve(self.problem)

    def as_logged(self, solution: Solution) -> Solution:
        """The solution, whose weights and scores are of the rows as they were logged."""
        return of_logged(solution, self.problem.followed) if isinstance(self.problem, Problem) else solution


def answer(
    seen: Counted | Sampled,
    targets: Mapping[str, Any],
    estimators: Sequence[str | Estimator],
    *,
    estimand: Estimand,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    interval: IntervalChoice = IntervalChoice(),
    beside: Sequence[str | Estimator] = (),
    seed: int = 0,
    device: Device = "auto",
    skipped: Skipped | None = None,
) -> list[Estimate]:
    """Every estimator on every target; those ``beside`` are shown with each of them, and never refitted.

    An estimator that does not apply raises, or is noted in ``skipped`` where one is given.
    """
    said: dict[str, Any] = {"estimand": estimand, "loggers": loggers, "level": level, "seed": seed, "device": device}
    questions = ask(seen.logs, seen.labels, targets, columns=seen.columns, **said)
    made = [(make(name), interval) for name in estimators]
    companions = [(make(name), interval.without_refits) for name in beside]
    tasks = [
        Task(question, problem, estimator, choice)
        for question in questions
        for problem in [_problem(seen, question, interval)]
        for estimator, choice in (*made, *companions)
    ]
    with one_thread(), naming_targets(questions):
        return _answered(seen, tasks, {id(estimator) for estimator, _ in companions}, seed, skipped)


def _answered(
    seen: Counted | Sampled, tasks: Sequence[Task], others: set[int], seed: int, skipped: Skipped | None
) -> list[Estimate]:
    """All tasks in common rounds; ``others`` are the estimators that are shown beside the rest."""
    if not tasks:
        return []
    rounds = seen.rounds(tasks[0].question.device)
    estimand, piece_steps = tasks[0].question.estimand, _piece_steps(seen, tasks)
    fit = any(not isinstance(task.estimator, Trajectory | LoggedMean) for task in tasks)  # these see logged steps only
    own = partial(seen.own_chains, estimand, piece_steps, fit)
    # Their own chains come first: they are solved before the flows of the targets are there.
    earned, *outcomes = rounds.run(together([own, *(task.solve for task in tasks)]))
    if isinstance(earned, MixopeError):
        raise earned
    solved = _those_solved(tasks, outcomes, skipped)
    _use_flows(solved)
    sums = seen.sum_scores(rounds, [*(solution for _, solution in solved), *earned.to_sum], seed, estimand)
    returns = sums.returns if earned.returns is None else earned.returns
    owners = own_values(estimand, sums.totals, earned, returns, sums.scores[:, len(solved) :])
    run = Run(seen, rounds, seen.survey(sums), sums, owners, earned.pieces)
    shown: dict[str, list[Estimate]] = {}
    for number, (task, solution) in enumerate(solved):
        if id(task.estimator) in others:
            shown.setdefault(task.question.name, []).append(run.estimate(number, task, solution))
    return [
        run.estimate(number, task, solution, tuple(shown.get(task.question.name, ())))
        for number, (task, solution) in enumerate(solved)
        if id(task.estimator) not in others
    ]


def _those_solved(
    tasks: Sequence[Task], outcomes: Sequence[Any], skipped: Skipped | None
) -> list[tuple[Task, Solution]]:
    """The tasks that have a solution; a refusal that is not the same for all of several targets names its own."""
    refusals = [
        (task, outcome) for task, outcome in zip(tasks, outcomes, strict=True) if isinstance(outcome, MixopeError)
    ]
    alike = Counter((task.estimator.name, outcome.reason) for task, outcome in refusals)
    targets = {task.question.name for task in tasks}
    for task, outcome in refusals:
        if alike[task.estimator.name, outcome.reason] < len(targets):
            outcome.about(target_named(task.question.name))
        if skipped is None:
            raise outcome
        skipped.append(Refusal(task.estimator.name, outcome.named_reason, task.question.name, outcome))
    found = zip(tasks, outcomes, strict=True)
    return [(task, task.as_logged(outcome)) for task, outcome in found if not isinstance(outcome, MixopeError)]


def _use_flows(solved: Sequence[tuple[Task, Solution]]) -> None:
    """All that is read off the flows of the targets; then they are dropped: the last scan needs the memory."""
    counted = [(task.problem, solution) for task, solution in solved if isinstance(task.problem, Problem)]
    for problem, solution in counted:
        if not solution.is_reference:
            problem.once(parked_on_counts)
        if _open_ended(solution):
            problem.once(problem_band)
        if is_small(solution.uncovered_mass):
            problem.once(coverage_shift)
        if is_middling(solution):
            problem.once(lone_shift)
    for problem, _ in counted:
        forget_pooled(problem)


def _open_ended(solution: Solution) -> bool:
    """Whether the target does something that was not seen, or comes where nobody went on: there is an outer band."""
    unknown = solution.uncovered_mass + solution.outside_mass + (solution.measures.frontier_mass or 0.0)
    return not solution.is_reference and unknown > ROUNDING


def _piece_steps(seen: Counted | Sampled, tasks: Sequence[Task]) -> int | None:
    """How many steps go into a piece of the features' scores, where any task wants blocks of them."""
    problems = (task.problem for task in tasks)
    return next((p.piece_steps for p in problems if isinstance(p, FeatureProblem) and p.piece_steps), None)


def _problem(seen: Counted | Sampled, question: Question, interval: IntervalChoice) -> Problem | FeatureProblem:
    """With scores in pieces of a few steps where blocks of them are wanted."""
    if isinstance(seen, Counted):
        return seen.problem(question)
    blocks = interval.wants_blocks(seen.facts.n_episodes, seen.facts.n_rows, question.estimand)
    return seen.problem(question, seen.piece_steps if blocks else None)


@dataclass(frozen=True)
class Run:
    """What the estimates of a run share."""

    seen: Counted | Sampled
    rounds: Rounds
    survey: Survey
    sums: EpisodeSums
    owners: tuple[Own | str, ...] = ()
    """What every logger earned by itself, and all of them together."""
    pieces: Pieces | None = None

    @cached_property
    def of_logs(self) -> tuple[Diagnostic, ...]:
        """What is found about the logs, whatever was asked of them."""
        return check_logs(self.seen.transitions if isinstance(self.seen, Counted) else None, self.sums)

    @cached_property
    def replays(self) -> Replays | None:
        """What the counts predict of the logs themselves; None where nothing was counted."""
        return replay_logs(self.seen.transitions, self.sums) if isinstance(self.seen, Counted) else None

    def estimate(self, number: int, task: Task, solution: Solution, beside: tuple[Estimate, ...] = ()) -> Estimate:
        """Interval, checks, verdict and band of one solution."""
        stretch = stretch_of(self.sums.learning, len(self.seen.labels)) if task.interval.name == AUTO else 1.0
        by_episode = stretch * self.sums.scores[:, number]
        usable = by_episode if bool(np.isfinite(by_episode).all()) else None
        by_step = self._by_step(task, solution)
        if by_step is not None and by_step.by_step is not None:
            by_step = replace(by_step, by_step=stretch * by_step.by_step)
        sure = self._uncertainty(task, solution, by_episode, by_step)
        steps, asked = self.sums.steps_of(number), task.question.estimand
        evidence = Evidence(solution, sure, self.survey, task.problem, self.sums, usable, steps, self.of_logs, asked)
        if not solution.is_reference:
            evidence = replace(evidence, replays=self.replays)
        nearest = replace(solution, value=within_possible(evidence).value)
        # what loggers earn when it is discounted, and what the target earns more, is a matter of whole episodes
        blocked = by_step if sure.n_blocks is not None and asked.restarts else None
        *earned, pooled = self._against(task, nearest, usable, blocked, stretch)
        return build(
            task.question,
            task.estimator.name,
            evidence,
            self._shares(solution, earned),
            pooled,
            choice=task.interval,
            beside=beside,
            band=self._band(task, solution),
            weights=self._bins(solution),
            pictures=self._pictures(task, nearest, usable),
            step_scores=None if blocked is None else blocked.by_step,
            notes=(*about_learning(self.sums.learning, stretch), *self.rounds.notes),
        )

    @cached_property
    def _in_turn(self) -> IntArray:
        return loggers_in_turn(self.survey.episodes.logger)

    @cached_property
    def _returns(self) -> tuple[ReturnBar, ...]:
        return returns(self.survey.episodes.reward)

    def _pictures(self, task: Task, solution: Solution, scores: FloatArray | None) -> Pictures:
        """What a report draws besides, from what is there."""
        if solution.is_reference:
            return Pictures(returns=self._returns)
        level, off = task.question.level, solution.measures.approximation or 0.0
        return Pictures(
            growth=() if scores is None else growth(solution.value, scores[self._in_turn], level, off),
            returns=self._returns,
            visits=visits(self.seen.transitions, solution) if isinstance(self.seen, Counted) else None,
            reliability=reliability(task.problem),
            replay=replayed_means(self.replays),
        )

    def _against(
        self, task: Task, solution: Solution, scores: FloatArray | None, by_step: Scores | None, stretch: float
    ) -> tuple[Earned, ...]:
        """Every logger, and all of them together, against the target."""
        pieces = None if by_step is None else self.pieces or self._step_by_step(task)
        question = task.question
        contest = Contest(solution, scores, by_step, task.interval, question.level, question.estimand, pieces, stretch)
        return tuple(contest.against(own) for own in self.owners)

    def _step_by_step(self, task: Task) -> Pieces | None:
        """Rewards by step, where states are counted and scores by step were read for blocks."""
        if not isinstance(task.problem, Problem):
            return None
        ordered = self._in_order(task.problem)
        reward, length = ordered.episodes.reward, ordered.episodes.length
        return Pieces(reward, np.ones(len(reward)), length, ordered.scores)

    def _by_step(self, task: Task, solution: Solution) -> Scores | None:
        """Scores by step (or by pieces of a few) where blocks of them are wanted."""
        if not task.interval.wants_blocks(self.survey.n_episodes, self.survey.n_rows, task.question.estimand):
            return None
        if isinstance(task.problem, FeatureProblem):
            starts, steps = solution.measures.start_error, task.problem.piece_steps or 1
            if solution.pieces is None or (starts is None and not task.question.estimand.restarts):
                return None
            starts = starts or 0.0
            return Scores(None, solution.episode_scores, solution.pieces, steps, start_error=starts)
        if solution.scores is None:
            return None
        ordered, rows = self._in_order(task.problem), task.problem.transitions
        starts = 0.0 if task.question.estimand.restarts else start_error(solution.scores, rows.rows, rows.starts)
        return Scores(None, ordered.scores(solution.scores), ordered.episodes.length, start_error=starts)

    def _in_order(self, problem: Problem) -> OrderedRows:
        """All rows in order; those of logs that are not too long were put in order with the last scan."""
        if self.sums.ordered is not None:
            return self.sums.ordered
        (steps,) = self.rounds.ask([problem.steps_in_order()])
        found: OrderedRows = steps.in_key_order()
        return found

    def _uncertainty(
        self, task: Task, solution: Solution, by_episode: FloatArray, by_step: Scores | None
    ) -> Uncertainty:
        """The interval that was chosen, or why there is none."""
        question, choice = task.question, task.interval
        if choice.refits:  # which need no scores
            sure = refitted_uncertainty(self._refit(task), choice, question.level)
        elif solution.no_interval_because:
            return Uncertainty(because=solution.no_interval_because)
        else:
            given = solution.scores is not None or solution.episode_scores is not None
            scores = replace(
                by_step or Scores(None), by_episode=by_episode if given else None, degrees=solution.degrees
            )
            sure = judge_scores(
                choice, solution.value, scores, question.level, question.estimand, self.survey.n_episodes
            )
        return widen(sure, solution.value, solution.measures.approximation or 0.0, self.survey.n_episodes)

    def _refit(self, task: Task) -> Refit:
        if isinstance(task.problem, FeatureProblem):
            return FeatureRefit.prepare(self.seen.logs, task.problem, task.estimator)
        assert isinstance(self.seen, Counted)
        (groups,) = self.rounds.ask([episode_counts_request(self.seen)])
        rows: Callable[[], Any] = partial(self.rounds.ask, [task.problem.steps_in_order()])
        return CountedRefit.prepare(task.problem, task.estimator, groups, rows)

    def _band(self, task: Task, solution: Solution) -> Band | None:
        """Where something is uncovered: the least and the most the target could earn, whatever was not seen."""
        if not isinstance(task.problem, Problem) or not _open_ended(solution):
            return None
        return task.problem.once(problem_band)

    def _bins(self, solution: Solution) -> tuple[WeightBin, ...]:
        """How the weights are spread; rows of one transition by one logger are taken to weigh the same."""
        if solution.weights is None or not isinstance(self.seen, Counted):
            return solution.weight_bins
        rows = self.seen.transitions.rows
        return weight_bins(solution.weights.total / rows, rows)

    def _shares(self, solution: Solution, earned: Sequence[Earned]) -> tuple[LoggerShare, ...]:
        """Rows and earnings of every logger; where weights are known, how much of the weight rests on it."""
        weights, logger = solution.weights, None
        if weights is not None and isinstance(self.seen, Counted):
            logger = self.seen.transitions.logger
        elif solution.episode_weights is not None:
            weights, pieces = solution.episode_weights, solution.pieces
            logger = self.sums.totals.logger if pieces is None else np.repeat(self.sums.totals.logger, pieces)
        shares = []
        for j, found in enumerate(self.survey.loggers):
            share = size = None
            if weights is not None and logger is not None:
                mine = (logger == j).astype(np.float64)
                share = float(weights.total @ mine / weights.total.sum())
                size = weights.effective_sample_size(mine)
            shares.append(LoggerShare(found.label, found.rows, found.mean, share, size, earned[j]))
        return tuple(shares)


def build(
    question: Question,
    estimator: str,
    evidence: Evidence,
    loggers: tuple[LoggerShare, ...] = (),
    against_logs: Earned = Earned(),
    *,
    choice: IntervalChoice = IntervalChoice(),
    beside: tuple[Estimate, ...] = (),
    band: Band | None = None,
    weights: tuple[WeightBin, ...] = (),
    pictures: Pictures = Pictures(),
    step_scores: FloatArray | None = None,
    notes: tuple[str, ...] = (),
) -> Estimate:
    """The estimate, from all the evidence there is."""
    solution, sure, survey = evidence.solution, evidence.uncertainty, evidence.survey
    found, possible = diagnose(evidence), within_possible(evidence)
    judged = verdict(found)
    if judged is Verdict.UNSUPPORTED:  # of which nothing follows
        loggers = tuple(replace(each, earned=each.earned.without_conclusion) for each in loggers)
        against_logs = against_logs.without_conclusion
    because = sure.because or "it has no scores"
    missing = sure.interval is None and choice.name != "auto"
    bounded = band is not None and band.finite
    said = (Advice(f"{estimator} has no interval {choice.name!r}: ", because),) if missing else ()
    return Estimate(
        estimator=estimator,
        estimand=question.estimand,
        target=question.name,
        value=possible.value,
        standard_error=sure.standard_error,
        interval=possible.interval,
        n_rows=survey.n_rows,
        n_episodes=survey.n_episodes,
        n_dropped=survey.n_dropped,
        loggers=loggers,
        effective_sample_size=evidence.effective_sample_size or 0.0,
        uncovered_mass=solution.uncovered_mass,
        outside_mass=solution.outside_mass,
        logged_mean=survey.mean,
        verdict=judged,
        diagnostics=found,
        solver=solution.solved.outcome.value,
        residual=solution.solved.residual,
        measures=solution.measures,
        alerts=(*survey.alerts, *sure.alerts, *solution.notes, *said),
        notes=(
            *([] if possible.note is None else [possible.note]),
            *about_ends(question.estimand, survey),
            *about_starts(question.estimand, survey),
            *about_loggers(estimator, survey),
            *about_propensities(evidence),
            *about_training(solution.trained_on),
            *notes,
        ),
        provenance=Provenance(
            version=__version__,
            seed=question.seed,
            engine=survey.engine,
            logs_fingerprint=survey.fingerprint,
            target_fingerprint=question.target.fingerprint(),
            inputs=survey.inputs,
            trained_on=solution.trained_on,
        ),
        no_interval_because=sure.because,
        beside=beside,
        band=possible.around((band.low, band.high)) if band is not None and bounded else None,
        no_band_because=NO_BAND if evidence.on_features else None if band is None or bounded else UNBOUNDED,
        weights=weights,
        pictures=pictures,
        scores=evidence.scores,
        step_scores=step_scores,
        counted=not evidence.on_features,
        degrees=solution.degrees,
        episodes=survey.episodes,
        corrects_coverage=solution.corrects_coverage,
        against_logs=against_logs,
    )


def about_loggers(estimator: str, survey: Survey) -> tuple[str, ...]:
    """That logs which name no logger are one pool, to an estimator that treats loggers apart."""
    entry = REGISTRY.get(estimator)
    named = [logger.label for logger in survey.loggers] != [UNLABELLED]
    if entry is None or not entry.by_logger or named:
        return ()
    return (
        f"{estimator} treats the rows of each logger apart, and these logs name none: all rows are taken as one"
        " logger's. If several wrote them, name them in a column policy_id, or with the files",
    )


def about_propensities(evidence: Evidence) -> tuple[str, ...]:
    """That propensities were recorded on vectors and were not used, and why; on counts it goes without saying."""
    problem, solution = evidence.problem, evidence.solution
    divides = evidence.measures.behaviour_misfit is not None and solution.given is None
    if not (divides and isinstance(problem, FeatureProblem) and problem.known.has_propensities):
        return ()
    return (NOT_DIVIDED,)


def about_training(device: str | None) -> tuple[str, ...]:
    """That networks were trained on a GPU, which rounds in another way than the processor."""
    if device is None:
        return ()
    said = f"the networks were trained on a GPU ({device}); from the same seed the processor, which rounds in another"
    return (Advice(said, " way, finds slightly other ones: ", Setting("device", "cpu")),)


def about_starts(estimand: Estimand, survey: Survey) -> tuple[str, ...]:
    """Where the answer hangs on how episodes begin: that a step other than 0 is taken for the first."""
    base = survey.logs.step_base
    if base == 0 or (estimand.restarts and not survey.episodes.ended.any()):
        return ()
    row, missing = ("row", "is") if base == 1 else (f"{base:,} rows", "are")
    return (
        f"no episode begins before step {base:,}, which is taken for the start: right if steps are counted from"
        f" {base:,}; if the first {row} of every episode {missing} missing, this is the answer from step {base:,} on,"
        " and nothing in the logs tells",
    )


def about_ends(estimand: Estimand, survey: Survey) -> tuple[str, ...]:
    """What a reader should know of the question that was asked, where episodes end or were cut before they did."""
    ended, n = int(survey.episodes.ended.sum()), survey.n_episodes
    if estimand.restarts and ended:
        said = f"{ended:,} of {n:,} episodes end. This value is per step of a process that starts again after each end,"
        return (Advice(said, " so that short episodes weigh little; for what an episode earns, say ", EPISODE),)
    if estimand.kind == "episode" and ended < n:
        said = f"{n - ended:,} of {n:,} episodes were cut before their end; how they would have gone on is taken from"
        return (f"{said} what was logged in the same states",)
    return ()
