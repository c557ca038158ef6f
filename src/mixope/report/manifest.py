"""Where a report comes from: the command, the versions, the seed, and every input with its rows and hash.

No date and no machine: the same record gives the same bytes.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mixope.report.words import clean

LIBRARIES = ("numpy", "scipy", "pyarrow", "duckdb", "scikit-learn", "matplotlib")


@dataclass(frozen=True)
class Input:
    """A file or table that was read."""

    path: str
    rows: int | None
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What is needed to get the same number again."""

    command: str | None
    versions: tuple[tuple[str, str], ...]
    seed: int
    engine: str
    logs_fingerprint: str
    target_fingerprints: tuple[tuple[str, str], ...]
    inputs: tuple[Input, ...]


def manifest(provenance: Any, targets: Sequence[tuple[str, str]], command: str | None) -> Manifest:
    """The provenance of a result, made showable."""
    return Manifest(
        command=None if command is None else clean(command),
        versions=(("mixope", clean(provenance.version)), *_versions()),
        seed=provenance.seed,
        engine=clean(provenance.engine),
        logs_fingerprint=clean(provenance.logs_fingerprint),
        target_fingerprints=tuple(dict.fromkeys((clean(name), clean(mark)) for name, mark in targets)),
        inputs=tuple(
            Input(clean(found.get("path", "–")), found.get("rows"), clean(found.get("sha256", "–")))
            for found in provenance.inputs
        ),
    )


def _versions() -> tuple[tuple[str, str], ...]:
    found = [("Python", platform.python_version())]
    for name in LIBRARIES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return tuple(found)
