"""Lazy frames of polars, Spark, Dask, Ray and Hugging Face: each is written once as Parquet, and read from there.

A lazy frame is a recipe, not data: two scans could see two data sets. Frames are known by the module of their class, so
none of these libraries is imported here. The workers of an engine write to the scratch folder, which for a cluster of
several machines must be an address or a folder that all of them see.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mixope.base.errors import DataError, MixopeError
from mixope.logs.sources.found import Finds, Found, several
from mixope.logs.sources.scratch import ROWS, VARIABLE, Scratch
from mixope.logs.sources.stores import Store, is_address, open_store, reaching


def _polars(frame: Any, folder: str) -> None:
    frame.sink_parquet(f"{folder}/part-0.parquet", mkdir=True)


def _spark(frame: Any, folder: str) -> None:
    frame.write.mode("append").parquet(f"file://{folder}" if folder.startswith("/") else folder)


def _dask(frame: Any, folder: str) -> None:
    frame.to_parquet(folder, write_index=False, name_function="part-{:08}.parquet".format)


def _ray(frame: Any, folder: str) -> None:
    frame.write_parquet(folder)


def _hugging(frame: Any, folder: str) -> None:
    """All rows in their order, a row group of them in memory."""
    import pyarrow.parquet as pq
    from pyarrow import fs

    store, name = open_store(folder) if is_address(folder) else (Store(fs.LocalFileSystem(), ""), folder)
    store.filesystem.create_dir(store.path(name), recursive=True)
    batches = iter(frame.with_format("arrow").iter(batch_size=ROWS))
    first = next(batches, None)
    if first is None:
        raise DataError("The data set has no rows", where="Hugging Face dataset", expected="at least one row")
    path = store.path(f"{name}/part-0.parquet")
    with pq.ParquetWriter(path, first.schema, filesystem=store.filesystem) as file:
        for batch in chain([first], batches):
            file.write_table(batch.cast(first.schema))


@dataclass(frozen=True)
class FrameKind:
    """How the frames of one library are known and written; ``home`` is the engine that they belong to, if any."""

    home: str | None
    title: str
    modules: tuple[str, ...]
    classes: tuple[str, ...]
    write: Callable[[Any, str], None]


RECIPES = (
    FrameKind("polars", "polars LazyFrame", ("polars",), ("LazyFrame",), _polars),
    FrameKind("spark", "Spark DataFrame", ("pyspark",), ("DataFrame",), _spark),
    FrameKind("dask", "Dask DataFrame", ("dask", "dask_expr"), ("DataFrame",), _dask),
    FrameKind("ray", "Ray Dataset", ("ray",), ("Dataset", "MaterializedDataset"), _ray),
    FrameKind(None, "Hugging Face dataset", ("datasets",), ("Dataset", "IterableDataset"), _hugging),
)


SPLITS = ("DatasetDict", "IterableDatasetDict")
"""Classes of Hugging Face that hold several data sets."""


@dataclass(frozen=True)
class WritableFrame:
    """A lazy frame, and how it is written."""

    content: Any
    recipe: FrameKind

    @property
    def name(self) -> str:
        """For messages."""
        return self.recipe.title

    def find(self) -> Finds:
        """The files that its engine wrote, in the order of their names."""
        kept = Scratch()
        inner = f"{kept.address}/frame"
        try:
            self.recipe.write(self.content, inner)
        except MixopeError:
            raise
        except Exception as error:  # whatever the engine raises while it follows the recipe
            said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise DataError(
                f"The frame cannot be computed or written: {said}",
                where=self.name,
                expected="columns that Parquet can hold, and a scratch folder that its workers can write to",
                got=f"the scratch folder {kept.address}",
                hint=_elsewhere(),
            ) from error
        store = Store(kept.filesystem, f"{self.name}/", f"{kept.root}/frame/", kept)
        names = _written(store, kept)
        if not names:
            raise DataError(
                "The frame was written, and nothing of it is here",
                where=self.name,
                expected=f"Parquet files in {kept.address}, which this machine and all workers see",
                hint=_elsewhere(),
            )
        found = tuple(Found(name, typed=True, format="parquet", store=store) for name in names)
        return Finds(found, home=self.recipe.home)


def frame_of(given: Any) -> WritableFrame | None:
    """The lazy frame that something is; None for anything else."""
    kind = type(given)
    for recipe in RECIPES:
        if kind.__name__ in recipe.classes and kind.__module__.partition(".")[0] in recipe.modules:
            return WritableFrame(given, recipe)
    return None


def refuse_splits(given: Any) -> None:
    """An error that names the splits, where something is a dict of data sets of Hugging Face."""
    kind = type(given)
    if kind.__name__ in SPLITS and kind.__module__.partition(".")[0] == "datasets":
        raise several(kind.__name__, list(given), f"pass one of them: data[{next(iter(given), '…')!r}]")


def _written(store: Store, kept: Scratch) -> list[str]:
    """The names of the parts with rows; on this disk they are numbered, so that equal frames have equal names."""
    import pyarrow.parquet as pq
    from pyarrow import fs

    with reaching(kept.address):
        selector = fs.FileSelector(f"{kept.root}/frame", recursive=True, allow_not_found=True)
        infos = [info for info in store.filesystem.get_file_info(selector) if info.is_file]
        paths = sorted(info.path for info in infos if info.extension == "parquet")
        full = [path for path in paths if pq.read_metadata(path, filesystem=store.filesystem).num_rows]
    if paths and not full:
        raise DataError("The frame has no rows", where=store.called.rstrip("/"), expected="at least one row")
    if not store.on_disk:
        return [store.name(path) for path in full]
    numbered = [f"{store.root}part-{number:06}.parquet" for number in range(len(full))]
    for number, path in enumerate(full):
        os.replace(path, f"{store.root}renamed-{number}")
    for number, path in enumerate(numbered):
        os.replace(f"{store.root}renamed-{number}", path)
    return [store.name(path) for path in numbered]


def _elsewhere() -> str:
    return f"name a folder or an address that this machine and all workers can write to in the variable {VARIABLE}"
