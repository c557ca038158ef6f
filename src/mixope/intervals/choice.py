"""Which interval is wanted: one of these names, and how much work may be spent on it.

auto         t over episodes; blocks of steps where the logs are a few long episodes
t, normal    scores summed by episode, with the t or the normal quantile          (clustered.py)
likelihood   empirical likelihood over episodes                                    (likelihood.py)
blocks       batch means over blocks of steps, for one long episode or a few       (blocks.py)
bca, percentile   refits on resampled episodes                                     (bootstrap.py)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral

from mixope.errors import UnknownName, UsageError
from mixope.estimand import Estimand
from mixope.intervals.registry import REFIT_INTERVALS, SCORE_INTERVALS

AUTO, BLOCKS = "auto", "blocks"
INTERVALS = (AUTO, *SCORE_INTERVALS, BLOCKS, *REFIT_INTERVALS)
ALIASES = {"clustered": "t", "bootstrap": "bca"}
FEW_LONG_EPISODES = 5
"""Fewer episodes than this say too little of the spread between them …"""
LONG_EPISODE = 500
"""… if each has at least so many steps that blocks of them say more (``benchmarks/few_episodes.py``)."""


@dataclass(frozen=True)
class IntervalChoice:
    """An interval by name; ``replicates``, ``jobs`` and ``progress`` matter to refits alone."""

    name: str = AUTO
    replicates: int = 500
    jobs: int | None = None
    progress: bool | Callable[[int, int], None] | None = field(default=None, compare=False)

    @property
    def refits(self) -> bool:
        """Whether it is made by refitting."""
        return self.name in REFIT_INTERVALS

    @property
    def without_refits(self) -> IntervalChoice:
        """What stands beside it: made from scores, at no cost."""
        return replace(self, name=AUTO) if self.refits else self

    def wants_blocks(self, n_episodes: int, n_rows: int, estimand: Estimand) -> bool:
        """Whether steps are to be cut into blocks.

        A discounted value or one of a horizon depends on the start law, and blocks of steps know nothing of how few
        starts there were.
        """
        if self.name == AUTO:
            few = n_episodes < FEW_LONG_EPISODES and n_rows >= LONG_EPISODE * n_episodes
            return (few or n_episodes == 1) and estimand.kind == "average"
        return self.name == BLOCKS


def choose_interval(
    name: str | IntervalChoice = AUTO,
    replicates: int = 500,
    jobs: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> IntervalChoice:
    """A choice from what a user says, checked before any work begins."""
    if isinstance(name, IntervalChoice):
        return name
    meant = ALIASES.get(name, name) if isinstance(name, str) else name
    if meant not in INTERVALS:
        raise UnknownName("interval", name, INTERVALS)
    if not _whole(replicates) or replicates < 2:
        raise UsageError(f"replicates is how many resampled logs are refitted, at least 2, got {replicates!r}")
    if jobs is not None and (not _whole(jobs) or jobs < 1):
        raise UsageError(f"jobs is a number of processes, at least 1 (None: as many as are worth it), got {jobs!r}")
    return IntervalChoice(meant, int(replicates), None if jobs is None else int(jobs), progress)


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
