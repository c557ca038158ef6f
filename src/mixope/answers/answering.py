"""From questions to estimates: every estimator on every target, in rounds of scans that all of them share.

    1  what is known already (:mod:`mixope.session.session`)
    2  estimators ask in rounds; each round is one scan, however many asked
    3  scores by episode, which also tells whether the rows of every episode fit together
    4  interval, checks, verdict, outer band: an estimate is built once

The same path carries counts and features: what differs is the problem that :mod:`mixope.session.session` makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from mixope.answers.against import TargetScores
from mixope.answers.bands import Band, problem_band
from mixope.answers.estimate import Earned, Estimate, LoggerShare, Provenance
from mixope.answers.pictures import (
    Pictures,
    ReturnBar,
    Visits,
    growth,
    loggers_in_turn,
    reliability,
    replayed_means,
    returns,
    visits,
)
from mixope.answers.resampling import refit_of, refitted_uncertainty
from mixope.base.arrays import FloatArray, IntArray
from mixope.base.errors import Advice, MixopeError, Setting
from mixope.base.estimand import Estimand
from mixope.base.threads import one_thread
from mixope.checks import (
    Diagnostic,
    Evidence,
    Verdict,
    about_learning,
    asked_by_checks,
    check_logs,
    diagnose,
    stretch_of,
    verdict,
    within_possible,
)
from mixope.checks.absorbing import parked_on_counts
from mixope.checks.coverage import coverage_shift, is_middling, is_small, lone_shift
from mixope.checks.evidence import Readings
from mixope.checks.replay import replay_logs
from mixope.checks.state import carried
from mixope.estimators import Estimator, Solution, check_takes, entry_of, make
from mixope.estimators.asking import Asking, Rounds, all_or_nothing, together
from mixope.estimators.counts.on_policy import OnPolicyValues, by_cluster
from mixope.estimators.counts.reach import step_path
from mixope.estimators.counts.solution import CountedSolution
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.ladder import MemoryUsed
from mixope.estimators.logged_mean import LoggedMean
from mixope.estimators.trajectory import Trajectory
from mixope.logs import UNLABELLED
from mixope.requests.clusters import Clusters
from mixope.requests.episodes import EpisodeSums
from mixope.requests.pasts import Pasts, pasts_of
from mixope.requests.problem import Problem, Reader
from mixope.requests.replay import Replays
from mixope.requests.trajectories import MOST_ORDERED
from mixope.requests.transitions import ENDED, Transitions
from mixope.requests.weights import WeightBin
from mixope.session.questions import Question, ask, naming_targets, target_named
from mixope.session.session import Session
from mixope.session.survey import Survey
from mixope.solvers.devices import Device
from mixope.uncertainty import AUTO, IntervalChoice, Scores, Uncertainty, judge_scores, widen
from mixope.version import __version__

ROUNDING = 1e-12
"""Mass below this is what sums of probabilities leave."""
NO_BAND = "an outer band needs states and actions that can be counted, to know which actions were never logged"
UNBOUNDED = "unlogged actions could prolong an episode indefinitely, so its total cannot be bounded"
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
        check_takes(self.estimator, self.problem.kind)
        return self.estimator.solve(self.problem)


def answer(
    seen: Session,
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
    units: bool = True,
) -> list[Estimate]:
    """Every estimator on every target; those ``beside`` are shown with each of them, and never refitted.

    An estimator that does not apply raises, or is noted in ``skipped`` where one is given. ``units``: scores are by
    unit, where the logs name them; by episode otherwise.
    """
    said: dict[str, Any] = {"estimand": estimand, "loggers": loggers, "level": level, "seed": seed, "device": device}
    questions = ask(seen.logs, seen.labels, targets, columns=seen.columns, **said)
    made = [(make(name), interval) for name in estimators]
    companions = [(make(name), interval.without_refits) for name in beside]
    if not (questions and (made or companions)):
        return []
    with one_thread(), naming_targets(questions):
        rounds = seen.rounds(device)
        choices = {choice for _, choice in (*made, *companions)}
        blocks = any(seen.wants_blocks(choice, estimand, rounds, seed) for choice in choices)
        tasks = [
            Task(question, problem, estimator, choice)
            for question in questions
            for problem in [seen.problem(question, blocks=blocks, reader=read_flow)]
            for estimator, choice in (*made, *companions)
        ]
        solved, logs = _solved(seen, rounds, tasks, skipped, blocks=blocks, units=units)
        shown: dict[str, list[Estimate]] = {}
        others = {id(estimator) for estimator, _ in companions}
        for task, solution in solved:
            if id(task.estimator) in others:
                shown.setdefault(task.question.name, []).append(_estimate(task, solution, logs, rounds))
        return [
            _estimate(task, solution, logs, rounds, tuple(shown.get(task.question.name, ())))
            for task, solution in solved
            if id(task.estimator) not in others
        ]


@dataclass(frozen=True)
class LogFacts:
    """What is known of the logs once all rows were read, whatever was asked of them: the same for all estimates."""

    seen: Session
    survey: Survey
    sums: EpisodeSums
    on_policy: OnPolicyValues
    clusters: Clusters
    """What is independent: episodes, or the units that they belong to."""
    answers: Mapping[str, tuple[Any, ...]]
    """What checks asked of the rows, by their names."""

    @property
    def transitions(self) -> Transitions | None:
        """The counts, where states are counted."""
        return None if self.seen.counted is None else self.seen.counted.transitions

    @cached_property
    def checks(self) -> tuple[Diagnostic, ...]:
        """What is found about them."""
        return check_logs(self.transitions, self.sums, self.answers)

    @cached_property
    def replays(self) -> Replays | None:
        """What the counts predict of the logs themselves; None where nothing was counted."""
        return None if self.transitions is None else replay_logs(self.transitions, self.sums)

    @cached_property
    def pasts(self) -> Pasts | None:
        """What happened before every row; None where nothing was counted, or rows are not in order."""
        return None if self.transitions is None else pasts_of(self.transitions, self.sums)

    @cached_property
    def in_turn(self) -> IntArray:
        """The episodes or units, the loggers in turn."""
        return loggers_in_turn(self.survey.episodes.logger[self.clusters.first])

    @cached_property
    def returns(self) -> tuple[ReturnBar, ...]:
        """How much episodes earned."""
        return returns(self.survey.episodes.reward)


def _solved(
    seen: Session,
    rounds: Rounds,
    tasks: Sequence[Task],
    skipped: Skipped | None,
    *,
    blocks: bool,
    units: bool,
) -> tuple[list[tuple[Task, Solution]], LogFacts]:
    """All tasks in common rounds, with what the logs are and what those who wrote them earn."""
    question = tasks[0].question
    estimand, seed = question.estimand, question.seed
    fit = any(not isinstance(task.estimator, Trajectory | LoggedMean) for task in tasks)  # these see logged steps only
    by_question = [list(group) for _, group in groupby(tasks, key=lambda task: id(task.question))]
    # Their own chains come first: they are solved before the flows of the targets are there.
    starts: list[Callable[[], Any]] = [
        partial(seen.on_policy, estimand, blocks=blocks, fit=fit, seed=seed),
        partial(seen.structure, seed, estimand),
        partial(asked_by_checks, seen.logs.schema),
        *(partial(_of_question, group) for group in by_question),
    ]
    values, sums, answers, *outcomes = rounds.run(all_or_nothing(starts))
    solved = _without_refusals(tasks, [outcome for group in outcomes for outcome in group], skipped)
    survey = seen.survey(sums)
    clusters = survey.episodes.clusters(estimand) if units else Clusters(survey.n_episodes)
    return solved, LogFacts(seen, survey, sums, by_cluster(values, clusters), clusters, answers)


def _of_question(tasks: Sequence[Task]) -> Asking[list[Any]]:
    """All estimators of one question: their solutions or refusals, with what is read off the flows behind them.

    Flows are dropped before a scan for which nobody needs them any more: it needs the memory.
    """
    problem = tasks[0].problem
    asking: Asking[list[Any]] = together([task.solve for task in tasks])
    answers: Any = None
    while True:
        try:
            wants = asking.send(answers)
        except StopIteration as end:
            outcomes = list(end.value)
            break
        problem.forget_before(wants)
        answers = yield wants
        del wants
    if problem.reader is None:
        return outcomes
    found = [_read(problem, problem.reader, outcome) for outcome in outcomes]
    problem.forget()
    return found


def _read(problem: Problem | FeatureProblem, reader: Reader, outcome: Any) -> Any:
    """With what is read off the flow, for estimators that did not end by asking for their scores."""
    if isinstance(outcome, MixopeError) or outcome.readings is not None:
        return outcome
    return replace(outcome, readings=reader(problem, CountedSolution(outcome)))


@dataclass(frozen=True)
class FlowReadings:
    """All that is read off the flow of a target, or off weights by transition."""

    checks: Readings = field(default_factory=Readings)
    band: Band | None = None
    visits: Visits | None = None


def read_flow(problem: Problem, found: CountedSolution) -> FlowReadings:
    """For the checks, the outer band and the pictures of one solution; each is made once for a question."""
    solution, weights = found.solution, found.weights
    if solution.is_reference:
        return FlowReadings()
    ends = None
    if weights is not None and problem.estimand.needs_ends:
        ends = weights.effective_sample_size((problem.logged.next_state == ENDED).astype(np.float64))
    checks = Readings(
        parked=problem.once(parked_on_counts),
        coverage_shift=problem.once(coverage_shift) if is_small(solution.uncovered_mass) else None,
        lone_shift=problem.once(lone_shift) if is_middling(solution) else None,
        effective_ends=ends,
        carried=problem.once(carried) if _rests_on_the_state(problem, found) else None,
        path=None if found.visits is None else problem.once(step_path),
    )
    band = problem.once(problem_band) if _open_ended(solution) else None
    return FlowReadings(checks, band, visits(problem.logged, weights))


def _rests_on_the_state(problem: Problem, found: CountedSolution) -> bool:
    """Whether rows follow each other by their states only, and are few enough to be put in order."""
    return found.visits is not None and problem.logged.n_rows <= MOST_ORDERED


def _open_ended(solution: Solution) -> bool:
    """Whether the target does something that was not seen, or comes where nobody went on: there is an outer band."""
    return solution.uncovered_mass + solution.outside_mass + (solution.measures.frontier_mass or 0.0) > ROUNDING


def _without_refusals(
    tasks: Sequence[Task], outcomes: Sequence[Any], skipped: Skipped | None
) -> list[tuple[Task, Solution]]:
    """The tasks that have a solution; a refusal that is not the same for all of several targets names its own."""
    both = list(zip(tasks, outcomes, strict=True))
    refusals = [(task, outcome) for task, outcome in both if isinstance(outcome, MixopeError)]
    alike = Counter((task.estimator.name, outcome.reason) for task, outcome in refusals)
    targets = {task.question.name for task in tasks}
    for task, outcome in refusals:
        if alike[task.estimator.name, outcome.reason] < len(targets):
            outcome.about(target_named(task.question.name))
        if skipped is None:
            raise outcome
        skipped.append(Refusal(task.estimator.name, outcome.named_reason, task.question.name, outcome))
    return [(task, outcome) for task, outcome in both if not isinstance(outcome, MixopeError)]


def _estimate(
    task: Task, solution: Solution, logs: LogFacts, rounds: Rounds, beside: tuple[Estimate, ...] = ()
) -> Estimate:
    """Interval, checks, verdict and band of one solution."""
    question, sums, survey = task.question, logs.sums, logs.survey
    readings, clusters = solution.readings or FlowReadings(), logs.clusters
    stretch = stretch_of(sums.learning, len(logs.seen.labels)) if task.interval.name == AUTO else 1.0
    folds = solution.degrees is not None
    by_episode = None
    if solution.scores is not None:
        by_episode = clusters.scores(stretch * solution.scores.by_cluster, by_fold=folds)
    usable = by_episode if by_episode is not None and bool(np.isfinite(by_episode).all()) else None
    by_step = None if clusters.named else _block_scores(task, solution, survey, stretch)
    if task.interval.refits:  # which need no scores
        refit = refit_of(logs.seen, rounds, task.problem, task.estimator, survey.episodes.unit)
        sure = refitted_uncertainty(refit, task.interval, question.level)
    elif solution.no_interval_because:
        sure = Uncertainty(because=solution.no_interval_because)
    else:
        scores = replace(by_step or Scores(None), by_episode=by_episode, degrees=solution.degrees)
        scores = replace(scores, units=clusters.named, at_most=clusters.degrees)
        sure = judge_scores(task.interval, solution.value, scores, question.level, question.estimand, len(clusters))
    if not (solution.no_interval_because and not task.interval.refits):
        sure = widen(sure, solution.value, solution.measures.approximation or 0.0, len(clusters))
    evidence = Evidence(
        solution,
        sure,
        survey,
        task.problem,
        sums,
        usable,
        None if solution.scores is None else solution.scores.late,
        logs.checks,
        question.estimand,
        readings.checks,
        None if solution.is_reference else solution.replays or logs.replays,
        clusters,
        None if solution.is_reference else logs.pasts,
        () if solution.is_reference or isinstance(task.estimator, Trajectory) else sums.pasts,
    )
    nearest = replace(solution, value=within_possible(evidence).value)
    # what loggers earn when it is discounted, and what the target earns more, is a matter of whole episodes
    blocked = by_step if sure.n_blocks is not None and question.estimand.restarts else None
    contest = TargetScores(
        nearest, usable, blocked, task.interval, question.level, question.estimand, stretch, clusters.degrees
    )
    *earned, pooled = (contest.against(own) for own in logs.on_policy)
    return build(
        question,
        task.estimator.name,
        evidence,
        _shares(solution, survey, earned),
        pooled,
        choice=task.interval,
        beside=beside,
        band=readings.band,
        weights=solution.weight_bins,
        pictures=_pictures(task, nearest, logs, usable, readings.visits),
        step_scores=None if blocked is None else blocked.by_step,
        notes=(*about_learning(sums.learning, stretch), *rounds.notes),
    )


def _block_scores(task: Task, solution: Solution, survey: Survey, stretch: float) -> Scores | None:
    """Scores by step (or by pieces of a few) where blocks of them are wanted."""
    scores, estimand = solution.scores, task.question.estimand
    if scores is None or scores.by_piece is None:
        return None
    if not task.interval.wants_blocks(survey.n_episodes, survey.n_rows, estimand):
        return None
    if scores.start_error is None and not estimand.restarts:
        return None
    steps, starts = task.problem.piece_steps or 1, scores.start_error or 0.0
    return Scores(None, stretch * scores.by_piece, scores.lengths, steps, start_error=starts)


def _pictures(
    task: Task, solution: Solution, logs: LogFacts, scores: FloatArray | None, visited: Visits | None
) -> Pictures:
    """What a report draws besides, from what is there."""
    if solution.is_reference:
        return Pictures(returns=logs.returns)
    level, off = task.question.level, solution.measures.approximation or 0.0
    return Pictures(
        growth=() if scores is None else growth(solution.value, scores[logs.in_turn], level, off),
        returns=logs.returns,
        visits=visited,
        reliability=reliability(task.problem),
        replay=replayed_means(solution.replays or logs.replays),
    )


def _shares(solution: Solution, survey: Survey, earned: Sequence[Earned]) -> tuple[LoggerShare, ...]:
    """Rows and earnings of every logger; where weights are known, how much of the weight rests on it."""
    shares, weights = [], solution.weights
    for j, logger in enumerate(survey.loggers):
        share = size = None
        if weights is not None:
            share = float(weights.total[j] / weights.total.sum())
            size = weights.effective_sample_size(np.arange(len(weights.total)) == j)
        shares.append(LoggerShare(logger.label, logger.rows, logger.mean, share, size, earned[j]))
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
    ladder, clusters = solution.ladder, evidence.clusters or Clusters(survey.n_episodes)
    memory = None if ladder is None else ladder.described(clusters)
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
        n_units=evidence.clusters.n_units if evidence.clusters else None,
        beyond_logged=evidence.beyond,
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
            *about_memory(memory),
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
        degrees=_least(solution.degrees, evidence.clusters.degrees if evidence.clusters else None),
        episodes=survey.episodes,
        corrects_coverage=solution.corrects_coverage,
        against_logs=against_logs,
        memory=memory,
    )


def _least(*degrees: float | None) -> float | None:
    """Of those that are known."""
    return min((each for each in degrees if each is not None), default=None)


def about_loggers(estimator: str, survey: Survey) -> tuple[str, ...]:
    """That logs which name no logger are one pool, to an estimator that treats loggers apart."""
    entry = entry_of(estimator)
    named = [logger.label for logger in survey.loggers] != [UNLABELLED]
    if entry is None or not entry.by_logger or named:
        return ()
    return (
        f"{estimator} treats the rows of each logger apart, and these logs name none: all rows are taken as one"
        " logger's. If several wrote them, name them in a column policy_id, or with the files",
    )


def about_propensities(evidence: Evidence) -> tuple[str, ...]:
    """That propensities were recorded on vectors and were not used, and why; on counts it goes without saying."""
    problem = evidence.problem
    divides = evidence.measures.behaviour_misfit is not None and evidence.solution.given is None
    return (NOT_DIVIDED,) if divides and problem is not None and problem.leaves_propensities else ()


def about_training(device: str | None) -> tuple[str, ...]:
    """That networks were trained on a GPU, which rounds in another way than the processor."""
    if device is None:
        return ()
    said = f"the networks were trained on a GPU ({device}); from the same seed the processor, which rounds in another"
    return (Advice(said, " way, finds slightly other ones: ", Setting("device", "cpu")),)


def about_memory(memory: MemoryUsed | None) -> tuple[str, ...]:
    """How far the value moves when several steps are counted together."""
    if memory is None or len(memory.steps) < 2:
        return ()
    plain, *others = memory.steps
    moved = ", ".join(f"{step.difference:+.3g} ± {step.difference_error:.2g} with {step.memory}" for step in others)
    how = "chosen from the logs" if memory.automatic else "as asked"
    return (f"{memory.used} steps are counted together, {how}. One step gives {plain.value:.3g}; from there {moved}",)


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
