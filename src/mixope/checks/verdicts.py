"""What a check says, and the verdict on top of all of them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

Status = Literal["pass", "warn", "fail"]
Bound = Literal["at most", "at least", "within", "other than"]
Section = Literal["weights", "coverage", "stationarity", "data", "backtest"]
"""The sections of a report that checks belong to."""


class Verdict(StrEnum):
    """Whether the number can be used; equal to its words."""

    TRUSTWORTHY = "trustworthy"
    CAUTION = "caution"
    UNSUPPORTED = "not supported by these logs"
    REFERENCE = "reference only"


@dataclass(frozen=True)
class Diagnostic:
    """One check: what was measured, where it starts to matter, how it came out, in words.

    ``bound`` says on which side of the threshold the value should lie; ``"within"`` is within the threshold of 1.
    ``remedy`` is what to do next, where it did not pass; ``page`` is the page of the documents that explains the check.
    """

    name: str
    value: float
    threshold: float
    status: Status
    sentence: str
    bound: Bound = "at most"
    section: Section = "data"
    remedy: str | None = None
    page: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        return {"check": self.name, **{name: found for name, found in asdict(self).items() if name != "name"}}


def graded(name: str, value: float, warn: float, fail: float, sentence: str, *, high_is_bad: bool = True) -> Diagnostic:
    """A number against the threshold that it has passed, or the first one; one that does not exist is a warning."""
    bound: Bound = "at most" if high_is_bad else "at least"
    if math.isnan(value):
        return Diagnostic(name, value, warn, "warn", f"{sentence} (it cannot be computed on these logs)", bound)
    sign = 1.0 if high_is_bad else -1.0
    status: Status = "fail" if sign * (value - fail) > 0 else "warn" if sign * (value - warn) > 0 else "pass"
    return Diagnostic(name, value, fail if status == "fail" else warn, status, sentence, bound)


def verdict(diagnostics: tuple[Diagnostic, ...]) -> Verdict:
    """The worst of them; what was not judged is a reference line."""
    if not diagnostics:
        return Verdict.REFERENCE
    statuses = {d.status for d in diagnostics}
    if "fail" in statuses:
        return Verdict.UNSUPPORTED
    return Verdict.CAUTION if "warn" in statuses else Verdict.TRUSTWORTHY
