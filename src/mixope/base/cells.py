"""Text cells of CSV files that a spreadsheet would run as formulas: marked when written, bare again when read.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is a formula to a spreadsheet, whoever
wrote it. An apostrophe in front makes it text. So that nothing is lost, a text that looks marked already is marked
once more, and reading takes one apostrophe away. Numbers are left as they are.
"""

from __future__ import annotations

import re
from typing import Any

FORMULA = r"'*[=+\-@\t\r]"
"""How a cell begins that must be marked (RE2 and Python read it alike)."""
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-](inf|nan)"
BARE_SQL = "CASE WHEN starts_with({0}, '''') THEN regexp_replace({0}, '^''(''*[=+\\-@\\t\\r])', '\\1') ELSE {0} END"
"""The SQL of :func:`bare`."""


def marked(text: str) -> str:
    """A cell that every spreadsheet takes as text or as a number."""
    formula = re.match(FORMULA, text) and not re.fullmatch(NUMBER, text)
    return f"'{text}" if formula else text


def bare(text: str) -> str:
    """What :func:`marked` was given."""
    return text[1:] if text.startswith("'") and re.match(FORMULA, text) else text


def mark_column(column: Any) -> Any:
    """The same for an Arrow column of strings."""
    import pyarrow.compute as pc

    formula = pc.and_not(
        pc.match_substring_regex(column, f"^{FORMULA}"), pc.match_substring_regex(column, f"^({NUMBER})$")
    )
    return pc.if_else(formula, pc.binary_join_element_wise("'", column, ""), column)


def bare_column(column: Any) -> Any:
    """The same for an Arrow column of strings."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(column, r"^'('*[=+\-@\t\r])", r"\1")
