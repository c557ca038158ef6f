"""Are the rewards what the world gave?

A code for "missing" among rewards, a recorder that cuts off what is large, a single row that outweighs all others: the
mean is then that of the recorder, at any number of rows, and no interval knows of it. What is looked for, and what is
taken for the world's own, is in :mod:`mixope.requests.odd_rewards`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixope.checks.check import DAMAGED, Check
from mixope.checks.verdicts import Diagnostic
from mixope.requests.odd_rewards import AT_LIMIT, DOMINANT, OddRewards
from mixope.requests.sentinels import Sentinel


def rewards_are_real(found: OddRewards) -> tuple[Diagnostic, ...]:
    """A warning for everything that is odd; nothing where nothing is."""
    said = (_sentinel(found), _limit(found), _dominant(found))
    return tuple(check for check in said if check is not None)


def _sentinel(found: OddRewards) -> Diagnostic | None:
    odd = found.sentinel
    if odd is None:
        return None
    share = odd.rows / found.looked_at
    words = (
        f"{odd.rows:,} of {found.looked_at:,} rows ({share:.1%}) earn exactly {odd.value:g}, in no state in particular,"
        f" and hardly two others earn the same (the nearest earns {odd.nearest:g}): it may stand for 'missing'; drop"
        " these rows, or record what they earned"
    )
    return SENTINELS.diagnostic(share, 0.0, "warn", words)


def _limit(found: OddRewards) -> Diagnostic | None:
    odd = found.limit
    if odd is None:
        return None
    share = odd.rows / found.looked_at
    side, far = ("highest", "more") if odd.nearest < odd.value else ("lowest", "less")
    words = (
        f"{odd.rows:,} of {found.looked_at:,} rows ({share:.1%}) earn exactly {odd.value:g}, the {side} reward, and"
        f" hardly two others earn the same: what earned {far} may have been cut off there, and the value with it"
    )
    return LIMIT.diagnostic(share, AT_LIMIT, "warn", words)


def _dominant(found: OddRewards) -> Diagnostic | None:
    odd = found.dominant
    if odd is None:
        return None
    who = "1 row makes" if odd.rows == 1 else f"{odd.rows:,} rows make"
    words = (
        f"{who} {found.share:.0%} of all that {found.looked_at:,} rows earn or cost (the largest reward is"
        f" {odd.value:g}, the next {odd.nearest:g} or less by size): look whether it is real; if it is, the answer is"
        " about it alone"
    )
    return DOMINANT_ROWS.diagnostic(float(odd.rows), float(DOMINANT), "warn", words, "other than")


def states_are_measured(found: Sequence[Sentinel]) -> Diagnostic | None:
    """The same of states: a number for "not measured" hides the state of its rows, and that moves the value."""
    if not found:
        return None
    worst = max(found, key=lambda one: one.share)
    return STATES.diagnostic(worst.share, 0.0, "warn", worst.sentence)


SENTINELS = Check(
    "sentinel rewards",
    "data",
    DAMAGED,
    "drop these rows, or find what they earned; if the world does give this value anywhere and often, go on",
    judge_logs=lambda logs: () if logs.sums.odd is None else rewards_are_real(logs.sums.odd),
)
LIMIT = Check("rewards at a limit", "data", DAMAGED, "go back to the raw rewards; if the world has such a limit, go on")
DOMINANT_ROWS = Check(
    "dominant rewards",
    "data",
    DAMAGED,
    "look at the row that is named; if it is real, the answer is about it alone",
)
STATES = Check(
    "sentinel states",
    "data",
    DAMAGED,
    "leave the number out (null) where states have columns, or drop these rows",
    judge_logs=lambda logs: states_are_measured(logs.sums.sentinels),
)
