"""One style for all pictures: an Okabe–Ito colour and a marker of its own for every method, real text, white ground.

Solid lines and filled markers need no behaviour policy; dashed lines and hollow markers know it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.base.files import write_whole
from mixope.paper.experiment import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#8c959c"
PIXELS = 120
"""Of a PNG, per inch."""

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mixope",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e7ea",
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
}
NAMES = {
    "taxi": "Taxi",
    "singlepath": "SinglePath",
    "gridworld": "Gridworld",
    "gridworld-slip": "Gridworld (slip .1)",
    "walk": "Walk",
    "garnet": "Random world",
    "pendulum": "Pendulum",
    "pendulum-trained": "Pendulum (trained)",
    "sessions": "Sessions",
    "survival": "Survival",
    "queue": "Queue",
    "frozenlake": "FrozenLake",
    "blackjack": "Blackjack",
    "cartpole": "CartPole",
}


@dataclass(frozen=True)
class Look:
    """A label, a colour, a marker, and whether the method is told the behaviour policies (dashed and hollow then)."""

    label: str
    colour: str
    marker: str
    aware: bool = False


LOOKS: dict[str, Look] = {
    "emp": Look("EMP", BLUE, "o"),
    "emp-single": Look("EMP (single)", ORANGE, "s"),
    "kl-emp": Look("KL-EMP", GREEN, "^"),
    "kernel": Look("EMP, kernel", GREY, "P"),
    "emp-neural": Look("EMP, network", BLACK, "X"),
    "sadl": Look("SADL", GREEN, "^"),
    "bch": Look("BCH", VERMILION, "s", aware=True),
    "bch-pooled": Look("BCH (pooled)", SKY, "o", aware=True),
    "bch-kl-pooled": Look("BCH (KL-pooled)", PURPLE, "^", aware=True),
    "is-step": Look("IS, step-wise", ORANGE, "v", aware=True),
    "wis-step": Look("WIS, step-wise", PURPLE, "D", aware=True),
    "mis": Look("MIS", BLACK, "v", aware=True),
    "mis-step": Look("MIS, step-wise", PURPLE, "D", aware=True),
}


@contextmanager
def style() -> Iterator[None]:
    """Our settings over matplotlib's own; the user's come back afterwards."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def share_legend(figure: Figure, grid: Iterable[Axes]) -> None:
    """One legend beneath all panels, every label once."""
    handles = {label: h for axes in grid for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=min(len(handles), 7) or 1)


def mark_places(axes: Axes, places: Iterable[object]) -> None:
    """A logarithmic axis with a tick at every place and nowhere else."""
    axes.set_xscale("log")
    ticks = sorted({place for place in places if isinstance(place, int)})
    axes.set_xticks(ticks, [str(x) for x in ticks])
    axes.minorticks_off()


def draw_method(
    axes: Axes, name: str, x: Sequence[float], y: Sequence[float], error: Sequence[float], **more: Any
) -> None:
    """The line of a method, in its colour and with its marker."""
    look = LOOKS[name]
    axes.errorbar(
        x,
        y,
        yerr=error,
        label=look.label,
        color=look.colour,
        marker=look.marker,
        linestyle="--" if look.aware else "-",
        markerfacecolor="white" if look.aware else look.colour,
        capsize=2,
        **more,
    )


def save(draw: Callable[[Sequence[Row]], Figure], rows: Sequence[Row], stem: Path) -> list[Path]:
    """The picture as PNG and SVG, each whole or not at all; the same rows give the same bytes."""
    written = []
    with style():
        figure = draw(rows)
        for suffix in (".png", ".svg"):
            empty = {"Software": None} if suffix == ".png" else {"Date": None, "Creator": None}
            made = BytesIO()
            figure.savefig(made, format=suffix[1:], dpi=PIXELS, metadata=empty, facecolor="white")
            figure.set_layout_engine("none")  # where things are is decided once
            content = _shrunk(made) if suffix == ".png" else made.getvalue()
            written.append(write_whole(stem.with_suffix(suffix), content))
    return written


def _shrunk(made: BytesIO) -> bytes:
    """A palette of 128 colours, which is all there are: a third of the bytes."""
    from PIL import Image

    with Image.open(made) as picture:
        few = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    smaller = BytesIO()
    few.save(smaller, format="PNG", optimize=True)
    return smaller.getvalue()
