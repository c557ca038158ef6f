"""Labels that a reader takes for one: they differ by what cannot be seen, or by letters of other scripts.

Two labels look alike if they are equal once invisible characters are left out, every kind of space is one space, every
hyphen one hyphen, accents are composed, and Cyrillic and Greek letters that are drawn like Latin ones are taken for
these.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from mixope.base.errors import INVISIBLE, UNSHOWABLE

ALIKE = str.maketrans(
    "аеорсухіјѕԁԛԝһӏАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧοα‐‑‒–−",
    "aeopcyxijsdqwhlABEKMHOPCTYXIJSABEZHIKMNOPTYXoa-----",
)
SPACES = re.compile(r"\s+")
JOINERS = re.compile("[\u200c\u200d\ufe00-\ufe0f]")
SHOWN_GROUPS = 3
SHOWN_LABELS = 4


def look_alikes(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of labels that look alike."""
    groups: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        groups.setdefault(_look(label), []).append(label)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _look(label: str) -> str:
    if label.isascii():
        return SPACES.sub(" ", UNSHOWABLE.sub("", label)).strip()
    seen = JOINERS.sub("", INVISIBLE.sub("", UNSHOWABLE.sub("", unicodedata.normalize("NFC", label))))
    return SPACES.sub(" ", seen.translate(ALIKE)).strip()


def about_look_alikes(groups: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """A sentence on labels that look alike; none where there are none."""
    if not groups:
        return ()
    said = "; ".join(_together(group) for group in groups[:SHOWN_GROUPS])
    more = f"; and {len(groups) - SHOWN_GROUPS:,} more such groups" if len(groups) > SHOWN_GROUPS else ""
    return (
        f"loggers have labels that look alike and are different ones: {said}{more}. If they are the same logger, write"
        " its label alike in all rows",
    )


def _together(group: tuple[str, ...]) -> str:
    """Labels with the numbers of all characters that are not ASCII, so that they can be told apart."""
    shown = [ascii(label if len(label) <= 60 else f"{label[:60]}…") for label in group[:SHOWN_LABELS]]
    rest = len(group) - len(shown)
    return ", ".join([*shown, f"{rest:,} more"]) if rest else f"{', '.join(shown[:-1])} and {shown[-1]}"
