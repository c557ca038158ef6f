"""The first scan: what is known of logs before any target is asked about.

Where states and actions can be counted, the counts of their transitions (:class:`Counted`); everything in the counted
case is solved from them. Elsewhere the totals of all episodes and a sample of the rows (:class:`Sampled`); everything
else is asked for in rounds. Either makes the problem that an estimator solves, and tells what the logs are once the
scores of the estimators are summed by episode.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.base.errors import Advice, DataError, MixopeError, Setting, UsageError
from mixope.base.estimand import Estimand
from mixope.base.threads import one_thread
from mixope.engines import (
    CLUSTERS,
    CheckpointedEngine,
    Engine,
    MemoryEngine,
    bounded,
    choose,
    settings_of,
    with_checkpoint,
)
from mixope.estimators.asking import Answer, Asking, Rounds
from mixope.estimators.counts.on_policy import OnPolicyValues, on_policy_on_counts
from mixope.estimators.device_sums import DeviceSums
from mixope.estimators.features.on_policy import on_policy_on_features
from mixope.estimators.features.problem import FeatureProblem, SampledRows
from mixope.features import FeatureMap
from mixope.logs import LARGE, UNIT, Logs, Past, Schema, StateColumns, Value, explain_gaps, explain_rows
from mixope.requests.checksum import Checksum, Sums
from mixope.requests.episode_counts import counts_by_episode
from mixope.requests.episodes import EpisodeShape, EpisodeSums, EpisodeSurvey, misfits_of_rows, sums_of_episodes
from mixope.requests.grouping import Aggregate, Grouped, Grouping, GroupSums, Lookup
from mixope.requests.joined import Joined
from mixope.requests.limits import limit_of
from mixope.requests.moments import Moments
from mixope.requests.odd_rewards import odd_in_sample
from mixope.requests.problem import Problem, Reader
from mixope.requests.repeats import repeats_of_rows
from mixope.requests.request import Request
from mixope.requests.sample import SAMPLE_ROWS, Sample
from mixope.requests.scores import ScoreTable
from mixope.requests.sentinels import named_sentinels, warn_of_sentinels
from mixope.requests.shifts import shifts_of_vectors
from mixope.requests.spread import Spread, spread_grouping, useful_knots
from mixope.requests.stale import stale_vectors
from mixope.requests.trajectories import MOST_ORDERED, TRANSITION, NumberedSteps
from mixope.requests.transitions import Transitions, encode, transition_grouping, transition_keys
from mixope.requests.values import CategoryValues
from mixope.requests.vector_pasts import WholeEpisodes, vector_pasts
from mixope.session.questions import Question, as_logs, check_seed
from mixope.session.sizes import refuse_too_large
from mixope.session.survey import Survey, ask_for_ends, late_loggers, survey_of_counts, survey_of_episodes, unsaid_ends
from mixope.solvers.devices import Device
from mixope.uncertainty import IntervalChoice
from mixope.uncertainty.choice import BLOCKS

T = TypeVar("T")

MOST_PIECES = 200_000
"""Steps are kept apart for blocks up to so many; of longer logs, pieces of several steps."""


def look(
    logs: Any,
    engine: str | Engine | None = None,
    features: FeatureMap | None = None,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    unit: str | None = None,
    lags: int = 0,
    history: str | Sequence[str] | None = None,
) -> Session:
    """The first scan: counts where states can be counted, a survey and a sample where they cannot.

    Logs that were looked at before are not read again: the first scan is kept with them (:func:`first_scan`).
    ``checkpoint`` is a folder that keeps the answers of this scan and of all that follow. ``unit`` is the
    column that says who an episode belongs to; ``lags`` and ``history`` put the past of an episode beside its states.
    """
    check_seed(seed)
    past = Past.of(lags, history)
    if features is not None and not isinstance(features, FeatureMap):
        raise UsageError(f"features is a feature map such as NormalisedBumps(), got {features!r}")
    if unit is not None:
        chosen_before = logs.engine if isinstance(logs, Session) else None
        logs, engine = _of_units(logs, unit), engine or chosen_before
    if past is not None:
        logs, engine = _with_past(logs, past, engine)
    if isinstance(logs, Session):
        if features is None and logs.drawn_with(seed):
            return replace(logs, engine=with_checkpoint(logs.engine, checkpoint))
        features = features or logs.features
        logs, engine = logs.logs, engine or logs.engine
    logs = as_logs(logs)
    chosen = with_checkpoint(choose(engine, logs), checkpoint)
    if logs.asks_for_ends:
        ask_for_ends(bounded(logs, chosen), chosen)
    return first_scan(logs, chosen, features, seed)


def first_scan(
    logs: Logs, engine: Engine, features: FeatureMap | None = None, seed: int = 0, *, fits: bool = False
) -> Session:
    """The first scan of these logs, made once: it is kept with the logs for whoever looks at them in the same way.

    What is kept refers to the rows, not to these logs, so that they are freed at once when nobody holds them. A scan
    that goes into a folder is taken from there. ``fits`` says that what comes of it is known to fit in memory.
    """
    counted = features is None and logs.schema.discrete
    key = (settings_of(engine), None if counted else seed)
    kept: tuple[Session, bool] | None = logs.recall("first scan", key)
    if kept is not None:
        found, of_these = kept
        _warn(found)
        return found.again(logs if of_these else found.logs, engine, features)
    mine = bounded(logs, engine)
    if not fits:
        refuse_too_large(mine, counted=counted)
    new: Session = count(mine, engine) if counted else sample(mine, engine, features, seed)
    _warn(new)
    if not isinstance(engine, CheckpointedEngine):
        of_these = new.logs is logs
        bare = new.again(logs.twin() if of_these else new.logs, MemoryEngine(), None)
        logs.keep("first scan", key, (bare, of_these))
    return new


def _warn(session: Session) -> None:
    """Of numbers among the states that stand for something else: whoever asks again hears it again."""
    session.either(lambda counted: None, lambda sampled: warn_of_sentinels(sampled.sums.sentinels))


def first_count(logs: Logs, engine: Engine) -> Counted:
    """The same of logs whose states can be counted, and whose counts are known to fit in memory."""
    found = first_scan(logs, engine, fits=True).counted
    assert found is not None
    return found


def _of_units(logs: Any, unit: str) -> Any:
    """Logs whose episodes belong to what a column says; those that say it already are as they were."""
    plain = logs.logs if isinstance(logs, Session) else as_logs(logs)
    if plain.schema.mapping.get(UNIT) == unit:
        return logs
    return plain.with_unit(unit)


def _with_past(logs: Any, past: Past, engine: str | Engine | None) -> tuple[Any, str | Engine | None]:
    """Logs with their past beside their states, and the engine; those that have it already are as they were."""
    if isinstance(logs, Session):
        if logs.logs.past == past:
            return logs, engine
        logs, engine = logs.logs, engine or logs.engine
    return with_past(as_logs(logs), past, choose(engine, as_logs(logs))), engine


def with_past(logs: Logs, past: Past, engine: Engine) -> Logs:
    """Logs with their past beside their states, put in order on this machine and within the bounds of an engine."""
    if engine.name in CLUSTERS and not logs.in_memory:
        raise UsageError(
            Advice(
                "the past of episodes is put beside their states on this machine, and workers of engine"
                f" {engine.name!r} may be elsewhere, where they cannot read it: leave the engine out, use ",
                Setting("engine", "processes"),
                ", or log the columns of the past themselves and leave out ",
                *past.settings,
            )
        )
    return bounded(logs, engine).with_past(past.lags, past.history)


@dataclass(frozen=True)
class Session(ABC):
    """Logs, the engine that reads them, and what the first scan found: it makes problems, and answers requests."""

    logs: Logs
    engine: Engine

    @abstractmethod
    def either(self, on_counts: Callable[[Counted], T], on_sample: Callable[[Sampled], T]) -> T:
        """Of what is to be done with counts and what with a sample, the one that applies, done."""

    @property
    def counted(self) -> Counted | None:
        """Itself, where states are counted."""
        return None

    @property
    def columns(self) -> StateColumns | None:
        """Of mixed states."""
        return None

    @property
    def features(self) -> FeatureMap | None:
        """The feature map that was given."""
        return None

    @property
    def learns(self) -> bool:
        """Whether a value may be learned from the states as they are: they are numbers, of several episodes."""
        return False

    def drawn_with(self, seed: int) -> bool:
        """Whether this is what a first scan with that seed finds."""
        return True

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """All loggers."""

    @property
    @abstractmethod
    def automatic(self) -> tuple[str, ...]:
        """The default estimator, and what is shown beside it."""

    @property
    @abstractmethod
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest reward."""

    @abstractmethod
    def again(self, logs: Logs, engine: Engine, features: FeatureMap | None) -> Session:
        """The same first scan for other questions: what they derive from it is theirs."""

    @abstractmethod
    def problem(
        self, question: Question, *, blocks: bool = False, reader: Reader | None = None
    ) -> Problem | FeatureProblem:
        """The question as estimators see it; with scores by steps where ``blocks`` of them are wanted.

        ``reader`` says what is wanted of the flow behind a solution, where there is one.
        """

    @abstractmethod
    def rounds(self, device: Device = "cpu") -> Rounds:
        """Answers requests by scans of these logs."""

    @abstractmethod
    def on_policy(
        self, estimand: Estimand, *, blocks: bool = False, fit: bool = True, seed: int = 0
    ) -> Asking[OnPolicyValues]:
        """What those who wrote the logs earn by themselves; with scores by steps where ``blocks`` are wanted."""

    @abstractmethod
    def structure(self, seed: int = 0, estimand: Estimand = Estimand()) -> Asking[EpisodeSums]:
        """What the logs are, episode by episode."""

    @abstractmethod
    def wants_blocks(self, choice: IntervalChoice, estimand: Estimand, rounds: Rounds, seed: int = 0) -> bool:
        """Whether an interval may rest on blocks of steps."""

    @abstractmethod
    def survey(self, sums: EpisodeSums) -> Survey:
        """What the logs are."""


@dataclass(frozen=True)
class Counted(Session):
    """Logs after the first scan, as counts of transitions."""

    groups: GroupSums
    transitions: Transitions

    def either(self, on_counts: Callable[[Counted], T], on_sample: Callable[[Sampled], T]) -> T:
        """With counts."""
        return on_counts(self)

    @property
    def counted(self) -> Counted:
        """Itself."""
        return self

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest reward."""
        return float(self.transitions.lowest.min()), float(self.transitions.highest.max())

    def again(self, logs: Logs, engine: Engine, features: FeatureMap | None) -> Counted:
        """The same first scan for other questions: what they derive from it is theirs."""
        return replace(self, logs=logs, engine=engine)

    @property
    def labels(self) -> tuple[str, ...]:
        """All loggers."""
        return self.transitions.loggers

    @property
    def automatic(self) -> tuple[str, ...]:
        """The default estimator, and what is shown beside it."""
        return ("dr", "emp") if self.transitions.factors else ("emp",)

    @cached_property
    def numbers(self) -> Lookup:
        """Every transition's number, keyed by its raw values."""
        import pyarrow as pa

        keys = transition_keys(self.logs.schema)
        table = self.groups.keyed_by(keys)
        return Lookup(table.append_column(TRANSITION, pa.array(np.arange(table.num_rows))), keys)

    @property
    def by_episode(self) -> Grouped:
        """The request for how often every episode had each transition."""
        return counts_by_episode(self.logs.schema, self.numbers)

    def problem(self, question: Question, *, blocks: bool = False, reader: Reader | None = None) -> Problem:
        """The question as estimators see it; with scores by step where ``blocks`` of them are wanted.

        ``reader`` says what is wanted of the flow behind a solution.
        """
        return Problem.of_logged(
            self.transitions,
            question.target,
            question.estimand,
            question.loggers,
            seed=question.seed,
            numbers=self.numbers,
            by_episode=self.by_episode,
            piece_steps=1 if blocks else None,
            reader=reader,
        )

    def rounds(self, device: Device = "cpu") -> Rounds:
        """Answers requests by scans of these logs; counts need no device."""
        return Rounds(partial(self._answer, _answerer(self.logs, self.engine, int(self.transitions.n_rows))))

    def _answer(self, scan: Answer, requests: Sequence[Any]) -> tuple[Any, ...]:
        """One scan per call; score tables and the survey of the episodes are one lookup.

        Logs that are not too long are put in order with the survey, for checks that need to know which row follows
        which. What the survey found is kept with the logs.
        """
        tables = [request for request in requests if isinstance(request, ScoreTable)]
        surveys = [request for request in requests if isinstance(request, EpisodeSurvey)]
        others = [request for request in requests if not isinstance(request, ScoreTable | EpisodeSurvey)]
        answers: dict[int, Any] = {id(survey): self.logs.recall("episodes", self._key(survey)) for survey in surveys}
        new = [survey for survey in surveys if answers[id(survey)] is None]
        joined = [
            Joined.of(self.logs, self.groups, self.transitions, () if number else tables, survey)
            for number, survey in enumerate(new or ([*surveys, EpisodeSurvey()][:1] if tables else []))
        ]
        checked = bool(new) and self.transitions.n_rows <= MOST_ORDERED
        steps = [request for request in others if isinstance(request, NumberedSteps)]
        if not steps and (checked or any(table.by_step for table in tables)):
            steps = [NumberedSteps(self.numbers)]
        rest = [request for request in others if not isinstance(request, NumberedSteps)]
        wanted = [*(each.request for each in joined), *steps[:1], *rest]
        found = iter(scan(wanted) if wanted else ())
        groups = [next(found) for _ in joined]
        rows = next(found) if steps else None
        answers.update((id(request), next(found)) for request in rest)
        ordered = None if rows is None else rows.in_key_order()
        answers.update((id(request), rows) for request in steps)
        if joined:
            answers.update(zip(map(id, tables), joined[0].scores(groups[0], ordered), strict=True))
        in_turn = ordered if checked else None
        for survey, each, sums in zip(new, joined, groups, strict=False):
            answers[id(survey)] = each.surveyed(sums, in_turn)
            self.logs.keep("episodes", self._key(survey), answers[id(survey)])
        return tuple(answers[id(request)] for request in requests)

    def _key(self, survey: EpisodeSurvey) -> tuple[object, ...]:
        """Of what is found about the episodes in this way."""
        return settings_of(self.engine), self.transitions.n_rows <= MOST_ORDERED, survey

    def reward_spread(self) -> Spread:
        """How the rewards of every transition are spread: one more scan, where any of them differ."""
        knots = useful_knots(self.transitions)
        if not len(knots):
            return Spread.unknown(self.transitions.n_groups)
        (found,) = self.rounds().ask([Grouped(spread_grouping(self.logs.schema, knots))])
        if not np.array_equal(found.column("rows"), self.transitions.rows):
            raise MixopeError("the logs changed while they were read: counts of the same transitions differ")
        return Spread(knots, np.stack([found.column(f"above {k}") for k in range(len(knots))], axis=1))

    def on_policy(
        self, estimand: Estimand, *, blocks: bool = False, fit: bool = True, seed: int = 0
    ) -> Asking[OnPolicyValues]:
        """What those who wrote the logs earn by themselves; with scores by step where ``blocks`` of them are wanted."""
        return on_policy_on_counts(self.transitions, self.numbers, estimand, by_step=blocks, seed=seed)

    def structure(self, seed: int = 0, estimand: Estimand = Estimand()) -> Asking[EpisodeSums]:
        """What the logs are, episode by episode: it comes with the scan for the scores."""
        (sums,) = yield (EpisodeSurvey(seed, estimand),)
        found: EpisodeSums = sums
        return found

    def wants_blocks(self, choice: IntervalChoice, estimand: Estimand, rounds: Rounds, seed: int = 0) -> bool:
        """Whether an interval may rest on blocks of steps; where counts cannot tell, episodes are counted first."""
        begun, rows = max(int(self.transitions.starts.sum()), 1), int(self.transitions.n_rows)
        if not choice.wants_blocks(begun, rows, estimand):  # there are no fewer episodes than starts
            return False
        if choice.name == BLOCKS or rows <= MOST_ORDERED:
            return True
        (sums,) = rounds.ask([EpisodeSurvey(seed, estimand)])
        return choice.wants_blocks(len(sums.rows), rows, estimand)

    def survey(self, sums: EpisodeSums) -> Survey:
        """What the logs are."""
        return survey_of_counts(self.logs, self.engine.name, self.transitions, sums)


def count(logs: Any, engine: str | Engine | None = None) -> Counted:
    """The first scan: transition counts, checked and encoded."""
    logs = as_logs(logs)
    schema = logs.schema
    if not schema.discrete:
        what = "action" if schema.observation_kind in {"id", "factors"} else "observation"
        raise DataError(
            f"the {what} has numbers among its columns and cannot be counted",
            column=what,
            expected="integer or string ids, or factors of these",
            hint="use mixope.evaluate, which takes vectors too, or discretise it into factor columns",
        )
    chosen = choose(engine, logs)
    logs = bounded(logs, chosen)
    with logs.scanning():
        groups: GroupSums = chosen.scan(logs, [Grouped(transition_grouping(schema))])[0]
        _refuse_bad_counts(logs, groups)
        counted, sure = int(groups.column("rows").sum()), logs.sure_rows
        if sure is not None and counted != sure:
            raise MixopeError(f"the engine saw {counted:,} rows in this scan, and the logs have {sure:,}")
    rows = encode(groups, schema)
    alike = logs.counted_alike(late_loggers(rows.loggers, sum_by(rows.logger, rows.starts, len(rows.loggers))))
    return Counted(logs, chosen, groups, rows) if alike is logs else count(alike, chosen)


def _refuse_bad_counts(logs: Logs, groups: GroupSums) -> None:
    """A null key, a sum that is not a number, or nothing at all: find the rows and say so."""
    table = groups.table
    if table is None or table.num_rows == 0:
        raise no_rows(logs)
    keys = (*logs.schema.observation, *logs.schema.action)
    suspicious = any(table.column(key).null_count for key in keys)
    floats = [key for key in logs.schema.action if logs.schema.types.get(key) == "float"]
    for name in ("reward", "inverse", "lowest", "highest", *floats):
        suspicious |= name in table.column_names and _beyond(table.column(name).to_numpy())
    error = explain_rows(logs) if suspicious else explain_gaps(logs)
    if error:
        raise error
    _refuse_tiny(logs, groups)


def _beyond(values: FloatArray) -> bool:
    """Whether a number is none, or so large that products with it would not be."""
    return not bool(np.all(np.abs(values) <= LARGE))


def _refuse_tiny(logs: Logs, groups: GroupSums) -> None:
    """Rewards so small that their squares vanish would seem to have no error."""
    largest = max(float(np.abs(groups.column(name)).max()) for name in ("lowest", "highest"))
    if 0 < largest < 1 / LARGE:
        raise DataError(
            "The rewards are too small to compute with",
            where=logs.name,
            column="reward",
            expected=f"a reward of {1 / LARGE:g} or more, or all of them 0",
            got=f"at most {largest:g}",
            hint="record them in another unit: multiply all rewards by a constant",
        )


def no_rows(logs: Logs) -> MixopeError:
    """The refusal where nobody knows what came after any row, or the question on which that hangs."""
    if logs.asks_for_ends:
        return unsaid_ends(logs, None)
    return explain_rows(logs) or DataError(
        "no row can be used",
        where=logs.name,
        expected="rows with a next observation, or a terminated end",
        hint=f"of all rows it holds that {logs.drop_reason}",
    )


@dataclass(frozen=True)
class Sampled(Session):
    """Logs after the first scan, as totals of the episodes and a sample of the rows."""

    rows: SampledRows
    facts: Survey
    sums: EpisodeSums
    checksum: Sums | None = None
    """Of all rows: what every other scan must add up to."""

    def either(self, on_counts: Callable[[Counted], T], on_sample: Callable[[Sampled], T]) -> T:
        """With a sample."""
        return on_sample(self)

    @property
    def learns(self) -> bool:
        """Where nobody made features by hand, and there are episodes to hold out."""
        return self.features is None and self.facts.n_episodes > 1

    def drawn_with(self, seed: int) -> bool:
        """Whether the sample was drawn with it."""
        return self.seed == seed

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest reward."""
        return self.facts.lowest, self.facts.highest

    def again(self, logs: Logs, engine: Engine, features: FeatureMap | None) -> Sampled:
        """The same first scan for other questions: what they derive from it is theirs."""
        rows = replace(self.rows, features=features, fits={}, maps={})
        return replace(self, logs=logs, engine=engine, rows=rows, facts=replace(self.facts, logs=logs))

    @property
    def labels(self) -> tuple[str, ...]:
        """All loggers."""
        return self.rows.labels

    @property
    def features(self) -> FeatureMap | None:
        """The feature map that was given."""
        return self.rows.features

    @property
    def columns(self) -> StateColumns | None:
        """Of mixed states."""
        return self.rows.columns

    @property
    def seed(self) -> int:
        """Of the sample."""
        return self.rows.seed

    @property
    def automatic(self) -> tuple[str, ...]:
        """The default estimator, and what is shown beside it."""
        return ("dr", "emp")

    def problem(self, question: Question, *, blocks: bool = False, reader: Reader | None = None) -> FeatureProblem:
        """The question as estimators see it; with scores by pieces of a few steps where blocks of them are wanted.

        There is no flow behind a solution, and nothing for a ``reader``.
        """
        return FeatureProblem(
            self.rows,
            question.target,
            question.estimand,
            question.loggers,
            piece_steps=self.piece_steps if blocks else None,
            device=question.device,
        )

    def rounds(self, device: Device = "cpu") -> Rounds:
        """Answers requests by scans of these logs, with moments on a device where the scans run in this process."""
        here = getattr(self.engine, "in_process", False)  # an engine of a user's own need not say
        sums = DeviceSums(device if here else "cpu", self.facts.n_rows)
        answer = _answerer(self.logs, self.engine, self.facts.n_rows, self.checksum, self.seed, sums)
        return Rounds(answer, notes=sums.notes)

    @property
    def piece_steps(self) -> int:
        """How many steps go into a piece where blocks of steps are wanted."""
        return max(1, self.facts.n_rows // MOST_PIECES)

    def on_policy(
        self, estimand: Estimand, *, blocks: bool = False, fit: bool = True, seed: int = 0
    ) -> Asking[OnPolicyValues]:
        """What those who wrote the logs earn by themselves, on the way to it."""
        pieces = self.piece_steps if blocks else None
        return on_policy_on_features(self.rows, self.facts.episodes, estimand, self.logs.step_base, pieces, fit)

    def structure(self, seed: int = 0, estimand: Estimand = Estimand()) -> Asking[EpisodeSums]:
        """What the logs are, episode by episode: it came with the sample."""
        yield from ()
        return self.sums

    def wants_blocks(self, choice: IntervalChoice, estimand: Estimand, rounds: Rounds, seed: int = 0) -> bool:
        """Whether an interval is to rest on blocks of steps."""
        return choice.wants_blocks(self.facts.n_episodes, self.facts.n_rows, estimand)

    def survey(self, sums: EpisodeSums) -> Survey:
        """What the logs are."""
        return self.facts


def sample(logs: Logs, engine: Engine, features: FeatureMap | None = None, seed: int = 0) -> Sampled:
    """One scan: the totals and the structure of every episode, a sample of the rows, the actions where they are ids."""
    schema = logs.schema
    requests: list[Request] = [
        EpisodeShape(seed),
        Sample(SAMPLE_ROWS, seed),
        CategoryValues(),
        WholeEpisodes(seed=seed),
    ]
    if schema.action_kind == "discrete":
        requests.append(Grouped(Grouping(schema.action, (Aggregate("rows", "count"),))))
    with logs.scanning():
        scanned = engine.scan(logs, requests, logs.sure_rows) if logs.total_rows() else (None,) * 4
        shape, chosen, values, whole, *actions = scanned
        if shape is None or len(chosen.rows) == 0:
            raise no_rows(logs)
        _refuse_bad_sample(logs, shape, chosen.rows, *actions)
    irregular, broken = misfits_of_rows(shape, logs.step_base)
    facts = survey_of_episodes(logs, engine.name, shape, suspicious=bool(irregular.any() or broken.any()))
    totals = facts.episodes
    alike = logs.counted_alike(facts.late)
    if alike is not logs:
        return sample(alike, engine, features, seed)
    label = np.array([logger.label for logger in facts.loggers])[totals.logger]
    starts = {str(name): float(totals.starts[label == name].sum()) for name in np.unique(label)}
    followed = {str(name): float((totals.rows - totals.unfollowed)[label == name].sum()) for name in np.unique(label)}
    known = SampledRows(
        schema,
        int(sum(followed.values())),
        followed,
        starts,
        chosen.in_order,
        features,
        seed,
        has_propensities=float(shape.column("unrecorded").sum()) == 0,
        logged_actions=np.sort(actions[0].values(schema.action[0])) if actions else None,
        any_end=bool(totals.ended.any()),
        columns=_columns_of(schema, values.found, facts.n_rows),
    )
    sentinels = named_sentinels(known.sample, schema.observation)
    repeats = repeats_of_rows(shape, chosen.rows)
    sums = EpisodeSums(totals, irregular, broken, repeats=repeats)
    with one_thread():
        shifts, stale = shifts_of_vectors(known.sample), stale_vectors(known.sample)
        rows = whole.in_order(schema)
        pasts = () if rows is None else vector_pasts(rows, seed)
    limit, odd = limit_of(shape, known.sample), odd_in_sample(known.sample, seed)
    sums = replace(sums, limit=limit, odd=odd, sentinels=sentinels, shifts=shifts, staleness=stale, pasts=pasts)
    return Sampled(logs, engine, known, facts, sums, sums_of_episodes(shape))


def _columns_of(schema: Schema, values: Sequence[Mapping[float, Value]], n_rows: int) -> StateColumns | None:
    """How the columns of mixed states are called and what their codes mean; None for other states."""
    if schema.observation_kind != "mixed":
        return None
    columns = StateColumns.of(schema, values)
    columns.refuse_ids(n_rows)
    return columns


def _refuse_bad_sample(logs: Logs, shape: GroupSums, rows: Any, actions: GroupSums | None = None) -> None:
    """NaN or infinity anywhere, or a propensity that is none: find the rows in the files and say so."""
    sums = ("earned", "leaving", "arriving", "steps", "lowest", "highest")
    floats = [a for a in (rows.observation, rows.next_observation, rows.action, rows.reward) if a.dtype.kind == "f"]
    suspicious = any(_beyond(shape.column(name)) for name in sums)
    suspicious |= any(_beyond(a) for a in floats) or bool((rows.propensity < 1 / LARGE).any())
    if actions is not None and logs.schema.types.get(logs.schema.action[0]) == "float":
        suspicious |= _beyond(actions.column(logs.schema.action[0]))
    error = explain_rows(logs) if suspicious else explain_gaps(logs)
    if error:
        raise error
    _refuse_tiny(logs, shape)


def _answerer(
    logs: Logs,
    engine: Engine,
    n_rows: int,
    checksum: Sums | None = None,
    seed: int = 0,
    sums: DeviceSums | None = None,
) -> Any:
    """One scan per call; sums that are not finite are explained by the rows behind them.

    With a ``checksum`` it is asked for again in every scan that reads rows, and must be the same.
    """

    shared = sums or DeviceSums()

    def answer(requests: Sequence[Request]) -> tuple[Any, ...]:
        besides = [] if checksum is None else _checksums(requests, seed)
        scanned = shared.scan(lambda asked: engine.scan(logs, asked, n_rows), [*requests, *besides])
        found, again = scanned[: len(requests)], scanned[len(requests) :]
        if checksum is not None and again:
            checksum.refuse_other(again[0], logs.name)
        for each in found:
            if isinstance(each, Moments) and each.not_finite:
                raise explain_rows(logs) or DataError(
                    f"the sums of {each.belongs_to} are not finite",
                    expected="finite rewards, states, actions and probabilities",
                    got=f"{', '.join(each.not_finite)} not finite",
                    hint="check the target's and the behaviour's densities on these logs",
                )
        return found

    return answer


def _checksums(requests: Sequence[Request], seed: int) -> list[Request]:
    """The request for a checksum that costs no pass of its own; none where an engine that speaks SQL reads no row."""
    if any(not (request.whole_episodes or isinstance(request, Grouped)) for request in requests):
        return [Checksum(seed)]
    return [Checksum(seed, whole_episodes=True)] if any(request.whole_episodes for request in requests) else []
