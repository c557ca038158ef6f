"""Inputs that failed once, one small file each; all of them are tried again by the tests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .cases import Case
from .judging import Failure

FOLDER = Path(__file__).parent.parent / "corpus"


def keep(case: Case, failure: Failure, origin: str, folder: Path = FOLDER) -> Path:
    """Write an input and what went wrong with it; named by the place, so that one failure is one file."""
    record: dict[str, Any] = {
        "kind": case.kind,
        "failed": failure.words[:300],
        "place": failure.place,
        "origin": origin,
    }
    text = json.dumps({**record, "recipe": case.recipe}, indent=1)
    name = hashlib.sha256(f"{case.kind} {failure.place}".encode()).hexdigest()[:10]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case.kind.replace(' ', '-')}-{name}.json"
    path.write_text(text + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Case:
    """The input in a file."""
    record = json.loads(path.read_text(encoding="utf-8"))
    return Case(record["kind"], record["recipe"])
