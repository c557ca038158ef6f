"""Every logger held out in turn: its policy is evaluated from the rows of the others, and set beside what it earned.

Like is compared with like. Where an estimand is asked for, it is predicted for every logger and held against what the
logger earned under it (:mod:`mixope.estimators.counts.on_policy`): the mean of its episodes where they hold all that
counts, else what its own rows lead to. Where none is, the quantity is what the rows show as they are. The mean of T
steps after a reset is not the long-run average, so where a logger's episodes were cut after the same number of steps,
unless they ended before, its prediction is for that horizon. Where all of them ended for good, the mean over rows is
the average of a process that starts again, and that is predicted. Where states are not counted, horizons cannot be
predicted with an interval, and the notes say which loggers that may mislead.

The held-out policy is the known one, or what its own rows show: the frequencies of its actions, or where states are not
counted a law that is fitted to them. The two sides then share the noise of its actions, and a comparison errs towards
agreement. Nothing else of its rows enters: the counts are the others' (:mod:`mixope.backtesting.from_counts`), or every
request sees their rows only.

How far a prediction is off, and what all of them say together, is in :mod:`mixope.backtesting.judging`. Beside the
loggers, the counts of all of them are replayed (:mod:`mixope.checks.replay`): loggers who share what the state
leaves out predict each other well, and all of them wrongly.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mixope.answers.answering import build
from mixope.answers.choosing import with_memory
from mixope.answers.estimate import Estimate, Provenance
from mixope.backtesting.from_counts import few_at_a_time
from mixope.backtesting.held_out import HeldOut, refuse_whole_episodes
from mixope.backtesting.judging import Distance, LoggerEarnings, distance, earned, earned_by, independent_predictions
from mixope.backtesting.records import Backtest, BacktestRow, judged_together
from mixope.base.errors import Advice, DataError, MixopeError, UsageError
from mixope.base.estimand import Estimand, Kind
from mixope.base.keywords import offers_names
from mixope.behaviours import DefaultMixture, imitate
from mixope.checks import Diagnostic, Evidence, Verdict, episodes_are_new
from mixope.checks.replay import judge_replays, replay_logs
from mixope.engines import Engine
from mixope.estimators import Estimator, Memory, Solution, canonical, check_takes, make
from mixope.estimators.asking import Asking, Rounds, all_or_nothing, together
from mixope.estimators.counts.on_policy import FROM_CHAIN, OnPolicyValue, OnPolicyValues
from mixope.estimators.features.problem import FeatureProblem
from mixope.features import FeatureMap
from mixope.logs import UNLABELLED, LogSource
from mixope.policies import Policy, PolicySource
from mixope.requests.episodes import EpisodeSums, EpisodeTotals
from mixope.requests.repeats import Repeats
from mixope.requests.request import OfLoggers
from mixope.session.questions import Question, as_estimand, check_level, known_policies
from mixope.session.session import Sampled, Session, look
from mixope.session.survey import Survey
from mixope.uncertainty import (
    IntervalChoice,
    Scores,
    Uncertainty,
    clustered_interval,
    judge_scores,
    widen,
)
from mixope.version import __version__


@offers_names
def backtest(
    logs: LogSource,
    *,
    loggers: Mapping[str, PolicySource] | None = None,
    estimator: str | Estimator = "auto",
    estimand: Kind | Estimand | None = None,
    gamma: float | None = None,
    horizon: int | None = None,
    level: float = 0.95,
    features: FeatureMap | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    unit: str | None = None,
    lags: int = 0,
    history: str | Sequence[str] | None = None,
    memory: Memory | None = None,
) -> Backtest:
    """Predict what each labelled logger earned from the rows of the others.

    :param logs: whatever :func:`mixope.read` takes, or what it gave; at least two loggers with labels.
    :param loggers: labels → policies where they are known; the others are counted from, or fitted to, their own rows.
    :param estimator: any that does not weigh whole episodes (``"auto"``: doubly robust where states have factors or
        are vectors, else EMP).
    :param estimand: what is predicted of every logger, with ``gamma`` or ``horizon`` as for :func:`mixope.evaluate`:
        the question that the target is to be asked. None predicts what each logger's rows show as they are: the mean of
        the first steps where all episodes were cut after as many, else the average.
    :param level: of the intervals.
    :returns: one row per logger, and whether the predictions are off by more than chance.

    ``features``, ``engine``, ``seed``, ``checkpoint``, ``unit``, ``lags``, ``history`` and ``memory`` are those of
    :func:`mixope.evaluate`.

    >>> tested = mixope.backtest("logs/*.parquet")
    >>> [row.label for row in tested.rows]
    ['logger-0', 'logger-1']
    >>> f"{tested.agree} of {len(tested.supported)} agree"
    '2 of 2 agree'
    """
    check_level(level)
    nothing = estimand is None and gamma is None and horizon is None
    asked = None if nothing else as_estimand(estimand or "average", gamma, horizon)
    session = look(logs, engine, features, seed, checkpoint, unit, lags, history)
    labels = _labels(session.labels)
    known = known_policies(loggers, session.logs, session.labels, session.columns)
    estimator = canonical(estimator)
    chosen = make(session.automatic[0] if isinstance(estimator, str) and estimator == "auto" else estimator)
    if memory is not None:
        (chosen,) = with_memory(session, [chosen], memory)
    rounds = session.rounds()
    owners, sums = _owners(session, rounds, asked, seed)
    survey = session.survey(sums)
    batches: Iterator[list[HeldOut]] = session.either(
        lambda counted: few_at_a_time(counted, rounds, survey, chosen, labels, known, seed, asked),
        lambda sampled: iter([_from_sample(sampled, rounds, chosen, labels, known, asked)]),
    )
    found, held = [], []
    for batch in batches:
        found += [_predict(one, survey, chosen, level, seed, owners) for one in batch]
        held += [replace(one, policy=None, solution=None, scores=None, problem=None) for one in batch]
    rows = judged_together([row for row, _ in found])
    degrees = independent_predictions([far for row, (_, far) in zip(rows, found, strict=True) if row.supported and far])
    # there is no target: every logger is one in turn
    provenance = Provenance(__version__, seed, survey.engine, survey.fingerprint, "", survey.inputs)
    replays = _replayed(session, sums, survey, level)
    off = tuple(check.sentence for check in replays if check.status != "pass")
    said = _notes(survey, held) if asked is None else _notes_on_own(owners, held)
    notes = (*survey.alerts, *_repeated(sums.repeats), *off, *said, *_notes_on_policies(survey, held))
    return Backtest(rows, chosen.name, level, notes, provenance, degrees, replays, asked)


def same_question(session: Session, estimand: Estimand) -> Estimand | None:
    """What a backtest beside an answer asks of the loggers: what the target was asked, where that can be predicted.

    None, which predicts what rows show as they are: for a long-run average, and for a horizon where states are not
    counted, which only estimators can answer that weigh whole episodes.
    """
    unlike = estimand.horizon is not None and session.counted is None
    return None if estimand.kind == "average" or unlike else estimand


def _owners(session: Session, rounds: Rounds, asked: Estimand | None, seed: int) -> tuple[OnPolicyValues, EpisodeSums]:
    """What every logger earned, where an estimand is asked for, and what the logs are; by one scan."""
    if asked is None:
        return (), rounds.run(session.structure(seed))
    starts: list[Callable[[], Any]] = [
        partial(session.on_policy, asked, seed=seed),
        partial(session.structure, seed, asked),
    ]
    values, sums = rounds.run(all_or_nothing(starts))
    return values, sums


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
    """A warning of duplicate episodes, which make predictions look more certain than they are."""
    found = None if repeats is None else episodes_are_new(repeats)
    return () if found is None or found.status == "pass" else (found.sentence,)


def _replayed(session: Session, sums: EpisodeSums, survey: Survey, level: float) -> tuple[Diagnostic, ...]:
    """What the counts of all loggers predict of them, whole and out of time, in half-widths of what they earned."""
    if session.counted is None:
        return ()
    own, units = earned(sums.totals, sums.totals, None), sums.totals.clusters()
    spread = np.append(units.scores(own.scores[:-1]), own.scores[-1]) if units.named else own.scores
    around = clustered_interval(own.value, spread, level)
    found = replay_logs(session.counted.transitions, sums)
    half = None if around is None else around.width / 2
    return judge_replays(found, half, 1.0, survey.lowest, survey.highest)


def _notes(survey: Survey, held: Sequence[HeldOut]) -> tuple[str, ...]:
    """Whose rows show something else than what can be predicted."""
    notes = []
    averages = [(one.label, survey.episodes.of(one.number)) for one in held if one.estimand.horizon is None]
    cut = [(label, mine) for label, mine in averages if mine.horizon is not None]
    if cut:
        each = "; ".join(f"{_cut(mine)} of {label}'s episodes" for label, mine in cut)
        notes.append(
            f"cut there, not ended: {each}. Where states are not counted there is no interval for a horizon, so the"
            " long-run average is predicted and compared with the mean of the rows: they may differ by what the first"
            " steps after a start are worth"
        )
    unlike = [label for label, mine in averages if not mine.whole and mine.horizon is None]
    if unlike:
        notes.append(
            f"the episodes of {', '.join(unlike)} were cut after different numbers of steps or lack their first ones,"
            " so the long-run average is predicted and compared with the mean of the rows: they may differ for that"
        )
    return tuple(notes)


def _cut(mine: EpisodeTotals) -> str:
    """How many episodes were cut, and after how many steps; others ended for good before."""
    n = int((mine.ended == 0).sum())
    return f"after {mine.horizon:,} steps {'all' if n == len(mine.ended) else f'{n:,} of {len(mine.ended):,}'}"


def _notes_on_own(owners: OnPolicyValues, held: Sequence[HeldOut]) -> tuple[str, ...]:
    """Whose earnings could not be read off its episodes."""
    solved = [
        one.label for one in held if isinstance(own := owners[one.number], OnPolicyValue) and own.method == FROM_CHAIN
    ]
    if not solved:
        return ()
    return (
        f"episodes of {', '.join(solved)} were cut before all that counts, so that what it earned was solved from its"
        " own rows: a state that leaves something out misleads both sides alike",
    )


def _notes_on_policies(survey: Survey, held: Sequence[HeldOut]) -> tuple[str, ...]:
    """Where the policies are from, and rows that belong to nobody."""
    notes = []
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
    session: Sampled,
    rounds: Rounds,
    estimator: Estimator,
    labels: Sequence[str],
    known: Mapping[str, Policy],
    asked: Estimand | None,
) -> list[HeldOut]:
    """Every logger's policy from the rows of the others, all of them in the same rounds of scans."""
    check_takes(estimator, "features")
    held = [_left_out(session, label, known, asked or Estimand()) for label in labels]
    starts = [partial(_ask, estimator, one.problem) for one in held if one.problem is not None]
    outcomes = iter(rounds.run(together(starts)))
    return [one if one.problem is None else _solved(one, next(outcomes)) for one in held]


def _left_out(session: Sampled, label: str, known: Mapping[str, Policy], estimand: Estimand) -> HeldOut:
    """The question that a logger's policy puts to the others; a policy that cannot be fitted is a refusal."""
    how = "known" if label in known else "fitted"
    found = HeldOut(session.labels.index(label), label, how, known.get(label), estimand)
    try:
        policy = known.get(label) or imitate(session.rows.fitted(DefaultMixture(), {label: 1.0}))
    except MixopeError as error:
        said = Advice("its policy is not known and cannot be fitted to its rows: ", error.reason)
        return replace(found, refusal=said)
    others = session.rows.of_loggers([name for name in session.labels if name != label])
    rest = {name: other for name, other in known.items() if name != label}
    return replace(found, policy=policy, problem=FeatureProblem(others, policy, found.estimand, rest))


def _ask(estimator: Estimator, problem: FeatureProblem) -> Solution | Asking[Solution]:
    """A solution, or a generator on the way to one that sees the rows of the others."""
    found = estimator.solve(problem)
    return _among(found, problem, estimator.name) if isinstance(found, Generator) else found


def _among(asking: Asking[Solution], problem: FeatureProblem, name: str) -> Asking[Solution]:
    """The same estimator, all of whose requests see the rows of some loggers only."""
    answers: Any = None
    while True:
        try:
            wants: Any = asking.send(answers)
        except StopIteration as end:
            found: Solution = end.value
            return found
        if any(request.whole_episodes for request in wants):
            refuse_whole_episodes(name, wants)
        problem.forget()
        answers = yield tuple(OfLoggers(request, problem.labels) for request in wants)


def _solved(one: HeldOut, outcome: Solution | MixopeError) -> HeldOut:
    """With its solution; where the data do not allow one, with the reason."""
    if isinstance(outcome, DataError):
        return replace(one, refusal=outcome.problem)
    if isinstance(outcome, MixopeError):
        raise outcome
    return replace(one, solution=outcome, scores=None if outcome.scores is None else outcome.scores.by_cluster)


def _predict(
    held: HeldOut, survey: Survey, estimator: Estimator, level: float, seed: int, owners: OnPolicyValues
) -> tuple[BacktestRow, Distance | None]:
    """The line of one logger, and how far it is off where there is an interval."""
    mine = survey.episodes.of(held.number)
    got, unknown = _earned(held, survey, owners)
    value, own = got.value, got.scores
    units = mine.clusters(held.estimand)
    spread = np.append(units.scores(own[:-1]), own[-1]) if units.named else own
    around = clustered_interval(value, spread, level) if math.isfinite(value) else None
    estimate = _estimate(held, survey.without(held.number), estimator.name, level, seed)
    found = estimate.interval if estimate else None
    far = None
    if estimate and found and around and estimate.standard_error is not None and held.scores is not None:
        whose = survey.episodes.logger == held.number
        off, together = estimate.value - value, survey.episodes.clusters(held.estimand)
        far = distance(off, estimate.standard_error, held.scores, own, whose, level, value, together)
    refused = estimate is None or far is None or estimate.verdict is Verdict.UNSUPPORTED
    row = BacktestRow(
        label=held.label,
        predicted=estimate.value if estimate else math.nan,
        low=found.low if found else None,
        high=found.high if found else None,
        earned=value,
        earned_low=around.low if around else None,
        earned_high=around.high if around else None,
        covered=None if refused or far is None else far.covered,
        verdict=str(estimate.verdict if estimate else Verdict.UNSUPPORTED),
        uncovered_mass=estimate.uncovered_mass if estimate else held.strange,
        z=None if refused or far is None else far.z,
        deviate=None if refused or far is None else far.deviate,
        estimand=str(held.estimand),
        policy=held.how,
        n_rows=int(mine.rows.sum()),
        n_episodes=len(mine.rows),
        note=held.refusal or unknown or _worst(estimate),
    )
    return row, far


def _earned(held: HeldOut, survey: Survey, owners: OnPolicyValues) -> tuple[LoggerEarnings, str]:
    """What the logger itself earned; or no number, and why."""
    if not owners:
        return earned(survey.episodes.of(held.number), survey.episodes, held.estimand.horizon), ""
    own = owners[held.number]
    if isinstance(own, str):
        nothing = np.full(int((survey.episodes.logger == held.number).sum()) + 1, math.nan)
        return LoggerEarnings(math.nan, nothing), Advice("what it earned itself is not known: ", own)
    return earned_by(own, owners[-1]), ""


def _estimate(held: HeldOut, others: Survey, estimator: str, level: float, seed: int) -> Estimate | None:
    """What the others' rows say, judged like any estimate."""
    solution, scores, clusters = held.solution, held.scores, others.episodes.clusters(held.estimand)
    if solution is None or held.policy is None:
        return None
    scores = None if scores is None else clusters.scores(scores, by_fold=solution.degrees is not None)
    if solution.no_interval_because:
        sure = Uncertainty(because=solution.no_interval_because)
    else:
        by_unit = Scores(scores, units=clusters.named, at_most=clusters.degrees)
        sure = judge_scores(IntervalChoice("t"), solution.value, by_unit, level, held.estimand, len(clusters))
        sure = widen(sure, solution.value, solution.measures.approximation or 0.0, len(clusters))
    question = Question(held.label, held.policy, held.estimand, {}, level, seed)
    evidence = Evidence(solution, sure, others, held.problem, scores=scores, estimand=held.estimand, clusters=clusters)
    return build(question, estimator, evidence)


def _worst(estimate: Estimate | None) -> str:
    """The sentence of the first failure, else of the first warning."""
    found = () if estimate is None else estimate.diagnostics
    return next((d.sentence for status in ("fail", "warn") for d in found if d.status == status), "")
