"""How wide a text will be, for labels that must fit: by the widest of the usual sans-serif fonts, which matplotlib has.

The page chooses its own font, so this is a bound and not a measure. Characters that the font lacks (ideographs, emoji)
count as more than an em.
"""

from __future__ import annotations

from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

_LACKING = 1.3


def width(text: str, size: float) -> float:
    """In CSS pixels, at that font size."""
    return size * sum(_advance(character) for character in text)


def shortened(text: str, size: float, most: float) -> str:
    """One line of at most that many pixels; the middle is left out where it is too long."""
    line = " ".join(text.split())
    if width(line, size) <= most:
        return line
    for kept in range(len(line) - 1, 1, -1):
        end = kept // 3
        short = f"{line[: kept - end]}…{line[len(line) - end :]}"
        if width(short, size) <= most:
            return short
    return "…"


@cache
def _advance(character: str) -> float:
    """Of one character, in ems."""
    font = get_font(findfont(FontProperties(family="DejaVu Sans"), rebuild_if_missing=False))
    if not font.get_char_index(ord(character)):
        return _LACKING
    font.set_size(100, 72)
    return float(font.load_char(ord(character)).linearHoriAdvance) / 65536 / 100
