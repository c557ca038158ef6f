"""A figure of a page: drawn twice, for wide and for narrow pages, with a caption and a description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from mixope.base.errors import clean
from mixope.report import plots
from mixope.report.svg import draw

WIDE, NARROW = 760, 344


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: SVG for wide and for narrow pages, and the line under it."""

    wide: Markup
    narrow: Markup
    caption: str


Figures = dict[str, Drawing]


def twice(plot: Callable[..., None], rows: int, name: str, caption: str, says: str) -> Drawing:
    """A figure of so many rows."""
    return sized(plot, plots.height(rows, False), plots.height(rows, True), name, caption, says)


def sized(plot: Callable[..., None], wide: int, narrow: int, name: str, caption: str, says: str) -> Drawing:
    """A figure of these heights in CSS pixels, on wide and on narrow pages."""

    def drawn(slim: bool, across: int, down: int, size: str) -> Markup:
        return Markup(draw(partial(plot, narrow=slim), across, down, name=f"{name}-{size}", says=clean(says)))

    return Drawing(drawn(False, WIDE, wide, "wide"), drawn(True, NARROW, narrow, "narrow"), caption)
