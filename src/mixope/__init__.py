"""mixope: what would a new policy earn in the long run, how sure are we, and can these logs carry that answer at all?

    import mixope
    logs = mixope.read("logs/*.parquet")
    result = mixope.evaluate(logs, mixope.read_policy("target.csv"))
    print(result)

Names are loaded when they are first used, so that ``import mixope`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mixope.base.moved import keep_old_names
from mixope.version import __version__

if TYPE_CHECKING:
    from mixope.answers.estimate import Estimate
    from mixope.backtesting import Backtest, backtest
    from mixope.base.errors import DataError, MixopeError, MixopeWarning, UsageError
    from mixope.base.estimand import Estimand
    from mixope.checks import Verdict
    from mixope.comparison import compare, compare_targets
    from mixope.differences import Comparison
    from mixope.distributions import Returns, returns
    from mixope.evaluation import evaluate
    from mixope.experiments import Experiment, experiment
    from mixope.inspection import Inspection, inspect
    from mixope.loading import load
    from mixope.logs import Logs, read
    from mixope.planning import Plan, plan, plan_experiment
    from mixope.policies import (
        CallablePolicy,
        GaussianPolicy,
        LinearGaussianPolicy,
        Mixture,
        Softened,
        SquashedGaussianPolicy,
        TabularPolicy,
        read_policies,
        read_policy,
    )
    from mixope.recording import record, recorder

_HOME = {
    "Backtest": "mixope.backtesting",
    "CallablePolicy": "mixope.policies",
    "Comparison": "mixope.differences",
    "DataError": "mixope.base.errors",
    "Estimand": "mixope.base.estimand",
    "Estimate": "mixope.answers.estimate",
    "Experiment": "mixope.experiments",
    "GaussianPolicy": "mixope.policies",
    "Inspection": "mixope.inspection",
    "LinearGaussianPolicy": "mixope.policies",
    "Logs": "mixope.logs",
    "Mixture": "mixope.policies",
    "MixopeError": "mixope.base.errors",
    "MixopeWarning": "mixope.base.errors",
    "Plan": "mixope.planning",
    "Returns": "mixope.distributions",
    "Softened": "mixope.policies",
    "SquashedGaussianPolicy": "mixope.policies",
    "TabularPolicy": "mixope.policies",
    "UsageError": "mixope.base.errors",
    "Verdict": "mixope.checks",
    "backtest": "mixope.backtesting",
    "compare": "mixope.comparison",
    "compare_targets": "mixope.comparison",
    "evaluate": "mixope.evaluation",
    "experiment": "mixope.experiments",
    "inspect": "mixope.inspection",
    "load": "mixope.loading",
    "plan": "mixope.planning",
    "plan_experiment": "mixope.planning",
    "read": "mixope.logs",
    "read_policies": "mixope.policies",
    "read_policy": "mixope.policies",
    "record": "mixope.recording",
    "recorder": "mixope.recording",
    "returns": "mixope.distributions",
}

__all__ = [
    "Backtest",
    "CallablePolicy",
    "Comparison",
    "DataError",
    "Estimand",
    "Estimate",
    "Experiment",
    "GaussianPolicy",
    "Inspection",
    "LinearGaussianPolicy",
    "Logs",
    "MixopeError",
    "MixopeWarning",
    "Mixture",
    "Plan",
    "Returns",
    "Softened",
    "SquashedGaussianPolicy",
    "TabularPolicy",
    "UsageError",
    "Verdict",
    "__version__",
    "backtest",
    "compare",
    "compare_targets",
    "evaluate",
    "experiment",
    "inspect",
    "load",
    "plan",
    "plan_experiment",
    "read",
    "read_policies",
    "read_policy",
    "record",
    "recorder",
    "returns",
]


keep_old_names()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        found = getattr(import_module(_HOME[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'mixope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
