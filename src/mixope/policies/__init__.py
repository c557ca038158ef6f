"""Policies: what answers how likely an action is in a state.

``protocol.py`` says what a policy is; ``tabular.py``, ``callables.py`` and ``constant.py`` are kinds of policies,
``combinations.py`` makes policies of policies, ``readers.py`` makes them of files and whatever else a user has.
"""

from mixope.policies.callables import CallablePolicy, DiscreteCallablePolicy
from mixope.policies.combinations import Mixture, Softened
from mixope.policies.constant import Constant, uniform
from mixope.policies.protocol import ContinuousPolicy, DiscretePolicy, Policy
from mixope.policies.readers import read_policies, read_policy
from mixope.policies.tabular import TabularPolicy

__all__ = [
    "CallablePolicy",
    "Constant",
    "ContinuousPolicy",
    "DiscreteCallablePolicy",
    "DiscretePolicy",
    "Mixture",
    "Policy",
    "Softened",
    "TabularPolicy",
    "read_policies",
    "read_policy",
    "uniform",
]
