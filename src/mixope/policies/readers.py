"""From whatever a user has to a policy.

Files, arrays, data frames, dicts of columns, rules, classifiers, trained models, callables, a name in Python code
(``module:name``), or a policy already. ``KINDS`` lists what a source can be, how it is recognised, what it is made by,
and which of the user's wishes it takes; one more kind is one line there. Files that must be unpickled
(:mod:`~mixope.policies.pickles`) run code of whoever wrote them, and need ``trust=True``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.base import plugins
from mixope.base.errors import Advice, Setting, UsageError
from mixope.policies.adopted import adopt
from mixope.policies.archives import ARCHIVES, archived_policy
from mixope.policies.callables import CallablePolicy
from mixope.policies.combinations import Softened
from mixope.policies.gaussian import GaussianPolicy, Law
from mixope.policies.given import PolicySource
from mixope.policies.kinds import MODEL, NAMED, NETWORK, Kind, Wishes, is_path
from mixope.policies.laws import Default, UnknownActions
from mixope.policies.logged_column import PREFIX, LoggedColumn, is_column
from mixope.policies.marks import is_d3rlpy, is_sb3, is_torch
from mixope.policies.own_code import running
from mixope.policies.pickles import PICKLED, unpickled
from mixope.policies.protocol import DiscretePolicy, Policy
from mixope.policies.references import is_reference, resolve
from mixope.policies.rules import Centre, Predicts
from mixope.policies.sklearn_adapter import ClassChoices, sklearn_policy
from mixope.policies.table_files import NETWORKS, as_table, existing, extension, is_rule, rule_policy, single_policy
from mixope.policies.table_roles import Names, Renaming
from mixope.policies.tabular import TabularPolicy

if TYPE_CHECKING:
    from mixope.logs import Logs


MEANT = {
    "default": "tables",
    "columns": "tables",
    "outputs": "networks",
    "actions": "policies that do not name theirs",
    "unknown_actions": "policies with a list of actions",
    "scale": "policies that choose one real action in a state",
    "law": "Gaussian policies",
}
"""What a wish is meant for, in the error about it."""


def read_policy(
    source: PolicySource,
    *,
    default: Default = None,
    unknown_actions: UnknownActions = "error",
    columns: Renaming | None = None,
    trust: bool = False,
    actions: Any = None,
    outputs: str | None = None,
    epsilon: float | None = None,
    scale: Any = None,
    law: Law | None = None,
    logs: Logs | None = None,
) -> Policy:
    """Make a policy of ``source``.

    :param source: a path (.csv, .parquet, .arrow, .feather with columns observation, action and prob, or without prob a
        rule; .npz, .npy with an array (S, A); .onnx; with ``trust`` .pt, .pth, .zip of Stable-Baselines3, .d3 of
        d3rlpy, .pkl, .joblib), ``"module:name"``, an array (full or sparse), a data frame, a dict of columns, a rule
        ``{state: action}``, a classifier, a PyTorch module, a model of Stable-Baselines3 or d3rlpy, anything with
        ``predict``, a function of states, ``"column:NAME"`` of the log (:mod:`~mixope.policies.logged_column`), or a
        policy.
    :param default: what a table does in states it does not list; see :class:`TabularPolicy`.
    :param unknown_actions: a logged action that the policy lacks is an ``"error"`` or has probability ``"zero"``.
    :param columns: the table's own column names, by role: ``{"prob": "pi_new", "observation": ["x", "y"]}``.
    :param trust: whether files may be unpickled, which runs code of whoever wrote them.
    :param actions: labels of an array's columns, all actions of a table or a rule, or the actions of a callable.
    :param outputs: what a network gives: ``"probabilities"``, ``"logits"``, ``"mean_std"`` or ``"mean_log_std"``;
        :func:`~mixope.adapters.onnx.onnx_policy` and :func:`~mixope.adapters.torch.from_torch` have
        more options.
    :param epsilon: soften the policy: with this probability it takes any of its actions, all alike.
    :param scale: the standard deviation of a Gaussian around the action of a deterministic policy over real actions.
    :param law: of a Gaussian: whether actions were recorded ``"plain"``, ``"clipped"`` or ``"squashed"``.
    :param logs: logs whose own names the columns of a table may have: ``page`` and ``offer`` instead of ``observation``
        and ``action``. Where a table is given for a target, :func:`mixope.evaluate` knows them.
    :returns: something that answers how likely an action is in a state.

    >>> policy = mixope.read_policy("target.csv")
    >>> policy.probs([0]).shape == (1, len(policy.actions))
    True
    """
    wishes = Wishes(default, unknown_actions, columns, trust, actions, outputs, epsilon, scale, law, logs)
    found = _resolved(source, trust)
    kind = next(kind for kind in (*_added(), *KINDS) if kind.fits(found))
    _refuse_needless(kind, wishes, found)
    policy = kind.make(found, wishes)
    return policy if epsilon is None or "epsilon" in kind.takes else _softened(policy, epsilon)


@cache
def _added() -> tuple[Kind, ...]:
    """The kinds of other packages."""
    return tuple(plugins.load("policies", name) for name in plugins.added("policies"))


def _resolved(source: Any, trust: bool) -> Any:
    """The object that a reference or a pickled file stands for; any other source as it is."""
    if is_column(source):
        return LoggedColumn(source.removeprefix(PREFIX))
    if isinstance(source, str) and is_reference(source) and not os.path.exists(source) and not extension(Path(source)):
        return _check_resolved(source, resolve(source))
    if isinstance(source, str | os.PathLike) and extension(Path(source)) in PICKLED:
        return unpickled(existing(Path(source)), trust)
    return source


def _check_resolved(reference: str, found: Any) -> Any:
    if isinstance(found, type):
        raise UsageError(f"{reference} is a class; name a function or an instance")
    if isinstance(found, str):
        raise UsageError(f"{reference} is a string; name a function, a policy or an array")
    return found


def _refuse_needless(kind: Kind, wishes: Wishes, source: Any) -> None:
    for name in wishes.said():
        if name in (*kind.takes, "trust", "epsilon", "logs"):
            continue
        if name == "default" and kind.name != "policy":
            raise UsageError(f"default is for tables; a {kind.name} answers for every state itself")
        if name == "actions" and kind.name == "classifier":
            raise UsageError("actions are not for classifiers, which have their classes_")
        if kind.name == "policy" and name != "outputs":
            raise UsageError(
                f"{name} is for sources that are not yet policies; set it where {type(source).__name__} is made"
            )
        raise UsageError(f"{name} is for {MEANT[name]}, got {type(source).__name__}")


def _softened(policy: Policy, epsilon: float) -> Policy:
    if not isinstance(policy, DiscretePolicy):
        asked = "epsilon is spread over all actions, and the policy does not name them; "
        raise UsageError(Advice(asked, Setting("actions")))
    if isinstance(policy, CallablePolicy):
        policy.softened = True
    return Softened(policy, epsilon)


def _has(*names: str) -> Callable[[Any], bool]:
    def fits(source: Any) -> bool:
        if isinstance(source, type):
            return False
        with running(f"an attribute of {type(source).__name__}"):  # a data frame may have a column of that name
            return all(callable(getattr(source, name, None)) for name in names)

    return fits


def _from_array(source: Any, wishes: Wishes) -> Policy:
    return TabularPolicy(source, **wishes.some("actions", "default", "unknown_actions"))


def _from_archive(source: Any, wishes: Wishes) -> Policy:
    said = wishes.trust, wishes.actions, wishes.default, wishes.unknown_actions
    return archived_policy(existing(Path(source)), *said)


def _from_classifier(source: Any, wishes: Wishes) -> Policy:
    return sklearn_policy(source, unknown_actions=wishes.unknown_actions)


def _from_table(source: Any, wishes: Wishes) -> Policy:
    names = Names.of(wishes.columns, wishes.logs)
    table = as_table(source)
    if table is None:
        raise UsageError(f"cannot read columns from {type(source).__name__}")
    return single_policy(table, names, **wishes.some("default", "unknown_actions", "actions", "epsilon"))


def _from_laws(source: Any, wishes: Wishes) -> Policy:
    known = wishes.actions if wishes.actions is not None else getattr(source, "actions", None)
    return CallablePolicy(source.probs, known, unknown_actions=wishes.unknown_actions)


def _from_predict(source: Any, wishes: Wishes) -> Policy:
    if hasattr(source, "classes_") and wishes.actions is None:
        return _from_choices(ClassChoices(source), source.classes_, wishes)
    return _from_choices(Predicts(source), wishes.actions, wishes)


def _from_callable(source: Any, wishes: Wishes) -> Policy:
    if not callable(source):
        raise UsageError(
            f"cannot make a policy of {type(source).__name__}: expected a path, an array, a data frame, a dict of "
            "columns, a rule {state: action}, a fitted classifier, a trained model, a callable or a policy"
        )
    return _from_choices(source, wishes.actions, wishes)


def _from_choices(function: Any, actions: Any, wishes: Wishes) -> Policy:
    """A function of states; with a scale, the mean of a Gaussian."""
    if wishes.scale is not None:
        return GaussianPolicy(Centre(function), wishes.scale)
    return CallablePolicy(function, actions, unknown_actions=wishes.unknown_actions)


def _by(name: str) -> Callable[[Any, Wishes], Policy]:
    """What the adapter of a library makes."""

    def make(source: Any, wishes: Wishes) -> Policy:
        policy: Policy = plugins.load("policies", name).make(source, wishes)
        return policy

    return make


KINDS = (
    Kind("policy", _has("log_prob"), lambda source, _: adopt(source)),
    Kind("policy", _has("probs"), _from_laws, NAMED),
    Kind("array", lambda s: isinstance(s, np.ndarray | list | tuple), _from_array, ("default", *NAMED)),
    Kind("array", _has("tocsr"), _from_array, ("default", *NAMED)),
    Kind("archive", is_path(*ARCHIVES), _from_archive, ("default", *NAMED)),
    Kind("network", is_path(*NETWORKS), _by("onnx"), NETWORK),
    Kind(
        "classifier",
        lambda s: hasattr(s, "predict_proba"),
        lambda s, w: sklearn_policy(s, **w.some("unknown_actions")),
        ("unknown_actions",),
    ),
    Kind("model", is_sb3, _by("sb3"), MODEL),
    Kind("model", is_d3rlpy, _by("d3rlpy"), MODEL),
    Kind("network", is_torch, _by("torch"), NETWORK),
    Kind("rule", is_rule, lambda s, w: rule_policy(s, **w.some("default", *NAMED, "epsilon")), ("default", *NAMED)),
    Kind(
        "table",
        lambda s: isinstance(s, str | os.PathLike | Mapping) or hasattr(s, "__arrow_c_stream__"),
        _from_table,
        ("default", "columns", *NAMED),
    ),
    Kind("model", _has("predict"), _from_predict, ("scale", *NAMED)),
    Kind("callable", lambda _: True, _from_callable, ("scale", *NAMED)),
)
"""What a source can be; the first that fits."""
