"""The logs replayed: levels by step, by logger and out of time, as the counts predict them and as they were seen."""

from __future__ import annotations

from collections.abc import Sequence

from mixope.diagnostics.replay import steps_of
from mixope.pictures.records import ReplayedMean
from mixope.statistics.replay import Replay, Replays


def replayed_means(found: Replays | None) -> tuple[ReplayedMean, ...]:
    """Every mean by step, and by logger, that could be predicted; and those out of time."""
    if found is None:
        return ()
    whole, steps, episodes = found.whole, found.later_steps, found.later_episodes
    means: list[ReplayedMean] = []
    if whole is not None:
        bands = [steps_of(whole, k) for k in range(whole.n_bands)]
        loggers = [f"logger {label}" for label in found.loggers]
        means += _means(whole, [*bands, *loggers[: len(whole.total) - whole.n_bands]])
    if steps is not None:
        means += _means(steps, [f"{steps_of(steps, 0)}, from the steps before"])
    if episodes is not None:
        means += _means(episodes, ["late episodes, from early ones"])
    return tuple(means)


def _means(found: Replay, names: Sequence[str]) -> list[ReplayedMean]:
    """Those that have a name; the loggers' own are left out of what is out of time."""
    columns = zip(names, found.seen, found.off, found.error, found.size, strict=False)
    return [
        ReplayedMean(name, float(seen - off), float(seen), float(error))
        for name, seen, off, error, size in columns
        if size > 0
    ]
