"""What a policy can be made of: the record of one kind of source, and what a user may say besides."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.policies.gaussian import Law
from mixope.policies.laws import Default, UnknownActions
from mixope.policies.protocol import Policy
from mixope.policies.table_files import extension
from mixope.policies.table_roles import Renaming

if TYPE_CHECKING:
    from mixope.logs import Logs

NAMED = ("actions", "unknown_actions")
NETWORK = ("outputs", "law", *NAMED)
MODEL = ("epsilon", "scale", "law", "unknown_actions")
"""What the user may say of kinds of sources."""


@dataclass(frozen=True)
class Wishes:
    """What the user says besides the source. Each kind of source takes some of it, and refuses the rest."""

    default: Default = None
    unknown_actions: UnknownActions = "error"
    columns: Renaming | None = None
    trust: bool = False
    actions: Any = None
    outputs: str | None = None
    epsilon: float | None = None
    scale: Any = None
    law: Law | None = None
    logs: Logs | None = None

    def said(self) -> list[str]:
        """Those that were said, by name."""
        given = {entry.name: (getattr(self, entry.name), entry.default) for entry in fields(self)}
        words = {name for name, (value, usual) in given.items() if isinstance(value, str) and value == usual}
        return [name for name, (value, usual) in given.items() if value is not usual and name not in words]

    def some(self, *names: str) -> dict[str, Any]:
        """Some of them, as keywords."""
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Kind:
    """One sort of source: how it is recognised, made into a policy, and what may be said about it."""

    name: str
    fits: Callable[[Any], bool]
    make: Callable[[Any, Wishes], Policy]
    takes: tuple[str, ...] = ()
    load: Callable[[Any], Any] | None = None
    """How a file of it is opened, where that runs code: only with ``trust``."""


def is_path(*extensions: str) -> Callable[[Any], bool]:
    """Whether a source is the path of a file with one of these endings."""

    def fits(source: Any) -> bool:
        return isinstance(source, str | os.PathLike) and extension(Path(source)) in extensions

    return fits
