"""Everything that can go wrong on a user's side, with words and an exit code.

An error says what was expected, what was found, where, and what to do next. The command line prints it and
exits with ``exit_code``; the library raises it. A failure that is not one of these is a bug of ours.

What to do next is often to set something, and that has other words in Python (``done='terminated'``) than on the
command line (``--done terminated``). So sentences that name a :class:`Setting` are written as :class:`Advice`: to the
library it is a ``str`` like any other, and another surface can have the same sentence in its own words
(:func:`phrased`).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""What XML, a terminal or UTF-8 cannot hold, and what turns the direction of the text after it."""


INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]|(?<![^\x00-\x7f])[\u200c\u200d\ufe00-\ufe0f]"
)
"""What takes no room; of joiners and variation selectors, which scripts and emoji need, those after plain letters."""


def clean(text: object) -> str:
    """Any text as one that can be shown: control characters and lone surrogates as �, invisible ones as [U+200B]."""
    shown = str(text)
    if shown.isascii() and shown.isprintable():
        return shown
    shown = INVISIBLE.sub(lambda found: f"[U+{ord(found[0]):04X}]", shown)
    return UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", shown)


@dataclass(frozen=True)
class Setting:
    """Something that a user can set or call, by its name in the library; ``...`` is a value that the user knows."""

    name: str
    value: Any = ...


Phrase = Callable[[Setting], str]
"""The words of a surface for a setting."""


_IN_PYTHON = {
    "default": "default='uniform', an action, or a probability vector",
    "actions": "pass actions=[…]",
    "format": "pass format=…",
    "one_policy": "read_policy(…) reads a table of one policy",
    "several_policies": "use it as loggers: read_policies(…) gives one policy per policy_id",
    "inspect": "mixope.inspect(logs, target)",
    "json": "to_json()",
    "full": "result.full()",
    "page": 'result.report("report.html")',
}
"""What is said in the same words whatever the value."""


def in_python(setting: Setting) -> str:
    """The words of the library."""
    value = setting.value
    match setting.name:
        case "policy_column":
            return f"name the right one with columns={{{value!r}: …}}"
        case "loggers":
            return f"loggers={{{'label' if value is ... else repr(value)}: policy}}"
        case "epsilon" | "scale" | "law" | "outputs" | "trust":
            return f"read_policy(…, {setting.name}={_literal(value)})"
        case name if name in _IN_PYTHON:
            return _IN_PYTHON[name]
        case _:
            return f"{setting.name}={_literal(value)}"


def _literal(value: Any) -> str:
    if value is ...:
        return "…"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(_literal, value)) + "]" if isinstance(value, list) else repr(value)


class Advice(str):
    """A sentence made of text and settings; as a ``str`` it has the words of the library."""

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> Advice:
        """Join the parts."""
        made = super().__new__(cls, "".join(in_python(p) if isinstance(p, Setting) else p for p in parts))
        made.parts = parts
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts


def phrased(text: str, phrase: Phrase) -> str:
    """A sentence with its settings in the words of a surface; any other text as it is."""
    if not isinstance(text, Advice):
        return text
    return "".join(phrase(part) if isinstance(part, Setting) else phrased(part, phrase) for part in text.parts)


class MixopeError(Exception):
    """Base of all errors a user can cause and mend."""

    exit_code = 1
    subject: str | None = None
    """Which of several it is about, such as "target 'new'"."""
    policy: str | None = None
    """The fingerprint of the policy that was asked when it was raised."""

    def __str__(self) -> str:
        return clean(self._named(super().__str__()))

    @property
    def reason(self) -> str:
        """What is wrong, without where and what to do next where these are known apart."""
        return str(self) if not self.args or not isinstance(self.args[0], str) else self.args[0]

    def text(self, phrase: Phrase = in_python) -> str:
        """The whole message in the words of a surface."""
        return self._named(phrased(self.reason, phrase))

    def about(self, subject: str) -> Self:
        """The same error, which now says which of several it is about; what was said first stays."""
        self.subject = self.subject or subject
        return self

    @property
    def named_reason(self) -> str:
        """The reason, and which of several it is about."""
        return self.reason if self.subject is None else Advice(f"{self.subject}: ", self.reason)

    def _named(self, text: str) -> str:
        return text if self.subject is None else f"{self.subject}: {text}"


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Inside, errors say which of several they are about."""
    try:
        yield
    except MixopeError as error:
        raise error.about(subject)  # noqa: B904 -- it is the same error


class UsageError(MixopeError):
    """The question as put has no answer: an unknown name, a wrong option, an estimand that an estimator lacks."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that is not in a registry; offers the nearest ones."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        known = sorted(known)
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"unknown {kind} {name!r}.{hint} Known: {', '.join(known)}.")


class MissingExtra(UsageError):
    """An optional dependency is not installed; the message is the line that installs it."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an optional dependency: pip install 'mixope[{extra}]'")


class DataError(MixopeError):
    """Logs or a policy cannot be used as they are.

    ``problem`` is one sentence; the rest says where and what to do. ``rows`` are the first offending rows
    (0-based within the file), ``got`` what stood there, ``total`` how many there are.
    """

    exit_code = 3

    def __init__(
        self,
        problem: str,
        *,
        where: str | None = None,
        column: str | None = None,
        rows: Sequence[int] = (),
        total: int | None = None,
        expected: str | None = None,
        got: object | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem, self.where, self.column = problem, where, column
        self.rows, self.total, self.expected, self.got, self.hint = tuple(rows), total, expected, got, hint
        super().__init__(self.text())

    @property
    def reason(self) -> str:
        """The problem in one sentence."""
        return self.problem

    def text(self, phrase: Phrase = in_python) -> str:
        """The message on several lines, one fact per line."""
        facts = self.facts(phrase)
        return facts if self.hint is None else f"{facts}\n  try:      {phrased(self.hint, phrase)}"

    def facts(self, phrase: Phrase = in_python) -> str:
        """The same without what to do next."""
        lines = [self._named(phrased(self.problem, phrase))]
        place = [part for part in (self.where, f"column {self.column!r}" if self.column else None) if part]
        if place:
            lines.append("  where:    " + ", ".join(place))
        if self.rows:
            shown = ", ".join(str(row) for row in self.rows)
            of = f" (of {self.total})" if self.total is not None and self.total > len(self.rows) else ""
            lines.append(f"  rows:     {shown}{of}")
        elif self.total is not None:
            lines.append(f"  rows:     {self.total} in all")
        if self.expected is not None:
            lines.append(f"  expected: {phrased(self.expected, phrase)}")
        if self.got is not None:
            lines.append(f"  got:      {self.got}")
        return "\n".join(lines)


class MixopeWarning(UserWarning):
    """The data can be used, but something about it should be known."""

    def __str__(self) -> str:
        return clean(super().__str__())


MOST_BYTES = 2 * 1024**3
"""No single table in memory may be larger than this."""


def must_fit(what: str, shape: Sequence[int], instead: str, bytes_each: int = 8) -> None:
    """Refuse a table that is too large before it is made: its size, the limit, and what to do instead."""
    size = math.prod(shape) * bytes_each
    if size > MOST_BYTES:
        sides = " × ".join(f"{side:,}" for side in shape)
        raise UsageError(
            f"{what} would be a table of {sides} entries, {size / 1024**2:,.0f} MB in memory; at most"
            f" {MOST_BYTES / 1024**2:,.0f} MB are allowed. {instead}"
        )
