"""A check: its name, what it is about, how it judges, and what to do where it does not pass.

Whoever shows a check (terminal, card, page, JSON, documents) reads it from here or from the diagnostics that it makes;
:mod:`mixope.checks.registry` lists them all. A check of an estimate judges :class:`~mixope.checks.evidence.Evidence`;
one of the logs judges :class:`~mixope.checks.evidence.LogEvidence`, once for all estimates of a run. What it wants to
know of the rows it ``needs``: requests, whose answers come with the first scan of a run that is made anyway. Checks
that come of one computation stand in one file, and the first of them judges for all. One that is made where more is
known (a backtest, an experiment) has no judge here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from mixope.base.errors import UsageError
from mixope.checks.verdicts import Bound, Diagnostic, Section, Status, graded

if TYPE_CHECKING:
    from mixope.checks.evidence import Evidence, LogEvidence
    from mixope.logs import Schema
    from mixope.requests.request import Request

Made = Diagnostic | tuple[Diagnostic, ...] | None
"""What a judge says; None where the check does not apply."""
VERDICTS = "docs/verdicts.md"
FAR = f"{VERDICTS}#the-target-is-far-from-the-logs"
LITTLE = f"{VERDICTS}#too-little-or-too-much-assumed"
BEHAVIOUR = f"{VERDICTS}#the-propensities-or-policies-do-not-fit"
WORLDS = f"{VERDICTS}#the-rows-come-from-more-than-one-world"
REPLAYED = f"{VERDICTS}#the-model-does-not-replay-the-logs"
EXPERIMENT = f"{VERDICTS}#the-state-of-an-experiment-is-not-all"
DAMAGED = f"{VERDICTS}#the-log-itself-is-damaged"


@dataclass(frozen=True)
class Check:
    """One check. ``section`` is that of a report, ``remedy`` what to do next, ``page`` where it is explained."""

    name: str
    section: Section
    page: str
    remedy: str
    judge: Callable[[Evidence], Made] | None = None
    judge_logs: Callable[[LogEvidence], Made] | None = None
    needs: Callable[[Schema], Sequence[Request]] | None = None
    """What it asks of the rows, by their columns; ``judge_logs`` finds the answers in ``evidence.answers[name]``."""

    def __post_init__(self) -> None:
        if self.section not in get_args(Section):
            known = ", ".join(map(repr, get_args(Section)))
            raise UsageError(f"the check {self.name!r} is in the section {self.section!r}; there are {known}")

    def diagnostic(
        self, value: float, threshold: float, status: Status, sentence: str, bound: Bound = "at most"
    ) -> Diagnostic:
        """What was measured, as this check; with the remedy where it does not pass."""
        return self._signed(Diagnostic(self.name, value, threshold, status, sentence, bound))

    def graded(self, value: float, warn: float, fail: float, sentence: str, *, high_is_bad: bool = True) -> Diagnostic:
        """A number against the threshold that it has passed, or the first one; one that does not exist is a warning."""
        return self._signed(graded(self.name, value, warn, fail, sentence, high_is_bad=high_is_bad))

    def _signed(self, made: Diagnostic) -> Diagnostic:
        remedy = None if made.status == "pass" else self.remedy
        return replace(made, section=self.section, remedy=remedy, page=self.page)
