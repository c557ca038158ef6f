"""Everything that can go wrong on a user's side, with words and an exit code.

An error says what was expected, what was found, where, and what to do next. The command line prints it and
exits with ``exit_code``; the library raises it. A failure that is not one of these is a bug of ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class MixopeError(Exception):
    """Base of all errors a user can cause and mend."""

    exit_code = 1


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

    def text(self) -> str:
        """The message on several lines, one fact a line."""
        lines = [self.problem]
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
            lines.append(f"  expected: {self.expected}")
        if self.got is not None:
            lines.append(f"  got:      {self.got}")
        if self.hint is not None:
            lines.append(f"  try:      {self.hint}")
        return "\n".join(lines)


class MixopeWarning(UserWarning):
    """The data can be used, but something about it should be known."""
