"""The passes of a backtest.

1  transition counts (one scan, or those that an evaluation has made), 2  the episodes of every logger (one scan)
3  hold out one logger after the other: restrict the counts, solve, embed the scores in the full table
4  all scores by episode (one scan)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixope.backtesting.holding import HeldOut, hold_out, sum_held_out
from mixope.backtesting.prediction import Predictor
from mixope.backtesting.records import Backtest
from mixope.engines import Engine
from mixope.errors import UsageError
from mixope.estimate import Provenance
from mixope.estimators import Estimator, make
from mixope.logs import UNLABELLED, Logs, read
from mixope.statistics.episodes import EpisodeTotals
from mixope.statistics.transitions import Transitions
from mixope.survey import Survey, survey_episodes
from mixope.tabular import Counted, count
from mixope.targets import check_labels, check_level, resolve_policy
from mixope.version import __version__


def backtest(
    logs: Any,
    *,
    loggers: Mapping[str, Any] | None = None,
    estimator: Any = "auto",
    level: float = 0.95,
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Backtest:
    """Predict what each labelled logger earned from the rows of the others.

    ``loggers`` maps labels to policies where they are known; the others are counted from their own rows. The estimator
    is one that solves from transition counts (``"auto"``: doubly robust where states have factors, else EMP).
    """
    check_level(level)
    counted = _count(logs, engine)
    labels = _labels(counted.transitions)
    known = {str(label): resolve_policy(policy, counted.logs) for label, policy in (loggers or {}).items()}
    check_labels(known, counted.transitions.loggers)
    chosen = make(counted.automatic[0] if isinstance(estimator, str) and estimator == "auto" else estimator)
    if not isinstance(chosen, Estimator):
        raise UsageError(
            f"estimator {chosen.name!r} needs whole episodes and is not backtested; choose one that solves from"
            " transition counts, such as 'emp', 'dr' or 'bch'"
        )
    survey = survey_episodes(counted.logs, counted.engine)[0]
    assert survey.episodes is not None
    held = [hold_out(counted.transitions, survey.episodes, chosen, label, known, seed) for label in labels]
    predictor = Predictor(counted.transitions, survey, survey.episodes, chosen, level, seed)
    scores = sum_held_out(counted, held, seed)
    rows = tuple(predictor.predict(one, mine) for one, mine in zip(held, scores, strict=True))
    return Backtest(rows, chosen.name, level, _notes(counted, survey.episodes, held), _provenance(survey, seed))


def _count(logs: Any, engine: str | Engine | None) -> Counted:
    if isinstance(logs, Counted):
        return logs
    logs = logs if isinstance(logs, Logs) else read(logs)
    if not logs.schema.discrete:
        raise UsageError(
            "a backtest counts transitions, and these logs have vectors for states or actions. Discretise them into"
            " factor columns, or evaluate the policy of one logger on files that leave its rows out"
        )
    return count(logs, engine)


def _labels(transitions: Transitions) -> tuple[str, ...]:
    named = tuple(label for label in transitions.loggers if label != UNLABELLED)
    if not named or len(transitions.loggers) < 2:
        found = ", ".join(map(repr, transitions.loggers))
        raise UsageError(
            f"a backtest predicts one logger from the others, so it needs at least two labelled loggers; these logs"
            f" have {found}. Label them with a column policy_id, or file by file: a=one.parquet b=two.parquet"
        )
    return named


def _notes(counted: Counted, episodes: EpisodeTotals, held: list[HeldOut]) -> tuple[str, ...]:
    notes, names = list(counted.logs.notes), counted.transitions.loggers
    unlike = [names[one.number] for one in held if one.estimand.horizon is None and not episodes.of(one.number).whole]
    if unlike:
        notes.append(
            f"the episodes of {', '.join(unlike)} were cut after different numbers of steps or lack their first ones,"
            " so the long-run average is predicted and compared with the mean of the rows: they may differ for that"
        )
    counts = [names[one.number] for one in held if not one.known]
    if counts:
        notes.append(
            f"the policies of {', '.join(counts)} were counted from their own rows; comparisons err towards agreement"
        )
    if UNLABELLED in names:
        notes.append("rows without a label help to predict the others and are not predicted")
    return tuple(notes)


def _provenance(survey: Survey, seed: int) -> Provenance:
    """There is no target: every logger is one in turn."""
    return Provenance(__version__, seed, survey.engine, survey.fingerprint, "", survey.inputs)
