"""Characters that the encoding of the output lacks: every command has an answer in every encoding.

Windows writes cp1252 into a file (``> out.txt``), and a plain C locale has ASCII. What an encoding lacks is written
with what it has: − as -, ≤ as <=, and letters, which may tell two names apart, as their numbers (``\\u4e2d``).
"""

from __future__ import annotations

import codecs
import sys
import unicodedata
from contextlib import suppress

OURS = {"✓": "+", "…": "...", "÷": "/", "±": "+/-", "·": ".", "\xa0": " ", "�": "?"}
OURS |= {"≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "→": "->", "←": "<-", "∞": "inf"}
OURS |= {"γ": "gamma", "Σ": "sum", "θ": "theta", "χ": "chi", "ω": "omega", "ζ": "zeta", "ρ": "rho"}
SIMPLER = {
    **OURS,
    **dict.fromkeys("−–—‐‑─━╌╴╶╸╺", "-"),
    **dict.fromkeys("│┃╎╵╷", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯", "+"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’′", "'"),
    **dict.fromkeys("●•○◇▲", "*"),
    **dict.fromkeys("█▉▊▋▌▍▎▏▁▂▃▄▅▆▇▒▓", "#"),
    **dict.fromkeys("✕✖×", "x"),
}
"""What our own sentences, tables and drawings hold, in ASCII."""
HANDLER = "mixope"


def in_ascii(text: str) -> str:
    """Characters that an encoding lacks, in ASCII."""
    return "".join(SIMPLER.get(character) or _escaped(character) for character in text)


def _escaped(character: str) -> str:
    digit = unicodedata.digit(character, None)
    if digit is not None and unicodedata.decomposition(character).startswith("<super>"):
        return f"^{digit}"
    return character.encode("ascii", "backslashreplace").decode("ascii")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return in_ascii(error.object[error.start : error.end]), error.end


codecs.register_error(HANDLER, _replaced)


def accept_all() -> None:
    """From now on nothing that is printed is refused for its characters."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # a stream of another program, or one that is closed
            stream.reconfigure(errors=HANDLER)  # type: ignore[union-attr]


def is_utf8() -> bool:
    """Whether standard output is UTF-8, or bytes."""
    try:
        return codecs.lookup(sys.stdout.encoding).name == "utf-8"
    except (AttributeError, LookupError, TypeError):
        return True
