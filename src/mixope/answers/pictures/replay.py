"""The logs replayed: levels by step, by logger and out of time, as the counts predict them and as they were seen."""

from __future__ import annotations

from collections.abc import Sequence

from mixope.answers.pictures.records import ReplayedMean
from mixope.checks.replay import steps_of
from mixope.requests.replay import Replay, Replays


def replayed_means(found: Replays | None) -> tuple[ReplayedMean, ...]:
    """Every mean by step, and by logger, that could be predicted; and those out of time."""
    if found is None:
        return ()
    whole, loggers, steps, episodes = found.whole, found.by_logger, found.later_steps, found.later_episodes
    means: list[ReplayedMean] = []
    if whole is not None:
        means += _means(whole, [steps_of(whole, k) for k in range(len(whole.total))])
    if loggers is not None:
        means += _means(loggers, found.loggers)
    if steps is not None:
        means += _means(steps, [f"{steps_of(steps, 0)}, from the steps before"])
    if episodes is not None:
        means += _means(episodes, ["late episodes, from early ones"])
    return tuple(means)


def _means(found: Replay, names: Sequence[str]) -> list[ReplayedMean]:
    columns = zip(names, found.seen, found.off, found.error, found.size, strict=True)
    return [
        ReplayedMean(name, float(seen - off), float(seen), float(error))
        for name, seen, off, error, size in columns
        if size > 0
    ]
