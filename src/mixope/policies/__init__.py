"""Policies: what answers how likely an action is in a state.

``protocol.py`` says what a policy is. ``tabular.py``, ``callables.py`` and ``gaussian.py`` are kinds of policies,
``combinations.py`` makes policies of policies, ``columns.py`` lets them see mixed states by column, the adapters make
them of classifiers and networks, ``readers.py`` of files (``tables.py``) and whatever else a user has (``given.py``
says what, as a type). ``keys.py``
finds states and actions by their ids, ``laws.py`` checks probabilities, ``fingerprints.py`` hashes what a policy does,
``own_code.py`` tells what code of the user's raised.
"""

from mixope.policies.callables import CallablePolicy, DiscreteCallablePolicy
from mixope.policies.columns import on_columns
from mixope.policies.combinations import Mixture, Softened
from mixope.policies.gaussian import GaussianPolicy, LinearGaussianPolicy, SquashedGaussianPolicy
from mixope.policies.given import PolicySource
from mixope.policies.onnx_adapter import onnx_policy
from mixope.policies.protocol import ContinuousPolicy, DiscretePolicy, Policy
from mixope.policies.readers import read_policies, read_policy
from mixope.policies.sklearn_adapter import sklearn_policy
from mixope.policies.tabular import Constant, TabularPolicy, uniform

__all__ = [
    "CallablePolicy",
    "Constant",
    "ContinuousPolicy",
    "DiscreteCallablePolicy",
    "DiscretePolicy",
    "GaussianPolicy",
    "LinearGaussianPolicy",
    "Mixture",
    "Policy",
    "PolicySource",
    "Softened",
    "SquashedGaussianPolicy",
    "TabularPolicy",
    "on_columns",
    "onnx_policy",
    "read_policies",
    "read_policy",
    "sklearn_policy",
    "uniform",
]
