"""Asking: how an estimator gets sums over the logs without ever opening a file.

An estimator is a generator. It yields requests (:mod:`mixope.requests.request`), receives their sums, and returns its
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
from mixope.requests.episodes import EpisodeSurvey
from mixope.requests.request import Request, content_key

T = TypeVar("T")

Asked = Request | EpisodeSurvey
"""What may be asked: a statistic of rows, or what whoever holds the counts knows how to make of some."""
Asking = Generator[tuple[Asked, ...], Sequence[Any], T]
Answer = Callable[[Sequence[Any]], tuple[Any, ...]]
"""Answers some requests: one scan."""


@dataclass
class _Asker:
    """One estimator on its way: what it asks now, and what came of it."""

    asking: Any
    wants: tuple[Asked, ...] | None = None
    outcome: Any = None

    def advance(self, answers: Sequence[Any] | None) -> None:
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
        rest = answers if isinstance(answers, list) else list(answers)
        del answers
        for asker in waiting:  # a list that is emptied: nothing holds an answer when its askers have advanced
            size = len(asker.wants or ())
            mine = rest[:size]
            del rest[:size]
            asker.advance(mine)
            del mine
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
    """Whoever answers, one scan per round. Equal requests of a round are one.

    An answer lives until those who asked for it have advanced: all who ask for it do so in the same round. Those that
    need episodes in order are kept, by content, and so are those that are asked for outside of rounds.
    """

    answer: Answer
    kept: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What whoever answers has to say about it."""

    def ask(self, requests: Sequence[Asked]) -> tuple[Any, ...]:
        """The answers to some requests, which are kept; those that are new cost one scan."""
        return tuple(self._answers(requests, keep=True))

    def run(self, asking: Asking[T]) -> T:
        """To its end, one scan per round."""
        try:
            wants = next(asking)
            while True:
                wants = asking.send(self._answers(wants))
        except StopIteration as end:
            found: T = end.value
            return found

    def _answers(self, requests: Sequence[Asked], *, keep: bool = False) -> list[Any]:
        keys = [content_key(request) for request in requests]
        new = {key: request for key, request in zip(keys, requests, strict=True) if key not in self.kept}
        found = dict(zip(new, self.answer(list(new.values())), strict=True)) if new else {}
        lasting = [key for key, request in new.items() if keep or getattr(request, "whole_episodes", False)]
        self.kept.update((key, found[key]) for key in lasting)
        return [found[key] if key in found else self.kept[key] for key in keys]


def answered(start: Callable[[], Any], answer: Answer) -> Any:
    """One estimator alone, with its requests answered by ``answer``."""
    return Rounds(answer).run(all_or_nothing([start]))[0]
