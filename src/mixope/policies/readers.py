"""From whatever a user has to a policy.

Files by extension (``FORMATS``, ``ARCHIVES``, ``NETWORKS``), arrays, data frames, dicts of columns, callables, a name
in Python code (``module:name``), or a policy already. One more format is one function and one line in ``FORMATS``.
Of NumPy files ``.npy`` holds the array (S, A); ``.npz`` may name its states and actions besides. Object arrays in them
are pickled, and unpickling runs code: they are refused unless the user says ``trust=True``.
"""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mixope.arrays import DAMAGED, AnyArray, check_claims
from mixope.errors import Advice, DataError, Setting, UnknownName, UsageError
from mixope.files import has_text_name
from mixope.policies.callables import CallablePolicy
from mixope.policies.given import PolicySource
from mixope.policies.keys import listed
from mixope.policies.laws import Default, UnknownActions
from mixope.policies.onnx_adapter import onnx_policy
from mixope.policies.own_code import OWN_MODULES, asking, running, said
from mixope.policies.protocol import Policy
from mixope.policies.sklearn_adapter import sklearn_policy
from mixope.policies.tables import (
    Renaming,
    Table,
    assign_roles,
    column_keys,
    from_arrow,
    from_mapping,
    placed,
    read_arrow,
    read_csv,
    read_listing,
    read_parquet,
    to_policy,
)
from mixope.policies.tabular import TabularPolicy

FORMATS: Mapping[str, Callable[[Path, Renaming | None], Table]] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".tsv.gz": read_csv,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
}
ARCHIVES = (".npz", ".npy")
NETWORKS = (".onnx",)
_NAMES = ("probabilities", "probs")
_LABELS = ("states", "actions")
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def read_policy(
    source: PolicySource,
    *,
    default: Default = None,
    unknown_actions: UnknownActions = "error",
    columns: Renaming | None = None,
    trust: bool = False,
    actions: Any = None,
    outputs: str | None = None,
) -> Policy:
    """Make a policy of ``source``.

    :param source: a path (.csv, .parquet, .arrow, .feather with columns observation, action, prob; .npz, .npy with an
        array (S, A); .onnx), ``"module:name"``, an array (full or sparse), a data frame, a dict of columns, a fitted
        scikit-learn classifier, a callable, or a policy.
    :param default: what a table does in states it does not list; see :class:`TabularPolicy`.
    :param unknown_actions: a logged action that the policy lacks is an ``"error"`` or has probability ``"zero"``.
    :param columns: the table's own column names, by role: ``{"prob": "pi_new", "observation": ["x", "y"]}``.
    :param trust: whether a NumPy file may be unpickled, which runs code of whoever wrote it.
    :param actions: labels of an array's columns, all actions of a table, or the actions of a callable.
    :param outputs: what a network gives: ``"probabilities"``, ``"logits"``, ``"mean_std"`` or ``"mean_log_std"``, where
        the names of its outputs do not say so; :func:`~mixope.policies.onnx_adapter.onnx_policy` has more options.
    :returns: something that answers how likely an action is in a state.

    >>> policy = mixope.read_policy("target.csv")
    >>> policy.probs([0]).shape == (1, len(policy.actions))
    True
    """
    if outputs is not None and not (isinstance(source, str | os.PathLike) and _extension(Path(source)) in NETWORKS):
        raise UsageError(f"outputs is for networks ({', '.join(NETWORKS)}), got {type(source).__name__}")
    if isinstance(source, str) and is_reference(source) and not os.path.exists(source) and not _extension(Path(source)):
        source = _check_resolved(source, resolve(source))
    if isinstance(source, Policy):
        return _unchanged(source, default, unknown_actions, actions)
    if isinstance(source, np.ndarray | list | tuple) or hasattr(source, "tocsr"):
        return TabularPolicy(source, actions=actions, default=default, unknown_actions=unknown_actions)
    if isinstance(source, str | os.PathLike):
        path = _existing(Path(source))
        if _extension(path) in NETWORKS:
            _refuse_default(default, "network")
            return onnx_policy(path, outputs=outputs, actions=actions, unknown_actions=unknown_actions)
        if _extension(path) in ARCHIVES:
            return _from_archive(path, trust, actions, default, unknown_actions)
    if hasattr(source, "predict_proba"):
        _refuse_default(default, "classifier")
        if actions is not None:
            raise UsageError("actions are not for classifiers, which have their classes_")
        return sklearn_policy(source, unknown_actions=unknown_actions)
    table = _as_table(source, columns)
    if table is not None:
        return _single(table, columns, default, unknown_actions, actions)
    return _from_callable(source, default, unknown_actions, actions)


def read_policies(
    source: Any,
    *,
    default: Default = None,
    unknown_actions: UnknownActions = "error",
    columns: Renaming | None = None,
    actions: Any = None,
) -> dict[str, TabularPolicy]:
    """Several policies from one table with a column ``policy_id``, by its values as strings, in order of appearance.

    All get the same set of actions, those listed anywhere in the table, so that they can be mixed.
    """
    table = _as_table(source, columns)
    if table is None:
        raise UsageError(f"several policies are read from a table, got {type(source).__name__}")
    roles = assign_roles(table.names, columns, table.where)
    if roles.policy_id is None:
        raise DataError(
            "the table has no column policy_id",
            where=table.where,
            got="columns " + ", ".join(table.names),
            hint=Advice(Setting("one_policy")),
        )
    listing = read_listing(table, roles)
    labels = column_keys(table, roles.policy_id, "policy ids").array()
    names, first = np.unique(labels, return_index=True)
    every = np.unique(listing.actions.array()) if actions is None else actions
    return {
        str(names[k]): to_policy(listing.part(np.flatnonzero(labels == names[k])), default, unknown_actions, every)
        for k in np.argsort(first)
    }


def _single(
    table: Table, columns: Renaming | None, default: Default, unknown_actions: UnknownActions, actions: Any
) -> TabularPolicy:
    roles = assign_roles(table.names, columns, table.where)
    if roles.policy_id is not None:
        labels = np.unique(column_keys(table, roles.policy_id, "policy ids").array())
        if len(labels) > 1:
            raise DataError(
                f"the table holds {len(labels)} policies",
                where=table.where,
                column=roles.policy_id,
                expected="one policy",
                got=listed(labels),
                hint=Advice(Setting("several_policies")),
            )
    return to_policy(read_listing(table, roles), default, unknown_actions, actions)


def _as_table(source: Any, columns: Renaming | None) -> Table | None:
    """Columns, if the source has any."""
    if isinstance(source, Mapping):
        return from_mapping(source)
    if hasattr(source, "__arrow_c_stream__"):
        return from_arrow(source, type(source).__name__)
    if isinstance(source, str | os.PathLike):
        return _read_file(_existing(Path(source)), columns)
    return None


def _read_file(path: Path, columns: Renaming | None) -> Table:
    import pyarrow as pa

    extension = _extension(path)
    if extension not in FORMATS:
        raise UsageError(
            f"cannot read a policy table from {str(path)!r}: expected one of {', '.join(FORMATS)}; "
            f"an array (S, A) from {', '.join(ARCHIVES)}; a network from {', '.join(NETWORKS)}; "
            "or a callable as module:name"
        )
    try:
        return FORMATS[extension](path, columns)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"the file cannot be read as {extension[1:]}", where=str(path), got=said) from None


def _extension(path: Path) -> str:
    """The known extension of a path, or nothing."""
    name = path.name.lower()
    known = [extension for extension in (*FORMATS, *ARCHIVES, *NETWORKS) if name.endswith(extension)]
    return max(known, key=len, default="")


def _existing(path: Path) -> Path:
    if os.path.isfile(path):
        if not has_text_name(path):
            raise DataError("the name of the policy's file is not UTF-8", where=str(path), hint="rename the file")
        return path
    if os.path.isdir(path):
        raise DataError("the policy is a folder, not a file", where=str(path), hint="name one file in it")
    if os.path.exists(path):
        raise DataError("the policy is a pipe or a device, not a file", where=str(path), hint="write it to a file")
    beside = sorted(os.listdir(path.parent)) if os.path.isdir(path.parent) else []
    near = difflib.get_close_matches(path.name, beside, n=3, cutoff=0.5)
    raise DataError(
        "there is no such policy file",
        where=str(path),
        hint="did you mean " + " or ".join(str(path.parent / name) for name in near) + "?" if near else None,
    )


def _from_archive(
    path: Path, trust: bool, actions: Any, default: Default, unknown_actions: UnknownActions
) -> TabularPolicy:
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


def _refuse_default(default: Default, kind: str) -> None:
    if default is not None:
        raise UsageError(f"default is for tables; a {kind} answers for every state itself")


def _check_resolved(reference: str, found: Any) -> Any:
    if isinstance(found, type):
        raise UsageError(f"{reference} is a class; name a function or an instance")
    if isinstance(found, str):
        raise UsageError(f"{reference} is a string; name a function, a policy or an array")
    return found


def _unchanged(policy: Policy, default: Default, unknown_actions: UnknownActions, actions: Any) -> Policy:
    if default is not None or unknown_actions != "error" or actions is not None:
        raise UsageError(
            "default, unknown_actions and actions are for sources that are not yet policies; "
            f"set them where {type(policy).__name__} is made"
        )
    with asking(policy):
        policy.fingerprint()
    return policy


def _from_callable(source: Any, default: Default, unknown_actions: UnknownActions, actions: Any) -> CallablePolicy:
    if hasattr(source, "log_prob"):
        raise UsageError(
            f"{type(source).__name__} has log_prob but no fingerprint(): a policy needs both (a short string that "
            "changes when the policy does)"
        )
    if not callable(source):
        raise UsageError(
            f"cannot make a policy of {type(source).__name__}: expected a path, an array, a data frame, a dict of "
            "columns, a fitted classifier, a callable or a policy"
        )
    _refuse_default(default, "callable")
    return CallablePolicy(source, actions, unknown_actions=unknown_actions)


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


def is_reference(text: str) -> bool:
    """Whether a string has the form ``package.module:name``."""
    return _REFERENCE.fullmatch(text) is not None


def resolve(reference: str) -> Any:
    """Import the module, with the current directory importable, and fetch the name from it."""
    module, _, path = reference.partition(":")
    if module.endswith(".py"):
        raise UsageError(f"{reference!r} names a file: write the module without .py, {module[:-3]}:{path}")
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise UsageError(
            f"{module!r} is a module of Python itself, which holds no policies; if it is a file of yours, rename it"
        )
    _import(module)
    try:
        with running(reference):
            return pkgutil.resolve_name(reference)
    except DataError as failure:
        error = failure.__cause__
        if not isinstance(error, AttributeError) or error.obj is None:
            raise
        known = [name for name in dir(error.obj) if not name.startswith("_")]
        raise UnknownName(f"name in {module}", error.name, known) from None


def _import(name: str) -> Any:
    try:
        with _here_importable():
            _forget_other_folders()
            found = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise UsageError(
                f"there is no module {name!r}. Run from the folder that holds {name.split('.', maxsplit=1)[0]}.py, "
                "or install the package."
            ) from None
        raise UsageError(f"importing {name!r} failed: {error}. Install what it needs.") from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything while it is imported
        raise UsageError(f"importing {name!r} failed with {said(error)}") from error
    _remember_folder(name.partition(".")[0])
    return found


_folders: dict[str, str] = {}
"""The modules that were found in the current folder, and which one that was."""


def _remember_folder(name: str) -> None:
    here = os.getcwd()
    places = [getattr(sys.modules.get(name), "__file__", None), *getattr(sys.modules.get(name), "__path__", ())]
    if any(place and os.path.abspath(place).startswith(os.path.join(here, "")) for place in places):
        _folders.setdefault(name, here)
        OWN_MODULES.add(name)


def _forget_other_folders() -> None:
    """In another folder, a module of the same name is another module."""
    here = os.getcwd()
    for name in [name for name, folder in _folders.items() if folder != here]:
        del _folders[name]
        for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
            del sys.modules[known]


@contextmanager
def _here_importable() -> Iterator[None]:
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        importlib.invalidate_caches()
        yield
    finally:
        sys.path.remove(here)
