"""Every logger held out in turn: its policy is evaluated from the rows of the others, and set beside what it earned.

Like is compared with like: the mean of T steps after a reset is not the long-run average, so where a logger's episodes
were all cut after the same number of steps its prediction is for that horizon. Where all of them ended for good, the
mean over rows is the average of a process that starts again, and that is predicted. Where states are not counted, only
averages can be predicted with an interval, and the notes say which loggers that may mislead.

The held-out policy is the known one, or what its own rows show: the frequencies of its actions, or where states are not
counted a law that is fitted to them. The two sides then share the noise of its actions, and a comparison errs towards
agreement. Nothing else of its rows enters: the counts are the others' (:mod:`mixope.backtesting.from_counts`), or every
request sees their rows only.

How far a prediction is off, and what all of them say together, is in :mod:`mixope.backtesting.judging`. Beside the
loggers, the counts of all of them are replayed (:mod:`mixope.diagnostics.replay`): loggers who share what the state
leaves out predict each other well, and all of them wrongly.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mixope.answering import build
from mixope.backtesting.from_counts import few_at_a_time
from mixope.backtesting.held_out import HeldOut, refuse_whole_episodes
from mixope.backtesting.judging import Distance, distance, earned, independent_predictions
from mixope.backtesting.records import Backtest, BacktestRow, judged_together
from mixope.behaviours import DefaultMixture, imitate
from mixope.diagnostics import Diagnostic, Evidence, Verdict, episodes_are_new
from mixope.diagnostics.replay import judge_replays, replay_logs
from mixope.engines import Engine
from mixope.errors import Advice, DataError, MixopeError, UsageError
from mixope.estimate import Estimate, Provenance
from mixope.estimators import Estimator, Solution, check_takes, make
from mixope.estimators.asking import Asking, together
from mixope.estimators.feature_problem import FeatureProblem
from mixope.features import FeatureMap
from mixope.intervals import (
    IntervalChoice,
    Scores,
    Uncertainty,
    clustered_interval,
    judge_scores,
    widen,
)
from mixope.logs import UNLABELLED, LogSource
from mixope.policies import Policy, PolicySource
from mixope.questions import Question, check_level, known_policies
from mixope.seen import Counted, Sampled, look
from mixope.statistics.episodes import EpisodeSums
from mixope.statistics.repeats import Repeats
from mixope.statistics.request import OfLoggers
from mixope.survey import Survey
from mixope.version import __version__


def backtest(
    logs: LogSource,
    *,
    loggers: Mapping[str, PolicySource] | None = None,
    estimator: str | Estimator = "auto",
    level: float = 0.95,
    features: FeatureMap | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Backtest:
    """Predict what each labelled logger earned from the rows of the others.

    :param logs: whatever :func:`mixope.read` takes, or what it gave; at least two loggers with labels.
    :param loggers: labels → policies where they are known; the others are counted from, or fitted to, their own rows.
    :param estimator: any that does not weigh whole episodes (``"auto"``: doubly robust where states have factors or
        are vectors, else EMP).
    :param level: of the intervals.
    :returns: one row per logger, and whether the predictions are off by more than chance.

    ``features``, ``engine``, ``seed`` and ``checkpoint`` are those of :func:`mixope.evaluate`.

    >>> tested = mixope.backtest("logs/*.parquet")
    >>> [row.label for row in tested.rows]
    ['logger-0', 'logger-1']
    >>> f"{tested.agree} of {len(tested.supported)} agree"
    '2 of 2 agree'
    """
    check_level(level)
    seen = look(logs, engine, features, seed, checkpoint)
    labels = _labels(seen.labels)
    known = known_policies(loggers, seen.logs, seen.labels, seen.columns)
    chosen = make(seen.automatic[0] if isinstance(estimator, str) and estimator == "auto" else estimator)
    if isinstance(seen, Counted):
        rounds = seen.rounds()
        sums = seen.sum_scores(rounds, [], seed)
        survey = seen.survey(sums)
        batches = few_at_a_time(seen, rounds, survey, chosen, labels, known, seed)
    else:
        survey, sums = seen.facts, seen.sums
        batches = iter([_from_sample(seen, chosen, labels, known)])
    found, held = [], []
    for batch in batches:
        found += [_predict(one, survey, chosen, level, seed) for one in batch]
        held += [replace(one, policy=None, solution=None, scores=None, problem=None) for one in batch]
    rows = judged_together([row for row, _ in found])
    degrees = independent_predictions([far for row, (_, far) in zip(rows, found, strict=True) if row.supported and far])
    # there is no target: every logger is one in turn
    provenance = Provenance(__version__, seed, survey.engine, survey.fingerprint, "", survey.inputs)
    replays = _replayed(seen, sums, survey, level)
    off = tuple(check.sentence for check in replays if check.status != "pass")
    notes = (*survey.alerts, *_repeated(sums.repeats), *off, *_notes(survey, held))
    return Backtest(rows, chosen.name, level, notes, provenance, degrees, replays)


def _labels(labels: Sequence[str]) -> tuple[str, ...]:
    named = tuple(label for label in labels if label != UNLABELLED)
    if not named or len(labels) < 2:
        raise UsageError(
            "a backtest predicts one logger from the others, so it needs at least two labelled loggers; these logs"
            f" have {', '.join(map(repr, labels))}. Label them with a column policy_id, or file by file:"
            " a=one.parquet b=two.parquet"
        )
    return named


def _repeated(repeats: Repeats | None) -> tuple[str, ...]:
    """That episodes are copies of others: a prediction from rows that are counted twice seems surer than it is."""
    found = None if repeats is None else episodes_are_new(repeats)
    return () if found is None or found.status == "pass" else (found.sentence,)


def _replayed(seen: Counted | Sampled, sums: EpisodeSums, survey: Survey, level: float) -> tuple[Diagnostic, ...]:
    """What the counts of all loggers predict of them, whole and out of time, in half-widths of what they earned."""
    if not isinstance(seen, Counted):
        return ()
    value, own = earned(sums.totals, sums.totals, None)
    around = clustered_interval(value, own, level)
    found = replay_logs(seen.transitions, sums)
    half = None if around is None else around.width / 2
    return judge_replays(found, half, 1.0, survey.lowest, survey.highest)


def _notes(survey: Survey, held: Sequence[HeldOut]) -> tuple[str, ...]:
    notes = []
    averages = [(one.label, survey.episodes.of(one.number)) for one in held if one.estimand.horizon is None]
    cut = {label: mine.horizon for label, mine in averages if mine.horizon is not None}
    if cut:
        steps = " or ".join(f"{steps:,}" for steps in sorted(set(cut.values())))
        notes.append(
            f"the episodes of {', '.join(cut)} were all cut after {steps} steps. Where states are not counted there is"
            " no interval for a horizon, so the long-run average is predicted and compared with the mean of the rows:"
            " they may differ by what the first steps after a start are worth"
        )
    unlike = [label for label, mine in averages if not mine.whole and mine.horizon is None]
    if unlike:
        notes.append(
            f"the episodes of {', '.join(unlike)} were cut after different numbers of steps or lack their first ones,"
            " so the long-run average is predicted and compared with the mean of the rows: they may differ for that"
        )
    for how, words in (("counted", "counted from"), ("fitted", "fitted to")):
        mine = [one.label for one in held if one.how == how]
        if mine:
            notes.append(
                f"the policies of {', '.join(mine)} were {words} their own rows; comparisons err towards agreement"
            )
    if any(logger.label == UNLABELLED for logger in survey.loggers):
        notes.append("rows without a label help to predict the others and are not predicted")
    return tuple(notes)


def _from_sample(
    seen: Sampled, estimator: Estimator, labels: Sequence[str], known: Mapping[str, Policy]
) -> list[HeldOut]:
    """Every logger's policy from the rows of the others, all of them in the same rounds of scans."""
    check_takes(estimator, "features")
    held = [_left_out(seen, label, known) for label in labels]
    asked = [partial(_ask, estimator, one.problem) for one in held if one.problem is not None]
    outcomes = iter(seen.rounds().run(together(asked)))
    return [one if one.problem is None else _solved(one, next(outcomes)) for one in held]


def _left_out(seen: Sampled, label: str, known: Mapping[str, Policy]) -> HeldOut:
    """The question that a logger's policy puts to the others; a policy that cannot be fitted is a refusal."""
    found = HeldOut(seen.labels.index(label), label, "known" if label in known else "fitted", known.get(label))
    try:
        policy = known.get(label) or imitate(seen.rows.fitted(DefaultMixture(), {label: 1.0}))
    except MixopeError as error:
        said = Advice("its policy is not known and cannot be fitted to its rows: ", error.reason)
        return replace(found, refusal=said)
    others = seen.rows.of_loggers([name for name in seen.labels if name != label])
    rest = {name: other for name, other in known.items() if name != label}
    return replace(found, policy=policy, problem=FeatureProblem(others, policy, found.estimand, rest))


def _ask(estimator: Estimator, problem: FeatureProblem) -> Solution | Asking[Solution]:
    """A solution, or a generator on the way to one that sees the rows of the others."""
    found = estimator.solve(problem)
    return _among(found, problem.labels, estimator.name) if isinstance(found, Generator) else found


def _among(asking: Asking[Solution], labels: tuple[str, ...], name: str) -> Asking[Solution]:
    """The same estimator, all of whose requests see the rows of some loggers only."""
    answers: Any = None
    while True:
        try:
            wants = asking.send(answers)
        except StopIteration as end:
            found: Solution = end.value
            return found
        if any(request.whole_episodes for request in wants):
            refuse_whole_episodes(name, wants)
        answers = yield tuple(OfLoggers(request, labels) for request in wants)


def _solved(one: HeldOut, outcome: Solution | MixopeError) -> HeldOut:
    """With its solution; where the data do not allow one, with the reason."""
    if isinstance(outcome, DataError):
        return replace(one, refusal=outcome.problem)
    if isinstance(outcome, MixopeError):
        raise outcome
    return replace(one, solution=outcome, scores=outcome.episode_scores)


def _predict(
    held: HeldOut, survey: Survey, estimator: Estimator, level: float, seed: int
) -> tuple[BacktestRow, Distance | None]:
    """The line of one logger, and how far it is off where there is an interval."""
    mine = survey.episodes.of(held.number)
    value, own = earned(mine, survey.episodes, held.estimand.horizon)
    around = clustered_interval(value, own, level)
    estimate = _estimate(held, survey.without(held.number), estimator.name, level, seed)
    found = estimate.interval if estimate else None
    far = None
    if estimate and found and around and estimate.standard_error is not None and held.scores is not None:
        whose = survey.episodes.logger == held.number
        off = estimate.value - value
        far = distance(off, estimate.standard_error, held.scores, own, whose, level, value)
    row = BacktestRow(
        label=held.label,
        predicted=estimate.value if estimate else math.nan,
        low=found.low if found else None,
        high=found.high if found else None,
        earned=value,
        earned_low=around.low if around else None,
        earned_high=around.high if around else None,
        covered=far is not None and far.covered,
        verdict=str(estimate.verdict if estimate else Verdict.UNSUPPORTED),
        uncovered_mass=estimate.uncovered_mass if estimate else held.strange,
        z=None if far is None else far.z,
        deviate=None if far is None else far.deviate,
        estimand=str(held.estimand),
        policy=held.how,
        n_rows=int(mine.rows.sum()),
        n_episodes=len(mine.rows),
        note=held.refusal or _worst(estimate),
    )
    return row, far


def _estimate(held: HeldOut, others: Survey, estimator: str, level: float, seed: int) -> Estimate | None:
    """What the others' rows say, judged like any estimate."""
    solution, scores = held.solution, held.scores
    if solution is None or held.policy is None:
        return None
    if solution.no_interval_because:
        sure = Uncertainty(because=solution.no_interval_because)
    else:
        sure = judge_scores(
            IntervalChoice("t"), solution.value, Scores(scores), level, held.estimand, others.n_episodes
        )
        sure = widen(sure, solution.value, solution.measures.approximation or 0.0, others.n_episodes)
    question = Question(held.label, held.policy, held.estimand, {}, level, seed)
    evidence = Evidence(solution, sure, others, held.problem, scores=scores, estimand=held.estimand)
    return build(question, estimator, evidence)


def _worst(estimate: Estimate | None) -> str:
    """The sentence of the first failure, else of the first warning."""
    found = () if estimate is None else estimate.diagnostics
    return next((d.sentence for status in ("fail", "warn") for d in found if d.status == status), "")
