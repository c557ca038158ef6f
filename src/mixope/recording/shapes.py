"""Between an environment and a policy: observations as policies see them, actions as they are carried out.

A policy sees what it will see in the log: one class is an id, several are factors, numbers (and classes beside them)
are a vector. An action of numbers is carried out within the bounds of its space and recorded as it was drawn, because
that is what the density belongs to. An action of several classes is recorded as one id: ``'0,2'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray
from mixope.base.errors import DataError, UsageError
from mixope.logs.sources.spaces import Leaf
from mixope.logs.sources.steps import Spaces
from mixope.recording.given import Environment

OUTSIDE = "mend the environment, or give its space the form of what it returns"


def spaces_of(env: Environment) -> Spaces:
    """The parts of the observations and actions of an environment."""
    if hasattr(env, "num_envs"):
        raise UsageError("record one environment at a time, not a vector of them: each is a source of its own")
    for name in ("observation_space", "action_space", "reset", "step"):
        if not hasattr(env, name):
            raise UsageError(f"an environment has {name}, as those of Gymnasium do; got a {type(env).__name__}")
    where = name_of(env)
    return Spaces.of_objects(env.observation_space, env.action_space, where)


def name_of(env: Any) -> str:
    """For messages: the id of an environment, or its class."""
    spec = getattr(env, "spec", None)
    return f"environment {getattr(spec, 'id', None) or type(getattr(env, 'unwrapped', env)).__name__}"


def part_of(value: Any, leaf: Leaf) -> Any:
    """The part of an observation or action that a leaf stands for."""
    for key in leaf.keys:
        value = value[key]
    return value


def stacked(values: Sequence[Any], leaf: Leaf) -> Any:
    """The parts of many observations or actions as one array."""
    return np.asarray([part_of(value, leaf) for value in values])


def seen(spaces: Spaces, observation: Any, where: str) -> AnyArray:
    """One observation as a batch of one, as a policy sees it in the log."""
    parts = []
    for leaf in spaces.observation:
        try:
            parts.append(leaf.shaped(stacked([observation], leaf), 1).reshape(1, -1))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise _outside(observation, leaf, error, where) from error
    kinds = {leaf.holds for leaf in spaces.observation}
    if kinds in ({"numbers"}, {"numbers", "classes"}):
        return np.concatenate([part.astype(np.float64) for part in parts], axis=1)
    if len(kinds) > 1 or (kinds == {"text"} and len(parts) > 1):
        raise UsageError(
            "text beside other things in an observation is no state that a policy can be asked about here; act"
            " yourself, with mixope.recorder(env, path)"
        )
    whole = len(parts) == 1 and spaces.observation[0].width in (None, 1)
    return parts[0][0] if whole else np.concatenate(parts, axis=1)


def _outside(value: Any, leaf: Leaf, error: Exception, where: str) -> DataError:
    return DataError(
        "An observation is not of the space of the environment",
        where=where,
        column=f"observation{leaf.suffix}",
        expected=leaf.holds if leaf.width is None else f"{leaf.width} {leaf.holds}",
        got=f"{repr(value)[:80]} ({error})",
        hint=OUTSIDE,
    )


def carried_out(env: Environment, spaces: Spaces, action: Any, where: str) -> Any:
    """What a policy chose as the environment takes it: an id, several classes, or numbers within their bounds."""
    space = env.action_space
    if spaces.action[0].holds == "numbers":
        if len(spaces.action) > 1:
            raise UsageError(
                f"{where}: actions of several boxes cannot be drawn here; act yourself, with mixope.recorder"
            )
        numbers = np.asarray(action, dtype=np.float64).reshape(space.shape)
        return np.clip(numbers, space.low, space.high).astype(space.dtype)
    try:
        made = _classes(space, str(action).split(",")) if spaces.joined else _class(space, action)
        known = made is not None and space.contains(made)
    except (TypeError, ValueError, IndexError):
        known = False
    if not known:
        raise DataError("The policy chose an action that the environment does not have", where=where, got=repr(action))
    return made


def _class(space: Any, action: Any) -> Any:
    return action if isinstance(action, str) else type(space.sample())(action)


def _classes(space: Any, words: list[str]) -> Any:
    """Several classes from their id, in the form of a draw from the space."""
    return _filled(space.sample(), iter(words))


def _filled(form: Any, words: Any) -> Any:
    if isinstance(form, dict):
        return {name: _filled(part, words) for name, part in form.items()}
    if isinstance(form, tuple):
        return tuple(_filled(part, words) for part in form)
    flat = [int(next(words)) for _ in range(np.size(form))]
    return (
        np.asarray(flat, dtype=np.asarray(form).dtype).reshape(np.shape(form)) if np.ndim(form) else type(form)(flat[0])
    )
