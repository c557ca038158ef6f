"""A figure as inline SVG: real text, colours of the page, the same bytes every time.

Plots are drawn in placeholder colours (:data:`COLOURS`); here they become CSS variables with a fallback, so that one
drawing is legible on light, dark and paper. Identifiers get the figure's name in front, so that several drawings on one
page do not clash; what nothing refers to is left out.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {
    "ink": ("#010101", "#1d2328"),
    "muted": ("#010102", "#5a646d"),
    "rule": ("#010103", "#d5dade"),
    "paper": ("#010104", "#ffffff"),
    "good": ("#010105", "#006d52"),
    "caution": ("#010106", "#8a5300"),
    "bad": ("#010107", "#b3201a"),
    "reference": ("#010108", "#5a646d"),
    "logger": ("#010109", "#2a5fa8"),
    "truth": ("#01010a", "#7a2f8f"),
    "band": ("#01010b", "#2a5fa8"),
}
"""Name: placeholder while drawing, and what is shown where the page's style sheet is missing."""
INK, MUTED, RULE, PAPER = (COLOURS[name][0] for name in ("ink", "muted", "rule", "paper"))
FONT_SIZE = 13
_VARIABLES = {placeholder: f"var(--mx-{name}, {plain})" for name, (placeholder, plain) in COLOURS.items()}
_PLACEHOLDER = re.compile("#0101[0-9a-f]{2}")
_FONT = re.compile(r"^font: (?:.* )?([\d.]+px) .*$")
"""Size and family in one, as older versions of matplotlib write them."""
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mixope",
    "text.parse_math": False,
    "font.size": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": RULE,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
}


class Canvas(Figure):
    """A figure that holds one drawing and nothing else, so that the drawing may choose where its axes lie."""

    def __init__(self, width: int, height: int) -> None:
        """Of this size in CSS pixels."""
        super().__init__(figsize=(width / 72, height / 72), dpi=72)


def draw(plot: Callable[[Axes], None], width: int, height: int, *, name: str, says: str) -> str:
    """What ``plot`` draws on axes of this size in CSS pixels; ``says`` describes it to those who do not see it."""
    with own_style():
        figure = Canvas(width, height)
        plot(figure.subplots())
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return inline(drawn.getvalue(), name=name, says=says)


@contextmanager
def own_style() -> Iterator[None]:
    """Our settings over matplotlib's own, whatever the user has set; his come back afterwards."""
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # the browser has the font
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def inline(drawing: str, *, name: str, says: str) -> str:
    """An SVG file as an element of a page."""
    root = ElementTree.fromstring(drawing)
    used = {value[1:] for element in root.iter() for value in _references(element)}
    for element in root.iter():
        _adapt(element, name, used)
    for parent in root.iter():
        for child in [c for c in parent if c.tag in ("metadata", "style")]:
            parent.remove(child)
    box = root.attrib["viewBox"]
    wide = round(float(box.split()[2]))
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": says, "style": f"max-width: {wide}px"})
    return ElementTree.tostring(root, encoding="unicode")


def _references(element: ElementTree.Element) -> list[str]:
    """The identifiers an element points to, each with its #."""
    return [
        target
        for key, value in element.attrib.items()
        for target in ([value] if key.endswith("href") else re.findall(r"url\((#[^)]*)\)", value))
    ]


def _adapt(element: ElementTree.Element, name: str, used: set[str]) -> None:
    """Plain tags, own identifiers, colours of the page; text itself is not touched."""
    element.tag = element.tag.rpartition("}")[2]
    if element.tag not in ("text", "tspan"):
        element.text = None
    element.tail = None
    for key, value in list(element.attrib.items()):
        plain = key.rpartition("}")[2]
        del element.attrib[key]
        if plain == "id":
            if value in used:
                element.set("id", f"{name}-{value}")
        elif plain == "href":
            element.set("href", f"#{name}-{value[1:]}")
        elif plain == "style":
            element.set("style", _themed(value))
        elif plain == "transform" and value.startswith("rotate(-0 "):
            continue
        else:
            element.set(plain, " ".join(value.split()).replace("url(#", f"url(#{name}-"))


def _themed(style: str) -> str:
    """Placeholders as variables; the font is the page's."""
    kept = [_FONT.sub(r"font-size: \1", part) for part in style.split("; ") if not part.startswith("font-family")]
    return _PLACEHOLDER.sub(lambda found: _VARIABLES[found[0]], "; ".join(kept))
