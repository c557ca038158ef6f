"""A policy as a function of the user's.

Two forms, told apart by the number of arguments that must be given:

- ``f(observations) -> (n, A)``: the action law of every row, or a dict ``{action: probability}`` each; or ``(n,)``, the
  action that it chooses there; or the same for one state (:mod:`~mixope.policies.rules` finds out which, and a note
  says so);
- ``f(observations, actions) -> (n,)``: the probability (or density) of the action taken.

With ``log=True`` the function gives logarithms. Nothing is assumed of its answers: shape, range and sums are checked on
every batch, because a log-probability taken for a probability gives a wrong value, not a crash.
"""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable
from typing import Any, Literal, final

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import Advice, DataError, MixopeWarning, Setting, UsageError
from mixope.policies.fingerprints import array_bytes, callable_parts, digest
from mixope.policies.keys import refuse, rows_of
from mixope.policies.laws import (
    TOLERANCE,
    ActionSet,
    UnknownActions,
    as_numbers,
    check_laws,
    check_same_length,
    looks_like_logs,
    numbered,
)
from mixope.policies.laws import log as logarithm
from mixope.policies.own_code import running
from mixope.policies.rules import (
    Reading,
    are_laws,
    chosen_laws,
    is_choice,
    listed_laws,
    matches,
    name_of,
    note_of,
    recognise,
    refuse_real,
)

Form = Literal["laws", "taken"]
_SETTLING = threading.Lock()
"""Held while a policy settles for a way to be asked, never while its function runs."""


class CallablePolicy:
    """A callable as a policy; a :class:`DiscreteCallablePolicy` where its actions are known.

    :param function: one of the two forms above.
    :param actions: the actions, in the order of the columns; taken from ``function.actions`` if that exists. Without
        them, the policy answers ``log_prob`` only, and a function of one argument has the actions 0 … A−1.
    :param log: whether the function gives logarithms.
    :param unknown_actions: as for a table; needs ``actions``.
    """

    def __new__(
        cls, function: Callable[..., Any], actions: Any = None, log: bool = False, **options: Any
    ) -> CallablePolicy:
        """Choose the class by whether actions are known, so that only discrete policies look discrete."""
        known = actions if actions is not None else _own_actions(function)
        return object.__new__(CallablePolicy if known is None else DiscreteCallablePolicy)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self._function, self._known.values if self._known else None, self._log)

    softened = False
    """Whether somebody softens its choices: then nobody needs to be told how."""

    def __init__(
        self,
        function: Callable[..., Any],
        actions: Any = None,
        log: bool = False,
        *,
        unknown_actions: UnknownActions = "error",
    ) -> None:
        self._form: Form = _form(function)
        self._function, self._log = function, log
        self._reading: Reading | None = None
        known = actions if actions is not None else _own_actions(function)
        if known is None and unknown_actions != "error":
            said = " was given, but the function does not name its actions, so that none is unknown; "
            raise UsageError(Advice(Setting("unknown_actions", "zero"), said, Setting("actions")))
        self._known = None if known is None else ActionSet(known, unknown_actions)

    def log_prob(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for every row, as the function says."""
        observations, actions = rows_of(observations, "observations"), rows_of(actions, "actions")
        check_same_length(len(observations), len(actions))
        if self._form == "laws":
            refuse_real(actions, self._name)
            told, known = self._told(observations, actions.dtype.kind == "f")
            if known is None:
                return logarithm(matches(told, actions, self._name).astype(np.float64))
            return known.log_picked(told, actions)
        if self._known is None:
            return logarithm(self._taken(observations, actions))
        listed = self._known.columns(actions) >= 0
        answer = np.zeros(len(actions))
        answer[listed] = self._taken(observations[listed], actions[listed])
        return logarithm(answer)

    def fingerprint(self) -> str:
        """Hash of the function's name and code, and of what it captured."""
        known = b"" if self._known is None else array_bytes(self._known.values)
        return digest(b"callable", str(self._log).encode(), known, *callable_parts(self._function))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name}, {self.fingerprint()})"

    def _told(self, observations: AnyArray, floats: bool = False) -> tuple[AnyArray, ActionSet | None]:
        """Checked laws ``(n, A)`` and their actions, or the choices ``(n,)`` of a rule that does not name its own.

        Where actions are ``floats``, a choice is one too.
        """
        floats = floats or (self._known is not None and self._known.values.dtype.kind == "f")
        answer, known = self._answered(observations), self._known
        if are_laws(answer) and len(answer) == len(observations):
            answer, known = listed_laws(answer, known, self._name)
        elif not self._log and is_choice(answer, floats) and len(answer) == len(observations):
            return (answer, None) if known is None else (chosen_laws(answer, known, self._name), known)
        answer = as_numbers(answer, f"answers of {self._name}")
        columns = len(known) if known else None
        fits = answer.ndim == 2 and len(answer) == len(observations) and columns in (None, answer.shape[-1])
        column = columns is None and answer.ndim == 2 and answer.shape[1] == 1 and bool((answer != 1).any())
        if not fits or column:
            raise self._misshapen(answer, f"({len(observations)}, {'n_actions' if columns is None else columns})")
        laws = check_laws(self._exponentiated(answer), f"answers of {self._name}")
        return laws, known or ActionSet(numbered(laws.shape[1]))

    def _answered(self, observations: AnyArray) -> AnyArray:
        """What the function says about these states; how it wants to be asked is found out the first time."""
        if (known := self._reading) is not None:
            return self._asked(known, observations)
        if not len(observations):
            return self._asked(Reading(), observations)
        return self._found_out(observations)

    def _asked(self, reading: Reading, observations: AnyArray) -> AnyArray:
        with running(self._name):
            return reading.ask(self._function, observations)

    def _found_out(self, observations: AnyArray) -> AnyArray:
        """The first answer, and a note on what was taken for granted.

        Threads may find out side by side, each by itself: none waits while the function runs, none acts on what another
        has found half-way, and all go by whoever was first.
        """
        reading, answer = self._recognised(observations)
        noted = answer is None
        if answer is None:
            answer = self._asked(reading, observations)
        with _SETTLING:
            first = self._reading is None
            self._reading = settled = self._reading or reading
        if first and noted and (reading.one is not None or is_choice(answer)):
            warnings.warn(MixopeWarning(note_of(self._name, reading, answer, self.softened)), stacklevel=2)
        return answer if settled == reading else self._asked(settled, observations)

    def _recognised(self, observations: AnyArray) -> tuple[Reading, AnyArray | None]:
        """How to ask, and what the whole batch gave where that was one row of laws per state beyond doubt."""
        try:
            answer = self._asked(Reading(), observations)
        except DataError:
            if (found := recognise(self._function, observations)) is None:
                raise
            return found, None
        found = recognise(self._function, observations) if answer.ndim < 2 else None
        return (Reading(), answer) if found is None else (found, None)

    def _taken(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """The function's answer of the second form, checked; densities of real actions may exceed one."""
        with running(self._name):
            answer = as_numbers(self._function(observations, actions), f"answers of {self._name}")
        if answer.shape != (len(observations),):
            raise self._misshapen(answer, f"({len(observations)},)")
        name, density = self._name, self._known is None and np.asarray(actions).dtype.kind == "f"
        refuse(np.isnan(answer), f"{name} gave NaN", answer, expected="a number for every row")
        refuse(answer == np.inf, f"{name} gave an infinite value", answer, expected="finite numbers")
        chance = self._exponentiated(answer, density)
        refuse(chance < 0, f"{name} gave a negative probability", answer, expected="numbers in [0, 1]")
        if density:
            return chance
        above = np.zeros(len(chance), dtype=bool) if self._log else chance > 1 + TOLERANCE
        refuse(above, f"{name} gave a probability above one", answer, expected="numbers in [0, 1]")
        return np.minimum(chance, 1.0)

    def _exponentiated(self, answer: FloatArray, density: bool = False) -> FloatArray:
        """The answer without its logarithm, where there is one; both mistakes about it are said."""
        if not self._log:
            if looks_like_logs(answer):
                raise DataError(
                    f"{self._name} gave log-probabilities",
                    expected="numbers in [0, 1]",
                    got=f"all ≤ 0, the smallest {answer.min():.6g}",
                    hint="CallablePolicy(function, log=True)",
                )
            return answer
        if not density and (answer > TOLERANCE).any():
            raise DataError(
                f"{self._name} gave positive numbers where logarithms were announced",
                expected="log-probabilities, all ≤ 0 (log=True)",
                got=f"{answer.max():.6g}",
                hint="leave out log=True if the function gives probabilities",
            )
        return np.exp(answer)

    @property
    def _name(self) -> str:
        return name_of(self._function)

    def _misshapen(self, answer: FloatArray, expected: str) -> DataError:
        needs = "f(observations)" if self._form == "laws" else "f(observations, actions)"
        return DataError(
            f"{self._name} gave an array of the wrong shape",
            expected=f"{expected} from {needs}",
            got=f"shape {answer.shape}",
            hint="f(observations) gives one row of probabilities, or one action, per observation; "
            "f(observations, actions) gives one number",
        )


@final
class DiscreteCallablePolicy(CallablePolicy):
    """A callable whose actions are known, so that it can also give whole action laws."""

    @property
    def actions(self) -> AnyArray:
        """``(A,)``, in the order of the columns."""
        if self._known is None:
            raise UsageError(Advice("a discrete callable policy needs to know its actions; ", Setting("actions")))
        return self._known.values

    def probs(self, observations: AnyArray) -> FloatArray:
        """π(·|s) for every row; a function of observations and actions is asked once for each action."""
        if self._form == "laws":
            return np.asarray(self._told(observations)[0], dtype=np.float64)
        count = len(observations)
        columns = [self._taken(observations, np.repeat(self.actions[j], count)) for j in range(len(self.actions))]
        return check_laws(np.stack(columns, axis=1), f"answers of {self._name}, over all actions,")


def _own_actions(function: Callable[..., Any]) -> Any:
    with running(f"the attribute actions of {type(function).__name__}"):
        return getattr(function, "actions", None)


def _form(function: Callable[..., Any]) -> Form:
    """The form of a function, by how many arguments it cannot do without."""
    if isinstance(function, type) or not callable(function):
        raise UsageError(f"expected a function or a callable object, got {function!r}")
    if inspect.isbuiltin(function):
        raise UsageError(f"{function!r} is no policy: expected a function of yours, def policy(observations): ...")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise UsageError(f"cannot read the arguments of {function!r}; wrap it: def policy(observations): ...") from None
    required = [
        p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) not in (1, 2):
        raise UsageError(
            "a policy function takes (observations) or (observations, actions), "
            f"got {len(required)} required arguments: {', '.join(p.name for p in required) or 'none'}"
        )
    return "laws" if len(required) == 1 else "taken"
