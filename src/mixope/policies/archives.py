"""Policies in NumPy files: ``.npy`` holds the array (S, A); ``.npz`` may name its states and actions besides.

Object arrays in them are pickled, and unpickling runs code: they are refused unless the user says ``trust=True``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mixope.base.arrays import DAMAGED, AnyArray, check_claims
from mixope.base.errors import Advice, DataError, Setting
from mixope.policies.laws import Default, UnknownActions
from mixope.policies.tables import placed
from mixope.policies.tabular import TabularPolicy

ARCHIVES = (".npz", ".npy")
_NAMES = ("probabilities", "probs")
_LABELS = ("states", "actions")


def archived_policy(
    path: Path, trust: bool, actions: Any, default: Default, unknown_actions: UnknownActions
) -> TabularPolicy:
    """The policy in a NumPy file."""
    arrays = read_archive(path, trust)
    try:
        return TabularPolicy(
            arrays["probabilities"],
            arrays.get("states"),
            arrays.get("actions", actions),
            default=default,
            unknown_actions=unknown_actions,
        )
    except DataError as error:
        raise placed(error, str(path)) from None


def read_archive(path: Path, trust: bool) -> dict[str, AnyArray]:
    """Arrays by what they are: ``probabilities``, and where given ``states`` and ``actions``."""
    _check_magic(path)
    try:
        check_claims(path)
        # Opened here, because NumPy leaves the file open when it turns out to be damaged.
        with path.open("rb") as file:
            loaded: Any = np.load(file, allow_pickle=trust)
            return {"probabilities": loaded} if isinstance(loaded, np.ndarray) else _choose(path, loaded)
    except DAMAGED as error:
        raise _unreadable(path, error) from None


def _choose(path: Path, loaded: Any) -> dict[str, AnyArray]:
    labels = {name: loaded[name] for name in _LABELS if name in loaded.files}
    tables = [name for name in _NAMES if name in loaded.files]
    others = [name for name in loaded.files if name not in labels]
    chosen = tables or others
    if len(chosen) != 1:
        raise DataError(
            "the archive does not say which array is the policy",
            where=str(path),
            expected="an array named 'probabilities' or 'probs', or a single one",
            got="arrays " + (", ".join(loaded.files) or "(none)"),
            hint="np.savez(path, probabilities=..., states=..., actions=...)",
        )
    return {"probabilities": loaded[chosen[0]], **labels}


def _check_magic(path: Path) -> None:
    """Refuse what is no NumPy file before NumPy takes it for a pickle."""
    with path.open("rb") as file:
        start = file.read(6)
    if start != b"\x93NUMPY" and not start.startswith(b"PK"):
        raise DataError(
            "not a NumPy file",
            where=str(path),
            expected=".npy or .npz as written by np.save or np.savez",
            got=f"a file that starts with {start!r}",
        )


def _unreadable(path: Path, error: Exception) -> DataError:
    if "pickle" in str(error):
        return DataError(
            "the file holds pickled objects, and unpickling runs code",
            where=str(path),
            expected="arrays of numbers or fixed-width strings",
            hint=Advice(
                Setting("trust", True),
                " if you know who wrote the file; or save strings with dtype=str instead of object",
            ),
        )
    return DataError("the NumPy file is damaged", where=str(path), got=str(error))
