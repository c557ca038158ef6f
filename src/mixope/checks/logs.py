"""Are there enough logs, and do their rows follow from each other?

episodes            the independent pieces; blocks of steps stand in for them where there are few and long ones
next observations   a column that slipped, or was shuffled, gives every row another row's outcome
missing rows        nobody knows what they earned; which rows are lost may hang on it
rewards seen        where every reward is 0, the value is 0 whoever acts, and its interval has no width: nothing was
                    learnt
"""

from __future__ import annotations

import numpy as np

from mixope.base.errors import Advice, Setting
from mixope.checks.check import DAMAGED, LITTLE, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic

FEW = 20
LEAST, LEAST_IN_BLOCKS = 2, 1
"""Episodes that warn, and that fail: without blocks of steps, and with them."""
ASTRAY = 0.0, 0.1
"""Shares of the rows."""


def episodes(evidence: Evidence) -> Diagnostic:
    """How many independent pieces there are: episodes, or the units that they belong to."""
    n, blocks = evidence.n_clusters, evidence.uncertainty.n_blocks
    what = "unit" if evidence.clusters is not None and evidence.clusters.named else "episode"
    said = f"1 {what} stands behind the interval" if n == 1 else f"{n:,} {what}s stand behind the interval"
    cut = "" if blocks is None else f", cut into {blocks} blocks of steps"
    words = said + cut + (f"; fewer than {FEW} make it unreliable" if n < FEW else "")
    return EPISODES.graded(float(n), FEW, LEAST if blocks is None else LEAST_IN_BLOCKS, words, high_is_bad=False)


def next_observations(evidence: Evidence) -> Diagnostic | None:
    """The share of rows that do not begin where the row before them led; None where all do."""
    n = evidence.survey.astray
    if not n:
        return None
    share = n / max(evidence.survey.n_rows, 1)
    words = (
        f"{n:,} rows ({share:.2%}) do not begin where the row before them led; their next observations may belong to"
        " other rows"
    )
    return NEXT.graded(share, *ASTRAY, words)


def missing_rows(evidence: Evidence) -> Diagnostic | None:
    """The share of rows before which steps are left out; None where none are."""
    n = evidence.survey.holes
    if not n:
        return None
    share = n / max(evidence.survey.n_rows, 1)
    words = (
        f"before {n:,} rows ({share:.2%}) steps are left out, and they do not begin where the row before them led: rows"
        " are missing, perhaps those of some outcomes"
    )
    return MISSING.graded(share, 0.0, np.inf, words)


def rewards_seen(evidence: Evidence) -> Diagnostic | None:
    """Whether any reward differs from 0; None where one does."""
    if evidence.survey.lowest != 0.0 or evidence.survey.highest != 0.0:
        return None
    words = "every logged reward is 0, so that these logs cannot tell what anybody earns; were rewards recorded?"
    return REWARDS.diagnostic(0.0, 0.0, "warn", words, "other than")


EPISODES = Check(
    "episodes",
    "data",
    LITTLE,
    "log more episodes; the interval of a few long ones is made of blocks of steps",
    episodes,
)
NEXT = Check(
    "next observations",
    "data",
    DAMAGED,
    "repair the column, or leave it out so that it is taken from the next row",
    next_observations,
)
MISSING = Check(
    "missing rows", "data", DAMAGED, "find the rows that are missing; what they earned is unknown", missing_rows
)
REWARDS = Check(
    "rewards seen",
    "data",
    LITTLE,
    Advice("look whether another column holds the rewards (", Setting("inspect"), "), and map it"),
    rewards_seen,
)
