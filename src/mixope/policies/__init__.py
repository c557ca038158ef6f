"""Policies: what answers how likely an action is in a state.

``protocol.py`` says what a policy is. ``tabular.py``, ``callables.py`` and ``gaussian.py`` are kinds of policies,
``combinations.py`` makes policies of policies, ``columns.py`` lets them see mixed states by column, ``rules.py`` finds
out what a function answers, ``adopted.py`` takes in classes of the user's. ``readers.py`` makes policies of whatever a
user has (``given.py`` says what, as a type; ``kinds.py`` is the record of one kind): classifiers
(``sklearn_adapter.py``), files (``tables.py``, ``table_roles.py``, ``table_files.py``, ``archives.py``,
``pickles.py``), columns of the log (``logged_column.py``) and names in code (``references.py``). Networks and trained
models are a wing (:mod:`mixope.adapters`); ``marks.py`` knows them. ``keys.py`` finds states and actions by their ids,
``laws.py`` checks probabilities, ``fingerprints.py`` hashes what a policy does, ``own_code.py`` tells what code of the
user's raised.
"""

from typing import Any

from mixope.base import plugins
from mixope.policies.callables import CallablePolicy, DiscreteCallablePolicy
from mixope.policies.columns import on_columns, on_recorded, with_names
from mixope.policies.combinations import Mixture, Softened
from mixope.policies.gaussian import GaussianPolicy, LinearGaussianPolicy, SquashedGaussianPolicy
from mixope.policies.given import PolicySource
from mixope.policies.logged_column import LoggedColumn
from mixope.policies.protocol import ContinuousPolicy, DiscretePolicy, Policy
from mixope.policies.readers import read_policy
from mixope.policies.sklearn_adapter import sklearn_policy
from mixope.policies.table_files import read_policies
from mixope.policies.tabular import Constant, TabularPolicy, uniform

__all__ = [
    "CallablePolicy",
    "Constant",
    "ContinuousPolicy",
    "DiscreteCallablePolicy",
    "DiscretePolicy",
    "GaussianPolicy",
    "LinearGaussianPolicy",
    "LoggedColumn",
    "Mixture",
    "Policy",
    "PolicySource",
    "Softened",
    "SquashedGaussianPolicy",
    "TabularPolicy",
    "d3rlpy_policy",
    "from_torch",
    "on_columns",
    "on_recorded",
    "onnx_policy",
    "read_policies",
    "read_policy",
    "sb3_policy",
    "sklearn_policy",
    "uniform",
    "with_names",
]


def __getattr__(name: str) -> Any:
    """An adapter, imported when it is asked for."""
    if name in plugins.WINGS["adapters"]:
        return plugins.load("adapters", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
