"""Rules: functions that answer with an action instead of probabilities, or for one state instead of a batch.

A function of states is asked about a batch. Where the answer is not one row of probabilities per state, it is asked
again, once, about two small batches of different sizes and then about one state: what grows with the batch answers for
batches, what answers for one state is asked state by state. So ``lambda s: 1 if s[0] > 0 else 0`` and its vectorised
form are the same policy. One action for each state is a deterministic policy; whole laws for each state are laws, as
rows of probabilities or as dicts ``{action: probability}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import Advice, DataError, Setting
from mixope.policies.keys import KeyIndex, as_actions, plain, refuse
from mixope.policies.laws import ActionSet, as_numbers, detached
from mixope.policies.named import NamedRows, NamedState
from mixope.policies.own_code import running

SIZES = (5, 7)
"""Of the small batches: an answer that is as long as both was made row by row."""

One = Callable[[AnyArray, int], Any]
"""A state of a batch as a function of one state sees it."""


@dataclass(frozen=True)
class Reading:
    """How a function is asked: about whole batches, or state by state (``one`` picks the state)."""

    one: One | None = None

    def ask(self, function: Callable[..., Any], observations: AnyArray) -> AnyArray:
        """``(n,)`` actions or ``(n, A)`` laws."""
        if self.one is None:
            return as_answer(function(observations))
        return as_answer([detached(function(self.one(observations, i))) for i in range(len(observations))])


def as_answer(values: Any) -> AnyArray:
    """What a function gave as an array, masked values and all."""
    values = detached(values)
    try:
        found: AnyArray = values if np.ma.isMaskedArray(values) else np.asarray(values)
    except ValueError:
        raise DataError("the answers have rows of different lengths", expected="as many numbers in every row") from None
    return found


def recognise(function: Callable[..., Any], observations: AnyArray) -> Reading | None:
    """How the function wants to be asked; None where neither way gives an answer. It may raise what it likes."""
    if _answers_batches(function, observations):
        return Reading()
    for one in _views(observations):
        try:
            answer = as_answer(function(one(observations, 0)))
        except (Exception, SystemExit):  # the next view, or the error of the batch, which is raised by whoever asked
            continue
        if answer.ndim <= 1 and answer.dtype.kind in "biufUSO" and answer[()] is not None:
            return Reading(one)
    return None


def _answers_batches(function: Callable[..., Any], observations: AnyArray) -> bool:
    for size in SIZES:
        try:
            answer = as_answer(function(observations[np.arange(size) % len(observations)]))
        except (Exception, SystemExit):  # a function of one state fails on several in whatever way it likes
            return False
        if answer.ndim not in (1, 2) or len(answer) != size:
            return False
    return True


def _views(observations: AnyArray) -> Iterator[One]:
    """Ids as Python values; factors as tuples, which are keys of dicts; vectors and mixed states as rows."""
    if observations.ndim == 1 and observations.dtype.names is None:
        yield _value
    elif observations.dtype.kind == "f" or observations.dtype.names:
        yield _row
        yield _tuple
    else:
        yield _tuple
        yield _row


def _value(observations: AnyArray, i: int) -> Any:
    value = observations[i]
    return value.item() if isinstance(value, np.generic) else value


def _row(observations: AnyArray, i: int) -> Any:
    return observations[i]


def _tuple(observations: AnyArray, i: int) -> Any:
    state = tuple(observations[i].tolist())
    return NamedState(state, observations.names) if isinstance(observations, NamedRows) else state


def name_of(function: Any) -> str:
    """What to call a function in messages: a model by its own name."""
    asked = getattr(function, "model", function)
    return str(getattr(asked, "__qualname__", type(asked).__name__))


def note_of(name: str, reading: Reading, answer: AnyArray, softened: bool = False) -> str:
    """What was taken for granted about a function."""
    whom = "one state, and is asked state by state" if reading.one else "a batch of states"
    if answer.ndim == 2 or are_laws(answer):
        return f"{name} gives the action probabilities of {whom}"
    if softened:
        return f"{name} chooses an action for {whom}, which is softened as asked"
    offer = Advice("; ", Setting("epsilon", 0.05), " would soften it")
    return Advice(f"{name} chooses an action for {whom}: it is evaluated as a deterministic policy", *offer.parts)


def is_choice(answer: AnyArray, floats: bool = False) -> bool:
    """Whether the entries of an answer can name actions; those that are not whole can where actions are ``floats``."""
    if answer.ndim != 1:
        return False
    if answer.dtype.kind != "f":
        return True
    return bool(np.isfinite(answer).all() and (floats or (answer == np.floor(answer)).all()))


def are_laws(answer: AnyArray) -> bool:
    """Whether an answer is a dict ``{action: probability}`` per state."""
    return answer.ndim == 1 and answer.dtype.kind == "O" and all(isinstance(law, Mapping) for law in answer)


def listed_laws(answer: AnyArray, known: ActionSet | None, name: str) -> tuple[FloatArray, ActionSet]:
    """Dicts as rows over the actions that are known, or else over all that are listed; what is not listed has 0."""
    listed = list(dict.fromkeys(action for law in answer for action in law))
    actions = known or ActionSet(listed, "zero")
    columns = dict(zip(listed, _columns_of(listed, actions, name), strict=True))
    laws = np.zeros((len(answer), len(actions)))
    for row, law in enumerate(answer):
        if law:
            laws[row, [columns[action] for action in law]] = as_numbers(list(law.values()), f"answers of {name}")
    return laws, actions


def _columns_of(chosen: Any, known: ActionSet, name: str) -> IntArray:
    """Where actions stand among those that are known."""
    keys = as_actions(chosen, f"actions that {name} chooses")
    columns = known.index.find(keys)
    refuse(
        columns < 0,
        f"{name} chose an action that is not among its actions",
        keys.array(),
        expected=f"one of {', '.join(map(plain, known.values[:5]))}",
        hint=Advice(Setting("actions"), " with all actions that there are"),
    )
    return columns


def chosen_laws(choices: AnyArray, known: ActionSet, name: str) -> FloatArray:
    """The laws of a deterministic policy whose actions are known."""
    columns = _columns_of(choices, known, name)
    laws = np.zeros((len(columns), len(known)))
    laws[np.arange(len(columns)), columns] = 1.0
    return laws


def matches(choices: AnyArray, actions: AnyArray, name: str) -> BoolArray:
    """Where the choice of a rule is the action taken."""
    refuse_real(actions, name)
    chosen, taken = as_actions(choices, f"actions that {name} chooses"), as_actions(actions, "actions asked for")
    KeyIndex(chosen, "action").find(taken)  # refuses strings against integers
    return np.asarray(chosen.array() == taken.array())


def refuse_real(actions: AnyArray, name: str) -> None:
    """A deterministic policy over real actions has no density, and no logged action is ever exactly its own.

    Real actions are vectors; a column of floats has one of a few actions in every row.
    """
    if np.asarray(actions).dtype.kind == "f" and np.ndim(actions) == 2:
        raise DataError(
            f"{name} chooses one real action for a state, and a deterministic policy has no density",
            expected="a policy that varies, such as a Gaussian around that action",
            hint=Advice(Setting("scale"), " gives the standard deviation of a Gaussian around its choice"),
        )


@dataclass(frozen=True, eq=False)
class Centre:
    """A rule over real actions as the mean of a Gaussian: ``(n, d)``, from batches or state by state."""

    function: Callable[..., Any]

    def __call__(self, observations: AnyArray) -> AnyArray:
        """The action chosen in every state."""
        reading = recognise(self.function, observations) if len(observations) else Reading()
        with running(name_of(self.function)):
            return (reading or Reading()).ask(self.function, observations)


@dataclass(frozen=True, eq=False)
class Predicts:
    """A model by what its ``predict`` chooses; Stable-Baselines3 and its kin give a state besides."""

    model: Any

    def __call__(self, observations: AnyArray) -> Any:
        """``(n,)`` actions, or whatever the model gives."""
        rows = observations[:, None] if observations.ndim == 1 and not observations.dtype.names else observations
        answer = self.model.predict(rows)
        return answer[0] if isinstance(answer, tuple) else answer
