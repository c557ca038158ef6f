"""Tests on disk: the rows, a block of users at a time, and the truth beside them.

    test.parquet (or .csv, .arrow)      truth.json

The truth has every metric that was recorded under every arm, and of every treatment what the test is expected to say
(``naive``), what holds in the long run, and what the recorded columns alone would say of that (``apparent``, which
differs where a hidden column matters).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from mixope.base.errors import DataError, UsageError
from mixope.base.estimand import Estimand
from mixope.base.files import replacing
from mixope.base.folders import claim
from mixope.logs.writing import ROW_GROUP_SIZE
from mixope.version import __version__
from mixope.worlds.engagement import truth
from mixope.worlds.engagement.designs import Choices, Design
from mixope.worlds.engagement.drawing import SimulatedTest, source_of
from mixope.worlds.engagement.world import World

if TYPE_CHECKING:
    import pyarrow as pa

DISCOUNTS = (0.9, 0.99)
OURS = ("test.parquet", "test.csv", "test.arrow", "truth.json")
"""The names that a dataset may have."""


def write(
    world: World | str,
    path: str | os.PathLike[str],
    users: int = 1000,
    days: int = 14,
    *,
    seed: int,
    metrics: Sequence[str] = ("revenue",),
    hidden: str | Sequence[str] = (),
    **choices: Unpack[Choices],
) -> int:
    """The rows of :func:`~.drawing.draw` as .parquet, .csv or .arrow, a block at a time; gives how many there are."""
    return _write_rows(source_of(world, Design(users, days, **choices), seed, metrics, hidden), Path(path))


@dataclass(frozen=True)
class Trial:
    """A test to write, with its setting."""

    setting: str = "wear-out"
    design: Design = field(default_factory=Design)
    hidden: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("revenue",)
    format: str = "parquet"
    seed: int = 0


@dataclass(frozen=True)
class EngagementDataset:
    """Where the files are, and the truth they come with."""

    folder: Path
    test: Path
    world: World
    truth: dict[str, Any]


def write_dataset(trial: Trial, folder: str | os.PathLike[str], *, force: bool = False) -> EngagementDataset:
    """Draw and write; a dataset that is there is replaced only with ``force``, other files never."""
    source = source_of(trial.setting, trial.design, trial.seed, trial.metrics, trial.hidden)
    name = f"test.{trial.format}"
    found = _truth(source)
    with claim(Path(os.path.abspath(folder)), OURS, force=force) as place, place.writing() as fresh:
        origin = {"rows": _write_rows(source, fresh / name), "seed": trial.seed, "settings": asdict(trial)}
        found |= {**origin, "version": __version__}
        (fresh / "truth.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return EngagementDataset(place.path, place.path / name, source.world, found)


def _write_rows(source: SimulatedTest, path: Path) -> int:
    ending, batches = path.suffix, source.batches()
    if ending not in WRITERS:
        raise DataError("Unknown format to write", where=str(path), expected="a name ending in .parquet, .csv, .arrow")
    first = next(batches)
    rows = int(first.num_rows)
    with replacing(path) as temporary, WRITERS[ending](str(temporary), first.schema) as put:
        put(first)
        for batch in batches:
            put(batch)
            rows += batch.num_rows
    return rows


Put = Callable[["pa.RecordBatch"], None]


@contextmanager
def _parquet(path: str, schema: pa.Schema) -> Iterator[Put]:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        yield partial(writer.write_batch, row_group_size=ROW_GROUP_SIZE)


@contextmanager
def _csv(path: str, schema: pa.Schema) -> Iterator[Put]:
    from pyarrow import csv

    with csv.CSVWriter(path, schema) as writer:
        yield writer.write_batch


@contextmanager
def _arrow(path: str, schema: pa.Schema) -> Iterator[Put]:
    import pyarrow as pa

    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        yield writer.write_batch


WRITERS: Mapping[str, Callable[[str, pa.Schema], AbstractContextManager[Put]]] = MappingProxyType(
    {".parquet": _parquet, ".csv": _csv, ".arrow": _arrow}
)


def _truth(source: SimulatedTest) -> dict[str, Any]:
    """What holds of all metrics, for all arms of the test."""
    world, design = source.world, source.design
    control, *treatments = design.arms
    return {
        "setting": world.name,
        "story": world.story,
        "hidden": list(world.hidden),
        "control": control,
        "arms": {arm: {metric: _of_arm(source, arm, metric) for metric in source.metrics} for arm in design.arms},
        "effects": {arm: {metric: _of_effect(source, arm, metric) for metric in source.metrics} for arm in treatments},
    }


def _of_arm(source: SimulatedTest, arm: str, metric: str) -> dict[str, Any]:
    value = partial(truth.value, source.world, arm, metric=metric, exposure=source.design.exposure)
    days = truth.by_day(source.world, arm, source.design.days, metric=metric, exposure=source.design.exposure)
    discounted = {f"{gamma:g}": value(Estimand("discounted", gamma=gamma)) for gamma in DISCOUNTS}
    return {"average": value(), "discounted": discounted, "by_day": days.tolist()}


def _of_effect(source: SimulatedTest, arm: str, metric: str) -> dict[str, Any]:
    """Of a treatment against the control; what a short test or a roll-out does not have is None."""
    world, design = source.world, source.design
    control, exposure = design.arms[0], design.exposure
    effect = partial(truth.effect, world, treatment=arm, control=control, metric=metric, exposure=exposure)
    seen = partial(truth.apparent, world, days=design.days, metric=metric, exposure=exposure)
    return {
        "naive": _or_none(lambda: truth.expected_difference(world, design, arm, control, metric)),
        "long_run": effect(),
        "discounted": {f"{gamma:g}": effect(Estimand("discounted", gamma=gamma)) for gamma in DISCOUNTS},
        "apparent": _or_none(lambda: seen(arm) - seen(control)),
    }


def _or_none(ask: Callable[[], float]) -> float | None:
    try:
        return ask()
    except UsageError:
        return None
