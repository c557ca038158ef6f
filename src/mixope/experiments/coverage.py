"""How often intervals hold the truth: every interval of every estimator on independent logs, where the truth is exact.

How much is measured is decided here; what, in :mod:`~mixope.experiments.coverage_logs`; what is said of a cell, in
:mod:`~mixope.experiments.coverage_lines`; what it means is told in docs/coverage.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from mixope.experiments.coverage_lines import show, summarise
from mixope.experiments.coverage_logs import CoveredLog, Source
from mixope.experiments.coverage_panels import draw
from mixope.experiments.experiment import Experiment, Size


@dataclass(frozen=True)
class Batch:
    """So many logs of an environment at every size (in episodes), and what their intervals are made from."""

    environment: str
    loggers: int
    horizon: int
    sizes: tuple[int, ...]
    estimators: str
    logs: int
    source: Source = "scores"


@dataclass(frozen=True)
class Settings:
    """All logs, and how many refits a bootstrap has."""

    batches: tuple[Batch, ...]
    replicates: int = 200


RATIOS, WEIGHTS = "emp,bch-pooled", "wis-step,is-step"
REFITTED = f"{RATIOS},wis-step"


def _small(
    name: str, loggers: int, horizon: int, sizes: tuple[int, ...], logs: tuple[int, int, int]
) -> tuple[Batch, ...]:
    """What a small environment is asked, with so many logs for scores, blocks and refits."""
    asked = f"{RATIOS},dr,wis-step" if name == "gridworld-slip" else f"{RATIOS},{WEIGHTS}"
    scores, blocks, refits = logs
    found = (
        Batch(name, loggers, horizon, sizes, asked, scores),
        Batch(name, loggers, horizon, sizes, RATIOS, blocks, "blocks"),
        Batch(name, loggers, horizon, sizes, REFITTED, refits, "refits"),
    )
    return tuple(batch for batch in found if batch.logs)


SIZES: dict[Size, Settings] = {
    "smoke": Settings((Batch("singlepath", 2, 20, (30,), "emp", 20),)),
    "quick": Settings(
        (
            *_small("singlepath", 2, 20, (10, 100), (60, 60, 20)),
            *_small("gridworld-slip", 4, 50, (12, 200), (60, 60, 20)),
        ),
        50,
    ),
    "full": Settings(
        (
            *_small("singlepath", 2, 20, (10, 100), (1000, 500, 200)),
            *_small("walk", 2, 30, (10, 100), (1000, 0, 200)),
            *_small("gridworld-slip", 4, 50, (12, 200), (1000, 500, 100)),
            Batch("taxi", 1, 200, (50, 200), f"{RATIOS},dr", 60),
            Batch("taxi", 4, 200, (50, 200), f"{RATIOS},dr", 60),
        )
    ),
}
"""Walk has true ends, so no long episode to be cut into blocks."""


def plan(settings: Settings, seed: int) -> list[CoveredLog]:
    """By the share of a batch that is done, so that a run cut short has some of everything."""
    found = [
        (
            k / batch.logs,
            CoveredLog(
                batch.environment,
                batch.loggers,
                episodes,
                batch.horizon,
                batch.estimators,
                batch.source,
                settings.replicates if batch.source == "refits" else 0,
                seed,
                k,
            ),
        )
        for batch in settings.batches
        for episodes in batch.sizes
        for k in range(batch.logs)
    ]
    return [log for _, log in sorted(found, key=lambda item: item[0])]


EXPERIMENT = Experiment(
    name="coverage",
    title="Coverage: how often 95 % intervals hold the truth",
    caption="Independent logs of environments whose truth is exact; each estimator with every interval, behaviour "
    "unknown. The band is 93 to 97 %; an arrow at the left edge is a share below the picture. An interval cannot cover "
    "what bias has moved: 'bias ÷ se' is the mean error in standard errors, 'se ÷ spread' the standard error that was "
    "stated over the spread of the values of all logs, 'warned' the share of logs whose verdict is not 'trustworthy'. "
    "These and the width are of the t interval.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw,
    show=show,
)
