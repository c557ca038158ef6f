"""Checks: can these logs carry the answer? One registry of them; the verdict is the worst of what they say."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from mixope.checks.check import Check, Made
from mixope.checks.dropped import judge_dropped
from mixope.checks.evidence import Evidence, LogEvidence
from mixope.checks.learning import about_learning, stretch_of
from mixope.checks.possible import within_possible
from mixope.checks.registry import CHECKS, checks, judges
from mixope.checks.repeats import episodes_are_new
from mixope.checks.value import has_interval
from mixope.checks.verdicts import Diagnostic, Verdict, verdict
from mixope.estimators.asking import Asking
from mixope.logs import Schema
from mixope.requests.episodes import EpisodeSums
from mixope.requests.transitions import Transitions


def asked_by_checks(schema: Schema) -> Asking[Mapping[str, tuple[Any, ...]]]:
    """What checks need to know of the rows, asked for in one round; by their names."""
    needs = {name: tuple(check.needs(schema)) for name, check in judges().items() if check.needs is not None}
    if not any(needs.values()):
        return dict.fromkeys(needs, ())
    answers = iter((yield tuple(request for requests in needs.values() for request in requests)))
    return {name: tuple(next(answers) for _ in requests) for name, requests in needs.items()}


def check_logs(
    transitions: Transitions | None, sums: EpisodeSums, answers: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
) -> tuple[Diagnostic, ...]:
    """The checks of the logs themselves, made once per run: do loggers, episodes and rewards agree on the world?

    ``answers`` are those to what checks asked of the rows; a check that asked for something needs them.
    """
    logs = LogEvidence(transitions, sums, answers)
    able = (check for check in judges().values() if check.needs is None or check.name in answers)
    return tuple(_said(check.judge_logs(logs) for check in able if check.judge_logs is not None))


def diagnose(evidence: Evidence) -> tuple[Diagnostic, ...]:
    """All checks that apply; a reference line is no estimate of the target and is not judged."""
    if evidence.solution.is_reference:
        return ()
    known = {made.name: made for made in evidence.of_logs}
    return tuple(
        _said(known.get(name) if check.judge is None else check.judge(evidence) for name, check in judges().items())
    )


def _said(found: Iterable[Made]) -> Iterator[Diagnostic]:
    for made in found:
        yield from made if isinstance(made, tuple) else () if made is None else (made,)


__all__ = [
    "CHECKS",
    "Check",
    "Diagnostic",
    "Evidence",
    "LogEvidence",
    "Verdict",
    "about_learning",
    "asked_by_checks",
    "check_logs",
    "checks",
    "diagnose",
    "episodes_are_new",
    "has_interval",
    "judge_dropped",
    "stretch_of",
    "verdict",
    "within_possible",
]
