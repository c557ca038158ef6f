"""Policies: what answers how likely an action is in a state.

``protocol.py`` says what a policy is; ``tabular.py``, ``callables.py`` and ``constant.py`` are kinds of policies,
``gaussian.py`` has those over vectors, ``combinations.py`` makes policies of policies, the adapters make them of
classifiers and networks, ``readers.py`` of files and whatever else a user has.
"""

from mixope.policies.callables import CallablePolicy, DiscreteCallablePolicy
from mixope.policies.combinations import Mixture, Softened
from mixope.policies.constant import Constant, uniform
from mixope.policies.gaussian import GaussianPolicy, LinearGaussianPolicy, SquashedGaussianPolicy
from mixope.policies.onnx_adapter import onnx_policy
from mixope.policies.protocol import ContinuousPolicy, DiscretePolicy, Policy
from mixope.policies.readers import read_policies, read_policy
from mixope.policies.sklearn_adapter import sklearn_policy
from mixope.policies.tabular import TabularPolicy

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
    "Softened",
    "SquashedGaussianPolicy",
    "TabularPolicy",
    "onnx_policy",
    "read_policies",
    "read_policy",
    "sklearn_policy",
    "uniform",
]
