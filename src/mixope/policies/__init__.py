"""Policies: what answers how likely an action is in a state.

``protocol.py`` says what a policy is. ``tabular.py``, ``callables.py`` and ``gaussian.py`` are kinds of policies,
``combinations.py`` makes policies of policies, ``columns.py`` lets them see mixed states by column, ``rules.py`` finds
out what a function answers, ``adopted.py`` takes in classes of the user's. The adapters make policies of classifiers,
networks (``networks.py``) and trained models (``models.py``), ``readers.py`` of whatever else a user has: files
(``tables.py``, ``table_roles.py``, ``table_files.py``, ``archives.py``, ``pickles.py``), columns of the log
(``logged_column.py``) and names in code (``references.py``). ``keys.py`` finds states and actions by their ids,
``laws.py`` checks probabilities, ``fingerprints.py`` hashes what a policy does, ``own_code.py`` tells what code of the
user's raised.
"""

from mixope.policies.callables import CallablePolicy, DiscreteCallablePolicy
from mixope.policies.columns import on_columns
from mixope.policies.combinations import Mixture, Softened
from mixope.policies.d3rlpy_adapter import d3rlpy_policy
from mixope.policies.gaussian import GaussianPolicy, LinearGaussianPolicy, SquashedGaussianPolicy
from mixope.policies.logged_column import LoggedColumn
from mixope.policies.onnx_adapter import onnx_policy
from mixope.policies.protocol import ContinuousPolicy, DiscretePolicy, Policy
from mixope.policies.readers import read_policy
from mixope.policies.sb3_adapter import sb3_policy
from mixope.policies.sklearn_adapter import sklearn_policy
from mixope.policies.table_files import read_policies
from mixope.policies.tabular import Constant, TabularPolicy, uniform
from mixope.policies.torch_adapter import from_torch

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
    "Softened",
    "SquashedGaussianPolicy",
    "TabularPolicy",
    "d3rlpy_policy",
    "from_torch",
    "on_columns",
    "onnx_policy",
    "read_policies",
    "read_policy",
    "sb3_policy",
    "sklearn_policy",
    "uniform",
]
