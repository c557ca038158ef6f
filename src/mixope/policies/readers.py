"""From whatever a user has to a policy.

Files by extension (``FORMATS``), arrays, data frames, dicts of columns, callables, ``module:name``, or a policy
already. One more format is one more function and one line in ``FORMATS``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mixope.errors import DataError, UsageError
from mixope.policies.actions import UnknownActions
from mixope.policies.archives import read_archive
from mixope.policies.callables import CallablePolicy, DiscreteCallablePolicy
from mixope.policies.columns import Renaming, assign_roles
from mixope.policies.default import Default
from mixope.policies.imports import is_reference, resolve
from mixope.policies.listing import column_keys, placed, read_listing, to_policy
from mixope.policies.onnx_adapter import onnx_policy
from mixope.policies.protocol import Policy
from mixope.policies.rows import listed
from mixope.policies.sklearn_adapter import sklearn_policy
from mixope.policies.tables import Table, from_arrow, from_mapping, read_arrow, read_csv, read_parquet
from mixope.policies.tabular import TabularPolicy

FORMATS: Mapping[str, Callable[[Path, Renaming | None], Table]] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
}
ARCHIVES = (".npz", ".npy")
NETWORKS = (".onnx",)


def read_policy(
    source: Any,
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
        array (S, A); .onnx), ``"module:name"``, an array, a data frame, a dict of columns, a fitted scikit-learn
        classifier, a callable, or a policy.
    :param default: what a table does in states it does not list; see :class:`TabularPolicy`.
    :param unknown_actions: a logged action that the policy lacks is an ``"error"`` or has probability ``"zero"``.
    :param columns: the table's own column names, by role: ``{"prob": "pi_new", "observation": ["x", "y"]}``.
    :param trust: whether a NumPy file may be unpickled, which runs code of whoever wrote it.
    :param actions: labels of an array's columns, all actions of a table, or the actions of a callable.
    :param outputs: what a network gives: ``"probabilities"``, ``"logits"``, ``"mean_std"`` or ``"mean_log_std"``, where
        the names of its outputs do not say so; :func:`~mixope.policies.onnx_adapter.onnx_policy` has more options.
    """
    if outputs is not None and not (isinstance(source, str | os.PathLike) and _extension(Path(source)) in NETWORKS):
        raise UsageError(f"outputs is for networks ({', '.join(NETWORKS)}), got {type(source).__name__}")
    if isinstance(source, str) and is_reference(source) and not Path(source).exists() and not _extension(Path(source)):
        source = _check_resolved(source, resolve(source))
    if isinstance(source, Policy):
        return _unchanged(source, default, unknown_actions, actions)
    if isinstance(source, np.ndarray | list | tuple):
        return TabularPolicy(source, actions=actions, default=default, unknown_actions=unknown_actions)
    if isinstance(source, str | os.PathLike):
        path = _existing(Path(source))
        if _extension(path) in NETWORKS:
            return _from_network(path, outputs, actions, default, unknown_actions)
        if _extension(path) in ARCHIVES:
            return _from_archive(path, trust, actions, default, unknown_actions)
    if hasattr(source, "predict_proba"):
        return _from_classifier(source, default, unknown_actions, actions)
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
            hint="read_policy(...) reads a table of one policy",
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
                hint="use it as loggers: read_policies(...) gives one policy for each policy_id",
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
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"the file cannot be read as {extension[1:]}", where=str(path), got=str(error).splitlines()[0]
        ) from None


def _extension(path: Path) -> str:
    """The known extension of a path, or nothing."""
    name = path.name.lower()
    known = [extension for extension in (*FORMATS, *ARCHIVES, *NETWORKS) if name.endswith(extension)]
    return max(known, key=len, default="")


def _existing(path: Path) -> Path:
    if path.is_file():
        return path
    if path.is_dir():
        raise DataError("the policy is a folder, not a file", where=str(path), hint="name one file in it")
    beside = sorted(file.name for file in path.parent.iterdir()) if path.parent.is_dir() else []
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


def _from_network(
    path: Path, outputs: str | None, actions: Any, default: Default, unknown_actions: UnknownActions
) -> Policy:
    if default is not None:
        raise UsageError("default is for tables; a network answers for every state itself")
    return onnx_policy(path, outputs=outputs, actions=actions, unknown_actions=unknown_actions)


def _from_classifier(
    source: Any, default: Default, unknown_actions: UnknownActions, actions: Any
) -> DiscreteCallablePolicy:
    if default is not None or actions is not None:
        raise UsageError("default and actions are not for classifiers, which answer everywhere and have their classes_")
    return sklearn_policy(source, unknown_actions=unknown_actions)


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
    if default is not None:
        raise UsageError("default is for tables; a callable answers for every state itself")
    return CallablePolicy(source, actions, unknown_actions=unknown_actions)
