"""Engines: where statistics are run. ``memory`` is the oracle, ``embedded`` the default for files.

``processes``, ``dask``, ``spark`` and ``ray`` are engines of many workers (:mod:`mixope.engines.workers`): the same
bytes on each of them. A cluster that runs already is named by its address: ``dask://scheduler:8786``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixope.base.errors import UnknownName, UsageError
from mixope.engines.checkpointed import CheckpointedEngine, with_checkpoint
from mixope.engines.dask import DaskEngine
from mixope.engines.embedded import EmbeddedEngine
from mixope.engines.memory import MemoryEngine
from mixope.engines.processes import ProcessesEngine
from mixope.engines.protocol import Engine
from mixope.engines.ray import RayEngine
from mixope.engines.spark import SparkEngine
from mixope.logs import Logs

ENGINES: dict[str, Callable[..., Engine]] = {
    "memory": MemoryEngine,
    "embedded": EmbeddedEngine,
    "processes": ProcessesEngine,
    "dask": DaskEngine,
    "spark": SparkEngine,
    "ray": RayEngine,
}
CLUSTERS: dict[str, Callable[..., Engine]] = {
    "dask": lambda address, **options: DaskEngine(f"tcp://{address}", **options),
    "spark": lambda address, **options: SparkEngine(master=f"spark://{address}", **options),
    "ray": lambda address, **options: RayEngine(f"ray://{address}", **options),
}
"""Engines by the address of a cluster that runs already."""
AT_HAND: dict[str, Callable[[], bool]] = {
    "dask": DaskEngine.at_hand,
    "spark": SparkEngine.at_hand,
    "ray": RayEngine.at_hand,
}
"""Whether this process is connected to a cluster."""


def choose(engine: str | Engine | None, logs: Logs) -> Engine:
    """An engine by name or as it is; by default in memory for arrays and tables, embedded for files, and on the cluster
    that a lazy frame came from if this process is connected to one."""
    if engine is None and logs.home in AT_HAND and AT_HAND[logs.home]():
        return make(logs.home)
    if engine is None:
        return MemoryEngine() if logs.in_memory else EmbeddedEngine()
    if isinstance(engine, str):
        return make(engine)
    if not isinstance(engine, Engine):
        raise UsageError(f"expected an engine, or one of {', '.join(ENGINES)}; got {engine!r}")
    return engine


def make(name: str, **options: Any) -> Engine:
    """An engine by its name, or by the address of a cluster: ``dask://host:8786``, ``spark://host:7077``, ``ray://…``."""
    kind, is_address, address = name.partition("://")
    if is_address and kind in CLUSTERS and address:
        return CLUSTERS[kind](address, **options)
    if name not in ENGINES:
        raise UnknownName("engine", name, [*ENGINES, *(f"{kind}://HOST:PORT" for kind in CLUSTERS)])
    return ENGINES[name](**options)


def bounded(logs: Logs, engine: Engine) -> Logs:
    """The logs, read by everything within the memory and threads of the engine, not by its own scans alone."""
    return logs.within(getattr(engine, "memory_limit", None), getattr(engine, "threads", None))


def settings_of(engine: Engine) -> tuple[Any, ...]:
    """What of an engine may show in its answers, or in what they cost: equal settings, equal answers."""
    names = ("name", "fragment_rows", "ordered", "memory_limit", "threads")
    return (type(engine), *(getattr(engine, name, None) for name in names))


__all__ = [
    "ENGINES",
    "CheckpointedEngine",
    "DaskEngine",
    "EmbeddedEngine",
    "Engine",
    "MemoryEngine",
    "ProcessesEngine",
    "RayEngine",
    "SparkEngine",
    "bounded",
    "choose",
    "make",
    "settings_of",
    "with_checkpoint",
]
