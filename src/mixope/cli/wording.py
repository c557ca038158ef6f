"""The library's remedies in the words of the command line: ``done='terminated'`` is ``--done terminated`` here."""

from __future__ import annotations

import re
from collections.abc import Callable

_COLUMN = re.compile(r"""['"](\w+)['"]: (None|\[[^\]]*\]|['"][^'"]*['"])""")


def in_command_words(text: str) -> str:
    """The text with arguments of the library replaced by options."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def _columns(match: re.Match[str]) -> str:
    given = _COLUMN.findall(match[1])
    if not given:
        return "--column NAME=COLUMN"
    return " ".join(f"--column {name}={_column(value)}" for name, value in given)


def _column(value: str) -> str:
    if value == "None":
        return ""
    return "COLUMN,COLUMN" if value == "[…]" else value.strip("'\"")


_WORDS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r'(?:choose|name it) with columns=\{"(\w+)": \.\.\.\}'), r"rename the right column to \1 in the file"),
    (re.compile(r"columns=\{([^}]*)\}"), _columns),
    (re.compile(r"done='(\w+)'"), r"--done \1"),
    (re.compile(r"estimand='(\w+)'"), r"--estimand \1"),
    (re.compile(r"form='(\w+)'"), r"--form \1"),
    (re.compile(r"interval='(\w+)'"), r"--interval \1"),
    (
        re.compile(r'(?<![\w-])default="uniform", an action, or a probability vector'),
        "--target-default uniform (or an action)",
    ),
    (re.compile(r'unknown_actions="zero"'), "--unknown-actions zero"),
    (re.compile(r"trust=True"), "--trust"),
    (re.compile(r"outputs= one of"), "--outputs, one of"),
    (re.compile(r" with loggers=\{[^}]*\} \(or (--logger [^)]*)\)"), r" with \1"),
    (re.compile(r"loggers=\{[^}]*\}"), "--logger LABEL=FILE"),
    (re.compile(r", or pass format=…"), ""),
    (
        re.compile(r"use it as loggers: read_policies\(\.\.\.\) gives one policy for each policy_id"),
        "give it with --loggers",
    ),
    (
        re.compile(r"read_policy\(\.\.\.\) reads a table of one policy"),
        "give a table of one policy with --logger LABEL=FILE",
    ),
)
