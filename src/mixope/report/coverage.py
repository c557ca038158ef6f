"""What of the target the logs have seen, as an inspection found it, made fit to be shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mixope.report.words import clean

if TYPE_CHECKING:
    from mixope.inspection.records import Coverage


def coverage(given: Coverage | None) -> Coverage | None:
    """The same record with names that are text and nothing else; a state becomes one word."""
    if given is None:
        return None
    worst = (
        replace(gap, state=(clean(", ".join(map(str, gap.state))),), action=clean(gap.action)) for gap in given.worst
    )
    loggers = (replace(logger, label=clean(logger.label)) for logger in given.loggers)
    return replace(given, worst=tuple(worst), loggers=tuple(loggers))
