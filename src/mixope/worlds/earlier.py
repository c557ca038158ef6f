"""Datasets that earlier versions wrote, which kept no record of their files: are they ours to replace?

Only if everything in the folder is known by its name and by its kind: ``truth.json`` holds what we write into it, the
logs have as many rows as it says, policies are tables of probabilities or the module that we write, results name the
version that made them, and pages do so too. One file more, or one of another kind, and nothing in the folder is ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from mixope.base.errors import MixopeError
from mixope.logs import read

OF_TRUTH = {"average", "loggers", "rows", "seed", "settings", "version"}
OF_LOGS = {"policy_id", "episode_id", "step", "action", "reward", "terminated"}
POLICIES = '"""The policies of these logs'
PAGE = '<meta name="generator" content="mixope'
HEAD = 4096
"""Bytes of a page in which its maker is named."""
RESULTS = {
    "evaluate.json": {"estimator", "estimand", "value", "verdict", "provenance"},
    "compare.json": {"estimates", "differences"},
    "inspect.json": {"observation_kind", "action_kind", "total_rows"},
    "backtest.json": {"estimator", "level", "rows", "provenance"},
}


def written_earlier(folder: Path, names: Collection[str]) -> tuple[str, ...]:
    """The files of a dataset that an earlier version wrote; none unless all ``names`` in the folder are its."""
    try:
        truth = _object(folder / "truth.json")
        known = truth.keys() >= OF_TRUTH and all(_is_ours(folder / name, truth) for name in names)
    except (OSError, ValueError, MixopeError):
        return ()
    return tuple(names) if known else ()


def _is_ours(path: Path, truth: Mapping[str, Any]) -> bool:
    """Whether a plain file is what its name says."""
    if path.is_symlink() or not path.is_file():
        return False
    kinds: Mapping[str, Callable[[], bool]] = {
        "truth.json": lambda: True,
        "target.csv": lambda: _is_table(path),
        "loggers.csv": lambda: _is_table(path),
        "policies.py": lambda: _text(path).startswith(POLICIES),
        **dict.fromkeys(("report.html", "rivals.html"), lambda: PAGE in _text(path)),
        **dict.fromkeys(("logs.parquet", "logs.csv", "logs.arrow"), lambda: _has_rows(path, truth["rows"])),
        **dict.fromkeys(RESULTS, lambda: RESULTS[path.name] <= _object(path).keys()),
    }
    return path.name in kinds and kinds[path.name]()


def _has_rows(path: Path, rows: object) -> bool:
    logs = read(str(path))
    return logs.total_rows() == rows and logs.schema.mapping.keys() >= OF_LOGS


def _is_table(path: Path) -> bool:
    header = _text(path).partition("\n")[0].strip().replace('"', "").split(",")
    return header[-2:] == ["action", "prob"] and any(name.startswith("observation") for name in header)


def _text(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(HEAD)


def _object(path: Path) -> dict[str, Any]:
    """A JSON object; a value of another kind is an error."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(path.name)
    return found
