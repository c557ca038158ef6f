"""Any engine, with the answers of finished scans kept in a folder: a job that was interrupted goes on where it was.

A scan is known by the content of the logs, by how they are read, by the requests that it answers, by the engine, and
by the version of this program. The same scan is taken from the folder, bit by bit what it was; any other is made. Where
something in a request has no content that another process could recognise, the scan is made and not kept.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import types
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from mixope.engines.kept import MISSING, Kept
from mixope.engines.protocol import Engine
from mixope.logs import Logs
from mixope.policies import Policy
from mixope.policies.fingerprints import own_code
from mixope.requests.grouping import Grouped, Grouping, GroupSums, Lookup
from mixope.requests.request import Request, content_key, name_of
from mixope.version import __version__

_SETTINGS = ("name", "fragment_rows", "ordered")
"""What of an engine may show in the last digits of its answers."""


class CheckpointedEngine:
    """Another engine, and a folder in which its answers are kept; ``taken`` of ``asked`` scans came from there."""

    def __init__(self, engine: Engine, folder: str | os.PathLike[str]) -> None:
        self.engine, self.kept, self.name = engine, Kept(folder), engine.name
        self.asked = self.taken = 0
        self._logs: WeakKeyDictionary[Logs, str] = WeakKeyDictionary()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the other engine has: its limit of memory, its threads."""
        if name == "engine":  # not made yet, as while it is unpickled
            raise AttributeError(name)
        return getattr(self.engine, name)

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        """From the folder, or from the engine."""
        key = self._key(logs, "sums", [Grouped(grouping, lookup)], None)
        found: GroupSums = self._once(key, lambda: self.engine.group_sums(logs, grouping, lookup))
        return found

    def scan(self, logs: Logs, requests: Sequence[Request], expected_rows: int | None = None) -> tuple[Any, ...]:
        """From the folder, or from the engine.

        A scan is kept as a whole: which others are answered with it may show in the last digits of an answer.
        """
        key = self._key(logs, "scan", requests, expected_rows)
        found: tuple[Any, ...] = self._once(key, lambda: self.engine.scan(logs, requests, expected_rows))
        return found

    def _once(self, key: str | None, make: Callable[[], Any]) -> Any:
        self.asked += 1
        found = MISSING if key is None else self.kept.get(key)
        if found is not MISSING:
            self.taken += 1
            return found
        made = make()
        if key is not None:
            self.kept.put(key, made)
        return made

    def _key(self, logs: Logs, what: str, requests: Sequence[Request], expected_rows: int | None) -> str | None:
        if logs not in self._logs:
            self._logs[logs] = logs_key(logs)
        settings = [getattr(self.engine, name, None) for name in _SETTINGS]
        asked = requests_key(requests)
        if asked is None:
            return None
        known = (__version__, what, settings, self._logs[logs], expected_rows, asked)
        return hashlib.sha256(repr(known).encode()).hexdigest()


def logs_key(logs: Logs) -> str:
    """A hash of what the logs hold and how they are read, which no version of a file but this one has."""
    stamps = [(stamp.state, stamp.ends) for source in logs.recorded.sources for stamp in source.stamps]
    read = [
        (plan.from_one, sorted(plan.derived), dict(plan.columns), plan.log_propensity, plan.marked)
        for plan in logs.plans
    ]
    formats = [[type(piece).__name__ for piece in source.pieces] for source in logs.sources]
    known = (logs.fingerprint(), stamps, read, formats, logs.schema)
    return hashlib.sha256(repr(known).encode()).hexdigest()


def requests_key(requests: Sequence[Request]) -> str | None:
    """A hash of what is asked that is the same in another process; None where there is none."""
    try:
        return content_key(tuple(requests), _Lasting())
    except Exception:  # what cannot be copied raises whatever its class likes
        return None


class _Lasting:
    """Names that another process would give, too.

    A policy, and whatever has no fingerprint, goes by its content and by the code that it may run; the rest as usual.
    """

    def __call__(self, thing: Any) -> str:
        known = callable(getattr(thing, "fingerprint", None))
        if known and not isinstance(thing, Policy):
            return name_of(thing)
        return f"{name_of(thing) if known else self._taken_apart(thing)} {self._code}"

    @cached_property
    def _code(self) -> str:
        found = own_code()
        if found is None:
            raise pickle.PicklingError("the program is no file")
        return found

    def _taken_apart(self, thing: Any) -> str:
        """Of a fitted classifier, say: what it would be made of again if it were copied."""
        if isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType):
            return hashlib.sha256(pickle.dumps(thing)).hexdigest()  # its name; what has none cannot be pickled
        made = thing.__reduce_ex__(4)
        if isinstance(made, str):
            return made
        make, arguments, state, *items = (*made, None, None, None)[:5]
        return content_key((make, arguments, state, *(part and list(part) for part in items)), self)


def with_checkpoint(engine: Engine, folder: str | os.PathLike[str] | None) -> Engine:
    """The engine, with its answers kept in a folder where one is named."""
    return engine if folder is None or isinstance(engine, CheckpointedEngine) else CheckpointedEngine(engine, folder)
