"""The three streams of a process as a shell may hand them over: in any encoding, and any of them closed.

Windows writes cp1252 into a file (``> out.txt``), and a plain C locale has ASCII. What an encoding lacks is written
with what it has: − as -, ≤ as <=, and letters, which may tell two names apart, as their numbers (``\\u4e2d``).
"""

from __future__ import annotations

import codecs
import os
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
STREAMS = 3


def in_ascii(text: str) -> str:
    """Characters that an encoding lacks, in ASCII."""
    return "".join(SIMPLER.get(character) or _escaped(character) for character in text)


def _escaped(character: str) -> str:
    if "SUPERSCRIPT" in unicodedata.name(character, ""):
        return f"^{unicodedata.digit(character, '?')}"
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


def fill() -> bool:
    """Put something in the place of streams that the shell closed; says whether there is a standard output.

    A file that is opened next would else take the place of the stream, and what libraries print would end up in it.
    """
    there = sys.stdout is not None
    place = os.open(os.devnull, os.O_RDWR)
    while place < STREAMS:
        os.set_inheritable(place, True)
        place = os.open(os.devnull, os.O_RDWR)
    os.close(place)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    return there
