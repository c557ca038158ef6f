"""Was everything logged once?

Episodes that are given twice (an export that overlaps another, copies under new ids) count as evidence that is not
there: intervals shrink by the square root of how often they are repeated, and nothing else in the logs looks wrong.
"""

from __future__ import annotations

from mixope.checks.check import DAMAGED, Check
from mixope.checks.verdicts import Diagnostic
from mixope.requests.repeats import Repeats

WARN, FAIL = 0.01, 0.25
"""Shares of the episodes that can tell; see the table in docs/trust.md."""


_HOW = {True: "exact copies of others", False: "copies of others but for the last digits"}


def episodes_are_new(repeats: Repeats) -> Diagnostic:
    """The share of episodes that are copies of others, not counting those that may come out alike by chance."""
    words = "no duplicate episodes beyond what chance would produce"
    if repeats.example is not None and repeats.copies:
        copy, original = repeats.example
        words = (
            f"{repeats.copies:,} of {repeats.telling:,} episodes that should differ are {_HOW[repeats.exact]}: {copy}"
            f" is one of {original}. Rows that are counted twice make intervals too narrow"
        )
    return REPEATED.graded(repeats.share, WARN, FAIL, words)


REPEATED = Check(
    "repeated episodes",
    "data",
    DAMAGED,
    "drop the copies: they make intervals too narrow",
    judge_logs=lambda logs: None if logs.sums.repeats is None else episodes_are_new(logs.sums.repeats),
)
