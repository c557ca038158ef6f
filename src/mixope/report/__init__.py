"""Reports: records in, something to read out. Records know nothing of it: :mod:`mixope.base.rendering` finds it.

    words      numbers and sentences
    decision   the headline: better or worse than what ran, by how much, how sure
    sheet      all that is said of a record, once; ``*_sheet`` make it for each kind of record, ``sheets`` finds which
    terminal   what ``print`` and the command line show of a sheet (layout)
    cards      what a notebook shows of it, beside the one picture (charts)
    document   what a page shows of it; figures, sights, plots, graphs and svg draw, html puts it together

The libraries behind the page and the terminal are loaded when they are first asked for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mixope.base.rendering import Record, ReportedRecord
    from mixope.logs import Logs

__all__ = ["card", "full", "plot", "text", "write_html"]


def text(record: Record) -> str:
    """What ``print`` shows: the first screen without colours, on lines of a fixed width."""
    from mixope.report import terminal

    return terminal.text(record)


def full(record: Record) -> str:
    """All that a terminal shows of a record."""
    from mixope.report import terminal

    return terminal.text(record, full=True)


def card(record: Record | Logs) -> str:
    """The card that a notebook shows, as HTML."""
    from mixope.report import cards, html, plan_pictures, return_pictures  # noqa: F401 (each adds its picture)

    return html.fragment(cards.card(record))


def plot(record: Record | Logs, ax: Axes | None = None) -> Axes:
    """The picture of a record on these axes, or on a figure of its own; returns the axes."""
    from mixope.report import charts, plan_pictures, return_pictures  # noqa: F401 (each adds its picture)

    return charts.plot(record, ax)


def write_html(record: ReportedRecord, path: str | os.PathLike[str], **extras: Any) -> Path:
    """Write the report of a result as one self-contained page; it appears whole or not at all.

    Any record takes the ``command`` that made it and a ``phrase``, the words for what the reader could set. An estimate
    or a comparison also takes a ``backtest``, the outer ``band`` (low and high), the ``coverage`` that an inspection
    found, and the ``truth`` where it is known; of a comparison the last three may be mappings from targets. ``target``
    is what the page calls the policy of an estimate.
    """
    from mixope.base.files import write_whole
    from mixope.report import html
    from mixope.report.document import document

    return write_whole(path, html.render(document(record, **extras)).encode())
