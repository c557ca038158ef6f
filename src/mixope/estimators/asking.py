"""Asking: how an estimator gets sums over the logs without ever opening a file.

An estimator is a generator. It yields requests (:mod:`mixope.statistics.request`), receives their sums, and returns its
solution:

    calibration, value = yield (CalibrationSums(…), ValueSums(…))
    ...
    return Solution(…)

All estimators of all targets advance together, one round at a time: equal requests are made once, and a round is one
scan however many asked (:class:`Rounds`). An estimator that needs nothing besides what its problem holds returns its
solution at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import LinAlgWarning

from mixope.base.errors import MixopeError, UsageError
from mixope.statistics.episodes import EpisodeSurvey
from mixope.statistics.request import Request, content_key

T = TypeVar("T")

Asked = Request | EpisodeSurvey
"""What may be asked: a statistic of rows, or what whoever holds the counts knows how to make of some."""
Asking = Generator[tuple[Asked, ...], tuple[Any, ...], T]
Answer = Callable[[Sequence[Any]], tuple[Any, ...]]
"""Answers some requests: one scan."""


@dataclass
class _Asker:
    """One estimator on its way: what it asks now, and what came of it."""

    asking: Any
    wants: tuple[Asked, ...] | None = None
    outcome: Any = None

    def advance(self, answers: tuple[Any, ...] | None) -> None:
        """To the next requests, or to the end: a solution, or the error that says why there is none."""
        try:
            with solvable():
                self.wants = tuple(self.asking.send(answers))
        except StopIteration as end:
            self.wants, self.outcome = None, end.value
        except MixopeError as refusal:
            self.wants, self.outcome = None, refusal


def together(starts: Sequence[Callable[[], Any]]) -> Asking[list[Any]]:
    """Several estimators as one: in every round, all that any of them asks. Gives their solutions or refusals.

    Each of ``starts`` gives a solution, or a generator that asks for sums on the way to one.
    """
    askers = [_begin(start) for start in starts]
    while waiting := [asker for asker in askers if asker.wants is not None]:
        answers = yield tuple(request for asker in waiting for request in asker.wants or ())
        for asker in waiting:
            size = len(asker.wants or ())
            mine, answers = answers[:size], answers[size:]
            asker.advance(mine)
    return [asker.outcome for asker in askers]


def all_or_nothing(starts: Sequence[Callable[[], Any]]) -> Asking[list[Any]]:
    """The same, where a refusal of one is a refusal of all."""
    found = yield from together(starts)
    for outcome in found:
        if isinstance(outcome, MixopeError):
            raise outcome
    return found


@contextmanager
def solvable() -> Iterator[None]:
    """Inside, equations that cannot be solved are a refusal in words; of badly scaled ones the checks tell."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            yield
    except np.linalg.LinAlgError as error:
        raise UsageError(
            f"the equations of this estimator cannot be solved on these logs ({error}): states, actions or the target's"
            " ratios are too extreme. 'mixope inspect' shows the columns; look for values that stand for"
            " something else (−999), for units that change, and for a target that does what was never logged"
        ) from error


def _begin(start: Callable[[], Any]) -> _Asker:
    try:
        with solvable():
            found = start()
    except MixopeError as refusal:
        return _Asker(None, outcome=refusal)
    if not isinstance(found, Generator):
        return _Asker(None, outcome=found)
    asker = _Asker(found)
    asker.advance(None)
    return asker


@dataclass
class Rounds:
    """Answers that were given in a run, by content, so that nothing is asked of the logs twice."""

    answer: Answer
    given: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What whoever answers has to say about it."""

    def ask(self, requests: Sequence[Asked]) -> tuple[Any, ...]:
        """The answers to some requests; those that are new cost one scan."""
        keys = [content_key(request) for request in requests]
        new = {key: request for key, request in zip(keys, requests, strict=True) if key not in self.given}
        if new:
            self.given.update(zip(new, self.answer(list(new.values())), strict=True))
        return tuple(self.given[key] for key in keys)

    def run(self, asking: Asking[T]) -> T:
        """To its end, one scan per round."""
        answers = None
        while True:
            try:
                wants = next(asking) if answers is None else asking.send(answers)
            except StopIteration as end:
                found: T = end.value
                return found
            answers = self.ask(wants)


def answered(start: Callable[[], Any], answer: Answer) -> Any:
    """One estimator alone, with its requests answered by ``answer``."""
    return Rounds(answer).run(all_or_nothing([start]))[0]
