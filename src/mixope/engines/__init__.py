"""Engines: where statistics are run. ``memory`` is the oracle, ``embedded`` the default for files."""

from __future__ import annotations

from collections.abc import Callable

from mixope.engines.checkpointed import CheckpointedEngine, with_checkpoint
from mixope.engines.embedded import EmbeddedEngine
from mixope.engines.memory import MemoryEngine
from mixope.engines.protocol import Engine
from mixope.errors import UnknownName, UsageError
from mixope.logs import Logs

ENGINES: dict[str, Callable[[], Engine]] = {"memory": MemoryEngine, "embedded": EmbeddedEngine}


def choose(engine: str | Engine | None, logs: Logs) -> Engine:
    """An engine by name or as it is; by default in memory for arrays and tables, embedded for files."""
    if engine is None:
        return MemoryEngine() if logs.in_memory else EmbeddedEngine()
    if not isinstance(engine, str):
        if not isinstance(engine, Engine):
            raise UsageError(f"expected an engine, or one of {', '.join(ENGINES)}; got {engine!r}")
        return engine
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES)
    return ENGINES[engine]()


def bounded(logs: Logs, engine: Engine) -> Logs:
    """The logs, read by everything within the memory and threads of the engine, not by its own scans alone."""
    return logs.within(getattr(engine, "memory_limit", None), getattr(engine, "threads", None))


__all__ = [
    "ENGINES",
    "CheckpointedEngine",
    "EmbeddedEngine",
    "Engine",
    "MemoryEngine",
    "bounded",
    "choose",
    "with_checkpoint",
]
