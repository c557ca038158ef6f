"""Arguments that a function does not have, by the names that other libraries give them: the error says ours.

@offers_names
def evaluate(logs, target, *, level=0.95): ...

evaluate(logs, policy, confidence=0.9)
UnknownArgument: evaluate() has no argument 'confidence'. Did you mean level=?
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from mixope.base.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

_TARGET, _LOGS, _LOGGERS = ("target", "targets"), ("logs", "data"), ("loggers",)
MEANT: Final = {
    "behavior_policy": _LOGGERS,
    "behavior_policies": _LOGGERS,
    "behaviour_policy": _LOGGERS,
    "cluster": ("unit",),
    "confidence": ("level",),
    "confidence_level": ("level",),
    "data": _LOGS,
    "dataset": _LOGS,
    "df": _LOGS,
    "discount": ("gamma",),
    "discount_factor": ("gamma",),
    "evaluation_policy": _TARGET,
    "groups": ("unit",),
    "log": _LOGS,
    "logs": _LOGS,
    "method": ("estimator", "estimators"),
    "n_bootstrap": ("replicates",),
    "n_jobs": ("jobs",),
    "n_resamples": ("replicates",),
    "policies": ("targets", "target"),
    "policy": _TARGET,
    "random_state": ("seed",),
    "target_policy": _TARGET,
}
"""What other libraries call it → what we do; of several the first that the function has."""
OF_READ = frozenset({"columns", "done", "ends", "label", "format", "encoding", "roles", "missing"})
"""What is said of logs when they are read."""


class UnknownArgument(UsageError, TypeError):
    """An argument that a function does not have; offers what may have been meant."""

    def __init__(self, function: str, name: str, known: Sequence[str]) -> None:
        hint = _hint(name, known)
        super().__init__(f"{function}() has no argument {name!r}. {hint}")


def offers_names(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose error for an argument that it does not have says which one it has."""
    parameters = inspect.signature(function).parameters
    known = [name for name, each in parameters.items() if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    passes_on = any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known and not (passes_on and _ours(name, known) is None):
                raise UnknownArgument(function.__name__, name, known)
        return function(*args, **kwargs)

    return checked


def _ours(name: str, known: Sequence[str]) -> str | None:
    """What a name of other libraries is called here, if the function has that."""
    return next((ours for ours in MEANT.get(name, ()) if ours in known), None)


def _hint(name: str, known: Sequence[str]) -> str:
    """The argument that was meant, or the call that takes it, or all arguments."""
    ours = _ours(name, known) or next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.6)), None)
    if ours is not None:
        return f"Did you mean {ours}=?"
    if name in OF_READ:
        return f"It is said where logs are read: mixope.read(…, {name}=…)."
    return f"It has: {', '.join(known)}."
